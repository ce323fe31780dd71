// SPDX-License-Identifier: Apache-2.0
// KernelGYM's request and result bodies.
#include "drk/task/wire.h"

#include "base/error_matchers.h"
#include "task/sample_result.h"

#include <gtest/gtest.h>

#include <string>

namespace drk::task {
namespace {

constexpr const char* kReference = "class Model: pass";
constexpr const char* kCandidate = "class ModelNew: pass";

/// The smallest valid body, with `members` (JSON text of an object) over it.
json::Object body_with(const std::string& members) {
  json::Object body;
  body["task_id"] = "t1";
  body["reference_code"] = kReference;
  body["kernel_code"] = kCandidate;
  const json::Value parsed = json::parse(members);
  for (const auto& entry : parsed.get_object()) body[entry.key()] = entry.value();
  return body;
}

TEST(TaskFromWire, FillsInTheDefaults) {
  const Task task = task_from_wire(body_with("{}"));
  EXPECT_EQ(task.task_id, "t1");
  EXPECT_EQ(task.reference_code, kReference);
  EXPECT_EQ(task.candidate_code, kCandidate);
  EXPECT_EQ(task.backend, Backend::triton);
  EXPECT_EQ(task.entry_point, "Model");
  EXPECT_EQ(task.num_correct_trials, 5U);
  EXPECT_EQ(task.num_perf_trials, 100U);
  EXPECT_EQ(task.num_warmup, 3U);
  EXPECT_EQ(task.limits.total_s, 300);
  EXPECT_TRUE(task.measure_performance);
  EXPECT_EQ(task.policy, Policy{});
}

TEST(TaskFromWire, TakesEveryField) {
  const Task task = task_from_wire(body_with(R"({
      "toolkit": "kernelbench", "backend_adapter": "kernelbench", "backend": "cuda_nvrtc",
      "num_correct_trials": 20, "num_perf_trials": 1, "num_warmup": 0, "timeout": 10,
      "priority": "high", "device_preference": "cuda:1", "force_refresh": true,
      "entry_point": "Net", "reference_backend": "pytorch", "uuid": "u", "is_valid": true,
      "use_reference_cache": true, "verbose_errors": true, "enable_profiling": false,
      "run_correctness": true, "run_performance": false, "detect_decoy_kernel": true,
      "workflow": "kernelbench", "resources": {"gpus": 1}, "something_new": [1, 2]})"));
  EXPECT_EQ(task.backend, Backend::cuda_nvrtc);
  EXPECT_EQ(task.entry_point, "Net");
  EXPECT_EQ(task.num_correct_trials, 20U);
  EXPECT_EQ(task.num_perf_trials, 1U);
  EXPECT_EQ(task.num_warmup, 0U);
  EXPECT_EQ(task.limits.total_s, 10);
  EXPECT_FALSE(task.measure_performance);
}

TEST(TaskFromWire, ReadsNullOfOptionalFieldsAsAbsent) {
  EXPECT_NO_THROW(static_cast<void>(task_from_wire(body_with(R"({
      "device_preference": null, "reference_backend": null, "uuid": null, "verbose_errors": null,
      "run_performance": null, "measure_performance": null, "resources": null})"))));
}

TEST(TaskFromWire, NewerFlagsWinOverOlderOnes) {
  const struct {
    const char* members;
    bool measures;
    Ownership ownership;
  } cases[] = {
      {R"({"measure_performance": false})", false, Ownership::mixed},
      {R"({"measure_performance": false, "run_performance": true})", true, Ownership::mixed},
      {R"({"measure_performance": true, "run_performance": false})", false, Ownership::mixed},
      {R"({"enable_triton_detection": false})", true, Ownership::free},
      {R"({"enable_triton_detection": false, "run_triton_detection": true})",
       true,
       Ownership::mixed},
      {R"({"run_triton_detection": false})", true, Ownership::free},
      {R"({"backend": "cuda"})", true, Ownership::mixed},
  };
  for (const auto& c : cases) {
    const Task task = task_from_wire(body_with(c.members));
    EXPECT_EQ(task.measure_performance, c.measures) << c.members;
    EXPECT_EQ(task.policy.ownership, c.ownership) << c.members;
  }
}

TEST(TaskFromWire, NamesTheFieldThatIsWrong) {
  const struct {
    const char* members;
    const char* error;
  } cases[] = {
      {R"({"task_id": ""})", "task_id: 0 characters; 1 to 100 are allowed"},
      {R"({"task_id": 7})", "task_id: expected a text, got 7"},
      {R"({"kernel_code": null})", "kernel_code: expected a text, got null"},
      {R"({"kernel_code": "  short   "})", "kernel_code: 5 characters of code"},
      {R"({"reference_code": "a\u0000bcdefghijk"})", "reference_code: NUL byte in line 1"},
      {R"({"backend": "opencl"})", "backend: \"opencl\" is not one of triton, cuda, cuda_nvrtc"},
      {R"({"num_correct_trials": 0})", "num_correct_trials: 0 is not in 1 to 20"},
      {R"({"num_correct_trials": 21})", "num_correct_trials: 21 is not in 1 to 20"},
      {R"({"num_correct_trials": -1})", "num_correct_trials: expected an integer of at least 0"},
      {R"({"num_correct_trials": "5"})", "num_correct_trials: expected an integer"},
      {R"({"num_correct_trials": null})", "num_correct_trials: expected an integer"},
      {R"({"num_perf_trials": 1001})", "num_perf_trials: 1001 is not in 1 to 1000"},
      {R"({"num_warmup": 101})", "num_warmup: 101 is not in 0 to 100"},
      {R"({"timeout": 9})", "timeout: 9 is not in 10 to 3600"},
      {R"({"timeout": 3601})", "timeout: 3601 is not in 10 to 3600"},
      {R"({"timeout": "nan"})", "timeout: nan is not in 10 to 3600"},
      {R"({"priority": "urgent"})", "priority: \"urgent\" is not one of low, normal, high"},
      {R"({"force_refresh": 1})", "force_refresh: expected true or false, got 1"},
      {R"({"run_performance": "no"})", "run_performance: expected true or false"},
      {R"({"run_performance": true, "measure_performance": 1})", "measure_performance: expected"},
      {R"({"use_reference_cache": true})", "use_reference_cache: true needs a uuid"},
      {R"({"entry_point": ""})", "entry_point: is empty"},
      {R"({"resources": {"gpus": 0}})", "resources.gpus: at least 1 is needed"},
      {R"({"resources": 2})", "resources: expected an object, got 2"},
      {R"({"workflow": "mine"})", "workflow: \"mine\" is not one of kernelbench, kernel_simple"},
      {R"({"workflow": "kernel_simple"})", "workflow: \"kernel_simple\" is not offered here"},
      {R"({"reference_backend": "jax"})", "reference_backend: \"jax\" is not one of pytorch"},
      {R"({"reference_backend": "torch-compile"})", "reference_backend: torch.compile is not"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, c.error, [&] {
      static_cast<void>(task_from_wire(body_with(c.members)));
    })) << c.members;
  }
}

TEST(TaskFromWire, NamesWhatIsMissing) {
  for (const char* name : {"task_id", "reference_code", "kernel_code"}) {
    json::Object body = body_with("{}");
    body.erase(name);
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, std::string(name) + ": is required", [&] {
      static_cast<void>(task_from_wire(body));
    }));
  }
}

TEST(TaskFromWire, CountsCharactersOfTheTaskId) {
  json::Object body = body_with("{}");
  std::string id;
  for (int i = 0; i < 100; ++i) id += "\xC3\xA9";
  body["task_id"] = id;
  EXPECT_EQ(task_from_wire(body).task_id, id);
  body["task_id"] = id + "x";
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "task_id: 101 characters", [&] {
    static_cast<void>(task_from_wire(body));
  }));
}

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
    const json::Object body = wire_result(full_result(c.outcome));
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
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").is_null());
  result.verdict.outcome = WrongOutput{sample_mismatch(), 0, 5};
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").is_null());
  result.verdict.outcome = Rejected{Reason::no_candidate_kernel};
  EXPECT_TRUE(wire_result(result).at("decoy_kernel").as_bool()) << "seen, GPU or not";
  const json::Object body = wire_result(result);
  for (const char* key : {"num_custom_kernels", "triton_kernel_coverage"}) {
    EXPECT_FALSE(body.at("metadata").as_object().contains(key)) << key;
  }
}

TEST(WireResult, ExplainsInMetadata) {
  const json::Object body = wire_result(full_result(WrongOutput{sample_mismatch(), 3, 5}));
  const json::Object& metadata = body.at("metadata").as_object();
  EXPECT_EQ(metadata.at("correctness_trials").as_string(), "(1 / 4)");
  EXPECT_EQ(json::dump(metadata.at("max_difference")), R"(["0.25","0"])");
  EXPECT_EQ(json::dump(metadata.at("avg_difference")), R"(["1e-300","0"])");
  EXPECT_EQ(metadata.at("correctness_issue"), body.at("error_message"));
  EXPECT_EQ(metadata.at("outcome").as_string(), "wrong_output");
  EXPECT_EQ(metadata.at("backend").as_string(), "cuda_nvrtc");
  EXPECT_EQ(metadata.at("findings").as_array().size(), 2U);
  EXPECT_EQ(metadata.at("findings").at(1).at("reason").as_string(), "input_mutation");
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
