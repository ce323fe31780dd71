// SPDX-License-Identifier: Apache-2.0
// Sizes, names, layout and checks of bundles.
#include "drk/value.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace drk::value {

namespace {

// Shapes may come from hostile code: what is too large to count is the largest number, not a small
// one.
std::uint64_t add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

template <class Integer>
Integer multiply(Integer a, Integer b) noexcept {  // neither is negative
  Integer product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<Integer>::max() : product;
}

bool has_no_element(const Tensor& tensor) noexcept {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

}  // namespace

std::size_t size_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::complex128:
      return 16;
    case DType::float64:
    case DType::complex64:
    case DType::int64:
    case DType::uint64:
      return 8;
    case DType::float32:
    case DType::complex32:
    case DType::int32:
    case DType::uint32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
    case DType::uint16:
      return 2;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::int8:
    case DType::uint8:
    case DType::bool_:
      return 1;
  }
  return 1;
}

DTypeClass class_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return DTypeClass::real;
    case DType::complex128:
    case DType::complex64:
    case DType::complex32:
      return DTypeClass::complex;
    case DType::bool_:
      return DTypeClass::boolean;
    default:
      return DTypeClass::integer;
  }
}

std::string torch_name(DType dtype) {
  return dtype == DType::bool_ ? "torch.bool" : fmt::format("torch.{}", json::name_of(dtype));
}

std::int64_t element_count(const Tensor& tensor) noexcept {
  if (has_no_element(tensor)) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count = multiply(count, size);
  return count;
}

std::uint64_t extent_bytes(const Tensor& tensor) noexcept {
  if (has_no_element(tensor)) return 0;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    last = add(last,
               multiply(static_cast<std::uint64_t>(tensor.shape[i] - 1),
                        static_cast<std::uint64_t>(tensor.strides[i])));
  }
  return multiply(add(last, 1), std::uint64_t{size_bytes(tensor.dtype)});
}

std::string describe_shape(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string describe(const Tensor& tensor) {
  const std::string name = tensor.dtype == DType::bool_ ? "bool" : json::name_of(tensor.dtype);
  return name + describe_shape(tensor.shape);
}

std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = multiply(step, std::max(shape[i], std::int64_t{1}));
  }
  return strides;
}

void lay_out(Bundle& bundle) noexcept {
  std::uint64_t offset = 0;
  for (Tensor& tensor : bundle.tensors) {
    tensor.offset_bytes = offset;
    const std::uint64_t padded = add(extent_bytes(tensor), kTensorAlignmentBytes - 1);
    offset = add(offset, padded / kTensorAlignmentBytes * kTensorAlignmentBytes);
  }
  bundle.block_bytes = offset;
}

std::size_t description_bytes(const Bundle& bundle) {
  return json::dump(json::to_json(bundle)).size();
}

namespace {

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorCode::corrupt, "a process described its tensors wrongly: " + what);
}

bool product_fits(std::uint64_t a, std::uint64_t b, std::uint64_t limit) noexcept {
  return a == 0 || b <= limit / a;
}

void check_tensor(const Tensor& tensor, std::uint64_t block_bytes) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 2);
  if (tensor.shape.size() != tensor.strides.size()) fail("shape and strides differ in length");
  if (tensor.shape.size() > kMaxDimensions) {
    fail(fmt::format("more than {} dimensions", kMaxDimensions));
  }
  const bool is_empty = has_no_element(tensor);
  std::uint64_t count = 1;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0 || tensor.strides[i] < 0) fail("negative size or stride");
    if (is_empty) continue;  // torch makes such of any size, and nothing is read of them
    const auto size = static_cast<std::uint64_t>(tensor.shape[i]);
    const auto stride = static_cast<std::uint64_t>(tensor.strides[i]);
    if (!product_fits(count, size, kMax)) fail("too many elements");
    count *= size;
    if (!product_fits(size - 1, stride, kMax - last)) fail("extent out of range");
    last += (size - 1) * stride;
  }
  if (tensor.offset_bytes % kTensorAlignmentBytes != 0) fail("misaligned tensor");
  if (tensor.offset_bytes > block_bytes) fail("a tensor that lies behind its block");
  if (is_empty) return;
  const std::uint64_t width = size_bytes(tensor.dtype);
  if (last >= block_bytes || (last + 1) > block_bytes / width ||
      tensor.offset_bytes > block_bytes - (last + 1) * width) {
    fail(describe(tensor) + " does not fit the block of " + std::to_string(block_bytes) + " bytes");
  }
}

void check_node(const Node& node, std::size_t tensor_count, int depth) {
  if (depth > 64) fail("nested deeper than 64");
  if (node.kind == NodeKind::tensor && (!node.tensor || *node.tensor >= tensor_count)) {
    fail("a tensor that is not there");
  }
  if (node.kind == NodeKind::dict && node.keys.size() != node.items.size()) {
    fail("a dict with unequal numbers of keys and values");
  }
  for (const Node& item : node.items) check_node(item, tensor_count, depth + 1);
}

}  // namespace

void check(const Bundle& bundle, std::uint64_t block_bytes) {
  if (bundle.block_bytes > block_bytes) fail("the block is smaller than announced");
  for (const Tensor& tensor : bundle.tensors) check_tensor(tensor, block_bytes);
  check_node(bundle.root, bundle.tensors.size(), 0);
}

}  // namespace drk::value
