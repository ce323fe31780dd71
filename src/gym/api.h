// SPDX-License-Identifier: Apache-2.0
// The HTTP interface: routes requests, answers them. docs/http-api.md is its description for
// people.
#pragma once

#include "drk/gym/queue.h"
#include "drk/http.h"
#include "drk/task/wire.h"

#include "gym/answers.h"
#include "gym/interest.h"
#include "gym/log.h"
#include "gym/metrics.h"
#include "gym/pipeline.h"
#include "gym/registry.h"
#include "gym/waiters.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace drk::gym {

struct ApiOptions {
  std::map<std::string, std::string> tokens;  ///< Name by token; empty: nobody needs one.
  std::uint64_t max_pending = 0;              ///< Of the queue, for what is said about it.
  std::string mode = json::name_of(task::Mode::interpreter);
  std::chrono::milliseconds abandon_after{};
};

/// The parts of a server that requests are answered from. None is owned.
struct ApiParts {
  Queue& queue;
  ResultStore& results;
  Pipeline* pipeline = nullptr;  ///< Absent: a server without workers of its own.
  Crew& crew;
  Metrics& metrics;
  Log& log;
};

class Api;

/// One request under way. `route` is null for one that fits none.
struct Route;
struct Call {
  http::Request request;
  std::shared_ptr<http::Exchange> exchange;
  const Route* route = nullptr;
  std::string argument;  ///< What stands for {id} in the path.
  std::string client;
  std::int64_t begin_ns = 0;
};
/// Shared by all that wait to answer it.
using CallPtr = std::shared_ptr<Call>;

struct Parameter {
  const char* name = "";
  const char* type = "";  ///< Of JSON schema.
  const char* what = "";
  bool is_required = false;
};

/// One row of the table that requests are routed by and the OpenAPI document is made from.
struct Route {
  const char* method;
  const char* path;  ///< "/status/{id}": the argument is the rest, with any slashes.
  const char* summary;
  void (Api::*answer)(const CallPtr& call);
  std::vector<Parameter> parameters = {};
  const char* request_schema = nullptr;  ///< A component; null: no body.
  const char* answer_schema = nullptr;   ///< A component; null: no JSON.
  std::vector<std::uint32_t> statuses = {200};
  bool is_open = false;  ///< Needs no token.
  bool is_slow = false;  ///< Reads much: answered on the crew, not on a connection's thread.
};
[[nodiscard]] const std::vector<Route>& routes();

/// The document of /openapi.json: pure.
[[nodiscard]] json::Object openapi_document(const std::vector<Route>& routes);

/// Thread-safe.
class Api final : public http::Handler {
 public:
  Api(ApiOptions options, const ApiParts& parts);

  [[nodiscard]] std::optional<http::Reply> refuse(const http::Request& head) override;
  void handle(http::Request request, std::shared_ptr<http::Exchange> exchange) override;
  [[nodiscard]] http::Reply describe_failure(std::uint32_t status, std::string_view what) override;

  /// Must hear of every change of a task.
  void on_change(const TaskView& task);
  /// From now on submissions are refused, and who waits is told to come back.
  void stop();
  /// What is told by /health besides `healthy`.
  void set_problem(const std::string& status, const std::string& problem);
  void count_connections(std::function<http::ServerCounts()> counts);

  // Answers, by route.
  void root(const CallPtr& call);
  void openapi(const CallPtr& call);
  void evaluate(const CallPtr& call);
  void evaluate_batch(const CallPtr& call);
  void batch_state(const CallPtr& call);
  void workflow_submit(const CallPtr& call);
  void workflow_result(const CallPtr& call);
  void validate(const CallPtr& call);
  void status(const CallPtr& call);
  void result(const CallPtr& call);
  void tasks(const CallPtr& call);
  void cancel(const CallPtr& call);
  void health(const CallPtr& call);
  void metrics_json(const CallPtr& call);
  void metrics_text(const CallPtr& call);
  void queue_status(const CallPtr& call);
  void workers_status(const CallPtr& call);
  void node_allocate(const CallPtr& call);
  void worker_register(const CallPtr& call);
  void worker_unregister(const CallPtr& call);
  void worker_heartbeat(const CallPtr& call);
  void worker_evict(const CallPtr& call);
  void problematic_codes(const CallPtr& call);
  void retry_queue(const CallPtr& call);
  void worker_health(const CallPtr& call);
  void clear_history(const CallPtr& call);

 private:
  class BatchWait;

  // api.cpp: replies, errors.
  [[nodiscard]] std::optional<http::Reply> refusal_of(const http::Request& head) const;
  void reply(const CallPtr& call, std::uint32_t status, const json::Value& body);
  void reply(const CallPtr& call, http::Reply reply);
  void reply_error(const CallPtr& call, const Error& error);
  /// Runs `answer`; what it throws is answered.
  void guard(const CallPtr& call, const std::function<void()>& answer);
  void finish_stream(const CallPtr& call);
  void note_answer(const Call& call, std::uint32_t status);
  [[nodiscard]] http::Reply error_reply(const Error& error) const;
  [[nodiscard]] std::uint64_t retry_after_s() const;
  [[nodiscard]] std::string client_of(const http::Request& request) const;
  [[nodiscard]] static json::Object body_of(Call& call);
  [[nodiscard]] static std::optional<std::chrono::milliseconds> wait_of(const Call& call);
  [[nodiscard]] static bool is_async(const Call& call);

  // api_evaluate.cpp, api_batch.cpp
  [[nodiscard]] static Submission submission_of(const task::WireRequest& wire,
                                                const std::string& client);
  /// The form of an answer to one task that is final.
  using Form = void (Api::*)(const CallPtr& call, const TaskView& task);
  void submit_one(const CallPtr& call, Submission submission, Form form);
  void reply_result(const CallPtr& call, const TaskView& task);
  void reply_workflow(const CallPtr& call, const TaskView& task);
  void await_final(const CallPtr& call, const Admitted& admitted, Form form);
  /// What becomes a 503 with the reason.
  [[noreturn]] void throw_no_verdict(const TaskView& task);
  /// Of a final task. Throws Error{unavailable} when it was started anew meanwhile.
  [[nodiscard]] json::Object result_of(const TaskView& task);
  [[nodiscard]] std::string result_text(const TaskView& task);
  [[nodiscard]] json::Object workflow_answer(const TaskView& task);
  /// `limit`: answers then with what there is; without, when all are final.
  void await_batch(const CallPtr& call,
                   const Batch& batch,
                   std::optional<std::chrono::milliseconds> limit,
                   std::vector<Interest::Token> tokens);
  [[nodiscard]] BatchAnswer batch_head(const Batch& batch);
  [[nodiscard]] std::string batch_text(const Batch& batch);

  // api_tasks.cpp
  [[nodiscard]] StatusAnswer status_of(const TaskView& task);
  [[nodiscard]] std::string why_waiting(const TaskView& task, const Place& place) const;
  [[nodiscard]] TaskView found(const std::string& task_id);
  /// Answers on the task of the path: when `is_met`, or with the time.
  void long_poll(const CallPtr& call,
                 Waiters::Predicate is_met,
                 std::chrono::milliseconds limit,
                 std::function<void(const TaskView&)> answer);

  // api_server.cpp
  [[nodiscard]] QueueAnswer queue_answer();
  [[nodiscard]] boost::json::array list(const ListFilter& filter);
  [[nodiscard]] std::vector<Metrics::Gauge> gauges();
  [[nodiscard]] std::uint64_t open_connections() const;

  const ApiOptions options_;
  Queue& queue_;
  ResultStore& results_;
  Pipeline* const pipeline_;
  Crew& crew_;
  Metrics& metrics_;
  Log& log_;
  const std::int64_t begin_ns_;
  Registry registry_;
  Waiters waiters_;
  Interest interest_;
  std::atomic<bool> is_stopping_ = false;
  mutable std::mutex mutex_;  ///< Guards all below.
  std::string health_status_ = "starting";
  std::string health_problem_;
  std::function<http::ServerCounts()> counts_;
};

/// A reply with a `detail`.
[[nodiscard]] http::Reply detail_reply(std::uint32_t status, const std::string& detail);

}  // namespace drk::gym
