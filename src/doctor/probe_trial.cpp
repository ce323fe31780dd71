// SPDX-License-Identifier: Apache-2.0
// The proof that this machine can judge: a tiny problem, judged as any other.
#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/gpu.h"
#include "drk/task/describe.h"
#include "drk/worker.h"

#include "doctor/parse.h"
#include "doctor/probe.h"

#include <variant>

namespace drk::doctor {

namespace {

constexpr const char* kReference = R"(
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0


def get_inputs():
    return [torch.randn(300)]


def get_init_inputs():
    return []
)";

constexpr const char* kCandidate = R"(
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def double_and_one_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, 2.0 * x + 1.0, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        double_and_one_kernel[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
        return y
)";

task::Task tiny_task() {
  task::Task task;
  task.task_id = "doctor";
  task.reference_code = kReference;
  task.candidate_code = kCandidate;
  task.num_correct_trials = 2;
  task.num_perf_trials = 5;
  return task;
}

/// What a person must know of an outcome that should have been `accepted`.
std::string problem_of(const task::Result& result) {
  const task::Verdict& verdict = result.verdict;
  if (const auto* undecided = std::get_if<task::Undecided>(&verdict.outcome)) {
    return undecided->what;
  }
  for (const auto& failure :
       {result.observations.candidate_failure, result.observations.reference_failure}) {
    if (failure) return task::describe(*failure);
  }
  if (!verdict.findings.empty()) return verdict.findings[0].evidence;
  return std::string("the outcome is ") + task::outcome_kind(verdict);
}

void run_trial(const Options& options, Trial& trial) {
  worker::Options worker_options;
  worker_options.python = options.python;
  worker_options.guest_dir = options.guest_dir;
  worker_options.gpus = gpu::list_devices().devices;
  worker::Evaluator evaluator(worker_options);
  const worker::Environment environment = evaluator.environment();
  trial.isolation = environment.isolation;
  trial.zygote_start_s = environment.zygote_start_s;
  trial.guest_start_ms = environment.guest_start_ms;
  const std::int64_t start_ns = now_ns();
  const task::Result result = evaluator.evaluate(tiny_task());
  trial.evaluation_s = static_cast<double>(now_ns() - start_ns) / 1e9;
  trial.outcome = task::outcome_kind(result.verdict);
  trial.mode = result.mode;
  trial.accepted = task::is_accepted(result.verdict);
  if (!trial.accepted) trial.problem = first_and_last_line(problem_of(result));
}

}  // namespace

Trial probe_trial(const Options& options) {
  Trial trial;
  if (options.python.empty()) {
    trial.problem = "there is no Python to run it in";
  } else if (options.guest_dir.empty()) {
    trial.problem = options.guest_problem;
  } else {
    try {
      run_trial(options, trial);
    } catch (const Error& error) {  // the border of this probe: a machine that cannot is a fact
      trial.problem = first_and_last_line(error.what());
    }
  }
  return trial;
}

}  // namespace drk::doctor
