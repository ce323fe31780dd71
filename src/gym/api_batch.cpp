// SPDX-License-Identifier: Apache-2.0
// Batches: many tasks in parallel, answered as one or as a stream in the order of completion.
#include "drk/base/clock.h"
#include "drk/base/hash.h"

#include "gym/api.h"
#include "gym/ending.h"

#include <fmt/format.h>

#include <set>

namespace drk::gym {

namespace {

constexpr std::size_t kMaxTasks = 4096;
constexpr std::chrono::milliseconds kKeepAlive(15'000);
constexpr const char* kEventStream = "text/event-stream";

bool wants_stream(const http::Request& request) {
  return request.header("accept").value_or("").find(kEventStream) != std::string_view::npos;
}

std::string batch_id_of(const json::Object& body) {
  const json::Value* value = body.if_contains("batch_id");
  if (value == nullptr) throw Error(ErrorCode::invalid_argument, "batch_id: is required");
  std::string id = json::from_json<std::string>(*value, "batch_id");
  if (id.empty() || id.size() > 400) {
    throw Error(ErrorCode::invalid_argument, "batch_id: 1 to 100 characters are allowed");
  }
  // No path can name it.
  if (id.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "batch_id: holds a NUL");
  }
  return id;
}

const boost::json::array& tasks_of(const json::Object& body) {
  const json::Value* value = body.if_contains("tasks");
  if (value == nullptr) throw Error(ErrorCode::invalid_argument, "tasks: is required");
  if (!value->is_array()) json::detail::fail("tasks", "a list", *value);
  const boost::json::array& tasks = value->get_array();
  if (tasks.empty() || tasks.size() > kMaxTasks) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tasks: {} of them; 1 to {} are allowed", tasks.size(), kMaxTasks));
  }
  return tasks;
}

task::WireRequest task_at(const boost::json::array& tasks, std::size_t index) {
  const std::string path = fmt::format("tasks[{}]", index);
  if (!tasks[index].is_object()) json::detail::fail(path, "an object", tasks[index]);
  try {
    return task::request_from_wire(tasks[index].get_object());
  } catch (const Error& error) {
    throw Error(error.code(), path + "." + error.what());
  }
}

std::string conflict_text(const std::vector<Admitted>& admitted) {
  std::string ids;
  for (const Admitted& one : admitted) {
    if (one.admission != Admission::conflict) continue;
    ids += (ids.empty() ? "" : ", ") + one.task.id;
  }
  return fmt::format(
      "there with other content: {}; nothing was accepted; choose other ids, or "
      "replace them by force_refresh",
      ids);
}

std::string event(std::string_view name, std::string_view data) {
  return fmt::format("event: {}\ndata: {}\n\n", name, data);
}

}  // namespace

/// Waits for all tasks of a batch. Shared by the waits for its tasks and its timer.
class Api::BatchWait : public std::enable_shared_from_this<BatchWait> {
 public:
  BatchWait(Api& api, CallPtr call, Batch batch, bool is_stream)
      : api_(api), call_(std::move(call)), batch_(std::move(batch)), is_stream_(is_stream) {}

  void begin(std::optional<std::chrono::milliseconds> limit) {
    if (is_stream_) {
      http::Reply head;
      head.content_type = kEventStream;
      head.headers.emplace_back("Cache-Control", "no-store");
      call_->exchange->start_stream(std::move(head));
      keep_alive();
    }
    left_ = batch_.task_ids.size();
    std::vector<Waiters::Handle> handles;
    for (std::size_t i = 0; i < batch_.task_ids.size(); ++i) {
      handles.push_back(api_.waiters_.wait(
          batch_.task_ids[i],
          [](const TaskView& task) { return is_final(task.state); },
          limit,
          [self = shared_from_this(), i](const std::optional<TaskView>& task) {
            self->on_task(i, task);
          }));
    }
    call_->exchange->on_leave([&api = api_, handles, ids = batch_.task_ids] {
      for (const Waiters::Handle& handle : handles) api.waiters_.drop(handle);
      for (const std::string& id : ids) api.interest_.left(id);
    });
  }

 private:
  void on_task(std::size_t index, const std::optional<TaskView>& task) {
    std::string news;
    if (is_stream_ && task && is_final(task->state)) news = result_event(index, *task);
    const std::lock_guard lock(mutex_);
    if (!news.empty()) call_->exchange->send(std::move(news));
    if (--left_ == 0) end();
  }

  [[nodiscard]] std::string result_event(std::size_t index, const TaskView& task) {
    try {
      return event("result",
                   fmt::format("{{\"index\":{},\"result\":{}}}", index, api_.result_text(task)));
    } catch (const Error& error) {  // the stream has begun: it is too late for a status
      api_.log_.error("request failed", {{"task_id", task.id}, {"error", error.what()}});
      return event("error", json::dump(json::to_json(DetailAnswer{"internal error"})));
    }
  }

  /// All are final, or the time is up, or the server stops.
  void end() {
    timer_ = Crew::Timer();
    const BatchAnswer head = api_.batch_head(batch_);
    const bool is_done = head.completed_at.has_value();
    if (is_stream_) {
      json::Object done = with_nulls(head);
      done.erase("results");
      // A stream that ends without this event was cut short: the client asks again.
      if (is_done) call_->exchange->send(event("done", json::dump(done)));
      return api_.finish_stream(call_);
    }
    api_.guard(call_, [&] {
      if (!is_done && api_.is_stopping_) {
        throw Error(
            ErrorCode::unavailable,
            fmt::format("the server is stopping; batch {} is kept, post it again", batch_.id));
      }
      http::Reply answer;
      answer.body = api_.batch_text(batch_);
      api_.reply(call_, std::move(answer));
    });
  }

  void keep_alive() {
    const std::lock_guard lock(mutex_);
    timer_ = api_.crew_.after(kKeepAlive, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->call_->exchange->send(": keep-alive\n\n");
        self->keep_alive();
      }
    });
  }

  Api& api_;
  const CallPtr call_;
  const Batch batch_;
  const bool is_stream_;
  std::mutex mutex_;  ///< Guards all below, and the order of what is sent.
  std::size_t left_ = 0;
  Crew::Timer timer_;
};

void Api::evaluate_batch(const CallPtr& call) {
  if (is_stopping_) throw Error(ErrorCode::unavailable, "the server is stopping");
  const bool wants_async = is_async(*call);
  const json::Object body = body_of(*call);
  SubmitRequest request;
  Batch batch;
  batch.id = batch_id_of(body);
  batch.submitted_ms = unix_now_ms();
  const boost::json::array& tasks = tasks_of(body);
  std::string contents;
  std::set<std::string> ids;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Submission submission = submission_of(task_at(tasks, i), call->client);
    if (!ids.insert(submission.id).second) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("tasks[{}].task_id: \"{}\" is in the batch before", i, submission.id));
    }
    contents += submission.id + '\0' + submission.content + '\0';
    batch.task_ids.push_back(submission.id);
    request.submissions.push_back(std::move(submission));
  }
  batch.content = sha256_hex(contents);
  request.batch = batch;
  queue_.submit(
      std::move(request),
      [this, call, batch, wants_async](std::variant<std::vector<Admitted>, Error> answer) {
        guard(call, [&] {
          if (const auto* error = std::get_if<Error>(&answer)) throw Error(*error);
          const auto& admitted = std::get<std::vector<Admitted>>(answer);
          bool is_conflict = false;
          for (const Admitted& one : admitted) {
            metrics_.count("drk_submissions_total", {{"admission", json::name_of(one.admission)}});
            is_conflict |= one.admission == Admission::conflict;
          }
          if (is_conflict) throw Error(ErrorCode::conflict, conflict_text(admitted));
          log_.info("batch submitted",
                    {{"batch_id", batch.id}, {"client", call->client}, {"tasks", admitted.size()}});
          if (!wants_async) {
            for (const Admitted& one : admitted) {
              if (one.admission == Admission::attached || is_final(one.task.state)) {
                interest_.joined(one.task.id);
              } else {
                interest_.submitted(one.task.id);
              }
            }
          }
          // Rendering thousands of results would hold up the queue's thread.
          crew_.post([this, call, batch, wants_async] {
            guard(call, [&] {
              if (!wants_async) return await_batch(call, batch, std::nullopt);
              http::Reply accepted;
              accepted.status = 202;
              accepted.body = batch_text(batch);
              reply(call, std::move(accepted));
            });
          });
        });
      });
}

void Api::await_batch(const CallPtr& call,
                      const Batch& batch,
                      std::optional<std::chrono::milliseconds> limit) {
  std::make_shared<BatchWait>(*this, call, batch, wants_stream(call->request))->begin(limit);
}

void Api::batch_state(const CallPtr& call) {
  const std::optional<Batch> batch = queue_.batch(call->argument);
  if (!batch) throw Error(ErrorCode::not_found, "no batch " + call->argument);
  for (const std::string& id : batch->task_ids) interest_.asked(id);
  const auto limit = wait_of(*call);
  crew_.post([this, call, batch, limit] {
    guard(call, [&] {
      if (wants_stream(call->request)) {
        for (const std::string& id : batch->task_ids) interest_.joined(id);
        return await_batch(call, *batch, std::nullopt);
      }
      if (limit) return await_batch(call, *batch, limit);
      http::Reply answer;
      answer.body = batch_text(*batch);
      reply(call, std::move(answer));
    });
  });
}

BatchAnswer Api::batch_head(const Batch& batch) {
  BatchAnswer answer;
  answer.batch_id = batch.id;
  answer.total_tasks = batch.task_ids.size();
  answer.submitted_at = utc_text(batch.submitted_ms);
  std::uint64_t final_tasks = 0;
  std::int64_t last_ms = batch.submitted_ms;
  for (const std::string& id : batch.task_ids) {
    const std::optional<TaskView> task = queue_.find(id);
    if (!task || !is_final(task->state)) continue;
    ++final_tasks;
    last_ms = std::max(last_ms, task->finished_ms.value_or(last_ms));
    ++(task->state == State::completed ? answer.completed_tasks : answer.failed_tasks);
  }
  const bool is_done = final_tasks == answer.total_tasks;
  answer.batch_status = is_done ? "completed" : "processing";
  if (is_done) answer.completed_at = utc_text(last_ms);
  return answer;
}

std::string Api::batch_text(const Batch& batch) {
  json::Object head = with_nulls(batch_head(batch));
  head.erase("results");
  std::string text = json::dump(head);
  text.back() = ',';  // in place of the brace
  text += "\"results\":[";
  for (std::size_t i = 0; i < batch.task_ids.size(); ++i) {
    if (i > 0) text += ',';
    const TaskView task = found(batch.task_ids[i]);
    text += is_final(task.state) ? result_text(task) : json::dump(with_nulls(status_of(task)));
  }
  return text + "]}";
}

}  // namespace drk::gym
