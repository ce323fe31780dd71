// SPDX-License-Identifier: Apache-2.0
// Counters, histograms, and their text.
#include "gym/metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace drk::gym {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Histogram, PutsASecondIntoTheFirstBucketThatHoldsIt) {
  Histogram histogram;
  histogram.observe(0.001);  // the first bound itself
  histogram.observe(0.0011);
  histogram.observe(1e9);  // beyond all bounds
  EXPECT_EQ(histogram.buckets()[0], 1U);
  EXPECT_EQ(histogram.buckets()[1], 1U);
  EXPECT_EQ(histogram.buckets()[Histogram::kBounds], 1U);
  EXPECT_EQ(histogram.count(), 3U);
}

TEST(Histogram, QuantileIsTheBoundOfItsBucket) {
  Histogram histogram;
  EXPECT_EQ(histogram.quantile_s(0.5), 0);
  for (int i = 0; i < 9; ++i) histogram.observe(0.003);  // up to 0.004
  histogram.observe(3);                                  // up to 4.096
  EXPECT_DOUBLE_EQ(histogram.quantile_s(0.5), 0.004);
  EXPECT_DOUBLE_EQ(histogram.quantile_s(0.95), 4.096);
}

TEST(Metrics, TextHasHelpTypeAndValueOfEveryFamily) {
  Metrics metrics;
  metrics.count("drk_verdicts_total", {{"outcome", "accepted"}}, 2);
  metrics.count("drk_verdicts_total", {{"outcome", "crashed"}});
  metrics.observe("drk_stage_seconds", 0.5, {{"stage", "load"}});
  const std::string text = metrics.prometheus({{"drk_slots", {}, 3}});
  EXPECT_TRUE(contains(text,
                       "# HELP drk_slots Evaluations that may run side by side.\n"
                       "# TYPE drk_slots gauge\ndrk_slots 3\n"))
      << text;
  EXPECT_TRUE(contains(text,
                       "# TYPE drk_verdicts_total counter\n"
                       "drk_verdicts_total{outcome=\"accepted\"} 2\n"
                       "drk_verdicts_total{outcome=\"crashed\"} 1\n"))
      << text;
  // Buckets count all that is not above them: 0.5 s is above 0.256 and not above 0.512.
  EXPECT_TRUE(contains(text, "drk_stage_seconds_bucket{stage=\"load\",le=\"0.256\"} 0\n")) << text;
  EXPECT_TRUE(contains(text, "drk_stage_seconds_bucket{stage=\"load\",le=\"0.512\"} 1\n")) << text;
  EXPECT_TRUE(contains(text, "drk_stage_seconds_bucket{stage=\"load\",le=\"+Inf\"} 1\n")) << text;
  EXPECT_TRUE(contains(text, "drk_stage_seconds_sum{stage=\"load\"} 0.5\n")) << text;
  EXPECT_TRUE(contains(text, "drk_stage_seconds_count{stage=\"load\"} 1\n")) << text;
}

TEST(Metrics, EscapesLabelValues) {
  Metrics metrics;
  metrics.count("drk_http_requests_total", {{"route", "a\"b\\c\nd"}});
  EXPECT_TRUE(contains(metrics.prometheus({}), R"(route="a\"b\\c\nd")"));
}

TEST(Metrics, TotalsOverAllLabels) {
  Metrics metrics;
  EXPECT_EQ(metrics.total("drk_tasks_finished_total"), 0U);
  metrics.count("drk_tasks_finished_total", {{"status", "completed"}}, 3);
  metrics.count("drk_tasks_finished_total", {{"status", "failed"}}, 4);
  EXPECT_EQ(metrics.total("drk_tasks_finished_total"), 7U);
}

}  // namespace
}  // namespace drk::gym
