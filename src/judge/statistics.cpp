// SPDX-License-Identifier: Apache-2.0
// Timed calls in a few numbers.
#include "drk/base/statistics.h"

#include "drk/base/error.h"
#include "drk/judge.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace drk::judge {

namespace {

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
  const MedianInterval interval = median_interval(sorted);
  task::Timing timing;
  timing.clock = clock;
  timing.count = static_cast<std::uint32_t>(sorted.size());
  timing.median_us = interval.median;
  timing.mean_us =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  timing.std_us = standard_deviation(sorted, timing.mean_us);
  timing.min_us = sorted.front();
  timing.max_us = sorted.back();
  timing.p5_us = quantile(sorted, 0.05);
  timing.p95_us = quantile(sorted, 0.95);
  timing.median_low_us = interval.low;
  timing.median_high_us = interval.high;
  return timing;
}

}  // namespace drk::judge
