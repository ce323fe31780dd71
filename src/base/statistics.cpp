// SPDX-License-Identifier: Apache-2.0
#include "drk/base/statistics.h"

#include "drk/base/error.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace drk {

namespace {

/// With B ~ Binomial(n, 1/2), the median lies in [x_(k), x_(n + 1 - k)] (ranks from 1) with
/// probability 1 - 2 P(B < k). Returns the largest k for which that is at least 0.95, and 1 where
/// none is (n < 6).
std::size_t median_interval_rank(std::size_t count) {
  const auto n = static_cast<double>(count);
  const auto log_choose = [n](double k) {
    return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  };
  double tail = 0;  // P(B < k)
  for (std::size_t k = 1;; ++k) {
    tail += std::exp(log_choose(static_cast<double>(k - 1)) - n * std::log(2.0));
    if (tail > 0.025) return std::max<std::size_t>(k - 1, 1);
  }
}

}  // namespace

double quantile(std::span<const double> sorted, double share) {
  DRK_CHECK(!sorted.empty());
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

MedianInterval median_interval(std::span<const double> sorted) {
  const double median = quantile(sorted, 0.5);
  const std::size_t rank = median_interval_rank(sorted.size());
  return {median, sorted[rank - 1], sorted[sorted.size() - rank]};
}

MedianInterval median_interval_of(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return median_interval(sorted);
}

bool is_stable(std::span<const double> times) {
  constexpr std::size_t kWindow = 5;
  constexpr double kShare = 0.01;
  if (times.size() < 2 * kWindow) return false;
  const double last = median_interval_of(times.last(kWindow)).median;
  const double before = median_interval_of(times.last(2 * kWindow).first(kWindow)).median;
  return std::abs(last - before) <= kShare * before;
}

bool is_median_known(std::span<const double> samples) {
  constexpr std::size_t kLeast = 10;
  constexpr double kShare = 0.005;
  return samples.size() >= kLeast && median_interval_of(samples).share() <= kShare;
}

}  // namespace drk
