// SPDX-License-Identifier: Apache-2.0
// KernelGYM's request body.
#include "drk/task/wire.h"

#include "base/error_matchers.h"

#include <boost/json/array.hpp>
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

/// The same of kernel_simple.
json::Object simple_body_with(const std::string& members) {
  json::Object body = body_with(members);
  body.erase("reference_code");
  body["workflow"] = "kernel_simple";
  return body;
}

WireRequest read(const std::string& members) {
  return request_from_wire(body_with(members));
}
WireRequest read_simple(const std::string& members) {
  return request_from_wire(simple_body_with(members));
}

TEST(RequestFromWire, FillsInTheDefaultsOfATask) {
  const WireRequest request = read("{}");
  Task expected;
  expected.task_id = "t1";
  expected.reference_code = kReference;
  expected.candidate_code = kCandidate;
  EXPECT_EQ(json::dump(to_json(request.task)), json::dump(to_json(expected)));
  EXPECT_EQ(request.priority, Priority::normal);
  EXPECT_FALSE(request.force_refresh);
  EXPECT_FALSE(request.device_preference.has_value());
  EXPECT_FALSE(request.uuid.has_value());
  EXPECT_FALSE(request.deadline_s.has_value());
}

TEST(RequestFromWire, TakesEveryField) {
  const WireRequest request = read(R"({
      "toolkit": "kernelbench", "backend_adapter": "kernelbench", "backend": "cuda_nvrtc",
      "num_correct_trials": 20, "num_perf_trials": 1, "num_warmup": 0, "timeout": 10,
      "protocol": "rotating",
      "deadline_s": 0.5, "priority": "high", "device_preference": "cuda:1", "force_refresh": true,
      "entry_point": "Net", "reference_backend": "torch_compile", "uuid": "u", "is_valid": true,
      "use_reference_cache": true, "verbose_errors": true, "enable_profiling": false,
      "run_correctness": true, "run_performance": false, "detect_decoy_kernel": true,
      "workflow": "kernelbench", "resources": {"gpus": 1, "cores": 4}, "something_new": [1, 2]})");
  const Task& task = request.task;
  EXPECT_EQ(task.backend, Backend::cuda_nvrtc);
  EXPECT_EQ(task.entry_point, "Net");
  EXPECT_EQ(task.candidate_entry_point(), "NetNew");
  EXPECT_EQ(task.reference_backend, ReferenceBackend::torch_compile);
  EXPECT_EQ(task.num_correct_trials, 20U);
  EXPECT_EQ(task.num_perf_trials, 1U);
  EXPECT_EQ(task.num_warmup, 0U);
  EXPECT_EQ(task.policy.protocol, Protocol::rotating);
  EXPECT_EQ(task.limits.total_s, 10);
  EXPECT_FALSE(task.measure_performance);
  EXPECT_EQ(request.priority, Priority::high);
  EXPECT_TRUE(request.force_refresh);
  EXPECT_EQ(request.device_preference, "cuda:1");
  EXPECT_EQ(request.uuid, "u");
  EXPECT_EQ(request.deadline_s, 0.5);
}

TEST(RequestFromWire, ReadsNullOfOptionalFieldsAsAbsent) {
  const WireRequest request = read(R"({
      "device_preference": null, "reference_backend": null, "uuid": null, "verbose_errors": null,
      "run_performance": null, "measure_performance": null, "resources": null, "cases": null,
      "cases_code": null, "deadline_s": null, "detect_decoy_kernel": null})");
  EXPECT_TRUE(request.task.measure_performance);
  EXPECT_EQ(request.task.reference_backend, ReferenceBackend::pytorch);
  EXPECT_FALSE(request.deadline_s.has_value());
}

TEST(RequestFromWire, NewerFlagsWinOverOlderOnes) {
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
    const Task task = read(c.members).task;
    EXPECT_EQ(task.measure_performance, c.measures) << c.members;
    EXPECT_EQ(task.policy.ownership, c.ownership) << c.members;
  }
}

TEST(RequestFromWire, KnowsTorchCompileBySeveralNames) {
  for (const char* name : {"torch_compile", "torch-compile", "compile"}) {
    const Task task = read(R"({"reference_backend": ")" + std::string(name) + "\"}").task;
    EXPECT_EQ(task.reference_backend, ReferenceBackend::torch_compile) << name;
  }
}

TEST(RequestFromWire, TakesAWholeNumberWithAPointForAnInteger) {
  EXPECT_EQ(read(R"({"num_correct_trials": 7.0})").task.num_correct_trials, 7U);
}

TEST(RequestFromWire, NamesTheFieldThatIsWrong) {
  const struct {
    const char* members;
    const char* error;
  } cases[] = {
      {R"({"task_id": ""})", "task_id: 0 characters; 1 to 100 are allowed"},
      {R"({"task_id": 7})", "task_id: expected a text, got 7"},
      {R"({"task_id": null})", "task_id: expected a text, got null"},
      {R"({"kernel_code": null})", "kernel_code: expected a text, got null"},
      {R"({"kernel_code": "  short   "})", "kernel_code: 5 characters of code"},
      {R"({"reference_code": "a\u0000bcdefghijk"})", "reference_code: NUL byte in line 1"},
      {R"({"backend": "opencl"})", "backend: \"opencl\" is not one of triton, cuda, cuda_nvrtc"},
      {R"({"num_correct_trials": 0})", "num_correct_trials: 0 is not in 1 to 20"},
      {R"({"num_correct_trials": 21})", "num_correct_trials: 21 is not in 1 to 20"},
      {R"({"num_correct_trials": -1})", "num_correct_trials: -1 is not in 1 to 20"},
      {R"({"num_correct_trials": 2.5})", "num_correct_trials: expected an integer, got 2.5"},
      {R"({"num_correct_trials": "5"})", "num_correct_trials: expected an integer, got the text"},
      {R"({"num_correct_trials": true})", "num_correct_trials: expected an integer, got true"},
      {R"({"num_correct_trials": null})", "num_correct_trials: expected an integer, got null"},
      {R"({"num_correct_trials": 18446744073709551615})",
       "num_correct_trials: 18446744073709551615 is not in 1 to 20"},
      {R"({"num_correct_trials": 1e300})", "num_correct_trials: 1e+300 is not in 1 to 20"},
      {R"({"num_correct_trials": 1e400})", "num_correct_trials: inf is not in 1 to 20"},
      {R"({"num_perf_trials": 1001})", "num_perf_trials: 1001 is not in 1 to 1000"},
      {R"({"num_warmup": 101})", "num_warmup: 101 is not in 0 to 100"},
      {R"({"timeout": 9})", "timeout: 9 is not in 10 to 3600"},
      {R"({"timeout": 9.999})", "timeout: 9.999 is not in 10 to 3600"},
      {R"({"timeout": 3601})", "timeout: 3601 is not in 10 to 3600"},
      {R"({"timeout": 1e400})", "timeout: inf is not in 10 to 3600"},
      {R"({"timeout": -1e400})", "timeout: -inf is not in 10 to 3600"},
      {R"({"timeout": "nan"})", "timeout: expected a number, got the text \"nan\""},
      {R"({"timeout": false})", "timeout: expected a number, got false"},
      {R"({"deadline_s": 0})", "deadline_s: 0 is not in more than 0 to 86400"},
      {R"({"deadline_s": 86401})", "deadline_s: 86401 is not in more than 0 to 86400"},
      {R"({"priority": "urgent"})", "priority: \"urgent\" is not one of low, normal, high"},
      {R"({"force_refresh": 1})", "force_refresh: expected true or false, got 1"},
      {R"({"run_performance": "no"})", "run_performance: expected true or false"},
      {R"({"run_performance": true, "measure_performance": 1})", "measure_performance: expected"},
      {R"({"use_reference_cache": true})", "use_reference_cache: true needs a uuid"},
      {R"({"use_reference_cache": true, "uuid": ""})", "use_reference_cache: true needs a uuid"},
      {R"({"entry_point": ""})", "entry_point: 0 characters; 1 to 200 are allowed"},
      {R"({"resources": {"gpus": 0}})", "resources.gpus: 0 is not a number from 1 on"},
      {R"({"resources": {"gpus": "2"}})", "resources.gpus: expected an integer, got the text"},
      {R"({"resources": 2})", "resources: expected an object, got 2"},
      {R"({"workflow": "mine"})", "workflow: \"mine\" is not one of kernelbench, kernel_simple"},
      {R"({"reference_backend": "jax"})", "reference_backend: \"jax\" is not one of pytorch"},
      {R"({"cases": {}})", "cases: expected a list, got an object"},
      {R"({"cases": []})", "cases: 0 items; 1 to 100 are allowed"},
      {R"({"cases": [{"inputs": [-1e400]}]})",
       "cases: holds a number beyond the range of a double"},
      {R"({"task_id": "a\u0000b"})", "task_id: holds a NUL"},
      {R"({"cases_code": "short"})", "cases_code: 5 characters of code"},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, c.error, [&] {
      static_cast<void>(read(c.members));
    })) << c.members;
  }
}

TEST(RequestFromWire, NamesWhatIsMissing) {
  for (const char* name : {"task_id", "reference_code", "kernel_code"}) {
    json::Object body = body_with("{}");
    body.erase(name);
    EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, std::string(name) + ": is required", [&] {
      static_cast<void>(request_from_wire(body));
    }));
  }
}

TEST(RequestFromWire, CountsCharactersOfTheTaskId) {
  json::Object body = body_with("{}");
  std::string id;
  for (int i = 0; i < 100; ++i) id += "\xC3\xA9";
  body["task_id"] = id;
  EXPECT_EQ(request_from_wire(body).task.task_id, id);
  body["task_id"] = id + "x";
  EXPECT_TRUE(throws_error(ErrorCode::invalid_argument, "task_id: 101 characters", [&] {
    static_cast<void>(request_from_wire(body));
  }));
}

TEST(RequestFromWire, MakesAKernelSimpleTask) {
  const WireRequest request = read_simple(R"({
      "device": "cuda:0", "toolkit": "kernel_simple",
      "cases": [{"inputs": [[1.5, 2]], "outputs": [3]}], "cases_code": "def get_cases(): ..."})");
  const Task& task = request.task;
  EXPECT_EQ(task.workflow, Workflow::kernel_simple);
  EXPECT_EQ(task.candidate_entry_point(), "ModelNew");
  EXPECT_EQ(task.reference_code, "");
  EXPECT_EQ(json::parse(task.cases_json),
            json::parse(R"([{"inputs": [[1.5, 2]], "outputs": [3]}])"));
  EXPECT_EQ(task.cases_code, "def get_cases(): ...");
  EXPECT_TRUE(task.check_correctness);
  EXPECT_EQ(task.policy.ownership, Ownership::free);
  EXPECT_EQ(request.device_preference, "cuda:0");
}

TEST(RequestFromWire, TakesTheFlagsOfKernelSimple) {
  const Task task = read_simple(R"({"entry_point": "Relu", "run_correctness": false,
      "enable_triton_detection": true, "reference_code": null})")
                        .task;
  EXPECT_EQ(task.candidate_entry_point(), "Relu");
  EXPECT_FALSE(task.check_correctness);
  EXPECT_EQ(task.policy.ownership, Ownership::mixed);
  EXPECT_EQ(task.cases_json, "");
  EXPECT_EQ(task.cases_code, "");
}

TEST(ContentHash, IsTheSameForWhatDoesNotDecide) {
  const std::string hash = content_hash(read("{}"));
  EXPECT_EQ(hash.size(), 64U);
  for (const char* members : {R"({"task_id": "t2"})",
                              R"({"timeout": 20})",
                              R"({"deadline_s": 20})",
                              R"({"priority": "low"})",
                              R"({"device_preference": "cuda:1"})",
                              R"({"force_refresh": true})",
                              R"({"num_correct_trials": 5})",
                              R"({"reference_backend": "pytorch"})"}) {
    EXPECT_EQ(content_hash(read(members)), hash) << members;
  }
}

TEST(ContentHash, DiffersForWhatDecides) {
  const std::string hash = content_hash(read("{}"));
  for (const char* members : {R"({"reference_code": "class Model: pass "})",
                              R"({"kernel_code": "class ModelNew: pass "})",
                              R"({"backend": "cuda"})",
                              R"({"entry_point": "Net"})",
                              R"({"reference_backend": "compile"})",
                              R"({"num_correct_trials": 6})",
                              R"({"num_perf_trials": 6})",
                              R"({"num_warmup": 6})",
                              R"({"protocol": "warm"})",
                              R"({"run_performance": false})",
                              R"({"run_triton_detection": false})"}) {
    EXPECT_NE(content_hash(read(members)), hash) << members;
  }
  EXPECT_EQ(content_hash(read(R"({"reference_backend": "compile"})")),
            content_hash(read(R"({"reference_backend": "torch_compile"})")));
}

TEST(ContentHash, LooksAtTheCasesOfKernelSimple) {
  const std::string hash = content_hash(read_simple("{}"));
  EXPECT_NE(hash, content_hash(read("{}")));
  for (const char* members : {R"({"cases": [{"inputs": [1]}]})",
                              R"({"cases_code": "def get_cases(): ..."})",
                              R"({"run_correctness": false})"}) {
    EXPECT_NE(content_hash(read_simple(members)), hash) << members;
  }
}

// --- the schema ---

json::Object property(const char* name) {
  return evaluate_schema().at("properties").at(name).as_object();
}

TEST(EvaluateSchema, SaysWhatAFieldMayBe) {
  const struct {
    const char* name;
    const char* schema;  ///< Without its description.
  } cases[] = {
      {"task_id", R"({"type": "string", "minLength": 1, "maxLength": 100})"},
      {"num_correct_trials", R"({"type": "integer", "default": 5, "minimum": 1, "maximum": 20})"},
      {"backend",
       R"({"type": "string", "default": "triton", "enum": ["triton", "cuda", "cuda_nvrtc"]})"},
      {"deadline_s", R"({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": 86400})"},
      {"cases", R"({"type": ["array", "null"], "minItems": 1, "maxItems": 100})"},
      {"reference_backend",
       R"({"type": ["string", "null"], "default": "pytorch",
           "enum": ["pytorch", "torch_compile", "torch-compile", "compile", null]})"},
      {"force_refresh", R"({"type": "boolean", "default": false})"},
  };
  for (const auto& c : cases) {
    json::Object schema = property(c.name);
    EXPECT_FALSE(schema.at("description").as_string().empty()) << c.name;
    schema.erase("description");
    EXPECT_EQ(schema, json::parse(c.schema).as_object()) << json::dump(schema);
  }
  EXPECT_EQ(property("resources").at("properties").at("gpus").at("minimum").as_int64(), 1);
}

TEST(EvaluateSchema, RequiresWhatTheReaderRequires) {
  const json::Object schema = evaluate_schema();
  EXPECT_EQ(json::dump(schema.at("required")), R"(["task_id","kernel_code"])");
  EXPECT_EQ(json::dump(schema.at("else")), R"({"required":["reference_code"]})");
  EXPECT_EQ(json::dump(schema.at("if").at("properties")),
            R"({"workflow":{"const":"kernel_simple"}})");
  EXPECT_TRUE(schema.at("additionalProperties").as_bool());
}

/// Every default and every end of a range passes, and what lies beyond an end does not.
TEST(EvaluateSchema, AgreesWithTheReader) {
  const auto accepts = [](std::string_view name, const json::Value& value) {
    json::Object body = body_with("{}");
    body[name] = value;
    try {
      static_cast<void>(request_from_wire(body));
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  int numbers = 0;
  const json::Object body_schema = evaluate_schema();
  for (const auto& entry : body_schema.at("properties").as_object()) {
    const std::string name(entry.key());
    const json::Object& schema = entry.value().as_object();
    if (const auto* value = schema.if_contains("default")) {
      EXPECT_TRUE(accepts(name, *value)) << name;
    }
    const json::Value* type = schema.if_contains("type");
    EXPECT_EQ(accepts(name, nullptr), type->is_array()) << name;
    if (const auto* choices = schema.if_contains("enum")) {
      for (const json::Value& choice : choices->as_array()) EXPECT_TRUE(accepts(name, choice));
    }
    if (const auto* low = schema.if_contains("minimum")) {
      ++numbers;
      EXPECT_TRUE(accepts(name, *low)) << name;
      EXPECT_FALSE(accepts(name, low->as_int64() - 1)) << name;
      EXPECT_TRUE(accepts(name, schema.at("maximum"))) << name;
      EXPECT_FALSE(accepts(name, schema.at("maximum").as_int64() + 1)) << name;
    }
  }
  EXPECT_EQ(numbers, 4);
}

}  // namespace
}  // namespace drk::task
