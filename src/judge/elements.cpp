// SPDX-License-Identifier: Apache-2.0
// Walks strided tensors and decodes their elements.
#include "elements.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace drk::judge {

namespace {

template <std::size_t Width>
void copy_strided(std::byte* out, const std::byte* from, std::size_t count, std::uint64_t stride) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * Width, from + i * stride, Width);
  }
}

void copy_strided(std::byte* out,
                  const std::byte* from,
                  std::size_t count,
                  std::uint64_t stride_bytes,
                  std::size_t width) {
  if (stride_bytes == width) {
    std::memcpy(out, from, count * width);
    return;
  }
  switch (width) {
    case 1:
      return copy_strided<1>(out, from, count, stride_bytes);
    case 2:
      return copy_strided<2>(out, from, count, stride_bytes);
    case 4:
      return copy_strided<4>(out, from, count, stride_bytes);
    case 8:
      return copy_strided<8>(out, from, count, stride_bytes);
    default:
      return copy_strided<16>(out, from, count, stride_bytes);
  }
}

}  // namespace

ElementReader::ElementReader(const TensorView& view)
    : width_(value::size_bytes(view.tensor.dtype)),
      left_(static_cast<std::uint64_t>(value::element_count(view.tensor))) {
  if (left_ == 0) return;  // without elements, offset and strides mean nothing
  at_ = view.block.data() + view.tensor.offset_bytes;
  for (std::size_t i = 0; i < view.tensor.shape.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(view.tensor.shape[i]);
    const std::uint64_t stride = static_cast<std::uint64_t>(view.tensor.strides[i]) * width_;
    if (size == 1) continue;
    if (!dims_.empty() && dims_.back().stride_bytes == stride * size) {
      dims_.back() = {dims_.back().size * size, stride, 0};
    } else {
      dims_.push_back({size, stride, 0});
    }
  }
  if (dims_.empty()) dims_.push_back({1, width_, 0});
  dense_ = dims_.size() == 1 && dims_[0].stride_bytes == width_;
}

std::span<const std::byte> ElementReader::next() {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, kChunkElements));
  if (count == 0) return {};
  left_ -= count;
  if (dense_) {
    const std::span<const std::byte> chunk(at_, count * width_);
    at_ += chunk.size();
    return chunk;
  }
  for (std::size_t filled = 0; filled < count;) {
    filled += copy_run(buffer_.data() + filled * width_, count - filled);
  }
  return {buffer_.data(), count * width_};
}

std::size_t ElementReader::copy_run(std::byte* out, std::size_t max_count) {
  const Dim& inner = dims_.back();
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(inner.size - inner.index, max_count));
  copy_strided(out, at_, count, inner.stride_bytes, width_);
  step(count);
  return count;
}

void ElementReader::step(std::uint64_t count) {
  for (std::size_t i = dims_.size(); i-- > 0;) {
    Dim& dim = dims_[i];
    dim.index += count;
    if (dim.index < dim.size) {
      at_ += count * dim.stride_bytes;
      return;
    }
    at_ -= (dim.index - count) * dim.stride_bytes;  // back to the head of this dimension
    dim.index = 0;
    count = 1;
  }
}

std::size_t parts_of(value::DType dtype) noexcept {
  return value::class_of(dtype) == value::DTypeClass::complex ? 2 : 1;
}

namespace {

template <class Raw, class Out, class Convert>
void convert(std::span<const std::byte> bytes, Out* out, const Convert& to_number) noexcept {
  const std::size_t count = bytes.size() / sizeof(Raw);
  for (std::size_t i = 0; i < count; ++i) {
    Raw raw;
    std::memcpy(&raw, bytes.data() + i * sizeof(Raw), sizeof(Raw));
    out[i] = to_number(raw);
  }
}

/// A narrow float whose magnitude bits stand where float32 keeps the low bits of its exponent and
/// the high bits of its fraction: right up to the difference of the two exponent biases, which a
/// multiplication makes up, subnormal numbers included.
float widen(std::uint32_t magnitude, int fraction_bits, int bias) noexcept {
  const auto shifted = std::bit_cast<float>(magnitude << (23 - fraction_bits));
  return shifted * std::bit_cast<float>(static_cast<std::uint32_t>(254 - bias) << 23);
}

float with_sign(float magnitude, bool negative) noexcept {
  return negative ? -magnitude : magnitude;
}

float nan_or_infinity(bool is_nan) noexcept {
  return std::bit_cast<float>(is_nan ? 0x7FC00000U : 0x7F800000U);
}

float from_float16(std::uint16_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7FFFU;
  const float number =
      magnitude >= 0x7C00U ? nan_or_infinity(magnitude > 0x7C00U) : widen(magnitude, 10, 15);
  return with_sign(number, (bits & 0x8000U) != 0);
}

float from_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Has no infinity; only the largest magnitude is NaN.
float from_float8_e4m3fn(std::uint8_t bits) noexcept {
  const std::uint32_t magnitude = bits & 0x7FU;
  const float number = magnitude == 0x7FU ? nan_or_infinity(true) : widen(magnitude, 3, 7);
  return with_sign(number, (bits & 0x80U) != 0);
}

/// The upper half of a float16.
float from_float8_e5m2(std::uint8_t bits) noexcept {
  return from_float16(static_cast<std::uint16_t>(bits << 8));
}

std::int64_t from_int8(std::uint8_t bits) noexcept {
  return bits < 0x80U ? bits : std::int64_t{bits} - 0x100;
}

template <class T>
T same(T number) noexcept {
  return number;
}

}  // namespace

void decode_reals(value::DType dtype, std::span<const std::byte> elements, double* out) noexcept {
  using value::DType;
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return convert<double>(elements, out, same<double>);
    case DType::float32:
    case DType::complex64:
      return convert<float>(elements, out, same<float>);
    case DType::float16:
    case DType::complex32:
      return convert<std::uint16_t>(elements, out, from_float16);
    case DType::bfloat16:
      return convert<std::uint16_t>(elements, out, from_bfloat16);
    case DType::float8_e4m3fn:
      return convert<std::uint8_t>(elements, out, from_float8_e4m3fn);
    case DType::float8_e5m2:
      return convert<std::uint8_t>(elements, out, from_float8_e5m2);
    default:
      return;  // integers and booleans have decode_integers
  }
}

void decode_integers(value::DType dtype,
                     std::span<const std::byte> elements,
                     std::int64_t* out) noexcept {
  using value::DType;
  switch (dtype) {
    case DType::int64:
    case DType::uint64:
      return convert<std::int64_t>(elements, out, same<std::int64_t>);
    case DType::int32:
      return convert<std::int32_t>(elements, out, same<std::int32_t>);
    case DType::uint32:
      return convert<std::uint32_t>(elements, out, same<std::uint32_t>);
    case DType::int16:
      return convert<std::int16_t>(elements, out, same<std::int16_t>);
    case DType::uint16:
      return convert<std::uint16_t>(elements, out, same<std::uint16_t>);
    case DType::int8:
      return convert<std::uint8_t>(elements, out, from_int8);
    case DType::uint8:
      return convert<std::uint8_t>(elements, out, same<std::uint8_t>);
    case DType::bool_:
      return convert<std::uint8_t>(elements, out, [](std::uint8_t b) { return b != 0 ? 1 : 0; });
    default:
      return;  // real and complex dtypes have decode_reals
  }
}

std::vector<std::int64_t> index_of(std::span<const std::int64_t> shape, std::uint64_t position) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    const auto size = static_cast<std::uint64_t>(shape[i]);
    index[i] = static_cast<std::int64_t>(position % size);
    position /= size;
  }
  return index;
}

std::span<const std::byte> element_at(const TensorView& view, std::span<const std::int64_t> index) {
  std::int64_t position = 0;
  for (std::size_t i = 0; i < index.size(); ++i) position += index[i] * view.tensor.strides[i];
  const std::size_t width = value::size_bytes(view.tensor.dtype);
  return view.block.subspan(view.tensor.offset_bytes + static_cast<std::uint64_t>(position) * width,
                            width);
}

}  // namespace drk::judge
