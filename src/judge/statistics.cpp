// SPDX-License-Identifier: Apache-2.0
// Order statistics of timed calls.
#include "drk/base/error.h"
#include "drk/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace drk::judge {

namespace {

/// Linear between the two nearest ranks (NumPy's default): rank = share * (count - 1).
double quantile(std::span<const double> sorted, double share) {
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

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

double standard_deviation(std::span<const double> samples, double mean) {
  if (samples.size() < 2) return 0;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

}  // namespace

task::Timing summarize(std::span<const double> samples_us, const std::string& clock) {
  DRK_CHECK(!samples_us.empty());
  std::vector<double> sorted(samples_us.begin(), samples_us.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t rank = median_interval_rank(sorted.size());
  task::Timing timing;
  timing.clock = clock;
  timing.count = static_cast<std::uint32_t>(sorted.size());
  timing.median_us = quantile(sorted, 0.5);
  timing.mean_us =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  timing.std_us = standard_deviation(sorted, timing.mean_us);
  timing.min_us = sorted.front();
  timing.max_us = sorted.back();
  timing.p5_us = quantile(sorted, 0.05);
  timing.p95_us = quantile(sorted, 0.95);
  timing.median_low_us = sorted[rank - 1];
  timing.median_high_us = sorted[sorted.size() - rank];
  return timing;
}

}  // namespace drk::judge
