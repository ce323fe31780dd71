// SPDX-License-Identifier: Apache-2.0
// What this machine can do for drkernel, what it lacks, and the command that mends it.
#pragma once

#include "drk/task/result.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace drk::doctor {

struct Processor {
  std::string model;
  std::uint32_t cores = 0;  ///< That this process may use.
};
BOOST_DESCRIBE_STRUCT(Processor, (), (model, cores))

struct Memory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::optional<std::uint64_t> limit_bytes;  ///< Of this control group.
};
BOOST_DESCRIBE_STRUCT(Memory, (), (total_bytes, available_bytes, limit_bytes))

struct Gpu {
  std::string name;
  std::string uuid;
  std::uint64_t memory_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(Gpu, (), (name, uuid, memory_bytes))

/// What NVIDIA's libraries say. A part that is absent has its reason beside it.
struct Graphics {
  std::optional<std::string> driver;  ///< By NVML, as are `gpus`.
  std::vector<Gpu> gpus;
  std::string nvml_problem;
  std::optional<std::string> cuda;  ///< "13.0": the newest CUDA that the driver serves.
  std::uint32_t cuda_devices = 0;
  std::string cuda_problem;
  std::optional<std::string> cupti_file;
  std::uint32_t cupti_version = 0;  ///< CUPTI_API_VERSION.
  std::string cupti_problem;
};
BOOST_DESCRIBE_STRUCT(Graphics,
                      (),
                      (driver,
                       gpus,
                       nvml_problem,
                       cuda,
                       cuda_devices,
                       cuda_problem,
                       cupti_file,
                       cupti_version,
                       cupti_problem))

/// The interpreter that guests run in, as its package metadata describes it.
struct Python {
  std::string path;
  std::string found_by;  ///< "--python", "DRK_PYTHON" ...
  std::string version;
  std::optional<std::string> torch;
  std::optional<std::string> triton;
  std::optional<std::string> numpy;
  std::vector<std::string> package_dirs;
  std::string problem;  ///< Why there is none, or why it does not answer.
};
BOOST_DESCRIBE_STRUCT(Python,
                      (),
                      (path, found_by, version, torch, triton, numpy, package_dirs, problem))

/// One tiny problem, judged as any other.
struct Trial {
  bool accepted = false;
  std::string outcome;  ///< "accepted", "rejected" ...
  std::string problem;  ///< Why it was not accepted.
  task::Mode mode = task::Mode::interpreter;
  task::Isolation isolation;
  double zygote_start_s = 0;
  double guest_start_ms = 0;
  double evaluation_s = 0;
};
BOOST_DESCRIBE_STRUCT(
    Trial,
    (),
    (accepted, outcome, problem, mode, isolation, zygote_start_s, guest_start_ms, evaluation_s))

struct Disk {
  std::string path;
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(Disk, (), (path, free_bytes, total_bytes))

/// Where a server would listen: KernelGYM's port.
struct Port {
  std::string address;
  bool free = false;
};
BOOST_DESCRIBE_STRUCT(Port, (), (address, free))

struct Facts {
  std::string kernel;  ///< "Linux 6.1.0 x86_64"
  Processor processor;
  Memory memory;
  Graphics graphics;
  Python python;
  Trial trial;
  Disk cache;
  Disk temporary;
  Disk shared_memory;
  Port port;
};
BOOST_DESCRIBE_STRUCT(
    Facts,
    (),
    (kernel, processor, memory, graphics, python, trial, cache, temporary, shared_memory, port))

enum class Status : std::uint8_t { ok, warn, fail };
BOOST_DESCRIBE_ENUM(Status, ok, warn, fail)

struct Check {
  std::string area;  ///< "machine", "gpu", "python", "sandbox", "judge".
  std::string name;
  Status status = Status::ok;
  std::string found;
  std::string purpose;                ///< What it is for.
  std::optional<std::string> remedy;  ///< A command, where one mends it.
};
BOOST_DESCRIBE_STRUCT(Check, (), (area, name, status, found, purpose, remedy))

struct Report {
  bool can_judge = false;  ///< Whether the trial was accepted.
  std::vector<Check> checks;
  Facts facts;
};
BOOST_DESCRIBE_STRUCT(Report, (), (can_judge, checks, facts))

struct Options {
  std::string python;          ///< Empty when none was found.
  std::string found_by;        ///< How `python` was found.
  std::string python_problem;  ///< Why none was found.
  std::string guest_dir;       ///< Empty when it was not found.
  std::string guest_problem;   ///< Why it was not found.
  std::string cache_dir;
  std::vector<std::string> environment;  ///< "NAME=value", for asking `python`.
};

/// Looks at the machine; takes seconds, mostly the trial's. Forks, so call it before other
/// threads are started. Nothing that is missing throws: it is a fact.
[[nodiscard]] Facts probe(const Options& options);

/// Judges the facts: pure.
[[nodiscard]] Report assess(Facts facts);

/// Gives the word for a status its colour.
using Paint = std::function<std::string(Status, std::string)>;
/// For people. Ends with a newline.
[[nodiscard]] std::string render(const Report& report, const Paint& paint = {});

}  // namespace drk::doctor
