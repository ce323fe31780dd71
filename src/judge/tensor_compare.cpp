// SPDX-License-Identifier: Apache-2.0
// The loops over elements. One fast test settles what is finite and near; all else goes the slow
// way, which tells NaN, infinities and wrong values apart.
#include "tensor_compare.h"

#include "parts.h"
#include "scale.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace drk::judge {

namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

/// Elements that are wrong in one way: how many, and where.
struct Wrong {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;   ///< Of them, those that are 0.
  std::uint64_t first = 0;   ///< Position in row-major order.
  std::uint64_t last = 0;    ///< Likewise.
  double allowed_error = 0;  ///< At the first.

  void note(std::uint64_t position, double allowed, bool is_zero) noexcept {
    last = position;
    zeros += is_zero ? 1 : 0;
    if (count++ > 0) return;
    first = position;
    allowed_error = allowed;
  }
  /// Of elements that come later, their positions counted from `begin`.
  void add(const Wrong& later, std::uint64_t begin) noexcept {
    if (later.count == 0) return;
    if (count == 0) {
      first = begin + later.first;
      allowed_error = later.allowed_error;
    }
    last = begin + later.last;
    zeros += later.zeros;
    count += later.count;
  }
};

struct Tally {
  Wrong nan, infinity, value;
  std::uint64_t expected_nan = 0, got_nan = 0;
  std::uint64_t expected_infinite = 0, got_infinite = 0;

  void add(const Tally& later, std::uint64_t begin) noexcept {
    nan.add(later.nan, begin);
    infinity.add(later.infinity, begin);
    value.add(later.value, begin);
    expected_nan += later.expected_nan;
    got_nan += later.got_nan;
    expected_infinite += later.expected_infinite;
    got_infinite += later.got_infinite;
  }
};

template <std::size_t Parts>
double length_of(const double* parts) noexcept {
  if constexpr (Parts == 1) return std::abs(parts[0]);
  const double square = parts[0] * parts[0] + parts[1] * parts[1];
  const bool in_range = square > 1e-280 && square < 1e280;
  return in_range ? std::sqrt(square) : std::hypot(parts[0], parts[1]);
}

template <std::size_t Parts>
class RealComparison {
 public:
  RealComparison(const TensorView& expected,
                 const TensorView& got,
                 const Limit& limit,
                 bool nan_equals_nan,
                 ErrorSums& sums)
      : expected_(expected),
        got_(got),
        limit_(limit),
        nan_equals_nan_(nan_equals_nan),
        sums_(sums) {}

  Tally run() {
    ElementReader expected_reader(expected_);
    ElementReader got_reader(got_);
    std::array<double, kChunkElements* Parts> expected = {};
    std::array<double, kChunkElements* Parts> got = {};
    const value::DType dtype = expected_.tensor.dtype;
    std::uint64_t position = 0;
    for (auto bytes = expected_reader.next(); !bytes.empty(); bytes = expected_reader.next()) {
      decode_reals(dtype, bytes, expected.data());
      decode_reals(got_.tensor.dtype, got_reader.next(), got.data());
      const std::size_t count = bytes.size() / value::size_bytes(dtype);
      compare_chunk(expected.data(), got.data(), count, position);
      position += count;
    }
    return tally_;
  }

 private:
  void compare_chunk(const double* expected,
                     const double* got,
                     std::size_t count,
                     std::uint64_t position) {
    ErrorSums sums = sums_;  // in registers for the length of the loop
    for (std::size_t i = 0; i < count; ++i, expected += Parts, got += Parts) {
      const double magnitude = length_of<Parts>(expected);
      const double error = distance(expected, got);
      // False for NaN on either side; an infinite `got` has an infinite error.
      const double allowed = limit_.at(magnitude);
      sums.note_zero(magnitude, is_zero(got));
      if (magnitude <= kLargest && error <= allowed) {
        sums.add(error, magnitude, allowed);
      } else {
        examine(expected, got, position + i, sums);
      }
    }
    sums_ = sums;
  }

  static double distance(const double* a, const double* b) noexcept {
    if constexpr (Parts == 1) return std::abs(a[0] - b[0]);
    const std::array difference{a[0] - b[0], a[1] - b[1]};
    return length_of<2>(difference.data());
  }

  void examine(const double* expected, const double* got, std::uint64_t position, ErrorSums& sums) {
    const bool expected_nan = has_nan(expected);
    const bool got_nan = has_nan(got);
    tally_.expected_nan += expected_nan ? 1 : 0;
    tally_.got_nan += got_nan ? 1 : 0;
    if (expected_nan || got_nan) {
      if (!(expected_nan && got_nan && nan_equals_nan_)) tally_.nan.note(position, 0, is_zero(got));
      return;
    }
    const bool expected_infinite = has_infinity(expected);
    const bool got_infinite = has_infinity(got);
    tally_.expected_infinite += expected_infinite ? 1 : 0;
    tally_.got_infinite += got_infinite ? 1 : 0;
    if (expected_infinite || got_infinite) {
      examine_infinite(expected, got, position);
      return;
    }
    const double magnitude = length_of<Parts>(expected);
    const double error = distance(expected, got);
    const double allowed = limit_.at(magnitude);
    sums.add(error, magnitude, allowed);
    if (!(error <= allowed)) tally_.value.note(position, allowed, is_zero(got));
  }

  /// A complex number may be infinite in one part alone: the other part still has to be right.
  void examine_infinite(const double* expected, const double* got, std::uint64_t position) {
    for (std::size_t p = 0; p < Parts; ++p) {
      if (expected[p] == got[p]) continue;
      const double allowed = limit_.at(std::abs(expected[p]));
      if (std::isinf(expected[p]) || std::isinf(got[p])) {
        tally_.infinity.note(position, 0, is_zero(got));
        return;
      }
      if (!(std::abs(expected[p] - got[p]) <= allowed)) {
        tally_.value.note(position, allowed, is_zero(got));
        return;
      }
    }
  }

  static bool has_nan(const double* parts) noexcept {
    return std::isnan(parts[0]) || (Parts == 2 && std::isnan(parts[Parts - 1]));
  }
  static bool is_zero(const double* parts) noexcept {
    return parts[0] == 0 && parts[Parts - 1] == 0;
  }
  static bool has_infinity(const double* parts) noexcept {
    return std::isinf(parts[0]) || (Parts == 2 && std::isinf(parts[Parts - 1]));
  }

  TensorView expected_;
  TensorView got_;
  Limit limit_;
  bool nan_equals_nan_;
  ErrorSums& sums_;
  Tally tally_;
};

/// |a - b| and |a| of two integers of one dtype, rounded only at the end.
std::pair<double, double> error_of(std::int64_t a, std::int64_t b, bool is_unsigned) noexcept {
  const auto wide_a = static_cast<std::uint64_t>(a);
  const auto wide_b = static_cast<std::uint64_t>(b);
  const bool a_is_less = is_unsigned ? wide_a < wide_b : a < b;
  const std::uint64_t difference = a_is_less ? wide_b - wide_a : wide_a - wide_b;
  const std::uint64_t magnitude = is_unsigned || a >= 0 ? wide_a : 0 - wide_a;
  return {static_cast<double>(difference), static_cast<double>(magnitude)};
}

Tally compare_integers(const TensorView& expected,
                       const TensorView& got,
                       const Limit& limit,
                       ErrorSums& sums) {
  const value::DType dtype = expected.tensor.dtype;
  Tally tally;
  ElementReader expected_reader(expected);
  ElementReader got_reader(got);
  std::array<std::int64_t, kChunkElements> expected_numbers = {};
  std::array<std::int64_t, kChunkElements> got_numbers = {};
  std::uint64_t position = 0;
  for (auto bytes = expected_reader.next(); !bytes.empty(); bytes = expected_reader.next()) {
    decode_integers(dtype, bytes, expected_numbers.data());
    decode_integers(dtype, got_reader.next(), got_numbers.data());
    const std::size_t count = bytes.size() / value::size_bytes(dtype);
    for (std::size_t i = 0; i < count; ++i, ++position) {
      const auto [error, magnitude] =
          error_of(expected_numbers[i], got_numbers[i], dtype == value::DType::uint64);
      const double allowed = limit.at(magnitude);
      sums.add(error, magnitude, allowed);
      if (error > allowed) tally.value.note(position, allowed, got_numbers[i] == 0);
    }
  }
  return tally;
}

Tally compare_elements(const TensorView& expected,
                       const TensorView& got,
                       const Limit& limit,
                       bool nan_equals_nan,
                       ErrorSums& sums) {
  const value::DTypeClass kind = value::class_of(expected.tensor.dtype);
  // Both have one shape: where both are dense, a part of one is the same part of the other.
  std::vector<Part> parts = parts_of(expected);
  if (parts_of(got).size() != parts.size()) {
    parts = {{0, static_cast<std::uint64_t>(value::element_count(expected.tensor))}};
  }
  struct Found {
    Tally tally;
    ErrorSums sums;
  };
  std::vector<Found> found(parts.size());
  for_each_part(parts.size(), [&](std::size_t i) {
    const value::Tensor expected_layout = layout_of(expected.tensor, parts[i]);
    const value::Tensor got_layout = layout_of(got.tensor, parts[i]);
    const TensorView a = {expected_layout, expected.block};
    const TensorView b = {got_layout, got.block};
    ErrorSums& own = found[i].sums;
    if (kind == value::DTypeClass::real) {
      found[i].tally = RealComparison<1>(a, b, limit, nan_equals_nan, own).run();
    } else if (kind == value::DTypeClass::complex) {
      found[i].tally = RealComparison<2>(a, b, limit, nan_equals_nan, own).run();
    } else {
      found[i].tally = compare_integers(a, b, limit, own);
    }
  });
  Tally tally;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tally.add(found[i].tally, parts[i].begin);
    sums.add(found[i].sums);
  }
  return tally;
}

task::Mismatch mismatch_at(task::MismatchKind kind,
                           const Wrong& wrong,
                           const TensorView& expected,
                           const TensorView& got) {
  task::Mismatch mismatch;
  mismatch.kind = kind;
  mismatch.first_index = index_of(expected.tensor.shape, wrong.first);
  mismatch.expected =
      element_text(expected.tensor.dtype, element_at(expected, mismatch.first_index));
  mismatch.got = element_text(got.tensor.dtype, element_at(got, mismatch.first_index));
  mismatch.wrong_count = wrong.count;
  mismatch.wrong_zeros = wrong.zeros;
  mismatch.wrong_first = wrong.first;
  mismatch.wrong_last = wrong.last;
  mismatch.element_count = static_cast<std::uint64_t>(value::element_count(expected.tensor));
  mismatch.tolerance = wrong.allowed_error;
  return mismatch;
}

std::optional<task::Mismatch> mismatch_of(const Tally& tally,
                                          const TensorView& expected,
                                          const TensorView& got) {
  using task::MismatchKind;
  if (tally.nan.count > 0) {
    task::Mismatch mismatch = mismatch_at(MismatchKind::nan, tally.nan, expected, got);
    mismatch.expected += fmt::format(" ({} NaN in all)", tally.expected_nan);
    mismatch.got += fmt::format(" ({} NaN in all)", tally.got_nan);
    return mismatch;
  }
  if (tally.infinity.count > 0) {
    task::Mismatch mismatch = mismatch_at(MismatchKind::infinity, tally.infinity, expected, got);
    mismatch.expected += fmt::format(" ({} infinite in all)", tally.expected_infinite);
    mismatch.got += fmt::format(" ({} infinite in all)", tally.got_infinite);
    return mismatch;
  }
  if (tally.value.count == 0) return std::nullopt;
  return mismatch_at(MismatchKind::value, tally.value, expected, got);
}

std::optional<task::Mismatch> examined(const TensorView& expected,
                                       const TensorView& got,
                                       const Limit& limit,
                                       bool nan_equals_nan,
                                       ErrorSums& sums) {
  ErrorSums own;
  const Tally tally = compare_elements(expected, got, limit, nan_equals_nan, own);
  sums.add(own);
  std::optional<task::Mismatch> mismatch = mismatch_of(tally, expected, got);
  if (!mismatch) return mismatch;
  mismatch->max_error = own.max_abs;
  const value::DTypeClass kind = value::class_of(expected.tensor.dtype);
  const bool is_rounded = kind == value::DTypeClass::real || kind == value::DTypeClass::complex;
  if (is_rounded) mismatch->spread = scale_of(expected);
  return mismatch;
}

task::Mismatch whole_tensor(task::MismatchKind kind, std::string expected, std::string got) {
  task::Mismatch mismatch;
  mismatch.kind = kind;
  mismatch.expected = std::move(expected);
  mismatch.got = std::move(got);
  return mismatch;
}

}  // namespace

TensorRules rules_for(value::DType dtype, task::Correctness correctness) noexcept {
  return {tolerance_for(dtype, correctness), correctness == task::Correctness::strict};
}

std::optional<task::Mismatch> compare_tensors(const TensorView& expected,
                                              const TensorView& got,
                                              const TensorRules& rules,
                                              ErrorSums& sums) {
  if (expected.tensor.shape != got.tensor.shape) {
    return whole_tensor(task::MismatchKind::shape,
                        value::describe_shape(expected.tensor.shape),
                        value::describe_shape(got.tensor.shape));
  }
  if (expected.tensor.dtype != got.tensor.dtype) {
    return whole_tensor(task::MismatchKind::dtype,
                        value::torch_name(expected.tensor.dtype),
                        value::torch_name(got.tensor.dtype));
  }
  const value::DTypeClass kind = value::class_of(expected.tensor.dtype);
  const bool is_rounded = kind == value::DTypeClass::real || kind == value::DTypeClass::complex;
  const Limit limit = is_rounded ? limit_for(rules.tolerance, expected)
                                 : Limit{rules.tolerance.atol, rules.tolerance.rtol};
  return examined(expected, got, limit, rules.nan_equals_nan, sums);
}

std::optional<task::Mismatch> compare_reals(const TensorView& expected,
                                            const TensorView& got,
                                            const Limit& limit,
                                            ErrorSums& sums) {
  return examined(expected, got, limit, true, sums);
}

}  // namespace drk::judge
