// SPDX-License-Identifier: Apache-2.0
// The whole way: over HTTP to real guests and back. Needs DRK_PYTHON.
#include "gym/serving.h"
#include "worker/fixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

namespace drk::gym {
namespace {

using test::batch;
using test::Got;
using test::Serving;
using worker::test::candidate_with;
using worker::test::kReluCandidate;
using worker::test::kReluReference;

ServerOptions with_workers() {
  ServerOptions options;
  options.worker = worker::test::options();
  options.worker.warm_guests = 1;
  options.worker.max_warm_guests = 2;
  options.slots = 2;
  return options;
}

json::Object relu(const std::string& id, const std::string& members = "{}") {
  json::Object body;
  body["task_id"] = id;
  body["reference_code"] = kReluReference;
  body["kernel_code"] = kReluCandidate;
  body["num_correct_trials"] = 1;
  body["run_performance"] = false;
  const json::Value parsed = json::parse(members);
  for (const auto& entry : parsed.get_object()) body[entry.key()] = entry.value();
  return body;
}

json::Object with_code(json::Object body, const std::string& code) {
  body["kernel_code"] = code;
  return body;
}

/// One server for most tests: starting Python takes seconds.
Serving& shared() {
  static Serving serving(with_workers());
  return serving;
}

class Evaluations : public worker::test::WorkerTest {};

TEST_F(Evaluations, AnAcceptedCandidate) {
  const Got got = shared().post("/evaluate", relu("accepted"));
  ASSERT_EQ(got.status, 200U) << got.raw.body;
  EXPECT_EQ(got.text("status"), "completed");
  EXPECT_TRUE(got.object().at("compiled").as_bool());
  EXPECT_TRUE(got.object().at("correctness").as_bool());
  EXPECT_TRUE(got.object().at("decoy_kernel").is_null());  // no GPU, no profiler
  EXPECT_EQ(got.object().at("speedup").to_number<double>(), 0);
  EXPECT_EQ(got.object().at("timeline").at(0).at("name"), "queue");
  EXPECT_FALSE(got.object().contains("fault"));
  // The same again, the long form, and the same content under another id.
  EXPECT_EQ(shared().post("/evaluate", relu("accepted")).raw.body, got.raw.body);
  const Got full = shared().get("/results/accepted?form=full");
  EXPECT_EQ(full.object().at("verdict").at("outcome").at("kind"), "accepted");
  const Got cached = shared().post("/evaluate", relu("accepted-2"));
  EXPECT_TRUE(cached.object().at("cached").as_bool()) << cached.raw.body;
  const Got anew = shared().post("/evaluate", relu("accepted-3", R"({"force_refresh": true})"));
  EXPECT_FALSE(anew.object().at("cached").as_bool());
}

TEST_F(Evaluations, EachVerdictInTheOldTerms) {
  struct Case {
    std::string id;
    std::string code;
    std::string status;
    bool compiled;
    std::string error_code;
    std::string fault;
  };
  const std::string wrong = [] {
    std::string code = kReluCandidate;
    return code.replace(code.find("0.0)"), 4, "0.5)");
  }();
  const std::vector<Case> cases = {
      {"wrong", wrong, "completed", true, "CORRECTNESS_ERROR", ""},
      {"cheat", candidate_with("return torch.relu(x)"), "completed", true, "CORRECTNESS_ERROR", ""},
      {"syntax", "class ModelNew(:\n  pass", "failed", false, "SYNTAX_ERROR", "candidate"},
      {"import", "import no_such_module_at_all", "failed", false, "IMPORT_ERROR", "candidate"},
      {"raise",
       candidate_with("raise ValueError('no')"),
       "completed",
       true,
       "RUNTIME_ERROR",
       "candidate"},
      {"crash",
       candidate_with("os.kill(os.getpid(), signal.SIGSEGV)"),
       "completed",
       true,
       "RUNTIME_ERROR",
       "candidate"},
  };
  for (const Case& one : cases) {
    const Got got = shared().post("/evaluate", with_code(relu(one.id), one.code));
    ASSERT_EQ(got.status, 200U) << got.raw.body;
    EXPECT_EQ(got.text("status"), one.status) << got.raw.body;
    EXPECT_EQ(got.object().at("compiled").as_bool(), one.compiled) << one.id;
    EXPECT_FALSE(got.object().at("correctness").as_bool()) << one.id;
    EXPECT_EQ(got.text("error_code"), one.error_code) << got.raw.body;
    EXPECT_EQ(got.text("fault"), one.fault) << one.id;
    const json::Value& decoy = got.object().at("decoy_kernel");
    EXPECT_EQ(decoy.is_bool() && decoy.as_bool(), one.id == "cheat") << got.raw.body;
  }
  const Got metrics = shared().get("/metrics");
  EXPECT_EQ(metrics.object().at("error_metrics").at("guest_deaths").at("SIGSEGV").to_number<int>(),
            1);
  EXPECT_NE(shared().get("/monitoring/problematic-codes").raw.body.find("\"crashes\":1"),
            std::string::npos);
}

TEST_F(Evaluations, ABadProblemIsNotHeldAgainstTheCandidate) {
  json::Object body = relu("bad-problem");
  body["reference_code"] =
      "import torch\nclass Model(torch.nn.Module):\n    pass\nraise ValueError";
  const Got got = shared().post("/evaluate", body);
  EXPECT_EQ(got.status, 200U);
  EXPECT_EQ(got.text("fault"), "task") << got.raw.body;
  EXPECT_EQ(got.text("error_code"), "VALIDATION_ERROR");
}

TEST_F(Evaluations, WhatNeedsAGpuIs503AndStartsAnew) {
  const json::Object body =
      with_code(relu("needs-gpu"), candidate_with("return torch.relu(x.to('cuda'))"));
  const Got got = shared().post("/evaluate", body);
  EXPECT_EQ(got.status, 503U) << got.raw.body;
  EXPECT_TRUE(got.raw.header("retry-after").has_value());
  const Got stored = shared().get("/results/needs-gpu");
  EXPECT_EQ(stored.text("fault"), "infra") << stored.raw.body;
  EXPECT_EQ(stored.text("error_code"), "SYSTEM_ERROR");
  EXPECT_EQ(shared().post("/evaluate?async=1", body).text("status"), "pending");
  EXPECT_EQ(shared().get("/results/needs-gpu?wait=60").status, 200U);
}

TEST_F(Evaluations, ARunningTaskIsKilledWithinASecond) {
  const json::Object body =
      with_code(relu("endless"), candidate_with("while True: pass", "threading.stack_size()"));
  (void)shared().post("/evaluate?async=1", body);
  std::string stage;
  for (int i = 0; i < 600 && stage != "correctness"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stage = shared().get("/status/endless").text("stage");
  }
  ASSERT_EQ(stage, "correctness");
  EXPECT_EQ(shared().send("DELETE", "/tasks/endless").status, 200U);
  const auto begin = std::chrono::steady_clock::now();
  bool is_idle = false;
  while (!is_idle && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20)) {
    is_idle = shared().get("/workers/status").raw.body.find("endless") == std::string::npos;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(shared().get("/results/endless").text("status"), "cancelled");
}

TEST_F(Evaluations, ADeadlineCountsTheWholeAndGivesNoVerdict) {
  const Got got = shared().post(
      "/evaluate",
      with_code(relu("late", R"({"deadline_s": 1})"), candidate_with("time.sleep(600)")));
  EXPECT_EQ(got.status, 503U) << got.raw.body;
  EXPECT_NE(got.text("detail").find("deadline"), std::string::npos) << got.raw.body;
  const Got stored = shared().get("/results/late");
  EXPECT_EQ(stored.text("status"), "timeout");
  EXPECT_EQ(stored.text("fault"), "infra");
}

TEST_F(Evaluations, ABatchKeepsTheOrderOfItsTasks) {
  std::vector<json::Object> tasks;
  for (int i = 0; i < 8; ++i) {
    // Different contents: nothing is answered from the cache.
    tasks.push_back(
        relu("batch-" + std::to_string(i), fmt::format(R"({{"num_perf_trials": {}}})", i + 1)));
  }
  tasks[3] = with_code(tasks[3], "class ModelNew(:\n  pass");
  const Got got = shared().post("/evaluate/batch", batch("a-batch", tasks));
  ASSERT_EQ(got.status, 200U) << got.raw.body;
  EXPECT_EQ(got.text("batch_status"), "completed");
  EXPECT_EQ(got.object().at("completed_tasks").to_number<int>(), 7);
  EXPECT_EQ(got.object().at("failed_tasks").to_number<int>(), 1);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(got.object().at("results").at(i).at("task_id"), tasks[i].at("task_id"));
  }
}

TEST_F(Evaluations, OneReferenceServesAllCandidatesOfItsPrompt) {
  std::vector<json::Object> tasks;
  for (int i = 0; i < 6; ++i) {
    json::Object task =
        relu("shared-" + std::to_string(i), fmt::format(R"({{"num_perf_trials": {}}})", i + 1));
    task["reference_code"] = std::string(kReluReference) + "# of this test alone\n";
    tasks.push_back(std::move(task));
  }
  const Got got = shared().post("/evaluate/batch", batch("shared-batch", tasks));
  ASSERT_EQ(got.text("batch_status"), "completed") << got.raw.body;
  // Both models are built after the reference's seed: one reference has one.
  std::set<std::uint64_t> seeds;
  for (int i = 0; i < 6; ++i) {
    const Got full = shared().get("/results/shared-" + std::to_string(i) + "?form=full");
    seeds.insert(full.object().at("manifest").at("init_seed").to_number<std::uint64_t>());
  }
  EXPECT_EQ(seeds.size(), 1U);
}

TEST_F(Evaluations, StoppingGivesBackAndRestartingFinishes) {
  Serving serving(with_workers());
  (void)serving.post("/evaluate?async=1",
                     with_code(relu("slow"), candidate_with("time.sleep(600)")));
  for (const char* id : {"next-1", "next-2", "next-3"}) {
    (void)serving.post("/evaluate?async=1", relu(id, R"({"force_refresh": true})"));
  }
  for (int i = 0; i < 600 && serving.get("/status/slow").text("stage") != "correctness"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  serving.server().drain(std::chrono::milliseconds(100));
  serving.stop();
  EXPECT_NE(serving.log().find("task given back"), std::string::npos) << serving.log();
  serving.start();
  const Got slow = serving.get("/status/slow");
  EXPECT_NE(slow.text("status"), "completed");
  EXPECT_LE(slow.object().at("attempts").to_number<int>(), 1) << "a stop counted as an attempt";
  for (const char* id : {"next-1", "next-2", "next-3"}) {
    EXPECT_EQ(serving.get(std::string("/results/") + id + "?wait=60").text("status"), "completed");
  }
  EXPECT_EQ(serving.send("DELETE", "/tasks/slow").status, 200U);
}

}  // namespace
}  // namespace drk::gym
