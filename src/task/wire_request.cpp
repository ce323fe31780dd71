// SPDX-License-Identifier: Apache-2.0
// POST /evaluate body to a task and what steers the queue.
#include "drk/base/error.h"
#include "drk/base/hash.h"
#include "drk/task/wire.h"

#include "wire_fields.h"

#include <optional>
#include <string>

namespace drk::task {

namespace {

/// kernel_simple names the candidate's class itself.
constexpr const char* kSimpleEntryPoint = "ModelNew";

template <class E>
E choice(const WireBody& body, const char* name) {
  return json::enum_from<E>(body.get<std::string>(name)).value();
}

/// The newer flag, else the older one, else the default.
bool flag_of(const WireBody& body, const char* newer, const char* older, bool fallback) {
  return body.maybe<bool>(newer).value_or(body.maybe<bool>(older).value_or(fallback));
}

ReferenceBackend reference_backend_of(const WireBody& body) {
  const auto name = body.get<std::string>("reference_backend");
  return name == json::name_of(ReferenceBackend::pytorch) ? ReferenceBackend::pytorch
                                                          : ReferenceBackend::torch_compile;
}

/// What both workflows ask in the same words.
TaskOptions common_options(const WireBody& body, bool detects_by_default) {
  TaskOptions options;
  options.workflow = choice<Workflow>(body, "workflow");
  options.backend = choice<Backend>(body, "backend");
  options.entry_point = body.get<std::string>("entry_point");
  options.reference_backend = reference_backend_of(body);
  options.num_correct_trials = body.get<std::uint32_t>("num_correct_trials");
  options.num_perf_trials = body.get<std::uint32_t>("num_perf_trials");
  options.policy.protocol = choice<Protocol>(body, "protocol");
  options.num_warmup = body.get<std::uint32_t>("num_warmup");
  options.limits.total_s = body.get<double>("timeout");
  options.measure_performance = flag_of(body, "run_performance", "measure_performance", true);
  const bool detects =
      flag_of(body, "run_triton_detection", "enable_triton_detection", detects_by_default);
  options.policy.ownership = detects ? Ownership::mixed : Ownership::free;
  return options;
}

Task kernelbench_task(const WireBody& body) {
  Task task;
  static_cast<TaskOptions&>(task) = common_options(body, true);
  task.reference_code = body.get<std::string>("reference_code");
  return task;
}

Task kernel_simple_task(const WireBody& body, bool names_entry_point) {
  Task task;
  static_cast<TaskOptions&>(task) = common_options(body, false);
  if (!names_entry_point) task.entry_point = kSimpleEntryPoint;
  if (const auto cases = body.maybe<json::Value>("cases")) task.cases_json = json::dump(*cases);
  task.cases_code = body.maybe<std::string>("cases_code").value_or("");
  task.check_correctness = body.maybe<bool>("run_correctness").value_or(true);
  return task;
}

void check_reference_cache(const WireBody& body) {
  if (!body.get<bool>("use_reference_cache")) return;
  if (!body.maybe<std::string>("uuid").value_or("").empty()) return;
  throw Error(ErrorCode::invalid_argument, "use_reference_cache: true needs a uuid");
}

}  // namespace

WireRequest request_from_wire(const json::Object& object) {
  const WireBody body(object);
  check_reference_cache(body);
  WireRequest request;
  const bool is_simple = choice<Workflow>(body, "workflow") == Workflow::kernel_simple;
  request.task =
      is_simple ? kernel_simple_task(body, object.contains("entry_point")) : kernelbench_task(body);
  request.task.task_id = body.get<std::string>("task_id");
  request.task.candidate_code = body.get<std::string>("kernel_code");
  request.priority = choice<Priority>(body, "priority");
  request.force_refresh = body.get<bool>("force_refresh");
  request.device_preference = body.maybe<std::string>("device_preference");
  if (!request.device_preference) request.device_preference = body.maybe<std::string>("device");
  request.uuid = body.maybe<std::string>("uuid");
  request.deadline_s = body.maybe<double>("deadline_s");
  return request;
}

std::string content_hash(const WireRequest& request) {
  // All of a task decides but its name and how long it may take.
  Task content = request.task;
  content.task_id.clear();
  content.limits = {};
  return sha256_hex(json::dump(to_json(content)));
}

}  // namespace drk::task
