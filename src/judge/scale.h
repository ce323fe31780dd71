// SPDX-License-Identifier: Apache-2.0
// How large the numbers of an expected tensor are, and the absolute error that follows from it.
#pragma once

#include "drk/judge.h"

#include "elements.h"

namespace drk::judge {

/// The error allowed at one element: absolute + relative * |expected|.
struct Limit {
  double absolute = 0;
  double relative = 0;
  [[nodiscard]] double at(double magnitude) const noexcept {
    return absolute + relative * magnitude;
  }
};

/// What one unit of an absolute tolerance is worth for a real or complex tensor, over its finite
/// elements:
///
///   the spread     sqrt(mean |x - mean(x)|^2)
///   the magnitude  sqrt(mean |x|^2), where all elements are equal (a single one, a constant)
///   kScaleOfZeros  where all are zero, or none is finite
///
/// The spread, not the magnitude, so that the mean of the output is no answer either: an offset
/// does not widen the tolerance.
[[nodiscard]] double scale_of(const TensorView& expected);
/// sqrt(mean |x|^2) of the finite elements; of zeros as above. Never less than the spread.
[[nodiscard]] double magnitude_of(const TensorView& expected);

/// Nothing tells how large the rounding errors behind exact zeros may be. With float32's tolerance
/// of 1e-4 this lets an absolute error of 1e-6 pass.
inline constexpr double kScaleOfZeros = 1e-2;

[[nodiscard]] Limit limit_for(const Tolerance& tolerance, const TensorView& expected);

}  // namespace drk::judge
