// SPDX-License-Identifier: Apache-2.0
// From observations to verdicts: every kind of failure, every finding, every precedence.
#include "drk/base/json.h"
#include "drk/judge.h"

#include <gtest/gtest.h>

#include <functional>

namespace drk::judge {
namespace {

using task::Failure;
using task::FailureKind;
using task::Mismatch;
using task::MismatchKind;
using task::Mode;
using task::Observations;
using task::Ownership;
using task::Severity;
using task::Stage;
using task::Task;
using task::Trial;
using task::Verdict;

Trial good_trial() {
  Trial trial;
  trial.seed = 424242;
  trial.kernels = {{"add_kernel", "candidate.py", 9, true, 4}};
  return trial;
}

struct Dropped {
  std::uint64_t launches = 0;
  bool still_right = false;
  bool call_failed = false;
};

task::Contribution contribution(const Dropped& dropped) {
  task::Contribution result;
  result.dropped_launches = dropped.launches;
  result.output_still_right = dropped.still_right;
  if (dropped.still_right) result.memory = "zeros";
  result.call_failed = dropped.call_failed;
  return result;
}

/// An honest run in the interpreter: five right trials, kernels that matter, times.
Observations honest() {
  Observations seen;
  seen.trials.assign(5, good_trial());
  seen.contribution = contribution({.launches = 4});
  seen.candidate_times = task::TimedCalls{{30, 10, 20}, {}, {}, 0};
  seen.reference_times = task::TimedCalls{{40, 60, 50}, {}, {}, 0};
  seen.process = task::ProcessReport{};
  return seen;
}

Mismatch mismatch(MismatchKind kind) {
  Mismatch result;
  result.kind = kind;
  result.path = "output";
  result.expected = "1";
  result.got = "2";
  return result;
}

Failure failure(FailureKind kind) {
  Failure result;
  result.kind = kind;
  result.stage = Stage::correctness;
  result.what = "it broke";
  return result;
}

/// "outcome/fault: reason(severity) ..."
std::string summary(const Verdict& verdict) {
  std::string text = outcome_kind(verdict);
  if (const auto* rejected = std::get_if<task::Rejected>(&verdict.outcome)) {
    text += std::string("[") + json::name_of(rejected->reason) + "]";
  }
  text += std::string("/") + (verdict.fault ? json::name_of(*verdict.fault) : "none") + ":";
  for (const task::Finding& finding : verdict.findings) {
    text += std::string(" ") + json::name_of(finding.reason);
    if (finding.severity != Severity::reject) {
      text += std::string("(") + json::name_of(finding.severity) + ")";
    }
  }
  return text;
}

std::string decide_text(const Observations& seen, Ownership ownership = Ownership::mixed) {
  Task task;
  task.policy.ownership = ownership;
  return summary(decide(seen, task));
}

TEST(Decide, AcceptsAnHonestRun) {
  for (const Ownership ownership : {Ownership::mixed, Ownership::strict, Ownership::free}) {
    EXPECT_EQ(decide_text(honest(), ownership), "accepted/none:");
  }
}

TEST(Decide, ClaimsNoSpeedInTheInterpreter) {
  const Verdict verdict = decide(honest(), Task{});
  const auto& accepted = std::get<task::Accepted>(verdict.outcome);
  EXPECT_EQ(accepted.timing->median_us, 20);
  EXPECT_EQ(accepted.timing->clock, "host");
  EXPECT_EQ(accepted.reference_timing->median_us, 50);
  EXPECT_FALSE(accepted.speedup.has_value());
  EXPECT_FALSE(accepted.coverage.has_value());
}

TEST(Decide, DividesMediansOnAGpu) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  const Verdict verdict = decide(seen, Task{});
  const auto& accepted = std::get<task::Accepted>(verdict.outcome);
  EXPECT_EQ(accepted.timing->clock, "device");
  EXPECT_EQ(accepted.speedup, 2.5);
  EXPECT_FALSE(accepted.timing->host_us.has_value());
  seen.reference_times.reset();
  EXPECT_FALSE(std::get<task::Accepted>(decide(seen, Task{}).outcome).speedup.has_value());
}

TEST(Decide, TellsTheHostsTimeAndTheCallsWithoutItsGaps) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  seen.candidate_times->host_us = {70, 50, 90};
  seen.candidate_times->gated = 2;
  const task::Accepted accepted = std::get<task::Accepted>(decide(seen, Task{}).outcome);
  EXPECT_EQ(accepted.timing->host_us, 70);
  EXPECT_EQ(accepted.timing->gated, 2U);
  EXPECT_EQ(accepted.timing->median_us, 20);
  EXPECT_TRUE(accepted.timing->host_bound);
  seen.candidate_times->host_us = {19, 20, 15};
  EXPECT_FALSE(std::get<task::Accepted>(decide(seen, Task{}).outcome).timing->host_bound);
}

TEST(Decide, DividesMeansUnderTheOldProtocol) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  seen.candidate_times->us = {10, 10, 70};
  seen.reference_times->us = {60, 60, 240};
  Task task;
  EXPECT_EQ(std::get<task::Accepted>(decide(seen, task).outcome).speedup, 6);
  task.policy.protocol = task::Protocol::kernelgym;
  EXPECT_EQ(std::get<task::Accepted>(decide(seen, task).outcome).speedup, 4);
}

TEST(Decide, RefusesWorkThatTheCallerDoesNotWaitFor) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  seen.candidate_times->behind_us = {300, 0, 8};  // once, and what two events are apart
  EXPECT_EQ(decide_text(seen, Ownership::mixed), "accepted/none:");
  seen.candidate_times->behind_us = {300, 11, 8};
  EXPECT_EQ(decide_text(seen, Ownership::mixed), "rejected[stream_escape]/none: stream_escape");
}

task::Profile profile_of(double own_us, double torch_us) {
  task::KernelRecord own;
  own.name = "add_kernel";
  own.origin = task::KernelOrigin::candidate_triton;
  own.count = 5;
  own.total_us = own_us;
  task::KernelRecord other = own;
  other.origin = task::KernelOrigin::torch;
  other.total_us = torch_us;
  task::Profile profile;
  profile.calls = 5;
  profile.kernels = {own, other};
  return profile;
}

TEST(Decide, CoverageIsTheOwnKernelsShareOfTheTime) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  seen.profile = profile_of(30, 10);
  const Verdict verdict = decide(seen, Task{});
  EXPECT_EQ(std::get<task::Accepted>(verdict.outcome).coverage, 0.75);
}

TEST(Decide, CoverageIsUnknownWhereRecordsAreMissing) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  seen.profile = profile_of(30, 10);
  seen.profile->problem = "3 records were dropped";
  EXPECT_FALSE(std::get<task::Accepted>(decide(seen, Task{}).outcome).coverage.has_value());
  seen.profile = task::Profile{};
  EXPECT_FALSE(std::get<task::Accepted>(decide(seen, Task{}).outcome).coverage.has_value());
}

TEST(Decide, RefusesWorkThatTheClockDidNotSee) {
  Observations seen = honest();  // 20 us in the median
  seen.mode = Mode::gpu;
  seen.profile = profile_of(30, 10);
  seen.profile->busy_us = 5 * 29;
  EXPECT_EQ(decide_text(seen, Ownership::mixed), "accepted/none:");
  seen.profile->busy_us = 5 * 31;
  EXPECT_EQ(decide_text(seen, Ownership::mixed),
            "rejected[timing_implausible]/none: timing_implausible");
  seen.profile->problem = "3 records were dropped";
  EXPECT_EQ(decide_text(seen, Ownership::mixed), "accepted/none:") << "unknown";
}

TEST(Decide, TakesLaunchesThatWereNotWatchedForNoEvidence) {
  Observations seen = honest();
  seen.mode = Mode::gpu;
  for (Trial& trial : seen.trials) trial.kernels.clear();
  seen.contribution.reset();
  EXPECT_EQ(decide_text(seen, Ownership::mixed),
            "rejected[no_candidate_kernel]/none: no_candidate_kernel torch_fallback");
  seen.launch_problem = "no CUPTI";
  EXPECT_EQ(decide_text(seen, Ownership::mixed), "accepted/none:");
}

TEST(Decide, HasNoTimesWhereNoneWereAskedFor) {
  Observations seen = honest();
  seen.candidate_times.reset();
  seen.reference_times.reset();
  const Verdict verdict = decide(seen, Task{});
  EXPECT_FALSE(std::get<task::Accepted>(verdict.outcome).timing.has_value());
}

TEST(Decide, KnowsEveryFailureOfACandidate) {
  const struct {
    FailureKind kind;
    const char* verdict;
  } cases[] = {
      {FailureKind::syntax_error, "compile_failed/candidate:"},
      {FailureKind::import_error, "compile_failed/candidate:"},
      {FailureKind::load_error, "compile_failed/candidate: crash"},
      {FailureKind::no_entry_point, "compile_failed/candidate:"},
      {FailureKind::construct_error, "compile_failed/candidate: crash"},
      {FailureKind::compile_error, "compile_failed/candidate:"},
      {FailureKind::inputs_error, "runtime_failed/candidate: crash"},
      {FailureKind::call_error, "runtime_failed/candidate: crash"},
      {FailureKind::needs_gpu, "undecided/infra:"},
      {FailureKind::out_of_memory, "resource_exhausted/candidate: crash"},
      {FailureKind::cuda_error, "crashed/candidate: crash"},
      {FailureKind::died, "crashed/candidate: crash"},
      {FailureKind::timed_out, "timed_out/candidate: timeout"},
      {FailureKind::output_flood, "resource_exhausted/candidate: crash"},
      {FailureKind::protocol_error, "rejected[io_tamper]/none: io_tamper"},
  };
  EXPECT_EQ(std::size(cases), static_cast<std::size_t>(FailureKind::protocol_error) + 1);
  for (const auto& c : cases) {
    Observations seen;
    seen.candidate_failure = failure(c.kind);
    EXPECT_EQ(decide_text(seen), c.verdict) << json::name_of(c.kind);
  }
}

TEST(Decide, NeverBlamesACandidateForItsReference) {
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<FailureKind>>([](auto kind) {
    Observations seen;
    seen.reference_failure = failure(kind.value);
    const bool ours =
        kind.value == FailureKind::needs_gpu || kind.value == FailureKind::protocol_error;
    EXPECT_EQ(decide_text(seen), ours ? "undecided/infra:" : "invalid/task:") << kind.name;
  });
}

TEST(Decide, KeepsTheFailureInTheOutcome) {
  Observations seen;
  seen.candidate_failure = failure(FailureKind::died);
  const Verdict crashed = decide(seen, Task{});
  EXPECT_EQ(std::get<task::Crashed>(crashed.outcome).failure.what, "it broke");
  EXPECT_EQ(crashed.findings[0].evidence, "it broke");
  seen.reference_failure = failure(FailureKind::call_error);
  const Verdict invalid = decide(seen, Task{});
  EXPECT_EQ(std::get<task::Invalid>(invalid.outcome).what, "the reference fails: it broke");
  EXPECT_EQ(std::get<task::Invalid>(invalid.outcome).failure->kind, FailureKind::call_error);
  seen.reference_failure = failure(FailureKind::needs_gpu);
  const Verdict undecided = decide(seen, Task{});
  EXPECT_EQ(std::get<task::Undecided>(undecided.outcome).what,
            "the reference needs a GPU: it broke");
}

TEST(Decide, GoesByPrecedence) {
  Observations seen = honest();
  seen.trials[0].comparison.mismatch = mismatch(MismatchKind::value);
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output");
  seen.trials[0].mutated_inputs = {"inputs[0]"};
  EXPECT_EQ(decide_text(seen), "rejected[input_mutation]/none: wrong_output input_mutation");
  seen.candidate_failure = failure(FailureKind::died);
  EXPECT_EQ(decide_text(seen), "crashed/candidate: crash wrong_output input_mutation");
  seen.reference_failure = failure(FailureKind::timed_out);
  EXPECT_EQ(decide_text(seen), "invalid/task:");
  seen.invalidity = task::Invalidity{true, "candidate: NUL byte in line 3"};
  EXPECT_EQ(decide_text(seen), "invalid/candidate:");
  seen.invalidity->in_candidate = false;
  EXPECT_EQ(decide_text(seen), "invalid/task:");
  EXPECT_EQ(std::get<task::Invalid>(decide(seen, Task{}).outcome).what,
            "candidate: NUL byte in line 3");
}

TEST(Decide, KeepsWhatWasSeenBeforeAFailure) {
  Observations seen;
  seen.candidate_failure = failure(FailureKind::load_error);
  seen.process = task::ProcessReport{0, 0, 0, {{"execve", 1}}};
  EXPECT_EQ(decide_text(seen), "compile_failed/candidate: crash process_tamper");
  seen.candidate_failure = failure(FailureKind::needs_gpu);
  EXPECT_EQ(decide_text(seen), "undecided/infra:") << "a reward must not hang on it";
}

TEST(Decide, LetsNobodyThatWasWrongAskForAGpu) {
  Observations seen = honest();
  seen.candidate_failure = failure(FailureKind::needs_gpu);
  seen.trials[1].comparison.mismatch = mismatch(MismatchKind::value);
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output");
  seen.trials[2].comparison.mismatch = mismatch(MismatchKind::subclass);
  EXPECT_EQ(decide_text(seen), "rejected[lazy_output]/none: wrong_output lazy_output");
  seen.degenerate = "an output of zeros is right in 5 of 5 trials";
  EXPECT_EQ(decide_text(seen),
            "rejected[degenerate_problem]/task: degenerate_problem wrong_output lazy_output");
}

TEST(Decide, BlamesWhoNeedsAGpuOnlyAfterACall) {
  Observations seen = honest();
  seen.candidate_failure = failure(FailureKind::needs_gpu);
  EXPECT_EQ(decide_text(seen), "runtime_failed/candidate: crash");
  seen.trials.resize(1);
  seen.trials[0].compared = false;
  EXPECT_EQ(decide_text(seen), "runtime_failed/candidate: crash") << "an output that nobody knows";
  seen.trials.clear();
  EXPECT_EQ(decide_text(seen), "undecided/infra:");
}

TEST(Decide, NamesAnswersThatWereKept) {
  Observations seen = honest();
  seen.timed_work = {4, 8, 8, 0};
  EXPECT_EQ(decide_text(seen), "accepted/none:");
  seen.timed_work = {4, 8, 0, 2};
  EXPECT_EQ(decide_text(seen), "rejected[cached_output]/none: cached_output");
  EXPECT_EQ(decide(seen, Task{}).findings[0].evidence,
            "of 4 calls on the same inputs the first launched 8 programs of its own kernels, and 2 "
            "later ones fewer, the least 0");
  seen.launch_problem = "no CUPTI";
  EXPECT_EQ(decide_text(seen), "accepted/none:") << "nobody saw";

  seen = honest();
  seen.trials[3].comparison.mismatch = mismatch(MismatchKind::value);
  seen.trials[3].repeats = 1;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output cached_output");
}

TEST(Decide, NamesAnswersToOtherInputs) {
  Observations seen = honest();
  seen.trials[1].comparison.mismatch = mismatch(MismatchKind::value);
  seen.trials[1].is_of_other_inputs = true;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output cached_output");
}

TEST(Decide, NamesPhasesOnlyWhereAModeAloneIsWrong) {
  Observations seen = honest();
  seen.trials[1].grad = task::GradMode::on;
  seen.trials[2].grad = task::GradMode::inference;
  EXPECT_EQ(decide_text(seen), "accepted/none:");
  seen.trials[1].comparison.mismatch = mismatch(MismatchKind::value);
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output phase_detection");
  seen.trials[3].comparison.mismatch = mismatch(MismatchKind::value);
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output");
}

TEST(Decide, NamesCoarseArithmeticWhereItIsEverywhere) {
  Observations seen = honest();
  Mismatch off = mismatch(MismatchKind::value);
  off.wrong_count = 90;
  off.element_count = 100;
  off.max_error = 1e-3;
  off.spread = 1;
  seen.trials[0].comparison.mismatch = off;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output") << "no float64 to go by";
  seen.trials[0].comparison.by_float64 = true;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output precision_downgrade");
  seen.trials[0].comparison.mismatch->wrong_count = 5;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output") << "in some places";
  seen.trials[0].comparison.mismatch->wrong_count = 90;
  seen.trials[0].comparison.mismatch->max_error = 0.5;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output") << "no rounding is that coarse";
}

TEST(Decide, NamesAPartThatWasNeverMade) {
  Observations seen = honest();
  Mismatch off = mismatch(MismatchKind::value);
  off.element_count = 100;
  off.wrong_count = 20;
  off.wrong_first = 50;
  off.wrong_last = 90;
  seen.trials[0].comparison.mismatch = off;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output") << "here and there";
  off.wrong_zeros = 20;
  seen.trials[0].comparison.mismatch = off;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output partial_output") << "zeros";
  off.wrong_zeros = 3;
  off.wrong_first = 80;
  off.wrong_last = 99;
  seen.trials[0].comparison.mismatch = off;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output partial_output") << "the tail";
  off.wrong_first = 70;
  off.wrong_last = 89;
  seen.trials[0].comparison.mismatch = off;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output") << "in the middle";
  off.wrong_count = off.wrong_zeros = 100;
  off.wrong_first = 0;
  off.wrong_last = 99;
  seen.trials[0].comparison.mismatch = off;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output") << "nothing is right";
}

TEST(Decide, NamesSmallNumbersThatWereNeverComputed) {
  Observations seen = honest();
  seen.trials[1].comparison.telling = 1000;
  seen.trials[1].comparison.zeroed = 249;
  EXPECT_EQ(decide_text(seen), "accepted/none:") << "some functions lose some";
  seen.trials[1].comparison.zeroed = 250;
  EXPECT_EQ(decide_text(seen), "rejected[partial_output]/none: partial_output");
  seen.trials[1].comparison.telling = 40;
  seen.trials[1].comparison.zeroed = 40;
  EXPECT_EQ(decide_text(seen), "accepted/none:") << "too few to tell";
}

TEST(Decide, RejectsWorkBehindACall) {
  Observations seen = honest();
  seen.trials[2].outside_programs = 3;
  EXPECT_EQ(decide_text(seen), "rejected[thread_escape]/none: thread_escape");
}

TEST(Decide, RejectsAProcessWhoseCodeOrClockWasAltered) {
  const std::string altered = "rejected[harness_tamper]/none: harness_tamper";
  Observations seen = honest();
  seen.alterations = {"1 pages of code of /lib/libc.so.6 were written to"};
  EXPECT_EQ(decide_text(seen), altered);
  seen.trials[0].comparison.mismatch = mismatch(MismatchKind::value);
  EXPECT_EQ(decide_text(seen), "rejected[harness_tamper]/none: wrong_output harness_tamper");
  seen = honest();
  const auto with = [&](double timed_us, double request_us, double asked_us, double waited_us) {
    seen.clock = task::ClockCheck{timed_us, request_us, asked_us, waited_us};
    return decide_text(seen);
  };
  EXPECT_EQ(with(900, 1000, 2000, 2100), "accepted/none:");
  EXPECT_EQ(with(900, 1000, 2000, 9000), "accepted/none:") << "a busy machine";
  EXPECT_EQ(with(1100, 1000, 2000, 2100), altered) << "longer than they can have been";
  EXPECT_EQ(with(900, 1000, 2000, 20000), altered) << "slow";
  EXPECT_EQ(with(900, 1000, 2000, 1000), altered) << "fast";
  EXPECT_EQ(with(900, 1000, 0, 0), "accepted/none:") << "it failed before it was asked";
}

TEST(Decide, NamesMemoryThatWasNeverWritten) {
  Observations seen = honest();
  seen.trials[0].comparison.mismatch = mismatch(MismatchKind::nan);
  seen.trials[0].untouched = 40;
  EXPECT_EQ(decide_text(seen), "wrong_output/none: wrong_output uninitialized_output");
}

TEST(Decide, BlamesAProblemThatMeasuresNothing) {
  Observations seen = honest();
  seen.degenerate = "an output of zeros is right in 5 of 5 trials";
  seen.trials[0].comparison.mismatch = mismatch(MismatchKind::value);
  EXPECT_EQ(decide_text(seen),
            "rejected[degenerate_problem]/task: degenerate_problem wrong_output");
  seen.candidate_failure = failure(FailureKind::died);
  EXPECT_EQ(decide_text(seen), "crashed/candidate: crash degenerate_problem wrong_output");
}

TEST(Decide, CountsTrialsAndKeepsTheFirstMismatch) {
  Observations seen = honest();
  seen.trials[1].comparison.mismatch = mismatch(MismatchKind::shape);
  seen.trials[3].comparison.mismatch = mismatch(MismatchKind::value);
  const Verdict verdict = decide(seen, Task{});
  const auto& wrong = std::get<task::WrongOutput>(verdict.outcome);
  EXPECT_EQ(wrong.mismatch.kind, MismatchKind::shape);
  EXPECT_EQ(wrong.trials_passed, 3U);
  EXPECT_EQ(wrong.trials_run, 5U);
  EXPECT_EQ(verdict.findings[0].evidence,
            "2 of 5 trials; trial 2: output: expected shape 1, got 2");
}

TEST(Decide, FindsEveryKindOfMismatchWrongButASubclass) {
  boost::mp11::mp_for_each<boost::describe::describe_enumerators<MismatchKind>>([](auto kind) {
    Observations seen = honest();
    seen.trials[4].comparison.mismatch = mismatch(kind.value);
    EXPECT_EQ(decide_text(seen),
              kind.value == MismatchKind::subclass ? "rejected[lazy_output]/none: lazy_output"
                                                   : "wrong_output/none: wrong_output")
        << kind.name;
  });
}

TEST(Decide, ALazyOutputOutranksAWrongOne) {
  Observations seen = honest();
  seen.trials[0].comparison.mismatch = mismatch(MismatchKind::value);
  seen.trials[1].comparison.mismatch = mismatch(MismatchKind::subclass);
  EXPECT_EQ(decide_text(seen), "rejected[lazy_output]/none: wrong_output lazy_output");
}

TEST(Decide, OnlySomeCheatingOutranksWrongOutput) {
  const struct {
    std::function<void(Observations&)> cheat;
    const char* verdict;
  } cases[] = {
      {[](Observations& s) { s.trials[0].mutated_inputs = {"inputs[0]"}; },
       "rejected[input_mutation]/none: wrong_output input_mutation"},
      {[](Observations& s) { s.process->processes_left = 1; },
       "rejected[process_tamper]/none: wrong_output process_tamper"},
      {[](Observations& s) {
         s.process->refusals = {{"ioctl(TIOCSTI)", 1}};
       },
       "rejected[io_tamper]/none: wrong_output io_tamper"},
      {[](Observations& s) {
         s.process->refusals = {{"socket(AF_INET)", 1}};
       },
       "wrong_output/none: wrong_output network_escape"},
      {[](Observations& s) {
         s.process->refusals = {{"mount", 1}};
       },
       "wrong_output/none: wrong_output filesystem_escape"},
      {[](Observations& s) { s.contribution->output_still_right = true; },
       "wrong_output/none: wrong_output decoy_kernel"},
      {[](Observations& s) {
         for (Trial& trial : s.trials) trial.kernels.clear();
       },
       "wrong_output/none: wrong_output no_candidate_kernel"},
  };
  for (const auto& c : cases) {
    Observations seen = honest();
    seen.trials[2].comparison.mismatch = mismatch(MismatchKind::value);
    c.cheat(seen);
    EXPECT_EQ(decide_text(seen), c.verdict);
  }
}

TEST(Decide, RejectsByTheFirstFindingWhereTheOutputIsRight) {
  Observations seen = honest();
  seen.process->refusals = {{"socket(AF_UNIX)", 2}, {"socket(AF_INET)", 1}, {"ptrace", 1}};
  EXPECT_EQ(decide_text(seen),
            "rejected[process_tamper]/none: network_escape(note) network_escape process_tamper");
  seen.process->refusals.pop_back();
  EXPECT_EQ(decide_text(seen),
            "rejected[network_escape]/none: network_escape(note) network_escape");
  seen.process->refusals.pop_back();
  EXPECT_EQ(decide_text(seen), "accepted/none: network_escape(note)");
}

TEST(Decide, WantsAKernelOfItsOwnInSomeTrial) {
  Observations seen = honest();
  for (std::size_t i = 0; i < 4; ++i) seen.trials[i].kernels.clear();
  EXPECT_EQ(decide_text(seen), "accepted/none:") << "one trial launched one";
  seen.trials[4].kernels[0].count = 0;
  EXPECT_EQ(decide_text(seen),
            "rejected[no_candidate_kernel]/none: no_candidate_kernel torch_fallback");
  seen.trials[4].kernels[0] = {"library_kernel", "site-packages/x.py", 1, false, 3};
  EXPECT_EQ(decide_text(seen), "rejected[no_candidate_kernel]/none: no_candidate_kernel")
      << "somebody else's kernel ran, not torch alone";
  EXPECT_EQ(decide_text(seen, Ownership::strict),
            "rejected[no_candidate_kernel]/none: no_candidate_kernel");
  EXPECT_EQ(decide_text(seen, Ownership::free), "accepted/none:");
}

TEST(Decide, KnowsADecoyByTheOutputThatDoesNotNeedIt) {
  const struct {
    Dropped dropped;
    const char* verdict = nullptr;
  } cases[] = {
      {{.launches = 4, .still_right = true}, "rejected[decoy_kernel]/none: decoy_kernel"},
      {{.launches = 4}, "accepted/none:"},
      // None launched and right: those of the trials were not needed either.
      {{.launches = 0, .still_right = true}, "rejected[decoy_kernel]/none: decoy_kernel"},
      {{.launches = 0}, "accepted/none:"},
      {{.launches = 4, .call_failed = true}, "accepted/none:"},  // it raised: the kernels mattered
      // Raised in one call, right in the other.
      {{.launches = 4, .still_right = true, .call_failed = true},
       "rejected[decoy_kernel]/none: decoy_kernel"},
  };
  for (const auto& c : cases) {
    Observations seen = honest();
    seen.contribution = contribution(c.dropped);
    EXPECT_EQ(decide_text(seen), c.verdict);
  }
  Observations without_kernels = honest();
  for (Trial& trial : without_kernels.trials) trial.kernels.clear();
  without_kernels.contribution = contribution({.launches = 0, .still_right = true});
  EXPECT_EQ(decide_text(without_kernels),
            "rejected[no_candidate_kernel]/none: no_candidate_kernel torch_fallback");
  Observations decoy = honest();
  decoy.contribution = contribution({.launches = 4, .still_right = true});
  EXPECT_EQ(decide(decoy, Task{}).findings[0].evidence,
            "4 launches of its own kernels were dropped and the output was right all the same "
            "with new memory full of zeros");
  EXPECT_EQ(decide_text(decoy, Ownership::strict), "rejected[decoy_kernel]/none: decoy_kernel");
  EXPECT_EQ(decide_text(decoy, Ownership::free), "accepted/none: decoy_kernel(note)");
}

TEST(Decide, DoesNotJudgeParameterDifferences) {
  Observations seen = honest();
  seen.parameter_differences = {"weight is missing"};
  EXPECT_EQ(decide_text(seen), "accepted/none:");
}

TEST(Decide, CannotDecideWithoutATrial) {
  EXPECT_EQ(decide_text(Observations{}), "undecided/infra:");
  Observations seen = honest();
  seen.trials.clear();
  EXPECT_EQ(decide_text(seen), "undecided/infra:");
}

TEST(Decide, EvidenceNamesNoSeed) {
  Observations seen = honest();
  seen.trials[0].comparison.mismatch = mismatch(MismatchKind::value);
  seen.trials[0].mutated_inputs = {"inputs[0]", "inputs[1]"};
  const Verdict verdict = decide(seen, Task{});
  EXPECT_EQ(verdict.findings[1].evidence, "trial 1: the call wrote to inputs[0], inputs[1]");
  for (const task::Finding& finding : verdict.findings) {
    EXPECT_EQ(finding.evidence.find("424242"), std::string::npos) << finding.evidence;
  }
}

TEST(Decide, IsDeterministic) {
  Observations seen = honest();
  seen.process->refusals = {{"mount", 2}};
  EXPECT_EQ(json::dump(json::to_json(decide(seen, Task{}))),
            json::dump(json::to_json(decide(seen, Task{}))));
}

// --- kernel_simple ---

Trial unchecked_trial() {
  Trial trial = good_trial();
  trial.compared = false;
  return trial;
}

bool is_checked(const Observations& seen) {
  return std::get<task::Accepted>(decide(seen, Task{}).outcome).checked;
}

TEST(DecideCases, SaysWhetherAnythingWasCompared) {
  Observations seen = honest();
  EXPECT_TRUE(is_checked(seen));
  seen.trials.push_back(unchecked_trial());
  EXPECT_TRUE(is_checked(seen));
  seen.trials.assign(2, unchecked_trial());
  EXPECT_FALSE(is_checked(seen));
}

TEST(DecideCases, CountsOnlyWhatWasCompared) {
  Observations seen = honest();
  Trial wrong = good_trial();
  wrong.comparison.mismatch = mismatch(MismatchKind::value);
  seen.trials = {good_trial(), unchecked_trial(), wrong};
  const Verdict verdict = decide(seen, Task{});
  const auto& outcome = std::get<task::WrongOutput>(verdict.outcome);
  EXPECT_EQ(outcome.trials_passed, 1U);
  EXPECT_EQ(outcome.trials_run, 2U);
}

TEST(DecideCases, CallsNoOutputRightThatWasNotCompared) {
  Observations seen = honest();
  Trial bare = unchecked_trial();
  bare.kernels.clear();
  seen.trials.assign(2, bare);
  seen.contribution.reset();
  EXPECT_EQ(decide_text(seen), "rejected[no_candidate_kernel]/none: no_candidate_kernel");
  EXPECT_EQ(decide_text(seen, Ownership::free), "accepted/none:");
}

TEST(DecideCases, NamesTheCasesAndNoReference) {
  Observations seen;
  seen.reference_failure = failure(FailureKind::inputs_error);
  Task task;
  task.workflow = task::Workflow::kernel_simple;
  EXPECT_EQ(std::get<task::Invalid>(decide(seen, task).outcome).what,
            "the cases' code fails: it broke");
}

}  // namespace
}  // namespace drk::judge
