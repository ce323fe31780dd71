// SPDX-License-Identifier: Apache-2.0
// A result in which every field has a value of its own, and one in which no option is set.
#pragma once

#include "drk/base/hash.h"
#include "drk/task/result.h"

namespace drk::task {

inline Failure sample_failure() {
  Failure failure;
  failure.stage = Stage::correctness;
  failure.kind = FailureKind::call_error;
  failure.what = "forward raised";
  failure.error = PythonError{
      "ValueError", "bad width", {{"candidate.py", 12, "forward"}}, 12U, "    raise ValueError"};
  failure.death = Death{-3, 11, "killed by SIGSEGV (segmentation fault)"};
  failure.limit_s = 0.1;
  failure.cuda = "CUDA_ERROR_ILLEGAL_ADDRESS";
  return failure;
}

inline Mismatch sample_mismatch() {
  Mismatch mismatch;
  mismatch.kind = MismatchKind::value;
  mismatch.path = "output['mean'][1]";
  mismatch.expected = "0.1";
  mismatch.got = "-inf";
  mismatch.first_index = {3, 7};
  mismatch.wrong_count = 12;
  mismatch.element_count = 4096;
  mismatch.tolerance = 1.3e-4;
  return mismatch;
}

inline Timing sample_timing() {
  return {"device",
          7,
          1000.1,
          1100.2,
          30.3,
          900.4,
          1500.5,
          910.6,
          1490.7,
          950.8,
          1050.9,
          48.25,
          true,
          5};
}

inline Observations sample_observations() {
  Trial trial;
  trial.seed = 18446744073709551615U;
  trial.case_name = "small";
  trial.comparison = {sample_mismatch(), 0.25, std::numeric_limits<double>::infinity(), 1e-300};
  trial.mutated_inputs = {"inputs[0]"};
  trial.kernels = {{"add_kernel", "candidate.py", 9, true, 4}};
  trial.host_us = 1234.5;
  Observations seen;
  seen.mode = Mode::gpu;
  seen.invalidity = Invalidity{true, "candidate: NUL byte in line 3"};
  seen.reference_failure = sample_failure();
  seen.candidate_failure = sample_failure();
  seen.parameter_differences = {"weight: [3] is [4] in the reference"};
  seen.trials = {trial, Trial{}};
  seen.contribution = Contribution{5, 6, true, "zeros", true};
  seen.candidate_times = {{1.5, 2.25}, {3.5, 4}, {0, 0.5}, 2};
  seen.reference_times = {{3.125}, {}, {}, 0};
  KernelRecord kernel = {"relu_kernel",
                         KernelOrigin::candidate_triton,
                         {4096, 1, 1},
                         {128, 1, 1},
                         24,
                         16,
                         1024,
                         5,
                         72.5};
  KernelRecord fill = {"vectorized_elementwise_kernel<4>",
                       KernelOrigin::torch,
                       {8, 2, 1},
                       {256, 1, 1},
                       18,
                       0,
                       0,
                       10,
                       27.5};
  seen.profile = Profile{5, {kernel, fill}, 15, 15, 0, 3.5, 44.5, ""};
  seen.launch_problem = "none";
  seen.process = ProcessReport{2, std::uint64_t{1} << 40, 0.75, {{"socket(AF_INET)", 3}}};
  return seen;
}

inline Manifest sample_manifest() {
  Manifest manifest;
  manifest.format = 3;
  manifest.created_at = "2026-11-30T12:08:02.123Z";
  manifest.reference = {sha256_hex("class Model: ..."), "class Model: ..."};
  manifest.candidate = {sha256_hex("class ModelNew: ..."), "class ModelNew: ..."};
  manifest.workflow = Workflow::kernel_simple;
  manifest.backend = Backend::cuda_nvrtc;
  manifest.entry_point = "Net";
  manifest.reference_backend = ReferenceBackend::torch_compile;
  manifest.cases_json = "[1]";
  manifest.cases_code = "def get_cases(): ...";
  manifest.check_correctness = false;
  manifest.num_correct_trials = 4;
  manifest.num_perf_trials = 99;
  manifest.num_warmup = 2;
  manifest.measure_performance = false;
  manifest.policy = {Correctness::kernelgym, Ownership::strict, Protocol::rotating, true};
  manifest.limits = {1.5, 2.5, 3.5, 4.5, 5.5, 0.5, 1024, 2048};
  manifest.mode = Mode::gpu;
  manifest.init_seed = 1;
  manifest.trial_seeds = {2, 18446744073709551615U};
  manifest.contribution_seed = 3;
  manifest.versions = {"0.1.0", "3.12.1", "2.11.0", "3.6.0", "2.4.0"};
  manifest.machine = {
      "Linux 6.1.0 x86_64", "Some CPU", 16, "NVIDIA H200", "GPU-1", "0:1B", "580.1"};
  manifest.outcome = "wrong_output";
  return manifest;
}

/// With `outcome`; everything else is set, whether it fits that outcome or not.
inline Result full_result(Outcome outcome) {
  Result result;
  result.task_id = "task-1";
  result.mode = Mode::gpu;
  result.verdict = {std::move(outcome),
                    {{Reason::cached_output, Severity::warn, "the same twice"},
                     {Reason::input_mutation, Severity::reject, "trial 1: wrote to inputs[0]"}},
                    Fault::candidate};
  result.isolation = {{"seccomp", "landlock"}, {{"cgroup", "no version 2"}}};
  result.observations = sample_observations();
  result.timeline = {{"load", 0, 10.5}, {"correctness", 10.5, 1989.5}};
  result.candidate_stdout = {"hello\n", 6};
  result.candidate_stderr = {"warning\n", 100'000};
  result.manifest = sample_manifest();
  return result;
}

}  // namespace drk::task
