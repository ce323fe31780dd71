// SPDX-License-Identifier: Apache-2.0
// Looking at tasks, waiting for them, cancelling them.
#include "drk/base/clock.h"

#include "gym/api.h"
#include "gym/ending.h"

#include <fmt/format.h>

#include <charconv>

namespace drk::gym {

namespace {

/// The status that a long poll waits to be over: given, or the present one.
State since_of(const Call& call, const TaskView& task) {
  const auto text = call.request.parameter("since");
  if (!text) return task.state;
  const auto state = json::enum_from<State>(*text);
  if (state) return *state;
  throw Error(ErrorCode::invalid_argument, fmt::format("since: \"{}\" is no status", *text));
}

std::uint32_t limit_of(const Call& call) {
  constexpr std::uint32_t kDefault = 100;
  constexpr std::uint32_t kMax = 1000;
  const auto text = call.request.parameter("limit");
  if (!text) return kDefault;
  std::uint32_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error != std::errc() || end != text->data() + text->size() || limit < 1 || limit > kMax) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("limit: \"{}\" is not in 1 to {}", *text, kMax));
  }
  return limit;
}

}  // namespace

TaskView Api::found(const std::string& task_id) {
  std::optional<TaskView> task = queue_.find(task_id);
  if (!task) throw Error(ErrorCode::not_found, "no task " + task_id);
  return *std::move(task);
}

std::string Api::why_waiting(const TaskView& task, const Place& place) const {
  std::string why;
  if (pipeline_ == nullptr) {
    why = "this server has no workers";
  } else {
    std::size_t busy = 0;
    const std::vector<SlotView> slots = pipeline_->slots();
    for (const SlotView& slot : slots) busy += slot.task_id.empty() ? 0 : 1;
    why = busy < slots.size() ? std::string("a worker takes it in a moment")
                              : fmt::format("all {} workers are busy", slots.size());
  }
  if (place.ahead_higher > 0) {
    why += fmt::format("; {} tasks of higher priority go first", place.ahead_higher);
  }
  if (place.ahead_same > 0) {
    why += fmt::format("; {} tasks of the same priority go first", place.ahead_same);
  }
  if (!task.last_trouble.empty()) {
    why += fmt::format("; attempt {} gave no verdict: {}", task.attempts, task.last_trouble);
  }
  return why;
}

StatusAnswer Api::status_of(const TaskView& task) {
  StatusAnswer answer;
  answer.task_id = task.id;
  answer.status = json::name_of(task.state);
  answer.attempts = task.attempts;
  answer.priority = json::name_of(task.priority);
  answer.client = task.client;
  answer.workflow = task.workflow;
  answer.submitted_at = utc_text(task.submitted_ms);
  if (task.started_ms) answer.started_at = utc_text(*task.started_ms);
  if (task.finished_ms) answer.completed_at = utc_text(*task.finished_ms);
  answer.cached = task.is_cached;
  answer.dead_letter = task.is_dead;
  if (task.state == State::pending) {
    answer.progress = 0;
    if (const std::optional<Place> place = queue_.place(task.id)) {
      answer.queue_position = place->position;
      answer.queue_ahead = place->position - 1;
      answer.why_waiting = why_waiting(task, *place);
    }
  } else if (task.state == State::processing) {
    answer.worker = task.worker;
    answer.progress = 0;
    if (pipeline_ != nullptr) {
      answer.assigned_device = pipeline_->device();
      if (const std::optional<RunningView> running = pipeline_->running(task.id)) {
        answer.progress = running->progress;
        if (!running->device.empty()) answer.assigned_device = running->device;
        answer.stage = running->stage;
        answer.detail = running->detail;
      }
    }
  } else {
    answer.progress = 1;
  }
  return answer;
}

void Api::status(const CallPtr& call) {
  const std::string& id = call->argument;
  interest_.asked(id);
  const auto limit = wait_of(*call);
  const auto answer = [this, call](const TaskView& task) {
    StatusAnswer status = status_of(task);
    if (is_final(task.state)) {
      const json::Object result = result_of(task);
      status.fault = text_in(result, "fault");
      status.error_code = text_in(result, "error_code");
      status.error_message = text_in(result, "error_message");
    }
    reply(call, 200, with_nulls(status));
  };
  const TaskView task = found(id);
  if (!limit || is_final(task.state)) return answer(task);
  const State since = since_of(*call, task);
  long_poll(
      call, [since](const TaskView& now) { return now.state != since; }, *limit, answer);
}

void Api::long_poll(const CallPtr& call,
                    Waiters::Predicate is_met,
                    std::chrono::milliseconds limit,
                    std::function<void(const TaskView&)> answer) {
  const std::string& id = call->argument;
  // The token lives as long as this waits.
  const Waiters::Handle handle =
      waiters_.wait(id,
                    std::move(is_met),
                    limit,
                    [this, call, answer = std::move(answer), token = interest_.joined(id)](
                        const std::optional<TaskView>& now) {
                      guard(call, [&] {
                        if (!now) throw Error(ErrorCode::not_found, "no task " + call->argument);
                        answer(*now);
                      });
                    });
  call->exchange->on_leave([this, handle] { waiters_.drop(handle); });
}

void Api::result(const CallPtr& call) {
  const std::string& id = call->argument;
  interest_.asked(id);
  const auto limit = wait_of(*call);
  const std::string form(call->request.parameter("form").value_or("short"));
  if (form != "short" && form != "full") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("form: \"{}\" is neither short nor full", form));
  }
  const auto answer = [this, call, form](const TaskView& task) {
    if (!is_final(task.state)) {
      if (is_stopping_) throw Error(ErrorCode::unavailable, "the server is stopping; ask again");
      throw Error(ErrorCode::not_found,
                  fmt::format("task {} is {}", task.id, json::name_of(task.state)));
    }
    http::Reply reply;
    if (form == "full") {
      const std::optional<StoredResult> stored = results_.result(task.id);
      if (!stored || stored->detail.empty()) {
        throw Error(ErrorCode::not_found, "task " + task.id + " ended without an evaluation");
      }
      reply.body = stored->detail;
    } else {
      reply.body = result_text(task);
    }
    this->reply(call, std::move(reply));
  };
  const TaskView task = found(id);
  if (!limit || is_final(task.state)) return answer(task);
  long_poll(
      call, [](const TaskView& now) { return is_final(now.state); }, *limit, answer);
}

boost::json::array Api::list(const ListFilter& filter) {
  boost::json::array answers;
  for (const TaskView& task : queue_.list(filter)) {
    answers.emplace_back(with_nulls(status_of(task)));
  }
  return answers;
}

void Api::tasks(const CallPtr& call) {
  ListFilter filter;
  if (const auto text = call->request.parameter("state")) {
    filter.state = json::enum_from<State>(*text);
    if (!filter.state) {
      throw Error(ErrorCode::invalid_argument, fmt::format("state: \"{}\" is no status", *text));
    }
  }
  filter.client = std::string(call->request.parameter("client").value_or(""));
  filter.dead_only = call->request.parameter("dead").value_or("0") == "1";
  filter.limit = limit_of(*call);
  json::Object body;
  body["tasks"] = list(filter);
  reply(call, 200, body);
}

void Api::cancel(const CallPtr& call) {
  queue_.cancel(call->argument, [this, call](std::variant<CancelOutcome, Error> answer) {
    guard(call, [&] {
      if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
      const std::string& id = call->argument;
      switch (std::get<CancelOutcome>(answer)) {
        case CancelOutcome::unknown:
          throw Error(ErrorCode::not_found, "no task " + id);
        case CancelOutcome::already_final:
          throw Error(ErrorCode::not_found, "task " + id + " is final already");
        case CancelOutcome::cancelled:
          break;
      }
      log_.info("task cancelled", {{"task_id", id}, {"client", call->client}});
      CancelAnswer cancelled;
      cancelled.task_id = id;
      cancelled.message = "cancelled; a running evaluation is stopped";
      reply(call, 200, json::to_json(cancelled));
    });
  });
}

}  // namespace drk::gym
