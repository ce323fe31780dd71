// SPDX-License-Identifier: Apache-2.0
// One evaluator for a whole test binary: starting its zygote takes seconds.
#pragma once

#include "drk/base/json.h"
#include "drk/worker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>

namespace drk::worker::test {

inline Options options() {
  Options options;
  const char* python = std::getenv("DRK_PYTHON");  // NOLINT(concurrency-mt-unsafe)
  options.python = python == nullptr ? "" : python;
  // Beside the binary, so that a build folder can be copied to another machine.
  options.guest_dir =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "../lib/drk/guest";
  return options;
}

inline Evaluator& evaluator() {
  static Evaluator instance(options());
  return instance;
}

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (options().python.empty()) {
      GTEST_SKIP() << "DRK_PYTHON is not set: no interpreter with torch and triton to run guests";
    }
  }
};

inline constexpr const char* kReluReference = R"(
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(64, 33)]

def get_init_inputs():
    return []
)";

inline constexpr const char* kReluCandidate = R"(
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.maximum(tl.load(x_ptr + offs, mask=mask), 0.0), mask=mask)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
)";

/// A quick task: two trials, no timing, limits in which nothing honest comes near.
inline task::Task make_task(const std::string& reference, const std::string& candidate) {
  task::Task task;
  task.reference_code = reference;
  task.candidate_code = candidate;
  task.num_correct_trials = 2;
  task.measure_performance = false;
  task.limits.load_s = 20;
  task.limits.correctness_s = 20;
  task.limits.detect_s = 20;
  return task;
}

/// A candidate in plain torch, allowed by ownership free: for what is not about kernels.
inline task::Task make_torch_task(const std::string& reference, const std::string& candidate) {
  task::Task task = make_task(reference, candidate);
  task.policy.ownership = task::Ownership::free;
  return task;
}

/// "import torch ...; class ModelNew: <body of forward>" around one expression's statements.
inline std::string candidate_with(const std::string& forward_body, const std::string& before = "") {
  return "import ctypes, os, signal, sys, threading, time\nimport torch\nimport torch.nn as nn\n" +
         before + "\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        " +
         forward_body + "\n";
}

inline std::string kind_of(const task::Result& result) {
  return task::outcome_kind(result.verdict);
}

inline std::string text_of(const task::Result& result) {
  return json::dump(json::to_json(result.verdict)) + " stderr: " + result.candidate_stderr.text;
}

/// The failure inside an outcome, where it has one.
inline const task::Failure* failure_of(const task::Result& result) {
  return std::visit(
      [](const auto& outcome) -> const task::Failure* {
        if constexpr (requires { outcome.failure.stage; }) {
          return &outcome.failure;
        } else {
          return nullptr;
        }
      },
      result.verdict.outcome);
}

/// The evaluator is as good as new: an honest candidate is accepted.
inline void expect_unharmed() {
  const task::Result result = evaluator().evaluate(make_task(kReluReference, kReluCandidate));
  EXPECT_EQ(kind_of(result), "accepted") << text_of(result);
}

}  // namespace drk::worker::test
