// SPDX-License-Identifier: Apache-2.0
// Result of an evaluation to what is stored, and to what is answered.
#include "gym/ending.h"

#include "drk/base/clock.h"
#include "drk/base/json.h"
#include "drk/task/describe.h"
#include "drk/task/wire.h"

#include <csignal>

namespace drk::gym {

namespace {

State state_of(const std::string& status) {
  return json::enum_from<State>(status).value_or(State::failed);
}

std::optional<Trouble> trouble_of(const task::Result& result) {
  const task::Failure* failure = task::failure_of(result.verdict.outcome);
  const auto trouble = [&](TroubleKind kind) {
    return Trouble{kind, failure == nullptr ? std::string() : task::describe(*failure)};
  };
  const task::Outcome& outcome = result.verdict.outcome;
  if (std::holds_alternative<task::Crashed>(outcome)) return trouble(TroubleKind::crash);
  if (std::holds_alternative<task::TimedOut>(outcome)) return trouble(TroubleKind::timeout);
  if (std::holds_alternative<task::ResourceExhausted>(outcome)) {
    return trouble(TroubleKind::out_of_memory);
  }
  return std::nullopt;
}

/// Time and memory ran out, or something did that may be the machine's doing: the kernel's killer
/// of processes sends SIGKILL, and a reference does not die by itself.
bool depends_on_load(const task::Result& result) {
  const task::Failure* failure = task::failure_of(result.verdict.outcome);
  if (failure == nullptr) return false;
  switch (failure->kind) {
    case task::FailureKind::timed_out:
    case task::FailureKind::out_of_memory:
      return true;
    case task::FailureKind::died:
      return result.verdict.fault != task::Fault::candidate ||
             (failure->death && failure->death->signal == SIGKILL);
    default:
      return false;
  }
}

/// The same content would end the same way.
bool is_reusable(const task::Result& result) {
  const task::Outcome& outcome = result.verdict.outcome;
  return !std::holds_alternative<task::Undecided>(outcome) &&
         !std::holds_alternative<task::TimedOut>(outcome) &&
         !std::holds_alternative<task::ResourceExhausted>(outcome) &&
         result.verdict.fault != task::Fault::infra && !depends_on_load(result);
}

void prefix_queue_span(const TaskView& task, json::Object& body) {
  const std::int64_t left_queue_ms =
      task.is_cached ? task.finished_ms.value_or(task.submitted_ms)
                     : task.started_ms.value_or(task.finished_ms.value_or(task.submitted_ms));
  const auto queue_ms = static_cast<double>(left_queue_ms - task.submitted_ms);
  boost::json::array timeline;
  timeline.push_back(json::to_json(task::Span{"queue", 0, queue_ms}));
  const json::Value* stored = body.if_contains("timeline");
  // A reused result's spans are those of another task.
  if (stored != nullptr && stored->is_array() && !task.is_cached) {
    for (const json::Value& value : stored->get_array()) {
      auto span = json::from_json<task::Span>(value, "timeline");
      span.start_ms += queue_ms;
      timeline.push_back(json::to_json(span));
    }
  }
  body["timeline"] = std::move(timeline);
}

}  // namespace

Decision decide_ending(const task::Result& result) {
  json::Object body = task::wire_result(result);
  body.erase("task_id");
  Decision decision;
  decision.outcome = task::outcome_kind(result.verdict);
  decision.ending.state = state_of(std::string(body.at("status").as_string()));
  decision.ending.result = json::dump(body);
  decision.ending.detail = json::dump(task::to_json(result));
  decision.ending.is_reusable = is_reusable(result);
  decision.ending.is_no_verdict = result.verdict.fault == task::Fault::infra;
  decision.ending.trouble = trouble_of(result);
  if (const auto* undecided = std::get_if<task::Undecided>(&result.verdict.outcome)) {
    decision.what = undecided->what;
    const bool needs_gpu =
        undecided->failure && undecided->failure->kind == task::FailureKind::needs_gpu;
    decision.is_infra = !needs_gpu;  // no attempt on this machine would find one
  }
  return decision;
}

std::string death_cause(const task::Result& result) {
  if (std::holds_alternative<task::TimedOut>(result.verdict.outcome)) return "timeout";
  if (std::holds_alternative<task::ResourceExhausted>(result.verdict.outcome)) return "memory";
  const task::Failure* failure = task::failure_of(result.verdict.outcome);
  if (failure == nullptr || !failure->death) return {};
  if (!failure->death->signal) return "exit";
  const char* name = ::sigabbrev_np(*failure->death->signal);
  return name == nullptr ? "signal" : "SIG" + std::string(name);
}

std::string result_without_verdict(State state, const std::string& what) {
  json::Object body;
  body["status"] = json::name_of(state);
  body["compiled"] = false;
  body["correctness"] = false;
  body["decoy_kernel"] = nullptr;
  body["reference_runtime"] = -1.0;
  body["kernel_runtime"] = -1.0;
  body["speedup"] = 0.0;
  body["metadata"] = json::Object();
  body["error_message"] = json::to_json(what);
  if (state != State::cancelled) {  // that is nobody's fault
    body["error_code"] = state == State::timeout ? "TIMEOUT_ERROR" : "SYSTEM_ERROR";
    body["fault"] = json::name_of(task::Fault::infra);
  }
  body["processing_time"] = 0.0;
  body["timeline"] = boost::json::array();
  return json::dump(body);
}

json::Object render_result(const TaskView& task, const std::string& stored) {
  json::Object body;
  body["task_id"] = json::to_json(task.id);
  const json::Value parsed = json::parse(stored);
  for (const auto& entry : parsed.get_object()) body[entry.key()] = entry.value();
  body["submitted_at"] = utc_text(task.submitted_ms);
  if (task.finished_ms) body["completed_at"] = utc_text(*task.finished_ms);
  body["cached"] = task.is_cached;
  prefix_queue_span(task, body);
  return body;
}

std::optional<std::string> text_in(const json::Object& result, const char* name) {
  const json::Value* value = result.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

}  // namespace drk::gym
