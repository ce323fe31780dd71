// SPDX-License-Identifier: Apache-2.0
// One evaluator on the machine's GPUs, for a whole test binary.
#pragma once

#include "drk/gpu.h"

#include "worker/fixture.h"

#include <fmt/format.h>

#include <string>

namespace drk::worker::test {

inline const gpu::Listing& listing() {
  static const gpu::Listing instance = gpu::list_devices();
  return instance;
}

inline Options gpu_options() {
  Options chosen = options();
  chosen.gpus = listing().devices;
  chosen.kept_references = 16;
  chosen.warm_guests = 2;
  chosen.max_warm_guests = 4;
  static const std::string kBuilds =
      std::filesystem::temp_directory_path() / fmt::format("drk-gpu-builds-{}", ::getpid());
  chosen.build_dir = kBuilds;
  return chosen;
}

inline Evaluator& gpu_evaluator() {
  static Evaluator instance(gpu_options());
  return instance;
}

class GpuTest : public WorkerTest {
 protected:
  void SetUp() override {
    WorkerTest::SetUp();
    if (IsSkipped()) return;
    if (listing().devices.empty()) GTEST_SKIP() << "no GPU: " << listing().problem;
  }

  [[nodiscard]] static task::Result judge(const task::Task& task) {
    return gpu_evaluator().evaluate(task);
  }
};

/// A timed task of the size that a GPU does in tens of microseconds.
inline task::Task gpu_task(const std::string& reference, const std::string& candidate) {
  task::Task task = make_task(reference, candidate);
  task.measure_performance = true;
  task.num_correct_trials = 3;
  task.limits.load_s = 120;
  task.limits.correctness_s = 60;
  return task;
}

inline const task::Accepted* accepted_of(const task::Result& result) {
  return std::get_if<task::Accepted>(&result.verdict.outcome);
}

/// A relu over so many float32.
inline std::string relu_reference(std::uint64_t count) {
  return fmt::format(R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand({}) - 0.5]

def get_init_inputs():
    return []
)",
                     count);
}

/// The same device goes on: an honest candidate is accepted, and every kernel of it is its own.
inline void expect_gpu_unharmed() {
  const task::Result result =
      gpu_evaluator().evaluate(gpu_task(relu_reference(1U << 20U), kReluCandidate));
  const task::Accepted* accepted = accepted_of(result);
  ASSERT_NE(accepted, nullptr) << text_of(result);
  EXPECT_TRUE(accepted->speedup.has_value());
  ASSERT_TRUE(accepted->coverage.has_value())
      << (result.observations.profile ? result.observations.profile->problem : "no profile");
  EXPECT_GT(*accepted->coverage, 0.99);
}

}  // namespace drk::worker::test
