// SPDX-License-Identifier: Apache-2.0
// Runs tasks: a zygote, sandboxed guests forked from it, and the stages of an evaluation.
#pragma once

#include "drk/gpu.h"
#include "drk/task/result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace drk::worker {

struct Options {
  std::string python;             ///< Interpreter with torch and triton.
  std::string guest_dir;          ///< Folder with host.py and the guest core.
  std::string build_dir;          ///< What compilers made is kept here; empty: it is not kept.
  std::string cuda_home;          ///< Toolkit with bin/nvcc; empty: the first that is found.
  std::uint32_t warm_guests = 1;  ///< Kept forked and sandboxed ahead of need, at least.
  /// Under load as many: one more each time none was left, back to the least after ten idle
  /// seconds.
  std::uint32_t max_warm_guests = 0;
  std::uint32_t kept_references = 4;   ///< Reference guests kept alive, least recently used out.
  std::uint32_t seed_pool = 32;        ///< Secret input seeds of one reference.
  std::uint32_t seed_pool_uses = 256;  ///< Candidates after which a reference's pool is redrawn.
  std::vector<gpu::Device> gpus;       ///< Judge on these; empty: by Triton's interpreter.
  std::uint32_t interpreter_timed_calls = 25;  ///< At most so many timed calls without a GPU.
};

/// What the evaluations of this process run on.
struct Environment {
  task::Versions versions;
  task::Machine machine;
  task::Isolation isolation;  ///< As one real guest reports it.
  double zygote_start_s = 0;
  double guest_start_ms = 0;
};

struct Progress {
  task::Stage stage = task::Stage::validate;
  std::string detail;  ///< "trial 3 of 5"
  std::string device;  ///< "cuda:GPU-<uuid>", or "cpu" for the interpreter.
};

/// A GPU of this worker, as it is now.
struct DeviceView {
  gpu::Device device;
  std::optional<gpu::Sample> sample;  ///< The last; a second old at most while the device is well.
  std::string problem;                ///< Not empty: nothing is run on it.
};

struct EvaluateOptions {
  std::function<void(const Progress&)> on_progress;  ///< Called on the evaluating thread.
  std::stop_token stop;                              ///< Ends the evaluation within a second.
  const task::Manifest* replay = nullptr;  ///< Use its seeds instead of secret ones. Not owned.
};

/// Evaluates tasks. Thread-safe: calls may run side by side, each with guests of its own.
class Evaluator {
 public:
  /// Starts nothing yet. Throws Error{invalid_argument} when `options` name no interpreter.
  explicit Evaluator(Options options);
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;
  ~Evaluator();  ///< Ends every process it started.

  /// Bad candidates and bad problems are verdicts; a machine that cannot run anything is one too
  /// (Undecided, fault infra). Throws only Error{internal}, and Error{timed_out} on `stop`.
  [[nodiscard]] task::Result evaluate(const task::Task& task, const EvaluateOptions& options = {});

  /// Empty without a GPU.
  [[nodiscard]] std::vector<DeviceView> devices() const;

  /// Starts the zygote and one guest if need be. Throws Error{unavailable} when they do not start.
  [[nodiscard]] Environment environment();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drk::worker
