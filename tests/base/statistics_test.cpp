// SPDX-License-Identifier: Apache-2.0
#include "drk/base/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace drk {
namespace {

// Of ten samples the binomial distribution takes the second and the ninth.
TEST(MedianInterval, SortsAndTellsHalfItsWidth) {
  const std::vector<double> samples = {90, 109, 100, 101, 99, 100, 104, 96, 100, 100};
  const MedianInterval interval = median_interval_of(samples);
  EXPECT_EQ(interval.median, 100);
  EXPECT_EQ(interval.low, 96);
  EXPECT_EQ(interval.high, 104);
  EXPECT_DOUBLE_EQ(interval.share(), 0.04);
}

TEST(IsStable, LooksAtTheLastTen) {
  std::vector<double> times = {300, 250, 200, 150, 120, 100, 101, 99, 100};
  EXPECT_FALSE(is_stable(times)) << "nine";
  times.push_back(100);
  EXPECT_FALSE(is_stable(times)) << "200 before, 100 now";
  for (int i = 0; i < 5; ++i) times.push_back(100.5);
  EXPECT_TRUE(is_stable(times));
  for (int i = 0; i < 3; ++i) times.push_back(102);
  EXPECT_FALSE(is_stable(times)) << "they rise";
}

TEST(IsMedianKnown, WantsTenAndANarrowInterval) {
  std::vector<double> samples(9, 100);
  EXPECT_FALSE(is_median_known(samples));
  samples.push_back(500);  // one that lies far off moves nothing
  EXPECT_TRUE(is_median_known(samples));
  EXPECT_TRUE(
      is_median_known(std::vector<double>{1, 99.5, 100, 100, 100, 100, 100, 100, 100.5, 900}));
  EXPECT_FALSE(
      is_median_known(std::vector<double>{1, 99.3, 100, 100, 100, 100, 100, 100, 100.5, 900}));
}

}  // namespace
}  // namespace drk
