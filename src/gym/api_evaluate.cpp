// SPDX-License-Identifier: Apache-2.0
// Single tasks: evaluate, workflow, validate.
#include "drk/base/clock.h"
#include "drk/base/hash.h"
#include "drk/base/random.h"

#include "gym/api.h"
#include "gym/ending.h"

#include <fmt/format.h>

namespace drk::gym {

namespace {

bool is_final_view(const TaskView& task) {
  return is_final(task.state);
}

/// Fields of the whole request that stand beside a workflow's payload.
json::Object workflow_body(const json::Object& request) {
  const json::Value* payload = request.if_contains("payload");
  if (payload == nullptr) throw Error(ErrorCode::invalid_argument, "payload: is required");
  if (!payload->is_object()) json::detail::fail("payload", "an object", *payload);
  json::Object body = payload->get_object();
  for (const char* name : {"workflow", "task_id", "force_refresh", "resources"}) {
    const json::Value* value = request.if_contains(name);
    if (value != nullptr && !value->is_null()) body[name] = *value;
  }
  if (!body.contains("task_id")) body["task_id"] = make_id("task");
  return body;
}

CodeAnswer describe_code(const json::Object& body, const char* name) {
  CodeAnswer answer;
  const json::Value* value = body.if_contains(name);
  if (value == nullptr || !value->is_string()) return answer;
  const std::string_view code(value->get_string().data(), value->get_string().size());
  answer.bytes = code.size();
  answer.sha256 = sha256_hex(code);
  return answer;
}

}  // namespace

Submission Api::submission_of(const task::WireRequest& wire, const std::string& client) {
  Submission submission;
  submission.id = wire.task.task_id;
  submission.content = task::content_hash(wire);
  submission.code = sha256_hex(wire.task.candidate_code);
  submission.client = client;
  submission.workflow = json::name_of(wire.task.workflow);
  submission.priority = wire.priority;
  submission.deadline_s = wire.deadline_s;
  submission.force_refresh = wire.force_refresh;
  submission.request = json::dump(task::to_json(wire.task));
  return submission;
}

void Api::evaluate(const CallPtr& call) {
  const task::WireRequest wire = task::request_from_wire(body_of(*call));
  submit_one(call, submission_of(wire, call->client), &Api::reply_result);
}

void Api::workflow_submit(const CallPtr& call) {
  const task::WireRequest wire = task::request_from_wire(workflow_body(body_of(*call)));
  submit_one(call, submission_of(wire, call->client), &Api::reply_workflow);
}

void Api::submit_one(const CallPtr& call, Submission submission, Form form) {
  if (is_stopping_) throw Error(ErrorCode::unavailable, "the server is stopping");
  const bool wants_async = is_async(*call);
  SubmitRequest request;
  request.submissions.push_back(std::move(submission));
  queue_.submit(
      std::move(request),
      [this, call, form, wants_async](std::variant<std::vector<Admitted>, Error> answer) {
        guard(call, [&] {
          if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
          const Admitted& admitted = std::get<std::vector<Admitted>>(answer).front();
          metrics_.count("drk_submissions_total",
                         {{"admission", json::name_of(admitted.admission)}});
          if (admitted.admission == Admission::conflict) {
            throw Error(ErrorCode::conflict,
                        fmt::format("task {} is there with other content; choose another task_id, "
                                    "or replace it by force_refresh",
                                    admitted.task.id));
          }
          log_.info("task submitted",
                    {{"task_id", admitted.task.id},
                     {"client", call->client},
                     {"admission", json::name_of(admitted.admission)}});
          if (!wants_async) return await_final(call, admitted, form);
          interest_.kept(admitted.task.id);
          reply(call, 202, with_nulls(status_of(admitted.task)));
        });
      });
}

void Api::await_final(const CallPtr& call, const Admitted& admitted, Form form) {
  const std::string& id = admitted.task.id;
  const Interest::Token token =
      admitted.admission == Admission::attached ? interest_.joined(id) : interest_.submitted(id);
  const Waiters::Handle handle = waiters_.wait(
      id,
      is_final_view,
      std::nullopt,
      // The token lives as long as this waits.
      [this, call, form, token, wanted = admitted.task](const std::optional<TaskView>& task) {
        guard(call, [&] {
          if (!task) throw Error(ErrorCode::unavailable, "the store does not answer");
          if (task->content != wanted.content) {
            throw Error(ErrorCode::conflict,
                        fmt::format("task {} was replaced by one of other content", wanted.id));
          }
          if (is_final(task->state)) return (this->*form)(call, *task);
          throw Error(ErrorCode::unavailable,
                      fmt::format("task {} goes on, post it again: the server is stopping, or the "
                                  "task was started anew",
                                  wanted.id));
        });
      });
  // The exchange keeps this, and this must not keep the exchange.
  call->exchange->on_leave([this, handle] { waiters_.drop(handle); });
}

json::Object Api::result_of(const TaskView& task) {
  const std::optional<StoredResult> stored = results_.result(task.id);
  if (stored) return render_result(task, stored->result);
  throw Error(ErrorCode::unavailable, fmt::format("task {} was started anew; ask again", task.id));
}

std::string Api::result_text(const TaskView& task) {
  return json::dump(result_of(task));
}

void Api::reply_result(const CallPtr& call, const TaskView& task) {
  if (task.is_no_verdict && task.state != State::cancelled) throw_no_verdict(task);
  http::Reply answer;
  answer.body = result_text(task);
  reply(call, std::move(answer));
}

void Api::throw_no_verdict(const TaskView& task) {
  throw Error(
      ErrorCode::unavailable,
      fmt::format("task {}: no verdict: {}",
                  task.id,
                  text_in(result_of(task), "error_message").value_or("for no known reason")));
}

json::Object Api::workflow_answer(const TaskView& task) {
  WorkflowAnswer answer;
  answer.task_id = task.id;
  answer.status = json::name_of(task.state);
  answer.submitted_at = utc_text(task.submitted_ms);
  if (task.finished_ms) answer.completed_at = utc_text(*task.finished_ms);
  if (is_final(task.state)) {
    json::Object result = result_of(task);
    answer.error_message = text_in(result, "error_message");
    answer.error_code = text_in(result, "error_code");
    answer.result = std::move(result);
  }
  return with_nulls(answer);
}

void Api::reply_workflow(const CallPtr& call, const TaskView& task) {
  if (task.is_no_verdict && task.state != State::cancelled) throw_no_verdict(task);
  reply(call, 200, workflow_answer(task));
}

void Api::workflow_result(const CallPtr& call) {
  interest_.asked(call->argument);
  reply(call, 200, workflow_answer(found(call->argument)));
}

void Api::validate(const CallPtr& call) {
  const json::Object body = body_of(*call);
  ValidateAnswer answer;
  answer.reference = describe_code(body, "reference_code");
  answer.kernel = describe_code(body, "kernel_code");
  try {
    const task::WireRequest wire = task::request_from_wire(body);
    answer.valid = true;
    answer.reference.entry_point = wire.task.entry_point;
    answer.kernel.entry_point = wire.task.candidate_entry_point();
    answer.cache.content = task::content_hash(wire);
    answer.cache.has_result = results_.find_content(*answer.cache.content).has_value();
  } catch (const Error& error) {  // the question was whether it is valid
    if (error.code() != ErrorCode::invalid_argument) throw;
    answer.errors.emplace_back(error.what());
  }
  reply(call, 200, with_nulls(answer));
}

}  // namespace drk::gym
