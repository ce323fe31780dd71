// SPDX-License-Identifier: Apache-2.0
// What meets an expectation and what does not, and the table that tells it.
#include "drk/suite.h"

#include <gtest/gtest.h>

namespace drk::suite {
namespace {

Case wrong_case(std::vector<std::string> reasons) {
  Case one;
  one.group = "hacks";
  one.problem = "cheat";
  one.candidate = "candidate";
  one.expected = Expectation::reject;
  one.reasons = std::move(reasons);
  return one;
}

Case honest_case() {
  Case one;
  one.group = "level 1";
  one.problem = "gelu";
  one.candidate = "good";
  return one;
}

task::Result accepted(double median_us = 812) {
  task::Timing timing;
  timing.clock = "host";
  timing.count = 25;
  timing.median_us = median_us;
  task::Result result;
  result.verdict.outcome = task::Accepted{timing, {}, {}, {}};
  return result;
}

task::Result rejected(task::Reason reason) {
  task::Result result;
  result.verdict.outcome = task::Rejected{reason};
  result.verdict.findings.push_back({reason, task::Severity::reject, "Seen."});
  return result;
}

task::Result undecided(task::FailureKind kind) {
  task::Failure failure;
  failure.kind = kind;
  task::Result result;
  result.verdict.outcome = task::Undecided{"the interpreter has no autotuner", failure};
  result.verdict.fault = task::Fault::infra;
  return result;
}

TEST(Compare, AcceptedMeetsAnHonestCase) {
  const Row row = compare(honest_case(), accepted(), 1.5);
  EXPECT_EQ(row.agreement, Agreement::met);
  EXPECT_EQ(row.outcome, "accepted");
  EXPECT_EQ(row.median_us, 812);
  EXPECT_EQ(row.clock, "host");
  EXPECT_EQ(row.elapsed_s, 1.5);
}

TEST(Compare, ARefusalDoesNotMeetAnHonestCase) {
  const Row row = compare(honest_case(), rejected(task::Reason::torch_fallback), 1);
  EXPECT_EQ(row.agreement, Agreement::unmet);
  EXPECT_EQ(row.note, "must be accepted");
  EXPECT_FALSE(row.median_us.has_value());
}

TEST(Compare, ARefusalIsRightWhenItNamesOneOfTheReasons) {
  const Case one = wrong_case({"cached_output", "decoy_kernel"});
  EXPECT_EQ(compare(one, rejected(task::Reason::decoy_kernel), 1).agreement, Agreement::met);
  const Row other = compare(one, rejected(task::Reason::torch_fallback), 1);
  EXPECT_EQ(other.agreement, Agreement::unmet);
  EXPECT_EQ(other.note, "must name cached_output or decoy_kernel");
}

TEST(Compare, ARefusalIsRightWhenItsOutcomeIsOneOfTheReasons) {
  task::Result result;
  result.verdict.outcome = task::CompileFailed{};
  result.verdict.fault = task::Fault::candidate;
  EXPECT_EQ(compare(wrong_case({"compile_failed"}), result, 1).agreement, Agreement::met);
  EXPECT_EQ(compare(wrong_case({"crash"}), result, 1).agreement, Agreement::unmet);
}

TEST(Compare, AnyRefusalIsRightWhenNoReasonIsAskedFor) {
  EXPECT_EQ(compare(wrong_case({}), rejected(task::Reason::crash), 1).agreement, Agreement::met);
}

TEST(Compare, ANoteIsNoReasonForARefusal) {
  task::Result result = rejected(task::Reason::torch_fallback);
  result.verdict.findings.push_back({task::Reason::cached_output, task::Severity::note, "Maybe."});
  EXPECT_EQ(compare(wrong_case({"cached_output"}), result, 1).agreement, Agreement::unmet);
}

TEST(Compare, AcceptingATrickIsWrongUnlessItGainsNothing) {
  Case one = wrong_case({"harness_tamper"});
  EXPECT_EQ(compare(one, accepted(), 1).agreement, Agreement::unmet);
  one.inert_when_isolated = true;
  const Row row = compare(one, accepted(), 1);
  EXPECT_EQ(row.agreement, Agreement::inert);
  EXPECT_EQ(row.note, "inert");
}

TEST(Compare, AFaultOfTheMachineMeetsNothing) {
  const task::Result result = undecided(task::FailureKind::died);
  EXPECT_EQ(compare(honest_case(), result, 1).agreement, Agreement::unmet);
  const Row row = compare(wrong_case({}), result, 1);
  EXPECT_EQ(row.agreement, Agreement::unmet);
  EXPECT_EQ(row.note, "the interpreter has no autotuner");
}

TEST(Compare, AnHonestCaseBeyondTheInterpreterIsSkippedAndATrickIsNot) {
  const task::Result result = undecided(task::FailureKind::needs_gpu);
  const Row row = compare(honest_case(), result, 1);
  EXPECT_EQ(row.agreement, Agreement::skipped);
  EXPECT_EQ(row.note, "the interpreter has no autotuner");
  EXPECT_EQ(compare(wrong_case({}), result, 1).agreement, Agreement::unmet);
}

TEST(Compare, EveryExpectedKernelMustHaveRun) {
  Case one = honest_case();
  one.expected_kernels = {"rows_kernel", "total_kernel"};
  task::Result result = accepted();
  task::Trial trial;
  trial.kernels = {{"candidate.rows_kernel", "candidate.py", 3, true, 2},
                   {"total_kernel", "elsewhere.py", 9, false, 1}};
  result.observations.trials = {trial};
  const Row row = compare(one, result, 1);
  EXPECT_EQ(row.agreement, Agreement::unmet);
  EXPECT_EQ(row.note, "its kernel total_kernel was not seen running");
  result.observations.trials[0].kernels[1] = {
      "total_kernel(float*, int)", "candidate.py", 9, true, 1};
  EXPECT_EQ(compare(one, result, 1).agreement, Agreement::met);
}

TEST(Summarize, CountsByGroupAndInAll) {
  std::vector<Row> rows = {compare(honest_case(), accepted(), 1),
                           compare(wrong_case({}), accepted(), 2),
                           skip(wrong_case({}), "needs a GPU"),
                           compare(honest_case(), rejected(task::Reason::crash), 4)};
  const Report report = summarize(rows);
  ASSERT_EQ(report.groups.size(), 2U);
  EXPECT_EQ(report.groups[0].group, "level 1");
  EXPECT_EQ(report.groups[0].cases, 2U);
  EXPECT_EQ(report.groups[0].met, 1U);
  EXPECT_EQ(report.groups[0].unmet, 1U);
  EXPECT_EQ(report.groups[0].elapsed_s, 5);
  EXPECT_EQ(report.groups[1].group, "hacks");
  EXPECT_EQ(report.groups[1].skipped, 1U);
  EXPECT_EQ(report.all.cases, 4U);
  EXPECT_EQ(report.all.met, 1U);
  EXPECT_EQ(report.all.unmet, 2U);
  EXPECT_EQ(report.all.elapsed_s, 7);
}

TEST(RedTeam, CountsCheatsAndHonestOnesApart) {
  Case gap = wrong_case({});
  gap.known_gap = "coverage";
  const std::vector<Row> rows = {compare(honest_case(), accepted(), 1),
                                 compare(honest_case(), rejected(task::Reason::crash), 1),
                                 compare(wrong_case({}), rejected(task::Reason::crash), 1),
                                 compare(wrong_case({}), accepted(), 1),
                                 compare(gap, accepted(), 1),
                                 skip(wrong_case({}), "needs a GPU")};
  const RedTeam counts = count_red_team(rows, 7);
  EXPECT_EQ(counts.seed, 7U);
  EXPECT_EQ(counts.honest_accepted, 1U);
  EXPECT_EQ(counts.false_alarms, 1U);
  EXPECT_EQ(counts.caught, 1U);
  EXPECT_EQ(counts.missed, 1U);
  EXPECT_EQ(counts.known_gaps, 1U);
  EXPECT_EQ(counts.inert, 0U);
}

TEST(Table, LinesUpWhatItShows) {
  const std::vector<Case> cases = {honest_case(), wrong_case({"decoy_kernel"})};
  const Table table(cases);
  const Row skipped = skip(cases[1], "needs a GPU");
  EXPECT_EQ(table.header(), "       problem  candidate  expected   median  seconds  verdict");
  EXPECT_EQ(table.line(compare(cases[0], accepted(), 1.25)),
            "ok     gelu     good       accept     812 us      1.2  accepted");
  EXPECT_EQ(table.line(compare(cases[1], rejected(task::Reason::decoy_kernel), 0.5)),
            "ok     cheat    candidate  reject          -      0.5  rejected: decoy_kernel");
  EXPECT_EQ(table.line(compare(cases[1], rejected(task::Reason::crash), 120)),
            "FAIL   cheat    candidate  reject          -    120.0  rejected: crash (must name "
            "decoy_kernel)");
  EXPECT_EQ(table.line(skipped),
            "skip   cheat    candidate  reject          -        -  needs a GPU");
}

TEST(Table, PaintsTheMarkOnly) {
  const std::vector<Case> cases = {honest_case()};
  const Table table(cases, [](Agreement, const std::string& text) { return "<" + text + ">"; });
  EXPECT_TRUE(table.line(skip(cases[0], "")).starts_with("<skip >  gelu"));
}

TEST(Table, SumsUpAGroup) {
  const Table table(std::vector<Case>{honest_case()});
  EXPECT_EQ(table.summary({"all", 7, 2, 1, 1, 2, 1, 3.21}),
            "all      3 of 6 as expected, 2 not, 1 known gaps, 1 inert, 1 skipped, 3.2 s");
  EXPECT_EQ(table.summary({"level 1", 2, 2, 0, 0, 0, 0, 1}), "level 1  2 of 2 as expected, 1.0 s");
}

TEST(DescribeUs, KeepsThreeDigits) {
  const std::vector<std::pair<double, std::string>> cases = {{0.5, "0.50 us"},
                                                             {9.999, "10.0 us"},
                                                             {81.25, "81.2 us"},
                                                             {812.4, "812 us"},
                                                             {999.7, "1.00 ms"},
                                                             {1240, "1.24 ms"},
                                                             {3.1e6, "3.10 s"}};
  for (const auto& [us, text] : cases) EXPECT_EQ(describe_us(us), text) << us;
}

}  // namespace
}  // namespace drk::suite
