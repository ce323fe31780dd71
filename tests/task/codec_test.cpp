// SPDX-License-Identifier: Apache-2.0
// Results and manifests to JSON and back.
#include "drk/task/result.h"

#include "base/error_matchers.h"
#include "task/sample_result.h"

#include <gtest/gtest.h>

namespace drk::task {
namespace {

Result through_json(const Result& result) {
  return result_from_json(json::parse(json::dump(to_json(result))));
}

std::vector<Outcome> every_outcome() {
  return {Accepted{sample_timing(), sample_timing(), 1.7, 0.9},
          Accepted{},
          WrongOutput{sample_mismatch(), 3, 5},
          CompileFailed{sample_failure()},
          RuntimeFailed{sample_failure()},
          Crashed{sample_failure()},
          TimedOut{sample_failure()},
          ResourceExhausted{sample_failure()},
          Rejected{Reason::decoy_kernel},
          Invalid{"too short", sample_failure()},
          Invalid{"too short", std::nullopt},
          Undecided{"needs a GPU", sample_failure()},
          Undecided{"lost", std::nullopt}};
}

TEST(ResultCodec, KeepsEveryFieldOfEveryOutcome) {
  for (const Outcome& outcome : every_outcome()) {
    const Result result = full_result(outcome);
    const json::Value once = to_json(result);
    EXPECT_EQ(json::dump(to_json(through_json(result))), json::dump(once))
        << outcome_kind(result.verdict);
  }
}

TEST(ResultCodec, KeepsValuesExactly) {
  const Result result = through_json(full_result(WrongOutput{sample_mismatch(), 3, 5}));
  EXPECT_EQ(result.task_id, "task-1");
  EXPECT_EQ(result.verdict.fault, Fault::candidate);
  EXPECT_EQ(result.verdict.findings[1].reason, Reason::input_mutation);
  const auto& outcome = std::get<WrongOutput>(result.verdict.outcome);
  EXPECT_EQ(outcome.mismatch.path, "output['mean'][1]");
  EXPECT_EQ(outcome.mismatch.first_index, (std::vector<std::int64_t>{3, 7}));
  EXPECT_EQ(outcome.trials_passed, 3U);
  const Observations& seen = result.observations;
  EXPECT_EQ(seen.trials[0].seed, 18446744073709551615U);
  EXPECT_EQ(seen.trials[0].comparison.max_rel_error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(seen.trials[0].comparison.mean_abs_error, 1e-300);
  EXPECT_EQ(seen.candidate_failure->death->exit_code, -3);
  EXPECT_EQ(seen.candidate_failure->limit_s, 0.1);
  EXPECT_EQ(seen.process->refusals[0].call, "socket(AF_INET)");
  EXPECT_EQ(result.manifest.trial_seeds[1], 18446744073709551615U);
  EXPECT_EQ(result.manifest.limits, sample_manifest().limits);
  EXPECT_EQ(result.manifest.policy, sample_manifest().policy);
}

TEST(ResultCodec, LeavesOutWhatIsAbsent) {
  const Result result;
  const std::string text = json::dump(to_json(result));
  for (const char* member : {"fault",
                             "timing",
                             "speedup",
                             "candidate_failure",
                             "contribution",
                             "process",
                             "contribution_seed"}) {
    EXPECT_EQ(text.find('"' + std::string(member) + "\":"), std::string::npos) << member;
  }
  EXPECT_EQ(json::dump(to_json(through_json(result))), text);
}

TEST(ResultCodec, ReadsAbsentMembersAsDefaults) {
  const Result result = result_from_json(json::parse("{}"));
  EXPECT_TRUE(is_accepted(result.verdict));
  EXPECT_EQ(result.manifest.num_correct_trials, 5U);
}

TEST(ResultCodec, NamesThePathOfWhatIsWrong) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {R"([])", "result: expected an object, got a list"},
      {R"({"task": "x"})", "result: unknown member \"task\""},
      {R"({"mode": "simulator"})", "result.mode: \"simulator\" is not one of interpreter, gpu"},
      {R"({"verdict": {"outcome": {"kind": "maybe"}}})",
       "result.verdict.outcome.kind: \"maybe\" is not one of accepted, wrong_output"},
      {R"({"verdict": {"outcome": {"kind": "accepted", "speed": 2}}})",
       "result.verdict.outcome: unknown member \"speed\""},
      {R"({"verdict": {"findings": [{}, {"reason": "luck"}]}})",
       "result.verdict.findings[1].reason: \"luck\" is not one of"},
      {R"({"observations": {"trials": [{"seed": -1}]}})",
       "result.observations.trials[0].seed: expected an integer of at least 0, got -1"},
      {R"({"observations": {"trials": [{"comparison": {"mismatch": {"first_index": ["a"]}}}]}})",
       "result.observations.trials[0].comparison.mismatch.first_index[0]: expected an integer"},
      {R"({"manifest": {"policy": {"require_isolation": "yes"}}})",
       "result.manifest.policy.require_isolation: expected true or false, got the text \"yes\""},
      {R"({"timeline": [{"name": "load", "start_ms": {}}]})",
       "result.timeline[0].start_ms: expected a number, got an object"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, c.error, [&] {
      static_cast<void>(result_from_json(json::parse(c.text)));
    })) << c.text;
  }
}

Manifest known_manifest() {
  Manifest manifest = sample_manifest();
  manifest.format = Manifest{}.format;
  return manifest;
}

TEST(TaskOf, RefusesAFormatThatItDoesNotKnow) {
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "manifest: format 3 is not known", [] {
    static_cast<void>(task_of(sample_manifest()));
  }));
}

TEST(TaskOf, RepeatsTheManifest) {
  const Task task = task_of(known_manifest());
  EXPECT_EQ(task.reference_code, "class Model: ...");
  EXPECT_EQ(task.candidate_code, "class ModelNew: ...");
  EXPECT_EQ(task.backend, Backend::cuda_nvrtc);
  EXPECT_EQ(task.candidate_entry_point(), "Net");
  EXPECT_EQ(task.num_correct_trials, 4U);
  EXPECT_EQ(task.num_perf_trials, 99U);
  EXPECT_EQ(task.num_warmup, 2U);
  EXPECT_FALSE(task.measure_performance);
  EXPECT_EQ(task.policy, sample_manifest().policy);
  EXPECT_EQ(task.limits, sample_manifest().limits);
  EXPECT_EQ(task.workflow, Workflow::kernel_simple);
  EXPECT_EQ(task.reference_backend, ReferenceBackend::torch_compile);
  EXPECT_EQ(task.cases_json, "[1]");
  EXPECT_EQ(task.cases_code, "def get_cases(): ...");
  EXPECT_FALSE(task.check_correctness);
}

TEST(TaskOf, RefusesASourceThatWasEdited) {
  Manifest manifest = known_manifest();
  manifest.candidate.text += "# faster";
  EXPECT_TRUE(throws_error(ErrorCode::corrupt, "the candidate has SHA-256", [&] {
    static_cast<void>(task_of(manifest));
  }));
}

TEST(TaskCodec, SurvivesJson) {
  Task task = task_of(known_manifest());
  task.task_id = "task-1";
  const json::Value value = to_json(task);
  EXPECT_EQ(json::dump(to_json(task_from_json(json::parse(json::dump(value))))), json::dump(value));
  const Task read = task_from_json(value);
  EXPECT_EQ(read.task_id, "task-1");
  EXPECT_EQ(read.candidate_code, "class ModelNew: ...");
  EXPECT_EQ(read.reference_backend, ReferenceBackend::torch_compile);
  EXPECT_EQ(read.limits, task.limits);
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "task.num_warmup: expected an", [] {
    static_cast<void>(task_from_json(json::parse(R"({"num_warmup": "3"})")));
  }));
}

TEST(ManifestCodec, ReadsWhatWasSavedBeforeThereWereWorkflows) {
  const Manifest manifest = manifest_from_json(json::parse(
      R"({"format": 2, "backend": "cuda", "entry_point": "Net", "num_correct_trials": 4})"));
  EXPECT_EQ(manifest.backend, Backend::cuda);
  EXPECT_EQ(manifest.num_correct_trials, 4U);
  EXPECT_EQ(manifest.workflow, Workflow::kernelbench);
  EXPECT_EQ(manifest.reference_backend, ReferenceBackend::pytorch);
  EXPECT_TRUE(manifest.check_correctness);
}

TEST(ManifestCodec, SurvivesJson) {
  const json::Value value = to_json(sample_manifest());
  EXPECT_EQ(json::dump(to_json(manifest_from_json(value))), json::dump(value));
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "manifest.backend", [] {
    static_cast<void>(manifest_from_json(json::parse(R"({"backend": "opencl"})")));
  }));
}

}  // namespace
}  // namespace drk::task
