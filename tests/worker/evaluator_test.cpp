// SPDX-License-Identifier: Apache-2.0
// Whole evaluations of real Triton candidates, and what is left when they are over.
#include "drk/base/fd.h"

#include "worker/fixture.h"
#include "worker/pool.h"

#include <algorithm>
#include <atomic>
#include <dirent.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace drk::worker::test {
namespace {

using EvaluatorTest = WorkerTest;

TEST_F(EvaluatorTest, AcceptsAnHonestKernelAndSaysHowItKnows) {
  task::Task task = make_task(kReluReference, kReluCandidate);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  const auto& accepted = std::get<task::Accepted>(result.verdict.outcome);
  EXPECT_FALSE(accepted.speedup) << "an interpreter makes no speed claim";
  EXPECT_FALSE(accepted.coverage);
  ASSERT_TRUE(accepted.timing && accepted.reference_timing);
  EXPECT_GE(accepted.timing->count, 3U);
  EXPECT_LE(accepted.timing->count, 25U);
  EXPECT_EQ(result.mode, task::Mode::interpreter);
  const auto& trials = result.observations.trials;
  const auto of_timed_calls = std::count_if(
      trials.begin(), trials.end(), [](const task::Trial& trial) { return !trial.call.empty(); });
  EXPECT_EQ(trials.size() - static_cast<std::size_t>(of_timed_calls), 3U) << "two, and the last";
  EXPECT_GE(of_timed_calls, 2) << "the last timed call, and some that nobody knew of before";
  EXPECT_TRUE(trials.front().comparison.by_float64);
  EXPECT_TRUE(std::any_of(
      trials.begin(), trials.end(), [](const auto& t) { return t.grad == task::GradMode::on; }));
  const auto& kernels = result.observations.trials.at(0).kernels;
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].name, "relu_kernel");
  EXPECT_TRUE(kernels[0].own);
  EXPECT_EQ(kernels[0].count, 1U);
  ASSERT_TRUE(result.observations.contribution);
  EXPECT_EQ(result.observations.contribution->dropped_launches, 1U);
  EXPECT_FALSE(result.observations.contribution->output_still_right);
  ASSERT_TRUE(result.observations.process);
  EXPECT_EQ(result.observations.process->processes_left, 0U);
  EXPECT_FALSE(result.timeline.empty());
  EXPECT_EQ(result.manifest.versions.torch.substr(0, 4), "2.11");
}

TEST_F(EvaluatorTest, MeetsEveryGradientModeHoweverFewTheTrials) {
  for (const std::uint32_t trials : {1U, 2U, 4U}) {
    task::Task task = make_task(kReluReference, kReluCandidate);
    task.num_correct_trials = trials;
    task.measure_performance = true;
    const task::Result result = evaluator().evaluate(task);
    ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
    std::set<task::GradMode> met;
    for (const task::Trial& trial : result.observations.trials) met.insert(trial.grad);
    EXPECT_EQ(met.size(), 3U) << trials << " trials";
  }
}

TEST_F(EvaluatorTest, RunsLoopsOverRunTimeBounds) {
  std::string code = kReluCandidate;
  const std::string load = "tl.load(x_ptr + offs, mask=mask)";
  code.replace(code.find("    tl.store"),
               4,
               "    acc = tl.zeros([BLOCK], tl.float32)\n    for i in range(n - n + 2):\n        "
               "acc += 0.5 * " +
                   load + "\n    ");
  code.replace(code.find("tl.maximum(" + load), ("tl.maximum(" + load).size(), "tl.maximum(acc");
  const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(EvaluatorTest, TakesTheFirstConfigThatPruningLeaves) {
  std::string code = kReluCandidate;
  code.replace(code.find("@triton.jit"), 0, R"(
def large_ones(configs, named_args, **kwargs):
    return [config for config in configs if config.kwargs["BLOCK"] >= 1024]

@triton.autotune(
    [triton.Config({"BLOCK": block}, num_warps=8) for block in (64, 1024, 2048)],
    key=["n"],
    prune_configs_by={"early_config_prune": large_ones},
)
)");
  const std::string value = "tl.maximum(tl.load(x_ptr + offs, mask=mask), 0.0)";
  code.replace(code.find(value), value.size(), "tl.where(BLOCK == 1024, " + value + ", -1.0)");
  const std::string launch =
      "relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)";
  code.replace(
      code.find(launch),
      launch.size(),
      "relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, y, x.numel())");
  const task::Result result = evaluator().evaluate(make_task(kReluReference, code));
  ASSERT_EQ(kind_of(result), "accepted") << text_of(result);
  const auto& kernels = result.observations.trials.at(0).kernels;
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].count, 1U) << "nothing is launched to choose";
}

/// relu of positive numbers, whose code says what it does not take.
std::string picky_reference(const std::string& complaint) {
  return "import os\nimport torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n"
         "    def forward(self, x):\n        " +
         complaint +
         "\n        return torch.relu(x)\n\ndef get_inputs():\n    return [torch.rand(64, 33)]\n\n"
         "def get_init_inputs():\n    return []\n";
}

TEST_F(EvaluatorTest, AsksOnlyWhatTheProblemTakes) {
  const struct {
    const char* complaint;
    bool has_float64;
    bool is_shifted;
  } cases[] = {
      {"pass", true, true},
      {"assert x.min() >= 0", true, false},
      {"assert x.dtype == torch.float32", false, true},
      {"x = x.float()", false, true},
      {"x.dtype == torch.float64 and os._exit(3)", false, false},
      {"x.min() < 0 and os._exit(3)", false, false},
  };
  for (const auto& c : cases) {
    task::Task task = make_task(picky_reference(c.complaint), kReluCandidate);
    task.num_correct_trials = 5;
    for (int round = 0; round < 2; ++round) {  // the second by the reference that was kept
      const task::Result result = evaluator().evaluate(task);
      ASSERT_EQ(kind_of(result), "accepted") << c.complaint << ": " << text_of(result);
      const auto& trials = result.observations.trials;
      const auto any = [&](const auto& is_wanted) {
        return std::any_of(trials.begin(), trials.end(), is_wanted);
      };
      EXPECT_EQ(any([](const auto& t) { return t.comparison.by_float64; }), c.has_float64)
          << c.complaint;
      EXPECT_EQ(any([](const auto& t) { return t.inputs == task::Distribution::shifted; }),
                c.is_shifted)
          << c.complaint;
    }
  }
}

TEST_F(EvaluatorTest, NamesWhoTellsPhasesApart) {
  const std::string code = std::string(kReluCandidate) + R"(
class ModelNew(ModelNew):
    def forward(self, x):
        return super().forward(x) + (1.0 if torch.is_inference_mode_enabled() else 0.0)
)";
  task::Task task = make_task(kReluReference, code);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  ASSERT_EQ(kind_of(result), "wrong_output") << text_of(result);
  const auto& findings = result.verdict.findings;
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const task::Finding& finding) {
    return finding.reason == task::Reason::phase_detection;
  })) << text_of(result);
}

TEST_F(EvaluatorTest, EachCallDrawsAsTheFirstOneDoes) {
  std::string reference = kReluReference;
  const std::string relu = "torch.relu(x)";
  const std::string dropout = "torch.dropout(x, 0.5, True)";
  reference.replace(reference.find(relu), relu.size(), "torch.relu(" + dropout + ")");
  std::string candidate = kReluCandidate;
  const std::string empty = "y = torch.empty_like(x)";
  candidate.replace(candidate.find(empty), empty.size(), "x = " + dropout + "\n        " + empty);
  task::Task task = make_task(reference, candidate);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

TEST_F(EvaluatorTest, ReadsSampledOutputsBeforeTheNextCall) {
  const std::string code = std::string(kReluCandidate) + R"(
class Late(ModelNew):
    waiting = []
    def forward(self, x):
        y = torch.empty_like(x)
        if torch.is_grad_enabled() or torch.is_inference_mode_enabled():
            return super().forward(x)
        self.waiting.append((x.clone(), y))
        if len(self.waiting) == 2:
            for source, target in self.waiting:
                target.copy_(super().forward(source))
            self.waiting.clear()
        return y
ModelNew = Late
)";
  task::Task task = make_task(kReluReference, code);
  task.measure_performance = true;
  EXPECT_EQ(kind_of(evaluator().evaluate(task)), "wrong_output");
}

TEST_F(EvaluatorTest, RefusesKernelsThatDoNotMatter) {
  const std::string unused =
      std::string(kReluCandidate) + "\n    def forward(self, x):\n        return torch.relu(x)\n";
  const task::Result result = evaluator().evaluate(make_task(kReluReference, unused));
  EXPECT_NE(text_of(result).find("no_candidate_kernel"), std::string::npos) << text_of(result);
  const std::string discarded = std::string(kReluCandidate) +
                                "\n    def forward(self, x):\n        y = torch.empty_like(x)\n"
                                "        relu_kernel[(3,)](x, y, x.numel(), BLOCK=1024)\n"
                                "        return torch.relu(x)\n";
  const task::Result decoy = evaluator().evaluate(make_task(kReluReference, discarded));
  EXPECT_NE(text_of(decoy).find("decoy_kernel"), std::string::npos) << text_of(decoy);
  const std::string zero_term = std::string(kReluCandidate) +
                                "\n    def forward(self, x):\n        y = torch.empty_like(x)\n"
                                "        relu_kernel[(3,)](x - x, y, x.numel(), BLOCK=1024)\n"
                                "        return torch.relu(x) + y\n";
  const task::Result adds_zero = evaluator().evaluate(make_task(kReluReference, zero_term));
  EXPECT_NE(text_of(adds_zero).find("decoy_kernel"), std::string::npos) << text_of(adds_zero);
  EXPECT_EQ(adds_zero.observations.contribution->memory, "zeros");
}

TEST_F(EvaluatorTest, RefusesAnswersRememberedByPointer) {
  std::string code = kReluCandidate;
  const std::size_t at = code.find("        y = torch.empty_like");
  code.insert(at,
              "        if not hasattr(self, 'memo'): self.memo = {}\n        key = (x.data_ptr(), "
              "x._version)\n"
              "        if key in self.memo: return self.memo[key][1]\n");
  code.replace(
      code.find("        return y"), 16, "        self.memo[key] = (x, y)\n        return y");
  task::Task task = make_task(kReluReference, code);
  task.measure_performance = true;
  const task::Result result = evaluator().evaluate(task);
  EXPECT_EQ(kind_of(result), "wrong_output") << text_of(result);
}

TEST_F(EvaluatorTest, BothModelsAreBuiltAfterTheSameSeed) {
  const std::string reference = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m)

    def forward(self, x):
        return self.linear(x)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return [8, 3]
)";
  std::string candidate = reference;
  candidate.replace(candidate.find("class Model("), 12, "class ModelNew(");
  EXPECT_EQ(kind_of(evaluator().evaluate(make_torch_task(reference, candidate))), "accepted");
  candidate.replace(candidate.find("self.linear = nn"), 16, "self.renamed = nn");
  candidate.replace(candidate.find("self.linear(x)"), 14, "self.renamed(x)");
  const task::Result result = evaluator().evaluate(make_torch_task(reference, candidate));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
  EXPECT_EQ(result.observations.parameter_differences.size(), 4U);
}

TEST_F(EvaluatorTest, RepeatsAnEvaluationFromItsManifest) {
  const task::Task task = make_task(kReluReference, kReluCandidate);
  const task::Result first = evaluator().evaluate(task);
  const json::Value stored = json::parse(json::dump(task::to_json(first.manifest)));
  const task::Manifest manifest = task::manifest_from_json(stored);
  EvaluateOptions options;
  options.replay = &manifest;
  const task::Result again = evaluator().evaluate(task::task_of(manifest), options);
  EXPECT_EQ(kind_of(again), kind_of(first));
  EXPECT_EQ(again.manifest.trial_seeds, first.manifest.trial_seeds);
  EXPECT_EQ(again.observations.trials.at(1).seed, first.observations.trials.at(1).seed);
}

TEST_F(EvaluatorTest, SeedsDifferFromEvaluationToEvaluation) {
  const task::Task task = make_task(kReluReference, kReluCandidate);
  const auto first = evaluator().evaluate(task).manifest.trial_seeds;
  const auto second = evaluator().evaluate(task).manifest.trial_seeds;
  EXPECT_NE(first, second);
}

TEST_F(EvaluatorTest, KeepsReferencesAndGoesOnWhenOneIsPushedOut) {
  for (int i = 0; i < 7; ++i) {
    const std::string reference = std::string(kReluReference) + "\n# " + std::to_string(i) + "\n";
    EXPECT_EQ(kind_of(evaluator().evaluate(make_task(reference, kReluCandidate))), "accepted");
  }
  const task::Result result = evaluator().evaluate(make_task(kReluReference, kReluCandidate));
  EXPECT_EQ(kind_of(result), "accepted");
}

TEST_F(EvaluatorTest, WorksFromSeveralThreadsAtOnce) {
  std::atomic<int> accepted = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string reference =
          std::string(kReluReference) + "\n# thread " + std::to_string(t % 2) + "\n";
      for (int i = 0; i < 3; ++i) {
        if (kind_of(evaluator().evaluate(make_task(reference, kReluCandidate))) == "accepted")
          ++accepted;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(accepted, 12);
}

TEST_F(EvaluatorTest, StartsANewZygoteWhenTheLastOneDied) {
  Evaluator mine(options());
  ASSERT_EQ(kind_of(mine.evaluate(make_task(kReluReference, kReluCandidate))), "accepted");
  // Its child with the script's name: no other evaluator of this process is hit, for each has one.
  std::set<int> before;
  {
    Evaluator other(options());
    (void)other.environment();
  }
  const std::string children =
      read_file("/proc/self/task/" + std::to_string(::getpid()) + "/children");
  for (std::size_t at = 0; at < children.size();) {
    const int pid = std::atoi(children.c_str() + at);
    if (pid > 0) before.insert(pid);
    at = children.find(' ', at);
    if (at != std::string::npos)
      ++at;
    else
      break;
  }
  ASSERT_FALSE(before.empty());
  ::kill(*before.rbegin(), SIGKILL);  // the youngest: mine
  std::string kind;
  for (int i = 0; i < 3 && kind != "accepted"; ++i) {
    kind = kind_of(mine.evaluate(make_task(kReluReference, kReluCandidate)));
    EXPECT_TRUE(kind == "accepted" || kind == "undecided") << kind;
  }
  EXPECT_EQ(kind, "accepted");
}

TEST_F(EvaluatorTest, SaysThatAnInterpreterWithoutTorchWillNotDo) {
  Options bad = options();
  bad.python = "/bin/false";
  Evaluator mine(bad);
  const task::Result result = mine.evaluate(make_task(kReluReference, kReluCandidate));
  EXPECT_EQ(kind_of(result), "undecided");
  EXPECT_EQ(result.verdict.fault, task::Fault::infra);
}

// --- what is left behind ---

struct Traces {
  std::size_t descriptors = 0, tmp_files = 0, shm_files = 0, mounts = 0;
  std::set<std::string> processes;
};

/// Entries of a folder whose names begin with `prefix`: others may use the same folder meanwhile.
std::size_t count_entries(const std::string& path, const std::string& prefix) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename().string().starts_with(prefix)) ++count;
  }
  return count;
}

/// Guests of that worker: each runs as a host user of the worker's own range (pool.cpp).
std::set<std::string> guest_processes(pid_t worker) {
  const long long first = 1'000'000'000LL + worker % 8'000'000 * 256LL;
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("Uid:")) continue;
      const long long user = std::atoll(line.c_str() + 4);
      if (user >= first && user < first + 256) found.insert(pid);
    }
  }
  return found;
}

Traces traces() {
  Traces now;
  now.descriptors = count_entries("/proc/self/fd", "");
  now.tmp_files = count_entries("/tmp", "drk-");
  now.shm_files = count_entries("/dev/shm", "drk-");
  const std::string mounts = read_file("/proc/self/mountinfo");
  now.mounts = static_cast<std::size_t>(std::count(mounts.begin(), mounts.end(), '\n'));
  now.processes = guest_processes(::getpid());
  return now;
}

TEST_F(EvaluatorTest, FiveHundredGuestsLeaveNothingBehind) {
  Options few = options();
  few.warm_guests = 0;
  GuestPool pool(few, nullptr);
  (void)pool.zygote();
  const Traces before = traces();
  for (int i = 0; i < 500; ++i) {
    const std::unique_ptr<GuestProcess> guest = pool.take(sandbox::Limits{});
    const auto outcome = guest->ask(guest::Restrict{}, {}, AskOptions{});
    ASSERT_TRUE(std::holds_alternative<GuestProcess::Answer>(outcome)) << "guest " << i;
    ASSERT_TRUE(guest->finish()) << "guest " << i;
  }
  const Traces after = traces();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.tmp_files, before.tmp_files);
  EXPECT_EQ(after.shm_files, before.shm_files);
  EXPECT_EQ(after.mounts, before.mounts);
  EXPECT_EQ(after.processes, before.processes);
}

TEST_F(EvaluatorTest, AKilledWorkerTakesItsGuestsAlong) {
  const pid_t child = ::fork();
  if (child == 0) {
    Evaluator mine(options());
    task::Task task = make_torch_task(kReluReference, candidate_with("time.sleep(100); return x"));
    EvaluateOptions watch;
    watch.on_progress = [](const Progress& progress) {
      if (progress.stage == task::Stage::correctness)
        std::thread([] {
          ::sleep(1);
          ::kill(::getpid(), SIGKILL);
        }).detach();
    };
    (void)mine.evaluate(task, watch);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  std::set<std::string> left = guest_processes(child);
  for (int i = 0; i < 50 && !left.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    left = guest_processes(child);
  }
  EXPECT_TRUE(left.empty()) << left.size() << " guests outlived their worker";
}

}  // namespace
}  // namespace drk::worker::test
