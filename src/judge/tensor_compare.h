// SPDX-License-Identifier: Apache-2.0
// Two tensors: shape, dtype, NaN, infinities, values, in this order.
#pragma once

#include "drk/judge.h"

#include "elements.h"
#include "scale.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace drk::judge {

/// Errors over the pairs of finite elements seen so far.
struct ErrorSums {
  double max_abs = 0;
  double max_rel = 0;    ///< Over pairs whose expected value is not 0.
  double max_share = 0;  ///< Of what is allowed; where nothing is, infinite for any error.
  double sum_abs = 0;
  double count = 0;
  std::uint64_t telling = 0;  ///< Expected is a real or complex number that no function loses.
  std::uint64_t zeroed = 0;   ///< Of them, those that are 0.

  void add(double error, double magnitude, double allowed) noexcept {
    count += 1;
    sum_abs += error;
    max_abs = std::max(max_abs, error);
    // The same as error / magnitude > max_rel, but the division is rarely made.
    if (error > max_rel * magnitude && magnitude > 0) max_rel = error / magnitude;
    if (error > max_share * allowed) max_share = error / allowed;
  }
  void note_zero(double magnitude, bool is_zero) noexcept {
    constexpr double kLost = 1e-30;
    if (!(magnitude > kLost)) return;
    ++telling;
    zeroed += is_zero ? 1 : 0;
  }
  void add(const ErrorSums& other) noexcept {
    telling += other.telling;
    zeroed += other.zeroed;
    count += other.count;
    sum_abs += other.sum_abs;
    max_abs = std::max(max_abs, other.max_abs);
    max_rel = std::max(max_rel, other.max_rel);
    max_share = std::max(max_share, other.max_share);
  }
};

struct TensorRules {
  Tolerance tolerance;
  bool nan_equals_nan = true;  ///< In the same place. torch.allclose says no.
};

/// The rules for tensors of `dtype`.
[[nodiscard]] TensorRules rules_for(value::DType dtype, task::Correctness correctness) noexcept;

/// The mismatch of the two, without its path, if there is one. Adds the errors of elements that
/// can be compared to `sums`.
[[nodiscard]] std::optional<task::Mismatch> compare_tensors(const TensorView& expected,
                                                            const TensorView& got,
                                                            const TensorRules& rules,
                                                            ErrorSums& sums);

/// The same for real or complex tensors of one shape, whatever their precisions, by a limit that is
/// known. The dtype of `expected` may be the wider one.
[[nodiscard]] std::optional<task::Mismatch> compare_reals(const TensorView& expected,
                                                          const TensorView& got,
                                                          const Limit& limit,
                                                          ErrorSums& sums);

}  // namespace drk::judge
