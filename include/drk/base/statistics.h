// SPDX-License-Identifier: Apache-2.0
// Order statistics. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace drk {

/// Linear between the two nearest ranks (NumPy's default): rank = share * (count - 1). `sorted`
/// must not be empty.
[[nodiscard]] double quantile(std::span<const double> sorted, double share);

/// Holds the median with at least 95 % by the binomial distribution of ranks; the extremes where
/// there are fewer than six samples.
struct MedianInterval {
  double median = 0;
  double low = 0;
  double high = 0;

  /// Half its width, in medians.
  [[nodiscard]] double share() const noexcept { return (high - low) / 2 / median; }
};
/// `sorted` must not be empty.
[[nodiscard]] MedianInterval median_interval(std::span<const double> sorted);
/// The same of samples in any order.
[[nodiscard]] MedianInterval median_interval_of(std::span<const double> samples);

/// Of times in order: they no longer rise or fall. The medians of the last five and of the five
/// before are within 1 %.
[[nodiscard]] bool is_stable(std::span<const double> times);
/// Ten samples or more, and the interval lies within 0.5 % of their median.
[[nodiscard]] bool is_median_known(std::span<const double> samples);

}  // namespace drk
