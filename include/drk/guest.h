// SPDX-License-Identifier: Apache-2.0
// What a worker and the processes it starts say to each other.
//
// Three channels, each a SOCK_SEQPACKET socket whose messages are one JSON object, with descriptors
// beside it where noted:
//   zygote   Hello once; then SpawnRequest -> Spawned or SpawnFailed, in turn.
//   control  of one guest: Request -> Reply. While it works on a request the guest may ask for
//            memory with Allocate, any number of times; the answer is one descriptor.
//   status   of one guest's init: Started once, Ended once.
//
// The candidate shares a process with the guest's core. Whatever comes over `control` after it has
// loaded may have been written by it: the worker checks every byte and believes no judgement in it.
#pragma once

#include "drk/sandbox.h"
#include "drk/task/observations.h"
#include "drk/task/result.h"
#include "drk/value.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace drk::guest {

// --- zygote ---

/// The zygote has imported everything and has one thread.
struct Hello {
  task::Versions versions;
  std::vector<std::string> readable;  ///< What a guest must see of the file tree.
  double import_s = 0;
};
BOOST_DESCRIBE_STRUCT(Hello, (), (versions, readable, import_s))

/// The same for all guests; sent once, before the first SpawnRequest.
struct Configure {
  static constexpr const char* kKind = "configure";
  sandbox::Plan plan;
};
BOOST_DESCRIBE_STRUCT(Configure, (), (plan))

/// With four descriptors: control, status, stdout, stderr.
struct Spawn {
  static constexpr const char* kKind = "spawn";
  sandbox::Cell cell;
};
BOOST_DESCRIBE_STRUCT(Spawn, (), (cell))
using ZygoteRequest = std::variant<Configure, Spawn>;

/// With one descriptor: the pidfd of the guest's init.
struct Spawned {
  static constexpr const char* kKind = "spawned";
  std::int32_t pid = 0;
};
BOOST_DESCRIBE_STRUCT(Spawned, (), (pid))

struct Configured {
  static constexpr const char* kKind = "configured";
};
BOOST_DESCRIBE_STRUCT(Configured, (), ())

struct SpawnFailed {
  static constexpr const char* kKind = "spawn_failed";
  std::string what;
};
BOOST_DESCRIBE_STRUCT(SpawnFailed, (), (what))
using ZygoteReply = std::variant<Configured, Spawned, SpawnFailed>;

// --- status ---

struct Started {
  static constexpr const char* kKind = "started";
  sandbox::Report report;
};
BOOST_DESCRIBE_STRUCT(Started, (), (report))

struct Ended {
  static constexpr const char* kKind = "ended";
  std::int32_t wait_status = 0;      ///< Of the guest, as waitpid gave it.
  std::uint32_t processes_left = 0;  ///< Others still alive in the cell.
  std::uint64_t peak_rss_bytes = 0;
  double cpu_s = 0;
  std::map<std::string, std::uint64_t> refusals;
};
BOOST_DESCRIBE_STRUCT(Ended, (), (wait_status, processes_left, peak_rss_bytes, cpu_s, refusals))
using Status = std::variant<Started, Ended>;

// --- control ---

/// Load the problem. One descriptor: its source.
struct LoadReference {
  static constexpr const char* kKind = "load_reference";
  std::string entry_point;
  std::uint64_t init_seed = 0;
};
BOOST_DESCRIBE_STRUCT(LoadReference, (), (entry_point, init_seed))

/// Load the submission. Two descriptors: its source, and the block of `init_inputs`.
struct LoadCandidate {
  static constexpr const char* kKind = "load_candidate";
  std::string entry_point;
  std::uint64_t init_seed = 0;
  value::Bundle init_inputs;
  /// In place of `init_inputs`: what the submission's get_init_inputs() returns, if it has one.
  bool own_init_inputs = false;
};
BOOST_DESCRIBE_STRUCT(LoadCandidate, (), (entry_point, init_seed, init_inputs, own_init_inputs))

struct MakeInputs {
  static constexpr const char* kKind = "make_inputs";
  std::uint64_t seed = 0;
};
BOOST_DESCRIBE_STRUCT(MakeInputs, (), (seed))

/// Launches of own kernels during a call: executed, or counted and left out.
enum class LaunchMode : std::uint8_t { run, drop };
BOOST_DESCRIBE_ENUM(LaunchMode, run, drop)

/// What newly allocated memory holds during a call: whatever it held, zeros, or all bits set (NaN
/// in every floating type, -1 in integers). A kernel that only adds a zero is found by the zeros.
enum class FreshMemory : std::uint8_t { as_is, zeros, ones };
BOOST_DESCRIBE_ENUM(FreshMemory, as_is, zeros, ones)

/// Call the model. `inputs` is a list of arguments or a dict of keyword arguments. One descriptor:
/// the block of `inputs`, mapped shared and writable. With
/// `same_inputs` there is none, and the model gets the very tensors of the call before, whose
/// memory the worker has meanwhile rewritten: an answer remembered by object, pointer or version is
/// then a wrong one.
struct Call {
  static constexpr const char* kKind = "call";
  bool same_inputs = false;
  value::Bundle inputs;
  std::uint64_t forward_seed = 0;  ///< Set before the first call.
  std::uint32_t calls = 1;
  std::uint32_t min_calls = 1;  ///< Made even when the budget is spent.
  double budget_s = 0;          ///< No further call is begun after this; 0: no budget.
  LaunchMode launches = LaunchMode::run;
  FreshMemory fresh_memory = FreshMemory::as_is;
  bool want_output = true;             ///< Of the last call.
  std::uint64_t max_output_bytes = 0;  ///< More is not sent.
};
BOOST_DESCRIBE_STRUCT(Call,
                      (),
                      (same_inputs,
                       inputs,
                       forward_seed,
                       calls,
                       min_calls,
                       budget_s,
                       launches,
                       fresh_memory,
                       want_output,
                       max_output_bytes))

/// No exec, no fork, no new machine code from here on.
struct Restrict {
  static constexpr const char* kKind = "restrict";
};
BOOST_DESCRIBE_STRUCT(Restrict, (), ())

using Request = std::variant<LoadReference, LoadCandidate, MakeInputs, Call, Restrict>;

/// Answered by the worker with one descriptor: shared memory of `bytes`.
struct Allocate {
  static constexpr const char* kKind = "allocate";
  std::uint64_t bytes = 0;
};
BOOST_DESCRIBE_STRUCT(Allocate, (), (bytes))

struct Loaded {
  static constexpr const char* kKind = "loaded";
  std::vector<std::string> parameters;  ///< "linear.weight: float32[4, 3]"
  value::Bundle init_inputs;            ///< Of a reference; elements in the last allocation.
};
BOOST_DESCRIBE_STRUCT(Loaded, (), (parameters, init_inputs))

struct InputsMade {
  static constexpr const char* kKind = "inputs_made";
  value::Bundle inputs;  ///< Elements in the last allocation.
};
BOOST_DESCRIBE_STRUCT(InputsMade, (), (inputs))

/// A leaf of an output that cannot be sent.
struct BadLeaf {
  task::MismatchKind kind = task::MismatchKind::unsupported;
  std::string path;
  std::string what;  ///< "a Tensor subclass Pending", "a sparse tensor".
};
BOOST_DESCRIBE_STRUCT(BadLeaf, (), (kind, path, what))

struct Called {
  static constexpr const char* kKind = "called";
  std::vector<double> call_us;  ///< By the guest's clock.
  std::vector<task::KernelLaunches> kernels;
  std::uint64_t dropped_launches = 0;
  std::optional<BadLeaf> bad_leaf;  ///< Then there is no output.
  value::Bundle output;             ///< Elements in the last allocation.
};
BOOST_DESCRIBE_STRUCT(Called, (), (call_us, kernels, dropped_launches, bad_leaf, output))

struct Restricted {
  static constexpr const char* kKind = "restricted";
  bool in_force = false;
};
BOOST_DESCRIBE_STRUCT(Restricted, (), (in_force))

/// The request could not be done; the guest lives on.
struct Failed {
  static constexpr const char* kKind = "failed";
  task::FailureKind failure = task::FailureKind::load_error;
  std::string what;
  std::optional<task::PythonError> error;
};
BOOST_DESCRIBE_STRUCT(Failed, (), (failure, what, error))

using Reply = std::variant<Allocate, Loaded, InputsMade, Called, Restricted, Failed>;

}  // namespace drk::guest
