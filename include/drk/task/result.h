// SPDX-License-Identifier: Apache-2.0
// Everything an evaluation leaves: verdict, observations, manifest, timeline, captured output.
#pragma once

#include "drk/base/json.h"
#include "drk/task/verdict.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drk::task {

/// A part of the sandbox that is not in force, and why.
struct MissingIsolation {
  std::string feature;
  std::string why;
};
BOOST_DESCRIBE_STRUCT(MissingIsolation, (), (feature, why))

struct Isolation {
  std::vector<std::string> enforced;
  std::vector<MissingIsolation> missing;
};
BOOST_DESCRIBE_STRUCT(Isolation, (), (enforced, missing))

struct Source {
  std::string sha256;
  std::string text;
};
BOOST_DESCRIBE_STRUCT(Source, (), (sha256, text))

struct Versions {
  std::string drkernel;
  std::string python;
  std::string torch;
  std::string triton;
  std::string numpy;
};
BOOST_DESCRIBE_STRUCT(Versions, (), (drkernel, python, torch, triton, numpy))

struct Machine {
  std::string kernel;  ///< "Linux 6.1.0 x86_64"
  std::string cpu;
  std::uint32_t cores = 0;
  std::string gpu;  ///< "NVIDIA H200"; this and what follows is empty without one.
  std::string gpu_uuid;
  std::string gpu_pci_bus_id;
  std::string gpu_driver;
};
BOOST_DESCRIBE_STRUCT(Machine, (), (kernel, cpu, cores, gpu, gpu_uuid, gpu_pci_bus_id, gpu_driver))

/// All that is needed to do the same evaluation again.
struct Manifest : TaskOptions {
  std::uint32_t format = 2;  ///< 1: seeds stood for values as given alone.
  std::string created_at;
  Source reference;
  Source candidate;
  Mode mode = Mode::interpreter;
  std::uint64_t init_seed = 0;             ///< Before either model is constructed.
  std::vector<std::uint64_t> trial_seeds;  ///< Before get_inputs, one a trial.
  std::optional<std::uint64_t> contribution_seed;
  std::optional<std::uint64_t> timing_seed;
  std::optional<std::uint64_t> final_seed;  ///< Of the trial after the timed calls.
  Versions versions;
  Machine machine;
  std::string outcome;  ///< The outcome that this evaluation had.
};
BOOST_DESCRIBE_STRUCT(Manifest,
                      (TaskOptions),
                      (format,
                       created_at,
                       reference,
                       candidate,
                       mode,
                       init_seed,
                       trial_seeds,
                       contribution_seed,
                       timing_seed,
                       final_seed,
                       versions,
                       machine,
                       outcome))

/// One stage of one evaluation; times from its start.
struct Span {
  std::string name;  ///< A Stage, or "reference", "guest".
  double start_ms = 0;
  double duration_ms = 0;
};
BOOST_DESCRIBE_STRUCT(Span, (), (name, start_ms, duration_ms))

/// What a process printed, cut in the middle when it was long.
struct Captured {
  std::string text;
  std::uint64_t total_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(Captured, (), (text, total_bytes))

struct Result {
  std::string task_id;
  Mode mode = Mode::interpreter;
  Verdict verdict;
  Isolation isolation;
  Observations observations;
  std::vector<Span> timeline;
  Captured candidate_stdout;
  Captured candidate_stderr;
  Manifest manifest;
};
BOOST_DESCRIBE_STRUCT(Result,
                      (),
                      (task_id,
                       mode,
                       verdict,
                       isolation,
                       observations,
                       timeline,
                       candidate_stdout,
                       candidate_stderr,
                       manifest))

// The codec is instantiated once, in src/task/codec.cpp.
[[nodiscard]] json::Value to_json(const Task& task);
[[nodiscard]] json::Value to_json(const Result& result);
[[nodiscard]] json::Value to_json(const Manifest& manifest);
[[nodiscard]] Task task_from_json(const json::Value& value);
[[nodiscard]] Result result_from_json(const json::Value& value);
[[nodiscard]] Manifest manifest_from_json(const json::Value& value);

/// The task that a manifest repeats. Throws Error{corrupt} when a source does not have its hash.
[[nodiscard]] Task task_of(const Manifest& manifest);

}  // namespace drk::task
