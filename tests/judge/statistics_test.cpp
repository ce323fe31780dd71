// SPDX-License-Identifier: Apache-2.0
// Statistics of timed calls, worked by hand.
#include "drk/judge.h"

#include "base/error_matchers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace drk::judge {
namespace {

std::vector<double> one_to(int count) {
  std::vector<double> samples(static_cast<std::size_t>(count));
  std::iota(samples.begin(), samples.end(), 1.0);
  return samples;
}

TEST(Summarize, DescribesASample) {
  // Sorted 1 2 3 4 10: ranks of p5 and p95 are 0.2 and 3.8 of 0..4.
  const task::Timing timing = summarize(std::vector<double>{10, 2, 4, 1, 3}, "host");
  EXPECT_EQ(timing.clock, "host");
  EXPECT_EQ(timing.count, 5U);
  EXPECT_EQ(timing.median_us, 3);
  EXPECT_EQ(timing.mean_us, 4);
  EXPECT_DOUBLE_EQ(timing.std_us, std::sqrt((9.0 + 4 + 1 + 0 + 36) / 4));
  EXPECT_EQ(timing.min_us, 1);
  EXPECT_EQ(timing.max_us, 10);
  EXPECT_DOUBLE_EQ(timing.p5_us, 1.2);
  EXPECT_DOUBLE_EQ(timing.p95_us, 4 + 0.8 * 6);
}

TEST(Summarize, TakesTheMiddleOfTwo) {
  EXPECT_EQ(summarize(std::vector<double>{4, 1, 2, 9}, "host").median_us, 3);
}

TEST(Summarize, OfOneCallHasNoDeviation) {
  const task::Timing timing = summarize(std::vector<double>{7}, "host");
  EXPECT_EQ(timing.std_us, 0);
  for (const double value : {timing.median_us,
                             timing.mean_us,
                             timing.min_us,
                             timing.max_us,
                             timing.p5_us,
                             timing.p95_us,
                             timing.median_low_us,
                             timing.median_high_us}) {
    EXPECT_EQ(value, 7);
  }
}

// Ranks of the 95 % interval of the median, as published in tables of the sign test: the largest k
// with P(Binomial(n, 1/2) < k) <= 0.025.
TEST(Summarize, BoundsTheMedianByOrderStatistics) {
  const struct {
    int count;
    double low, high;
  } cases[] = {
      {1, 1, 1},
      {2, 1, 2},
      {5, 1, 5},  // too few for 95 %: the extremes
      {6, 1, 6},
      {8, 1, 8},
      {9, 2, 8},
      {10, 2, 9},
      {12, 3, 10},
      {20, 6, 15},
      {25, 8, 18},
      {50, 18, 33},
      {100, 40, 61},
  };
  for (const auto& c : cases) {
    const task::Timing timing = summarize(one_to(c.count), "host");
    EXPECT_EQ(timing.median_low_us, c.low) << c.count;
    EXPECT_EQ(timing.median_high_us, c.high) << c.count;
  }
}

TEST(Summarize, OneHiccupDoesNotMoveTheMedian) {
  std::vector<double> samples(99, 17);
  samples.push_back(4114);
  const task::Timing timing = summarize(samples, "device");
  EXPECT_EQ(timing.median_us, 17);
  EXPECT_EQ(timing.median_high_us, 17);
  EXPECT_GT(timing.mean_us, 50);
}

TEST(Summarize, TheIntervalHoldsTheTrueMedianAsOftenAsItSays) {
  std::mt19937 random(3);
  std::exponential_distribution<double> times(1);
  const double true_median = std::log(2.0);
  int held = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<double> samples(25);
    std::generate(samples.begin(), samples.end(), [&] { return times(random); });
    const task::Timing timing = summarize(samples, "host");
    held += timing.median_low_us <= true_median && true_median <= timing.median_high_us ? 1 : 0;
  }
  // For n = 25 the interval [x_8, x_18] holds with probability 0.957: 1913 +- 4 * 9 of 2000.
  EXPECT_GE(held, 1877);
  EXPECT_LE(held, 1950);
}

TEST(Summarize, NeedsASample) {
  EXPECT_TRUE(throws_error(
      ErrorCode::internal, "samples_us.empty()", [] { static_cast<void>(summarize({}, "host")); }));
}

}  // namespace
}  // namespace drk::judge
