// SPDX-License-Identifier: Apache-2.0
// A verdict reads as it should: headline, cause, source line, measurements.
#include "render_verdict.h"

#include "command.h"
#include "render_cause.h"

#include <gtest/gtest.h>

namespace drk::cli {
namespace {

const Style kPlain(false);

task::Result accepted() {
  task::Timing timing;
  timing.clock = "host";
  timing.count = 25;
  timing.median_us = 812;
  timing.median_low_us = 800;
  timing.median_high_us = 1240;
  task::Result result;
  result.verdict.outcome = task::Accepted{timing, {}, {}, {}};
  return result;
}

task::Result wrong_output() {
  task::Mismatch mismatch;
  mismatch.path = "output['mean']";
  mismatch.expected = "0.31";
  mismatch.got = "0.25";
  mismatch.first_index = {3, 7};
  mismatch.wrong_count = 12;
  mismatch.element_count = 4096;
  mismatch.tolerance = 1e-4;
  task::Trial trial;
  trial.comparison.mismatch = mismatch;
  trial.comparison.max_abs_error = 0.5;
  trial.comparison.max_rel_error = 2;
  task::Result result;
  result.observations.trials = {task::Trial{}, trial};
  result.verdict.outcome = task::WrongOutput{mismatch, 1, 2};
  result.verdict.findings = {
      {task::Reason::wrong_output, task::Severity::reject, "Twelve elements."}};
  return result;
}

task::Failure call_failure() {
  task::Failure failure;
  failure.stage = task::Stage::correctness;
  failure.kind = task::FailureKind::call_error;
  failure.what = "forward raised";
  failure.error = task::PythonError{"ValueError", "bad width\nsecond line", {}, 3, "    raise"};
  return failure;
}

task::Result runtime_failed() {
  task::Result result;
  result.manifest.candidate.text = "import torch\n\ndef forward(x):\n    pass\nlast = 1\nsixth = 2";
  result.observations.candidate_failure = call_failure();
  result.verdict.outcome = task::RuntimeFailed{call_failure()};
  result.verdict.fault = task::Fault::candidate;
  return result;
}

TEST(Headline, SaysWhatWasDecided) {
  EXPECT_EQ(headline(accepted(), kPlain), "ACCEPTED: right, by Triton's interpreter");
  EXPECT_EQ(headline(wrong_output(), kPlain), "REJECTED: wrong output (1 of 2 trials passed)");
  EXPECT_EQ(headline(runtime_failed(), kPlain), "REJECTED: forward raised an exception");
}

TEST(Headline, TellsSpeedOnlyWhereItWasMeasured) {
  task::Result result = accepted();
  result.mode = task::Mode::gpu;
  auto& outcome = std::get<task::Accepted>(result.verdict.outcome);
  outcome.speedup = 2.314;
  outcome.coverage = 0.97;
  EXPECT_EQ(headline(result, kPlain),
            "ACCEPTED: 2.31 times as fast as the reference, 97 % of the time in its own kernels");
}

TEST(Headline, BlamesWhoIsAtFault) {
  task::Result result;
  result.verdict.outcome = task::Invalid{"reference: 3 characters of code", {}};
  result.verdict.fault = task::Fault::task;
  EXPECT_EQ(headline(result, kPlain), "BAD PROBLEM: it cannot be judged");
  EXPECT_EQ(exit_code_of(result.verdict), kRejected);
  result.verdict.fault = task::Fault::candidate;
  EXPECT_EQ(headline(result, kPlain), "REJECTED: it cannot be judged");
  result.verdict.outcome = task::Undecided{"the zygote died", {}};
  result.verdict.fault = task::Fault::infra;
  EXPECT_EQ(headline(result, kPlain), "NO VERDICT: the machine is at fault");
  EXPECT_EQ(exit_code_of(result.verdict), kUnusable);
}

TEST(Headline, NamesTheStageAndItsLimit) {
  task::Failure failure;
  failure.stage = task::Stage::load;
  failure.kind = task::FailureKind::timed_out;
  failure.limit_s = 60;
  task::Result result;
  result.verdict.outcome = task::TimedOut{failure};
  EXPECT_EQ(headline(result, kPlain), "REJECTED: out of time in load (limit 60 s)");
}

TEST(Headline, IsPaintedOnATerminal) {
  EXPECT_EQ(headline(wrong_output(), Style(true)),
            "\x1b[1;31mREJECTED: wrong output (1 of 2 trials passed)\x1b[0m");
}

TEST(RenderCause, NamesTheFirstWrongElementAndTheErrors) {
  EXPECT_EQ(
      render_cause(wrong_output(), kPlain, {}),
      "  output['mean'][3, 7]: expected 0.31, got 0.25 (off by more than the 0.0001 allowed)\n"
      "  12 of 4096 elements are wrong (0.293 %)\n"
      "  largest errors: 0.5 absolute, 2 relative\n");
}

TEST(RenderCause, LeavesOutElementsWhereThereAreNone) {
  task::Result result = wrong_output();
  auto& mismatch = std::get<task::WrongOutput>(result.verdict.outcome).mismatch;
  mismatch.kind = task::MismatchKind::shape;
  mismatch.path = "output";
  mismatch.expected = "[2, 3]";
  mismatch.got = "[3, 2]";
  EXPECT_EQ(render_cause(result, kPlain, {}), "  output: expected [2, 3], got [3, 2]\n");
}

TEST(RenderCause, ShowsTheExceptionAndTheLine) {
  EXPECT_EQ(render_cause(runtime_failed(), kPlain, {}),
            "  forward raised\n"
            "  ValueError: bad width\n"
            "  second line\n"
            "  line 3 of the candidate:\n"
            "    1 | import torch\n"
            "    2 |\n"
            "  > 3 | def forward(x):\n"
            "    4 |     pass\n"
            "    5 | last = 1\n");
}

TEST(RenderCause, CountsTheLinesOfTheReplyToo) {
  EXPECT_NE(render_cause(runtime_failed(), kPlain, 10)
                .find("  line 3 of the candidate (line 12 of the reply):\n"),
            std::string::npos);
}

TEST(RenderCause, TakesTheLineFromTheReferenceWhenThatFailed) {
  task::Result result = runtime_failed();
  result.manifest.reference.text = "a\nb\nc = reference\n";
  result.observations.reference_failure = result.observations.candidate_failure;
  result.observations.candidate_failure.reset();
  result.verdict.outcome = task::Invalid{"the reference raised", call_failure()};
  result.verdict.fault = task::Fault::task;
  const std::string text = render_cause(result, kPlain, 10);
  EXPECT_TRUE(text.starts_with("  the reference raised\n")) << text;
  EXPECT_NE(text.find("  line 3 of the reference:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("> 3 | c = reference\n"), std::string::npos) << text;
}

TEST(SourceExcerpt, StaysInsideTheFile) {
  EXPECT_EQ(source_excerpt("one\ntwo", 1, kPlain), "  > 1 | one\n    2 | two\n");
  EXPECT_EQ(source_excerpt("one\ntwo", 3, kPlain), "");
  EXPECT_EQ(source_excerpt("one\ntwo", 0, kPlain), "");
  EXPECT_EQ(source_excerpt("", 1, kPlain), "");
}

TEST(RenderVerdict, ShowsTimesKernelsAndTheSandbox) {
  task::Result result = accepted();
  task::Trial trial;
  trial.kernels = {{"gelu_kernel", "candidate.py", 7, true, 1},
                   {"helper", "site-packages/x.py", 3, false, 4}};
  result.observations.trials = {trial, trial};
  result.isolation.missing = {{"landlock", "the kernel has none"}};
  result.timeline = {{"load", 0, 512}, {"correctness", 512, 1234}};
  EXPECT_EQ(render_verdict(result, kPlain),
            "ACCEPTED: right, by Triton's interpreter\n"
            "\n"
            "time      candidate  median 812 us (95 % interval 800 us to 1.24 ms; 25 calls, host "
            "clock)\n"
            "          interpreter: no speed claim\n"
            "kernels   gelu_kernel: the candidate's own, launched once in a call (line 7)\n"
            "          helper: not the candidate's, launched 4 times in a call\n"
            "sandbox   missing landlock: the kernel has none\n"
            "stages    load 512 ms, correctness 1.23 s\n");
}

TEST(RenderVerdict, NamesAProtocolThatIsNotTheUsualOne) {
  task::Result result = accepted();
  result.mode = task::Mode::gpu;
  EXPECT_EQ(render_verdict(result, kPlain).find("protocol"), std::string::npos);
  result.manifest.policy.protocol = task::Protocol::warm;
  EXPECT_NE(render_verdict(result, kPlain).find("          protocol warm\n"), std::string::npos);
  result.manifest.policy.protocol = task::Protocol::kernelgym;
  EXPECT_NE(render_verdict(result, kPlain)
                .find("protocol kernelgym: the speedup is the ratio of the means\n"),
            std::string::npos);
}

TEST(RenderVerdict, ShowsTheEndOfStandardErrorOnlyWhenItFailed) {
  task::Result result = runtime_failed();
  for (int i = 1; i <= 12; ++i) result.candidate_stderr.text += "line " + std::to_string(i) + "\n";
  const std::string page = render_verdict(result, kPlain);
  EXPECT_NE(page.find("stderr    ... 2 lines before\n          line 3\n"), std::string::npos)
      << page;
  EXPECT_TRUE(page.ends_with("          line 12\n")) << page;
  result.verdict.outcome = task::Accepted{};
  EXPECT_EQ(render_verdict(result, kPlain).find("stderr"), std::string::npos);
}

TEST(RenderVerdict, ObeysNoCommandThatACandidateHidInItsText) {
  task::Result result = runtime_failed();
  result.verdict.findings = {{task::Reason::crash, task::Severity::reject, "a\x1b[2Jb\nACCEPTED"}};
  result.candidate_stderr.text = "\x1b]0;title\x07";
  const std::string page = render_verdict(result, kPlain);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_NE(page.find("crash: a\\x1b[2Jb ACCEPTED\n"), std::string::npos) << page;
}

TEST(Printable, EscapesWhatATerminalObeysOrWhatReordersText) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plain\ttext\n", "plain\ttext\n"},
      {"gr\xC3\xB6\xC3\x9F", "gr\xC3\xB6\xC3\x9F"},
      {"\xF0\x9F\x99\x82", "\xF0\x9F\x99\x82"},
      {"a\rb", "a\\x0db"},
      {"\x7F", "\\x7f"},
      {"\xC2\x9B"
       "2J",
       "\\x9b2J"},
      {"\xE2\x80\xAE"
       "abc",
       "\\u202eabc"},
      {"\xFF", "\xEF\xBF\xBD"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable(text), shown) << shown;
}

TEST(OneLine, MakesOneSpaceOfBlanksAndNewlines) {
  EXPECT_EQ(one_line("  a \n\t b\n"), "a b");
  EXPECT_EQ(one_line(""), "");
}

}  // namespace
}  // namespace drk::cli
