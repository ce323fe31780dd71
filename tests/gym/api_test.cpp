// SPDX-License-Identifier: Apache-2.0
// The HTTP interface, asked over HTTP: everything that needs no verdict.
#include "gym/api.h"

#include "base/error_matchers.h"
#include "gym/serving.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace drk::gym {
namespace {

using test::batch;
using test::Got;
using test::request;
using test::Serving;

constexpr const char* kAsync = "/evaluate?async=1";

TEST(Api, AcceptsATaskAndTellsWhereItStands) {
  const Serving serving;
  const Got accepted = serving.post(kAsync, request("t1"));
  EXPECT_EQ(accepted.status, 202U) << accepted.raw.body;
  EXPECT_EQ(accepted.text("status"), "pending");
  const Got status = serving.get("/status/t1");
  EXPECT_EQ(status.status, 200U);
  EXPECT_EQ(status.object().at("queue_position").to_number<int>(), 1);
  EXPECT_EQ(status.text("why_waiting"), "this server has no workers");
  EXPECT_TRUE(status.object().at("started_at").is_null());
  EXPECT_EQ(serving.get("/results/t1").status, 404U);
}

TEST(Api, PrefersToRespondAsyncWhenAskedByHeader) {
  const Serving serving;
  const Got got =
      serving.send("POST", "/evaluate", json::dump(request("t1")), {{"Prefer", "respond-async"}});
  EXPECT_EQ(got.status, 202U);
}

TEST(Api, SameIdAndContentJoinsOtherContentIsAConflict) {
  const Serving serving;
  EXPECT_EQ(serving.post(kAsync, request("t1")).status, 202U);
  EXPECT_EQ(serving.post(kAsync, request("t1", R"({"timeout": 20})")).status, 202U);
  const Got other = serving.post(kAsync, request("t1", R"({"num_correct_trials": 7})"));
  EXPECT_EQ(other.status, 409U);
  EXPECT_NE(other.text("detail").find("t1"), std::string::npos);
  const Got replaced =
      serving.post(kAsync, request("t1", R"({"num_correct_trials": 7, "force_refresh": true})"));
  EXPECT_EQ(replaced.status, 202U);
}

TEST(Api, NamesTheFieldThatBreaksARule) {
  const Serving serving;
  struct Case {
    std::string body;
    std::string part;
  };
  const std::string deep(1000, '[');
  const std::vector<Case> cases = {
      {"", "JSON"},
      {"nonsense", "JSON"},
      {"[1]", "an object"},
      {deep, "deep"},
      {"{\"task_id\": \"\xff\"}", "UTF-8"},
      {R"({"task_id": 7})", "task_id"},
      {R"({"task_id": "t"})", "reference_code"},
      {json::dump(request("")), "task_id"},
      {json::dump(request(std::string(101, 'x'))), "task_id"},
      {json::dump(request("t", R"({"num_correct_trials": 21})")), "num_correct_trials"},
      {json::dump(request("t", R"({"num_correct_trials": true})")), "num_correct_trials"},
      {json::dump(request("t", R"({"num_perf_trials": 1e30})")), "num_perf_trials"},
      {json::dump(request("t", R"({"timeout": 9})")), "timeout"},
      {json::dump(request("t", R"({"priority": "urgent"})")), "priority"},
      {json::dump(request("t", R"({"backend": "fortran"})")), "backend"},
      {json::dump(request("t", R"({"kernel_code": "short"})")), "kernel_code"},
      {json::dump(request("t", R"({"resources": {"gpus": 0}})")), "resources"},
  };
  for (const Case& one : cases) {
    const Got got = serving.send("POST", "/evaluate", one.body);
    EXPECT_EQ(got.status, 400U) << one.body.substr(0, 100);
    EXPECT_EQ(got.text("error_code"), "VALIDATION_ERROR") << one.body.substr(0, 100);
    EXPECT_NE(got.text("message").find(one.part), std::string::npos)
        << got.text("message") << " lacks " << one.part;
    EXPECT_EQ(got.raw.header("x-error-code").value_or(""), "VALIDATION_ERROR");
  }
  EXPECT_EQ(serving.get("/queue/status").object().at("pending").to_number<int>(), 0);
}

TEST(Api, UnknownPathsAndMethods) {
  const Serving serving;
  EXPECT_EQ(serving.get("/nope").status, 404U);
  EXPECT_EQ(serving.get("/status/").status, 404U);
  EXPECT_EQ(serving.get("/status/unknown").status, 404U);
  EXPECT_EQ(serving.get("/results/unknown").status, 404U);
  EXPECT_EQ(serving.get("/workflow/results/unknown").status, 404U);
  EXPECT_EQ(serving.get("/evaluate/batch/unknown").status, 404U);
  EXPECT_EQ(serving.send("DELETE", "/tasks/unknown").status, 404U);
  const Got got = serving.get("/evaluate");
  EXPECT_EQ(got.status, 405U);
  EXPECT_EQ(got.raw.header("allow").value_or(""), "POST");
}

TEST(Api, IdsMayHoldWhatUrlsMustEscape) {
  const Serving serving;
  const std::string id = "a b/c?d#%é";
  EXPECT_EQ(serving.post(kAsync, request(id)).status, 202U);
  EXPECT_EQ(serving.get("/status/" + http::percent_encode(id)).text("task_id"), id);
}

TEST(Api, CancelsOnce) {
  const Serving serving;
  (void)serving.post(kAsync, request("t1"));
  EXPECT_EQ(serving.send("DELETE", "/tasks/t1").text("status"), "cancelled");
  EXPECT_EQ(serving.send("DELETE", "/tasks/t1").status, 404U);
  const Got result = serving.get("/results/t1");
  EXPECT_EQ(result.status, 200U);
  EXPECT_EQ(result.text("status"), "cancelled");
  // It starts anew when it is posted again.
  EXPECT_EQ(serving.post(kAsync, request("t1")).text("status"), "pending");
}

TEST(Api, LongPollsEndWithTheChange) {
  const Serving serving;
  (void)serving.post(kAsync, request("t1"));
  Got polled;
  Got result;
  std::jthread poller([&] { polled = serving.get("/status/t1?wait=60"); });
  std::jthread waiter([&] { result = serving.get("/results/t1?wait=60"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  (void)serving.send("DELETE", "/tasks/t1");
  poller.join();
  waiter.join();
  EXPECT_EQ(polled.text("status"), "cancelled");
  EXPECT_EQ(result.text("status"), "cancelled");
  // And with the time.
  (void)serving.post(kAsync, request("t2"));
  EXPECT_EQ(serving.get("/status/t2?wait=0.1").text("status"), "pending");
  EXPECT_EQ(serving.get("/results/t2?wait=0.1").status, 404U);
  EXPECT_EQ(serving.get("/status/t2?wait=60&since=processing").text("status"), "pending");
  for (const char* bad : {"x", "-1", "", "nan", "1e"}) {
    EXPECT_EQ(serving.get(std::string("/status/t2?wait=") + bad).status, 400U) << bad;
  }
}

TEST(Api, FullQueueIs429WithRetryAfter) {
  ServerOptions options = Serving::without_workers();
  options.max_pending = 2;
  const Serving serving(options);
  EXPECT_EQ(serving.post(kAsync, request("t1")).status, 202U);
  EXPECT_EQ(serving.post(kAsync, request("t2")).status, 202U);
  const Got got = serving.post(kAsync, request("t3"));
  EXPECT_EQ(got.status, 429U);
  EXPECT_GE(std::stoi(std::string(got.raw.header("retry-after").value_or("0"))), 1);
  // Joining is no submission.
  EXPECT_EQ(serving.post(kAsync, request("t1")).status, 202U);
}

TEST(Api, BatchIsAcceptedWholeOrNotAtAll) {
  const Serving serving;
  const auto refused =
      [&](const json::Object& body, std::uint32_t status, const std::string& part) {
        const Got got = serving.post("/evaluate/batch?async=1", body);
        EXPECT_EQ(got.status, status) << got.raw.body;
        EXPECT_NE(got.raw.body.find(part), std::string::npos) << got.raw.body;
      };
  refused(batch("b", {}), 400, "tasks");
  refused(batch("", {request("t1")}), 400, "batch_id");
  refused(batch("b", {request("t1"), request("t1")}), 400, "tasks[1].task_id");
  refused(batch("b", {request("t1"), request("t2", R"({"timeout": 1})")}), 400, "tasks[1].timeout");
  (void)serving.post(kAsync, request("t2", R"({"num_correct_trials": 3})"));
  refused(batch("b", {request("t1"), request("t2")}), 409, "t2");
  EXPECT_EQ(serving.get("/status/t1").status, 404U);
  refused(batch("b", std::vector<json::Object>(4097, request("t"))), 400, "4096");
}

TEST(Api, ABatchThatNeverFitsIsABadRequest) {
  ServerOptions options = Serving::without_workers();
  options.max_pending = 2;
  const Serving serving(options);
  const Got got = serving.post("/evaluate/batch?async=1",
                               batch("b", {request("t1"), request("t2"), request("t3")}));
  EXPECT_EQ(got.status, 400U) << got.raw.body;
}

TEST(Api, WhoWaitsForAReplacedTaskDoesNotGetTheOthersResult) {
  const Serving serving;
  Got got;
  std::jthread waiter([&] { got = serving.post("/evaluate", request("t1")); });
  while (serving.get("/status/t1").status != 200) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  (void)serving.post(kAsync, request("t1", R"({"num_correct_trials": 7, "force_refresh": true})"));
  (void)serving.send("DELETE", "/tasks/t1");
  waiter.join();
  EXPECT_EQ(got.status, 409U) << got.raw.body;
}

TEST(Api, BatchIsSeenAndJoined) {
  const Serving serving;
  const json::Object body = batch("b", {request("t1"), request("t2")});
  const Got accepted = serving.post("/evaluate/batch?async=1", body);
  EXPECT_EQ(accepted.status, 202U) << accepted.raw.body;
  EXPECT_EQ(accepted.text("batch_status"), "processing");
  EXPECT_EQ(accepted.object().at("total_tasks").to_number<int>(), 2);
  EXPECT_EQ(serving.post("/evaluate/batch?async=1", body).status, 202U);
  EXPECT_EQ(serving.post("/evaluate/batch?async=1", batch("b", {request("t1")})).status, 409U);
  (void)serving.send("DELETE", "/tasks/t2");
  const Got now = serving.get("/evaluate/batch/b");
  EXPECT_EQ(now.object().at("failed_tasks").to_number<int>(), 1);
  EXPECT_EQ(now.object().at("results").at(0).at("status"), "pending");
  EXPECT_EQ(now.object().at("results").at(1).at("status"), "cancelled");
}

TEST(Api, BatchStreamsInTheOrderOfCompletion) {
  const Serving serving;
  (void)serving.post("/evaluate/batch?async=1", batch("b", {request("t1"), request("t2")}));
  std::string stream;
  std::jthread reader([&] {
    stream =
        serving.send("GET", "/evaluate/batch/b", "", {{"Accept", "text/event-stream"}}).raw.body;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  (void)serving.send("DELETE", "/tasks/t2");
  (void)serving.send("DELETE", "/tasks/t1");
  reader.join();
  const std::size_t second = stream.find("event: result\ndata: {\"index\":1,");
  const std::size_t first = stream.find("event: result\ndata: {\"index\":0,");
  const std::size_t done = stream.find("event: done\n");
  ASSERT_NE(second, std::string::npos) << stream;
  EXPECT_LT(second, first);
  EXPECT_LT(first, done);
  EXPECT_NE(done, std::string::npos) << stream;
}

TEST(Api, WorkflowFormOfATask) {
  const Serving serving;
  json::Object body;
  body["workflow"] = "kernelbench";
  body["payload"] = request("inner");
  body["task_id"] = "outer";
  EXPECT_EQ(serving.post("/workflow/submit?async=1", body).text("task_id"), "outer");
  EXPECT_EQ(serving.get("/workflow/results/outer").text("status"), "pending");
  EXPECT_TRUE(serving.get("/workflow/results/outer").object().at("result").is_null());
  body.erase("payload");
  EXPECT_EQ(serving.post("/workflow/submit?async=1", body).status, 400U);
}

TEST(Api, ValidatesWithoutRunning) {
  const Serving serving;
  const Got good = serving.post("/debug/validate", request("t1"));
  EXPECT_TRUE(good.object().at("valid").as_bool()) << good.raw.body;
  EXPECT_EQ(good.object().at("kernel").at("entry_point"), "ModelNew");
  EXPECT_FALSE(good.object().at("cache").at("has_result").as_bool());
  const Got bad = serving.post("/debug/validate", request("t1", R"({"timeout": 1})"));
  EXPECT_EQ(bad.status, 200U);
  EXPECT_FALSE(bad.object().at("valid").as_bool());
  EXPECT_EQ(bad.object().at("errors").as_array().size(), 1U);
  EXPECT_EQ(serving.get("/status/t1").status, 404U);
}

TEST(Api, TokensNameTheClient) {
  ServerOptions options = Serving::without_workers();
  options.tokens = {{"secret-of-alice-1", "alice"}};
  const Serving serving(options);
  const Got none = serving.post(kAsync, request("t1"));
  EXPECT_EQ(none.status, 401U);
  EXPECT_EQ(none.raw.header("www-authenticate").value_or(""), "Bearer");
  const std::string body = json::dump(request("t1"));
  for (const char* wrong :
       {"Bearer secret-of-alice-2", "Bearer ", "secret-of-alice-1", "Basic x"}) {
    EXPECT_EQ(serving.send("POST", kAsync, body, {{"Authorization", wrong}}).status, 401U) << wrong;
  }
  const Got right =
      serving.send("POST", kAsync, body, {{"Authorization", "bearer secret-of-alice-1"}});
  EXPECT_EQ(right.status, 202U);
  EXPECT_EQ(right.text("client"), "alice");
  for (const char* open : {"/", "/health", "/openapi.json"}) {
    EXPECT_EQ(serving.get(open).status, 200U) << open;
  }
  EXPECT_EQ(serving.log().find("secret"), std::string::npos);
}

TEST(Api, WithoutTokensTheClientSaysItsName) {
  const Serving serving;
  const std::string body = json::dump(request("t1"));
  EXPECT_EQ(serving.send("POST", kAsync, body, {{"X-Drk-Client", "bob"}}).text("client"), "bob");
  EXPECT_EQ(serving.post(kAsync, request("t2")).text("client"), "127.0.0.1");
}

TEST(Api, ListsTasks) {
  const Serving serving;
  for (const char* id : {"t1", "t2", "t3"}) (void)serving.post(kAsync, request(id));
  (void)serving.send("DELETE", "/tasks/t2");
  const Got pending = serving.get("/tasks?state=pending");
  ASSERT_EQ(pending.object().at("tasks").as_array().size(), 2U);
  EXPECT_EQ(pending.object().at("tasks").at(0).at("task_id"), "t3");  // newest first
  EXPECT_EQ(serving.get("/tasks?limit=1").object().at("tasks").as_array().size(), 1U);
  EXPECT_EQ(serving.get("/tasks?state=nonsense").status, 400U);
  EXPECT_EQ(serving.get("/tasks?limit=0").status, 400U);
}

TEST(Api, AcceptedTasksOutliveTheServer) {
  Serving serving;
  (void)serving.post(kAsync, request("t1", R"({"priority": "high"})"));
  serving.stop();
  serving.start();
  const Got status = serving.get("/status/t1");
  EXPECT_EQ(status.text("status"), "pending");
  EXPECT_EQ(status.text("priority"), "high");
}

TEST(Api, AbandonedTasksAreCancelledOthersAreNot) {
  ServerOptions options = Serving::without_workers();
  options.abandon_after = std::chrono::milliseconds(300);
  const Serving serving(options);
  (void)serving.post(kAsync, request("kept"));
  const auto leave_early = [&](const std::string& id) {
    http::ClientOptions hasty;
    hasty.url = serving.url();
    hasty.timeout = std::chrono::milliseconds(200);
    http::Client client(hasty);
    EXPECT_TRUE(throws_error(ErrorCode::timed_out, "", [&] {
      (void)client.send("POST", "/evaluate", json::dump(request(id)));
    }));
  };
  leave_early("kept");  // posted async before: not its submitter
  leave_early("left");
  // Not by its id: asking for it keeps it.
  std::string cancelled;
  for (int i = 0; i < 200 && cancelled.find("left") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = serving.get("/tasks?state=cancelled").raw.body;
  }
  EXPECT_NE(cancelled.find("left"), std::string::npos) << cancelled;
  EXPECT_EQ(serving.get("/status/kept").text("status"), "pending");
}

TEST(Api, WhoWaitsIsToldWhenTheServerStops) {
  Serving serving;
  Got got;
  std::jthread waiter([&] { got = serving.post("/evaluate", request("t1")); });
  while (serving.get("/status/t1").status != 200) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  serving.server().drain(std::chrono::milliseconds(0));
  waiter.join();
  EXPECT_EQ(got.status, 503U);
  EXPECT_NE(got.text("detail").find("post it again"), std::string::npos) << got.raw.body;
  EXPECT_TRUE(got.raw.header("retry-after").has_value());
}

TEST(Api, MetricsInBothForms) {
  const Serving serving;
  (void)serving.post(kAsync, request("t1"));
  const Got as_json = serving.get("/metrics");
  EXPECT_EQ(as_json.object().at("queue_metrics").at("pending").to_number<int>(), 1);
  for (const std::string& text :
       {serving.get("/metrics/prometheus").raw.body,
        serving.send("GET", "/metrics", "", {{"Accept", "text/plain"}}).raw.body}) {
    EXPECT_NE(text.find("drk_queue_depth{priority=\"normal\"} 1\n"), std::string::npos) << text;
    EXPECT_NE(text.find("drk_submissions_total{admission=\"created\"} 1\n"), std::string::npos);
  }
}

TEST(Server, RefusesToBeReachedFromElsewhereWithoutTokens) {
  ServerOptions options = Serving::without_workers();
  options.http.host = "0.0.0.0";
  EXPECT_TRUE(throws_error(
      ErrorCode::invalid_argument, "--tokens", [&] { const Serving serving(options); }));
  options.tokens = {{"secret-of-alice-1", "alice"}};
  const Serving serving(options);
  EXPECT_TRUE(is_loopback("127.8.9.1"));
  EXPECT_TRUE(is_loopback("[::1]"));
  EXPECT_FALSE(is_loopback("::"));
  EXPECT_FALSE(is_loopback("example.org"));
}

// Every $ref of the document leads somewhere, and every route is in it.
TEST(OpenApi, DescribesEveryRoute) {
  const Serving serving;
  const Got got = serving.get("/openapi.json");
  const json::Object& document = got.object();
  EXPECT_EQ(document.at("openapi"), "3.1.0");
  const json::Object& schemas = document.at("components").at("schemas").as_object();
  std::set<std::string> used;
  for (std::size_t at = 0;
       (at = got.raw.body.find("#/components/schemas/", at)) != std::string::npos;) {
    at += 21;
    used.insert(got.raw.body.substr(at, got.raw.body.find('"', at) - at));
  }
  for (const std::string& name : used) EXPECT_TRUE(schemas.contains(name)) << name;
  for (const auto& schema : schemas) EXPECT_TRUE(used.contains(schema.key())) << schema.key();
  for (const Route& route : routes()) {
    ASSERT_TRUE(document.at("paths").as_object().contains(route.path)) << route.path;
  }
}

// The document says which methods a path has: the server must agree for each of them.
TEST(OpenApi, AgreesWithTheServer) {
  const Serving serving;
  const Got got = serving.get("/openapi.json");
  for (const auto& path : got.object().at("paths").as_object()) {
    for (const char* method : {"GET", "POST", "DELETE", "PUT"}) {
      std::string name = method;
      for (char& c : name) c = static_cast<char>(c - 'A' + 'a');
      std::string target(path.key());
      if (const std::size_t brace = target.find('{'); brace != std::string::npos) {
        target = target.substr(0, brace) + "x";
      }
      const bool is_described = path.value().as_object().contains(name);
      const std::uint32_t status = serving.send(method, target, "").status;
      if (is_described) {
        EXPECT_NE(status, 405U) << method << " " << target;
        const json::Object& responses = path.value().at(name).at("responses").as_object();
        EXPECT_TRUE(responses.contains(std::to_string(status)))
            << method << " " << target << " answers " << status;
      } else {
        EXPECT_EQ(status, 405U) << method << " " << target;
      }
    }
  }
}

}  // namespace
}  // namespace drk::gym
