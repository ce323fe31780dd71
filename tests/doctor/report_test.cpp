// SPDX-License-Identifier: Apache-2.0
// Facts become checks with a status, a purpose and a remedy, and checks become a page and JSON.
#include "drk/base/json.h"
#include "drk/doctor.h"

#include <gtest/gtest.h>

namespace drk::doctor {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// A machine that lacks nothing.
Facts good_facts() {
  Facts facts;
  facts.kernel = "Linux 6.1.0 x86_64";
  facts.processor = {"A CPU", 16};
  facts.memory = {128 * kGiB, 100 * kGiB, {}};
  facts.graphics.driver = "580.65";
  facts.graphics.gpus = {{"NVIDIA H200", "GPU-1", 141 * kGiB}};
  facts.graphics.cuda = "13.0";
  facts.graphics.cuda_devices = 1;
  facts.graphics.cupti_file = "libcupti.so.13";
  facts.graphics.cupti_version = 26;
  facts.python = {
      "/env/bin/python", "DRK_PYTHON", "3.11.2", "2.11.0", "3.6.0", "2.4.1", {"/env/lib"}, ""};
  facts.trial.accepted = true;
  facts.trial.outcome = "accepted";
  facts.trial.mode = task::Mode::gpu;
  facts.trial.isolation.enforced = {"user_namespace", "seccomp"};
  facts.trial.zygote_start_s = 3.2;
  facts.trial.guest_start_ms = 41;
  facts.trial.evaluation_s = 0.9;
  facts.cache = {"/home/a/.cache/drkernel", 50 * kGiB, 100 * kGiB};
  facts.temporary = {"/tmp", 50 * kGiB, 100 * kGiB};
  facts.shared_memory = {"/dev/shm", 50 * kGiB, 64 * kGiB};
  facts.port = {"127.0.0.1:10907", true};
  return facts;
}

/// The machine most tests run on.
Facts facts_without_gpu() {
  Facts facts = good_facts();
  facts.graphics = {};
  facts.graphics.nvml_problem = "libnvidia-ml.so.1: cannot open";
  facts.graphics.cuda_problem = "libcuda.so.1: cannot open";
  facts.graphics.cupti_problem = "no libcupti.so opens";
  return facts;
}

Check check_of(const Report& report, const std::string& name) {
  for (const Check& check : report.checks) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

TEST(Assess, FindsNothingWrongWithAGoodMachine) {
  const Report report = assess(good_facts());
  EXPECT_TRUE(report.can_judge);
  for (const Check& check : report.checks) {
    EXPECT_EQ(check.status, Status::ok) << check.name << ": " << check.found;
    EXPECT_FALSE(check.purpose.empty()) << check.name;
    EXPECT_FALSE(check.remedy.has_value()) << check.name;
  }
  EXPECT_EQ(check_of(report, "devices").found,
            "1 (driver 580.65); 0: NVIDIA H200, 141.0 GiB, GPU-1");
  EXPECT_EQ(check_of(report, "cuda").found, "CUDA 13.0, 1 devices");
  EXPECT_EQ(check_of(report, "cupti").found, "libcupti.so.13 (API version 26)");
}

TEST(Assess, ALackingGpuIsOneWarning) {
  const Report report = assess(facts_without_gpu());
  EXPECT_TRUE(report.can_judge);
  EXPECT_EQ(check_of(report, "devices").status, Status::warn);
  EXPECT_EQ(check_of(report, "devices").found, "none: libnvidia-ml.so.1: cannot open");
  EXPECT_TRUE(check_of(report, "devices").remedy.has_value());
  EXPECT_EQ(check_of(report, "cuda").status, Status::ok);
  EXPECT_EQ(check_of(report, "cupti").status, Status::ok);
}

TEST(Assess, AGpuWithoutCuptiOrWithFewerCudaDevicesIsAWarning) {
  Facts facts = good_facts();
  facts.graphics.cupti_file.reset();
  facts.graphics.cupti_problem = "no libcupti.so opens";
  facts.graphics.cuda_devices = 0;
  const Report report = assess(facts);
  EXPECT_EQ(check_of(report, "cupti").status, Status::warn);
  EXPECT_EQ(check_of(report, "cupti").remedy, "/env/bin/python -m pip install nvidia-cuda-cupti");
  EXPECT_EQ(check_of(report, "cuda").status, Status::warn);
  EXPECT_EQ(check_of(report, "cuda").found, "CUDA 13.0, 0 devices, but NVML shows 1");
}

TEST(Assess, WarnsOfNumpyThatBreaksTheInterpreter) {
  const std::vector<std::pair<std::string, Status>> cases = {{"2.4.9", Status::ok},
                                                             {"1.26.4", Status::ok},
                                                             {"2.5.0", Status::warn},
                                                             {"2.10.0", Status::warn},
                                                             {"3.0.0", Status::warn}};
  for (const auto& [version, status] : cases) {
    Facts facts = good_facts();
    facts.python.numpy = version;
    EXPECT_EQ(check_of(assess(facts), "numpy").status, status) << version;
  }
}

TEST(Assess, WithoutPythonNothingCanBeJudged) {
  Facts facts = facts_without_gpu();
  facts.python = {};
  facts.python.problem = "none found";
  facts.trial = {};
  facts.trial.problem = "there is no Python to run it in";
  const Report report = assess(facts);
  EXPECT_FALSE(report.can_judge);
  EXPECT_EQ(check_of(report, "interpreter").status, Status::fail);
  EXPECT_EQ(check_of(report, "interpreter").found, "none found");
  EXPECT_EQ(check_of(report, "interpreter").remedy, "make setup");
  EXPECT_EQ(check_of(report, "trial").status, Status::fail);
  EXPECT_EQ(check_of(report, "trial").found, "there is no Python to run it in");
  EXPECT_EQ(check_of(report, "enforced").status, Status::warn);
}

TEST(Assess, AMissingPackageFails) {
  Facts facts = good_facts();
  facts.python.triton.reset();
  const Check check = check_of(assess(facts), "triton");
  EXPECT_EQ(check.status, Status::fail);
  EXPECT_EQ(check.found, "not installed");
}

TEST(Assess, NamesEachPartOfTheSandboxThatIsMissing) {
  Facts facts = good_facts();
  facts.trial.isolation.missing = {{"landlock", "the kernel has none"}};
  const Check check = check_of(assess(facts), "landlock");
  EXPECT_EQ(check.area, "sandbox");
  EXPECT_EQ(check.status, Status::warn);
  EXPECT_EQ(check.found, "missing: the kernel has none");
}

TEST(Assess, WarnsOfTooLittleRoomAndOfATakenPort) {
  Facts facts = good_facts();
  facts.memory.limit_bytes = 2 * kGiB;
  facts.cache.free_bytes = 1000;
  facts.port.free = false;
  const Report report = assess(facts);
  for (const std::string name : {"memory", "cache", "port"}) {
    EXPECT_EQ(check_of(report, name).status, Status::warn) << name;
    EXPECT_TRUE(check_of(report, name).remedy.has_value()) << name;
  }
  EXPECT_EQ(check_of(report, "memory").found,
            "100.0 GiB of 128.0 GiB available, limited to 2.0 GiB");
  EXPECT_TRUE(report.can_judge);
}

TEST(Render, ShowsPurposeAndRemedyOnlyWhereSomethingIsWrong) {
  Report report;
  report.can_judge = true;
  report.checks = {{"machine", "cpu", Status::ok, "fast", "computes", {}},
                   {"python", "numpy", Status::warn, "2.5.0", "counts", "pip install 'numpy<2.5'"}};
  report.facts = good_facts();
  EXPECT_EQ(render(report),
            "machine\n"
            "  ok    cpu    fast\n"
            "python\n"
            "  warn  numpy  2.5.0\n"
            "               for: counts\n"
            "               do:  pip install 'numpy<2.5'\n"
            "\n"
            "This machine can judge candidates.\n");
}

TEST(Render, PaintsTheStatus) {
  Report report;
  report.checks = {{"judge", "trial", Status::fail, "died", "", {}}};
  const std::string text =
      render(report, [](Status, const std::string& word) { return "<" + word + ">"; });
  EXPECT_NE(text.find("  <fail>  trial  died\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cannot judge"), std::string::npos) << text;
}

TEST(Render, SaysThatTheInterpreterTellsNoSpeed) {
  Facts facts = good_facts();
  facts.trial.mode = task::Mode::interpreter;
  EXPECT_NE(render(assess(facts)).find("but not how fast"), std::string::npos);
}

TEST(ReportJson, HoldsTheVerdictTheChecksAndTheFacts) {
  const json::Value value = json::to_json(assess(good_facts()));
  EXPECT_EQ(value.at("can_judge"), true);
  const json::Value& check = value.at("checks").at(0);
  EXPECT_EQ(json::dump(check),
            R"({"area":"machine","name":"kernel","status":"ok","found":"Linux 6.1.0 x86_64",)"
            R"("purpose":"gives the sandbox its means"})");
  EXPECT_EQ(value.at("facts").at("graphics").at("gpus").at(0).at("uuid"), "GPU-1");
  EXPECT_EQ(value.at("facts").at("python").at("torch"), "2.11.0");
  // And back: what a program reads is what was found.
  EXPECT_TRUE(json::from_json<Report>(value, "report").can_judge);
}

}  // namespace
}  // namespace drk::doctor
