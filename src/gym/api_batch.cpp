// SPDX-License-Identifier: Apache-2.0
// Batches: many tasks in parallel, answered as one or as a stream in the order of completion.
#include "drk/base/clock.h"
#include "drk/base/hash.h"

#include "gym/api.h"
#include "gym/ending.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

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
  const auto characters = std::count_if(id.begin(), id.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // UTF-8: not one that continues
  });
  if (characters < 1 || characters > 100) {
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

/// Waits for all tasks of a batch. Owned by its waits for them: it lives until the last has been
/// called or dropped.
class Api::BatchWait : public std::enable_shared_from_this<BatchWait> {
 public:
  struct Options {
    bool is_stream = false;
    std::optional<std::chrono::milliseconds> limit;  ///< Answers then with what there is.
    std::vector<Interest::Token> tokens;
  };
  BatchWait(Api& api, CallPtr call, Batch batch, Options options)
      : api_(api), call_(std::move(call)), batch_(std::move(batch)), options_(std::move(options)) {}

  void begin() {
    left_ = batch_.task_ids.size();
    if (options_.is_stream) {
      http::Reply head;
      head.content_type = kEventStream;
      head.headers.emplace_back("Cache-Control", "no-store");
      call_->exchange->start_stream(std::move(head));
      keep_alive();
    }
    std::vector<Waiters::Handle> waits;
    for (std::size_t i = 0; i < batch_.task_ids.size(); ++i) {
      waits.push_back(api_.waiters_.wait(
          batch_.task_ids[i],
          [](const TaskView& task) { return is_final(task.state); },
          std::nullopt,
          [self = shared_from_this(), i](const std::optional<TaskView>& task) {
            self->on_task(i, task);
          }));
    }
    call_->exchange->on_leave([&api = api_, waits] {
      for (const Waiters::Handle& wait : waits) api.waiters_.drop(wait);
    });
    if (options_.limit) end_at(*options_.limit, std::move(waits));
  }

 private:
  void end_at(std::chrono::milliseconds limit, std::vector<Waiters::Handle> waits) {
    const std::lock_guard lock(mutex_);
    timer_ = api_.crew_.after(limit, [weak = weak_from_this(), waits = std::move(waits)] {
      const auto self = weak.lock();
      if (!self) return;
      for (const Waiters::Handle& wait : waits) self->api_.waiters_.drop(wait);
      const std::lock_guard inner(self->mutex_);
      if (std::exchange(self->left_, 0) > 0) self->end();
    });
  }

  void on_task(std::size_t index, const std::optional<TaskView>& task) {
    std::string news;
    if (options_.is_stream && task && is_final(task->state)) news = result_event(index, *task);
    const std::lock_guard lock(mutex_);
    if (left_ == 0) return;  // the time was up
    if (!news.empty()) call_->exchange->send(std::move(news));
    if (--left_ == 0) end();
  }

  [[nodiscard]] std::string result_event(std::size_t index, const TaskView& task) {
    try {
      return event("result",
                   fmt::format("{{\"index\":{},\"result\":{}}}", index, api_.result_text(task)));
    } catch (const std::exception& error) {  // the stream has begun: it is too late for a status
      api_.log_.error("request failed", {{"task_id", task.id}, {"error", error.what()}});
      return event("error", json::dump(json::to_json(DetailAnswer{"internal error"})));
    }
  }

  /// All are final, or the time is up, or the server stops. With `mutex_` held.
  void end() {
    timer_ = Crew::Timer();
    if (options_.is_stream) return end_stream();
    api_.guard(call_, [&] {
      const bool is_done = api_.batch_head(batch_).completed_at.has_value();
      if (!is_done && !options_.limit) {
        throw Error(ErrorCode::unavailable,
                    fmt::format("batch {} goes on, post it again: the server is stopping, or a "
                                "task was started anew",
                                batch_.id));
      }
      http::Reply answer;
      answer.body = api_.batch_text(batch_);
      api_.reply(call_, std::move(answer));
    });
  }

  /// A stream that ends without its last event was cut short: the client asks again.
  void end_stream() {
    try {
      json::Object done = with_nulls(api_.batch_head(batch_));
      done.erase("results");
      if (!done.at("completed_at").is_null()) {
        call_->exchange->send(event("done", json::dump(done)));
      }
    } catch (const Error& error) {
      api_.log_.error("request failed", {{"batch_id", batch_.id}, {"error", error.what()}});
    }
    api_.finish_stream(call_);
  }

  void keep_alive() {
    const std::lock_guard lock(mutex_);
    if (left_ == 0) return;
    timer_ = api_.crew_.after(kKeepAlive, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      {
        const std::lock_guard inner(self->mutex_);
        if (self->left_ > 0) self->call_->exchange->send(": keep-alive\n\n");
      }
      self->keep_alive();
    });
  }

  Api& api_;
  const CallPtr call_;
  const Batch batch_;
  const Options options_;
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
  if (tasks.size() > options_.max_pending) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("tasks: {} of them never fit into a queue of {}; send fewer at once",
                            tasks.size(),
                            options_.max_pending));
  }
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
          std::vector<Interest::Token> tokens;
          for (const Admitted& one : admitted) {
            const std::string& id = one.task.id;
            if (wants_async) {
              interest_.kept(id);
            } else {
              tokens.push_back(one.admission == Admission::attached ? interest_.joined(id)
                                                                    : interest_.submitted(id));
            }
          }
          // Rendering thousands of results would hold up the queue's thread.
          crew_.post([this, call, batch, wants_async, tokens = std::move(tokens)] {
            guard(call, [&] {
              if (!wants_async) return await_batch(call, batch, std::nullopt, tokens);
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
                      std::optional<std::chrono::milliseconds> limit,
                      std::vector<Interest::Token> tokens) {
  BatchWait::Options options;
  options.is_stream = wants_stream(call->request);
  if (!options.is_stream) options.limit = limit;
  options.tokens = std::move(tokens);
  std::make_shared<BatchWait>(*this, call, batch, std::move(options))->begin();
}

void Api::batch_state(const CallPtr& call) {
  const std::optional<Batch> batch = queue_.batch(call->argument);
  if (!batch) throw Error(ErrorCode::not_found, "no batch " + call->argument);
  const auto limit = wait_of(*call);
  if (limit || wants_stream(call->request)) {
    std::vector<Interest::Token> tokens;
    for (const std::string& id : batch->task_ids) tokens.push_back(interest_.joined(id));
    return await_batch(call, *batch, limit, std::move(tokens));
  }
  for (const std::string& id : batch->task_ids) interest_.asked(id);
  http::Reply answer;
  answer.body = batch_text(*batch);
  reply(call, std::move(answer));
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
