// SPDX-License-Identifier: Apache-2.0
// KernelGYM's result body.
#include "drk/task/wire.h"

#include "task/sample_result.h"

#include <gtest/gtest.h>

#include <string>

namespace drk::task {
namespace {

Failure failure_of(FailureKind kind, Stage stage) {
  Failure failure = sample_failure();
  failure.kind = kind;
  failure.stage = stage;
  return failure;
}

TEST(WireResult, SaysInOldTermsWhatEveryOutcomeIs) {
  const struct {
    const char* name;
    Outcome outcome;
    const char* fields;  ///< status, compiled, correctness, decoy_kernel, error_code
  } cases[] = {
      {"accepted", Accepted{}, R"(["completed",true,true,false,null])"},
      {"unchecked",
       Accepted{std::nullopt, std::nullopt, std::nullopt, std::nullopt, false},
       R"(["completed",true,null,false,null])"},
      {"wrong",
       WrongOutput{sample_mismatch(), 3, 5},
       R"(["completed",true,false,false,"CORRECTNESS_ERROR"])"},
      {"rejected",
       Rejected{Reason::input_mutation},
       R"(["completed",true,false,true,"CORRECTNESS_ERROR"])"},
      {"syntax",
       CompileFailed{failure_of(FailureKind::syntax_error, Stage::load)},
       R"(["failed",false,false,null,"SYNTAX_ERROR"])"},
      {"import",
       CompileFailed{failure_of(FailureKind::import_error, Stage::load)},
       R"(["failed",false,false,null,"IMPORT_ERROR"])"},
      {"load",
       CompileFailed{failure_of(FailureKind::load_error, Stage::load)},
       R"(["failed",false,false,null,"COMPILATION_ERROR"])"},
      {"no class",
       CompileFailed{failure_of(FailureKind::no_entry_point, Stage::load)},
       R"(["failed",false,false,null,"INSTANTIATION_ERROR"])"},
      {"construct",
       CompileFailed{failure_of(FailureKind::construct_error, Stage::load)},
       R"(["failed",false,false,null,"INSTANTIATION_ERROR"])"},
      {"compile",
       CompileFailed{failure_of(FailureKind::compile_error, Stage::correctness)},
       R"(["failed",false,false,null,"COMPILATION_ERROR"])"},
      {"raised",
       RuntimeFailed{failure_of(FailureKind::call_error, Stage::correctness)},
       R"(["completed",true,false,null,"RUNTIME_ERROR"])"},
      {"crashed",
       Crashed{failure_of(FailureKind::died, Stage::time)},
       R"(["completed",true,false,null,"RUNTIME_ERROR"])"},
      {"crashed on load",
       Crashed{failure_of(FailureKind::died, Stage::load)},
       R"(["failed",false,false,null,"RUNTIME_ERROR"])"},
      {"memory",
       ResourceExhausted{failure_of(FailureKind::out_of_memory, Stage::detect)},
       R"(["completed",true,false,null,"RESOURCE_ERROR"])"},
      {"memory on load",
       ResourceExhausted{failure_of(FailureKind::out_of_memory, Stage::load)},
       R"(["failed",false,false,null,"RESOURCE_ERROR"])"},
      {"late",
       TimedOut{failure_of(FailureKind::timed_out, Stage::correctness)},
       R"(["timeout",true,false,null,"TIMEOUT_ERROR"])"},
      {"late on load",
       TimedOut{failure_of(FailureKind::timed_out, Stage::load)},
       R"(["timeout",false,false,null,"TIMEOUT_ERROR"])"},
      {"invalid",
       Invalid{"bad", std::nullopt},
       R"(["failed",false,false,null,"VALIDATION_ERROR"])"},
      {"undecided",
       Undecided{"lost", std::nullopt},
       R"(["failed",false,false,null,"SYSTEM_ERROR"])"},
  };
  for (const auto& c : cases) {
    Result result = full_result(c.outcome);
    result.verdict.findings.clear();
    const json::Object body = wire_result(result);
    boost::json::array fields;
    for (const char* name : {"status", "compiled", "correctness", "decoy_kernel", "error_code"}) {
      const json::Value* value = body.if_contains(name);
      fields.push_back(value == nullptr ? json::Value(nullptr) : *value);
    }
    EXPECT_EQ(json::dump(fields), c.fields) << c.name;
    EXPECT_EQ(body.contains("error_message"), body.contains("error_code")) << c.name;
  }
}

TEST(WireResult, GivesTimesInMillisecondsAndTheirRatio) {
  Timing reference = sample_timing();
  reference.median_us = 3000;
  Timing candidate = sample_timing();
  candidate.median_us = 1500;
  const json::Object body =
      wire_result(full_result(Accepted{candidate, reference, 2.0, std::nullopt}));
  EXPECT_EQ(body.at("reference_runtime").as_double(), 3);
  EXPECT_EQ(body.at("kernel_runtime").as_double(), 1.5);
  EXPECT_EQ(body.at("speedup").as_double(), 2);
  EXPECT_EQ(body.at("processing_time").as_double(), 2) << "seconds, to the end of the timeline";
  const json::Object& stats = body.at("metadata").at("runtime_stats").as_object();
  EXPECT_DOUBLE_EQ(stats.at("mean").as_double(), 1.1002);
  EXPECT_EQ(stats.at("num_trials").to_number<int>(), 7);
}

TEST(WireResult, FillsTheOldProfilingFieldsFromRecords) {
  const json::Object body = wire_result(full_result(Accepted{}));
  const json::Object& metadata = body.at("metadata").as_object();
  EXPECT_TRUE(metadata.at("triton_profiler_used").as_bool());
  EXPECT_EQ(metadata.at("gpu_name").as_string(), "NVIDIA H200");
  EXPECT_EQ(metadata.at("hardware").as_string(), "NVIDIA H200");
  EXPECT_EQ(json::dump(metadata.at("triton_profiler_matches")), R"(["relu_kernel"])");
  EXPECT_EQ(metadata.at("num_custom_kernels").to_number<int>(), 5);
  EXPECT_EQ(metadata.at("num_total_kernels").to_number<int>(), 15);
  EXPECT_EQ(metadata.at("triton_kernel_coverage").as_string(), "33.33%");
  EXPECT_EQ(metadata.at("custom_kernel_cuda_time_in_profiling_us").as_double(), 72.5);
  EXPECT_EQ(metadata.at("total_kernel_run_time_in_profiling_us").as_double(), 100);
  EXPECT_EQ(metadata.at("custom_kernel_cuda_time_coverage").as_string(), "72.50%");
  const json::Object& profiling = metadata.at("profiling").as_object();
  EXPECT_EQ(profiling.at("kernel_count").to_number<int>(), 2);
  EXPECT_EQ(profiling.at("total_cuda_time_us").as_double(), 100);
  const json::Object& row = profiling.at("kernels").at(0).as_object();
  EXPECT_EQ(row.at("name").as_string(), "relu_kernel");
  EXPECT_EQ(row.at("cuda_time_us").as_double(), 72.5);
  EXPECT_EQ(row.at("count").to_number<int>(), 5);
}

TEST(WireResult, HasNoCoverageWhereRecordsAreMissing) {
  Result result = full_result(Accepted{});
  result.observations.profile->problem = "2 records were dropped";
  const json::Object body = wire_result(result);
  const json::Object& metadata = body.at("metadata").as_object();
  EXPECT_EQ(metadata.at("profiling_problem").as_string(), "2 records were dropped");
  for (const char* key : {"num_custom_kernels",
                          "num_total_kernels",
                          "triton_kernel_coverage",
                          "custom_kernel_cuda_time_coverage",
                          "profiling"}) {
    EXPECT_FALSE(metadata.contains(key)) << key;
  }
}

TEST(WireResult, ClaimsNoSpeedThatWasNotMeasured) {
  Result interpreted = full_result(Accepted{sample_timing(), sample_timing(), 9.0, 0.5});
  interpreted.mode = Mode::interpreter;
  for (const Result& result : {interpreted,
                               full_result(Accepted{}),
                               full_result(WrongOutput{sample_mismatch(), 3, 5}),
                               full_result(Rejected{Reason::lazy_output})}) {
    const json::Object body = wire_result(result);
    EXPECT_EQ(body.at("reference_runtime").as_double(), -1);
    EXPECT_EQ(body.at("kernel_runtime").as_double(), -1);
    EXPECT_EQ(body.at("speedup").as_double(), 0);
  }
}

TEST(WireResult, LeavesDecoysOpenWithoutAGpu) {
  Result result = full_result(Accepted{});
  result.mode = Mode::interpreter;
  result.observations.profile.reset();
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").is_null());
  result.verdict.outcome = WrongOutput{sample_mismatch(), 0, 5};
  result.verdict.findings = {{Reason::wrong_output, Severity::reject, ""},
                             {Reason::torch_fallback, Severity::warn, ""}};
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").is_null());
  result.verdict.findings.push_back({Reason::no_candidate_kernel, Severity::reject, ""});
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").as_bool()) << "wrong, and cheating";
  result.verdict.outcome = Rejected{Reason::no_candidate_kernel};
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").as_bool()) << "seen, GPU or not";
  const json::Object body = wire_result(result);
  for (const char* key : {"num_custom_kernels", "triton_kernel_coverage"}) {
    EXPECT_FALSE(body.at("metadata").as_object().contains(key)) << key;
  }
}

TEST(WireResult, ExplainsInMetadata) {
  Result result = full_result(WrongOutput{sample_mismatch(), 3, 5});
  result.manifest.workflow = Workflow::kernelbench;
  const json::Object body = wire_result(result);
  const json::Object& metadata = body.at("metadata").as_object();
  EXPECT_EQ(metadata.at("correctness_trials").as_string(), "(1 / 4)");
  EXPECT_FALSE(metadata.contains("num_cases"));
  EXPECT_EQ(metadata.at("reference_backend").as_string(), "torch_compile");
  EXPECT_EQ(json::dump(metadata.at("max_difference")), R"(["0.25","0"])");
  EXPECT_EQ(json::dump(metadata.at("avg_difference")), R"(["1e-300","0"])");
  EXPECT_EQ(metadata.at("correctness_issue"), body.at("error_message"));
  EXPECT_EQ(metadata.at("outcome").as_string(), "wrong_output");
  EXPECT_EQ(metadata.at("backend").as_string(), "cuda_nvrtc");
  EXPECT_EQ(metadata.at("findings").as_array().size(), 2U);
  EXPECT_EQ(metadata.at("findings").at(1).at("reason").as_string(), "input_mutation");
}

TEST(WireResult, CountsNoTrialBeyondThoseAskedFor) {
  Result result = full_result(Accepted{});
  result.manifest.workflow = Workflow::kernelbench;
  result.observations.trials.assign(6, Trial{});  // four, and two with the timed calls
  EXPECT_EQ(wire_result(result).at("metadata").at("correctness_trials").as_string(), "(4 / 4)");
}

TEST(WireResult, NamesTheCasesThatFailed) {
  Result result = full_result(WrongOutput{sample_mismatch(), 1, 3});
  result.manifest.trial_seeds = {0, 1, 2};
  Trial right, wrong, open;
  right.case_name = "small";
  wrong.case_name = "large";
  wrong.comparison.mismatch = sample_mismatch();
  open.case_name = "open";
  open.compared = false;
  result.observations.trials = {right, wrong, open, wrong};
  const json::Object body = wire_result(result);
  const json::Object& metadata = body.at("metadata").as_object();
  EXPECT_EQ(metadata.at("cases_source").as_string(), "cases");
  EXPECT_EQ(metadata.at("num_cases").to_number<int>(), 3);
  EXPECT_EQ(json::dump(metadata.at("correctness_failed_cases")), R"(["large"])");
  EXPECT_EQ(metadata.at("correctness_trials").as_string(), "(1 / 2)");
  EXPECT_EQ(metadata.at("max_difference").as_array().size(), 3U);
}

TEST(WireResult, SaysWhoseFaultItIsAndWhereTheTimeWent) {
  Result result = full_result(Accepted{});
  const json::Object body = wire_result(result);
  EXPECT_EQ(body.at("fault").as_string(), "candidate");
  EXPECT_EQ(body.at("timeline"), json::parse(R"([
      {"name": "load", "start_ms": 0.0, "duration_ms": 10.5},
      {"name": "correctness", "start_ms": 10.5, "duration_ms": 1989.5}])"));
  result.verdict.fault.reset();
  EXPECT_FALSE(wire_result(result).contains("fault"));
}

TEST(WireResult, NamesTheErrorUnderItsOldKeys) {
  const json::Object compile =
      wire_result(full_result(CompileFailed{failure_of(FailureKind::load_error, Stage::load)}));
  EXPECT_EQ(compile.at("metadata").at("compilation_error").as_string(), "ValueError: bad width");
  EXPECT_EQ(compile.at("metadata").at("compilation_error_name").as_string(), "ValueError");
  Failure died = failure_of(FailureKind::died, Stage::correctness);
  died.error.reset();
  const json::Object crash = wire_result(full_result(Crashed{died}));
  EXPECT_EQ(crash.at("metadata").at("runtime_error").as_string(), "forward raised");
  EXPECT_EQ(crash.at("metadata").at("runtime_error_name").as_string(), "died");
  const json::Object invalid = wire_result(full_result(Invalid{"too short", std::nullopt}));
  EXPECT_EQ(invalid.at("metadata").at("validation_error").as_string(), "too short");
  EXPECT_EQ(invalid.at("error_message").as_string(), "too short");
}

TEST(WireResult, GivesTheEvidenceOfARejection) {
  const json::Object body = wire_result(full_result(Rejected{Reason::input_mutation}));
  EXPECT_EQ(body.at("error_message").as_string(), "input_mutation: trial 1: wrote to inputs[0]");
}

TEST(WireResult, IsValidUtf8WhateverTheCandidateSaid) {
  Failure failure = sample_failure();
  failure.error->message = "\xFF\xFE";
  const json::Object body = wire_result(full_result(RuntimeFailed{failure}));
  EXPECT_NO_THROW(static_cast<void>(json::parse(json::dump(body))));
}

}  // namespace
}  // namespace drk::task
