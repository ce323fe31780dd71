// SPDX-License-Identifier: Apache-2.0
// How far from float64's answer an output may be.
#include "drk/judge.h"

#include "scale.h"
#include "tensor_compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace drk::judge {

namespace {

using value::DType;

/// The distance from 1 to the next number of the dtype; absent where there is no budget.
std::optional<double> eps_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
    case DType::complex64:
      return std::numeric_limits<float>::epsilon();
    case DType::float64:
    case DType::complex128:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::nullopt;
  }
}

bool is_exact_kin(DType dtype, DType exact) noexcept {
  const bool is_complex = value::class_of(dtype) == value::DTypeClass::complex;
  return exact == (is_complex ? DType::complex128 : DType::float64);
}

/// Pairs the tensors of two trees of one structure. False when they differ.
bool pair_tensors(const value::Node& expected,
                  const value::Node& exact,
                  std::vector<std::optional<std::uint32_t>>& pairs) {
  if (expected.kind != exact.kind || expected.items.size() != exact.items.size() ||
      expected.keys != exact.keys) {
    return false;
  }
  if (expected.kind == value::NodeKind::tensor) pairs[*expected.tensor] = exact.tensor;
  for (std::size_t i = 0; i < expected.items.size(); ++i) {
    if (!pair_tensors(expected.items[i], exact.items[i], pairs)) return false;
  }
  return true;
}

/// The reference's own error; absent when the two do not answer the same question.
std::optional<double> own_error(const TensorView& exact, const TensorView& expected) {
  // What rounding alone does never reaches this, whatever the condition of the problem.
  constexpr double kFar = 1e-2;
  ErrorSums sums;
  const Limit limit = {kFar * magnitude_of(exact), kFar};
  if (compare_reals(exact, expected, limit, sums)) return std::nullopt;
  return sums.max_abs;
}

}  // namespace

std::optional<ErrorBudget> error_budget(const value::View& expected,
                                        const value::View& exact,
                                        double reduction_length) {
  constexpr double kOwnErrors = 8;
  std::vector<std::optional<std::uint32_t>> pairs(expected.bundle->tensors.size());
  if (!pair_tensors(expected.bundle->root, exact.bundle->root, pairs)) return std::nullopt;
  ErrorBudget budget;
  budget.leaves.resize(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const value::Tensor& tensor = expected.bundle->tensors[i];
    const auto eps = eps_of(tensor.dtype);
    if (!eps || !pairs[i]) continue;
    const value::Tensor& answer = exact.bundle->tensors[*pairs[i]];
    if (tensor.shape != answer.shape || !is_exact_kin(tensor.dtype, answer.dtype)) {
      return std::nullopt;
    }
    const TensorView answer_view = {answer, exact.block};
    const auto error = own_error(answer_view, {tensor, expected.block});
    if (!error) return std::nullopt;
    const double of_sums = *eps * std::sqrt(reduction_length) * magnitude_of(answer_view);
    budget.leaves[i] = {*pairs[i], std::max(kOwnErrors * *error, of_sums)};
  }
  return budget;
}

double reduction_length(const value::Bundle& inputs, const value::Bundle& output) {
  constexpr double kLeast = 4096;
  constexpr double kMostOfADimension = 65536;
  const auto elements = [](const value::Bundle& bundle) {
    double count = 0;
    for (const value::Tensor& tensor : bundle.tensors) {
      count += static_cast<double>(value::element_count(tensor));
    }
    return count;
  };
  double length = std::max(kLeast, elements(inputs) / std::max(1.0, elements(output)));
  for (const value::Tensor& tensor : inputs.tensors) {
    for (const std::int64_t size : tensor.shape) {
      length = std::max(length, std::min(kMostOfADimension, static_cast<double>(size)));
    }
  }
  return length;
}

bool is_finite(const value::View& view) {
  for (const value::Tensor& tensor : view.bundle->tensors) {
    const value::DTypeClass kind = value::class_of(tensor.dtype);
    if (kind != value::DTypeClass::real && kind != value::DTypeClass::complex) continue;
    const std::size_t parts = parts_of(tensor.dtype);
    std::array<double, 2 * kChunkElements> numbers = {};
    ElementReader reader({tensor, view.block});
    for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
      decode_reals(tensor.dtype, bytes, numbers.data());
      const auto count = bytes.size() / value::size_bytes(tensor.dtype) * parts;
      const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(count);
      if (!std::all_of(numbers.begin(), end, [](double x) { return std::isfinite(x); }))
        return false;
    }
  }
  return true;
}

std::uint64_t count_all_bits_set(const value::View& view) {
  std::uint64_t found = 0;
  for (const value::Tensor& tensor : view.bundle->tensors) {
    if (value::class_of(tensor.dtype) == value::DTypeClass::boolean) continue;
    const std::size_t width = value::size_bytes(tensor.dtype);
    ElementReader reader({tensor, view.block});
    for (auto bytes = reader.next(); !bytes.empty(); bytes = reader.next()) {
      for (std::size_t at = 0; at < bytes.size(); at += width) {
        const auto element = bytes.subspan(at, width);
        const bool all_set = std::all_of(
            element.begin(), element.end(), [](std::byte b) { return b == std::byte{0xFF}; });
        found += all_set ? 1 : 0;
      }
    }
  }
  return found;
}

}  // namespace drk::judge
