// SPDX-License-Identifier: Apache-2.0
// What a worker and the processes it starts say to each other.
//
// Three channels, each a SOCK_SEQPACKET socket whose messages are one JSON object, with descriptors
// beside it where noted:
//   zygote   Hello once; then SpawnRequest -> Spawned or SpawnFailed, in turn.
//   control  of one guest: Request -> Reply. While it works on a request the guest may ask for
//            memory with Allocate (the answer is one descriptor), and have code compiled with Build
//            (the answer is Built, with one descriptor when there is a product).
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
#include <string_view>
#include <variant>
#include <vector>

namespace drk::guest {

// --- zygote ---

/// The compilers that the zygote found, by absolute path; empty where there is none.
struct Toolchain {
  std::string ptxas;            ///< Triton's.
  std::string ptxas_blackwell;  ///< Triton's, for compute capability 10.0 and on.
  std::string cc;
  std::string cxx;
  std::string cuda_home;  ///< The toolkit: has bin/nvcc.
};
BOOST_DESCRIBE_STRUCT(Toolchain, (), (ptxas, ptxas_blackwell, cc, cxx, cuda_home))

/// The zygote has imported everything and has one thread.
struct Hello {
  task::Versions versions;
  std::vector<std::string> readable;  ///< What a guest must see of the file tree.
  Toolchain toolchain;
  double import_s = 0;
};
BOOST_DESCRIBE_STRUCT(Hello, (), (versions, readable, toolchain, import_s))

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
//
// Requests name the reply that answers them. Failed may answer any.

/// Make this guest's context on its GPU, which is device 0 here, and prove that it works.
struct Prepare {
  using Answer = struct Prepared;
  static constexpr const char* kKind = "prepare";
  /// That the context's streams share: work of more streams than that may wait for other streams'.
  /// Each takes the driver tens of milliseconds to make. 0: as the driver does by itself.
  std::uint32_t hardware_queues = 0;
};
BOOST_DESCRIBE_STRUCT(Prepare, (), (hardware_queues))

/// The device still answers: a fill and a read-back.
struct Probe {
  using Answer = struct Probed;
  static constexpr const char* kKind = "probe";
};
BOOST_DESCRIBE_STRUCT(Probe, (), ())

/// The last request before any code is loaded: open /proc/self/maps, pagemap and mem for reading,
/// and let none but the core's own code use this channel from now on.
struct Settle {
  using Answer = struct Settled;
  static constexpr const char* kKind = "settle";
};
BOOST_DESCRIBE_STRUCT(Settle, (), ())

/// Let so much time pass, by this guest's clock. The worker holds its own against it.
struct Wait {
  using Answer = struct Waited;
  static constexpr const char* kKind = "wait";
  double us = 0;
};
BOOST_DESCRIBE_STRUCT(Wait, (), (us))

/// Does a submission parse? One descriptor: its source. Nothing of it runs.
struct CheckSyntax {
  using Answer = struct SyntaxChecked;
  static constexpr const char* kKind = "check_syntax";
};
BOOST_DESCRIBE_STRUCT(CheckSyntax, (), ())

/// Load the problem. One descriptor: its source.
struct LoadReference {
  using Answer = struct Loaded;
  static constexpr const char* kKind = "load_reference";
  std::string entry_point;
  std::uint64_t init_seed = 0;
  bool compile = false;  ///< Keep the model under torch.compile as well, for Call::compiled.
};
BOOST_DESCRIBE_STRUCT(LoadReference, (), (entry_point, init_seed, compile))

/// Load the submission. Two descriptors: its source, and the block of `init_inputs`.
struct LoadCandidate {
  using Answer = struct Loaded;
  static constexpr const char* kKind = "load_candidate";
  std::string entry_point;
  std::uint64_t init_seed = 0;
  value::Bundle init_inputs;
  /// In place of `init_inputs`: what the submission's get_init_inputs() returns, if it has one.
  bool own_init_inputs = false;
};
BOOST_DESCRIBE_STRUCT(LoadCandidate, (), (entry_point, init_seed, init_inputs, own_init_inputs))

struct MakeInputs {
  using Answer = struct InputsMade;
  static constexpr const char* kKind = "make_inputs";
  std::uint64_t seed = 0;
  task::Distribution distribution = task::Distribution::given;
};
BOOST_DESCRIBE_STRUCT(MakeInputs, (), (seed, distribution))

/// Launches of own kernels during a call: executed, or counted and left out.
enum class LaunchMode : std::uint8_t { run, drop };
BOOST_DESCRIBE_ENUM(LaunchMode, run, drop)

/// What newly allocated memory holds during a call: whatever it held, zeros, or all bits set (NaN
/// in every floating type, -1 in integers). A kernel that only adds a zero is found by the zeros.
enum class FreshMemory : std::uint8_t { as_is, zeros, ones };
BOOST_DESCRIBE_ENUM(FreshMemory, as_is, zeros, ones)

/// run: the host's clock suffices. time: by device events. profile: with a record of every kernel.
/// Without a GPU all are run.
enum class CallPurpose : std::uint8_t { run, time, profile };
BOOST_DESCRIBE_ENUM(CallPurpose, run, time, profile)

/// Call the model. `inputs` is a list of arguments or a dict of keyword arguments. One descriptor:
/// the block of `inputs`, mapped shared and writable. With
/// `same_inputs` there is none, and the model gets the very tensors of the call before, whose
/// memory the worker has meanwhile rewritten: an answer remembered by object, pointer or version is
/// then a wrong one.
struct Call {
  using Answer = struct Called;
  static constexpr const char* kKind = "call";
  bool same_inputs = false;
  bool compiled = false;  ///< The reference's model under torch.compile.
  bool exact = false;     ///< The reference's model and the inputs in float64.
  task::GradMode grad = task::GradMode::off;
  value::Bundle inputs;
  std::uint64_t forward_seed = 0;  ///< Set before the first call.
  std::uint32_t warmup_calls = 0;  ///< Before the first that counts.
  double warmup_s = 0;             ///< And more of them until so much time has passed,
  double settle_s = 0;             ///< and until times are stable, but no longer than this.
  std::uint32_t calls = 1;
  std::uint32_t min_calls = 1;  ///< Made even when the budget is spent.
  double budget_s = 0;          ///< No further call is begun after this; 0: no budget.
  double enough_s = 0;          ///< Nor after this, once the median is known well; 0: never.
  LaunchMode launches = LaunchMode::run;
  FreshMemory fresh_memory = FreshMemory::as_is;
  CallPurpose purpose = CallPurpose::run;
  task::Protocol protocol = task::Protocol::cold;  ///< Of what is timed on a GPU.
  bool want_output = true;                         ///< Of the last call.
  /// Of the calls that count, from 0, in order: those whose outputs are wanted, in place of the
  /// last one's.
  std::vector<std::uint32_t> sampled_calls;
  /// One for each call, or none: what value::few_changes puts into its inputs, in place, and takes
  /// away after; 0: nothing. Whoever would know whether it has met an input before must read it
  /// all.
  std::vector<std::uint64_t> change_seeds;
  std::uint64_t max_output_bytes = 0;  ///< More is not sent.
};
BOOST_DESCRIBE_STRUCT(Call,
                      (),
                      (same_inputs,
                       compiled,
                       exact,
                       grad,
                       inputs,
                       forward_seed,
                       warmup_calls,
                       warmup_s,
                       settle_s,
                       calls,
                       min_calls,
                       budget_s,
                       enough_s,
                       launches,
                       fresh_memory,
                       purpose,
                       protocol,
                       want_output,
                       sampled_calls,
                       change_seeds,
                       max_output_bytes))

/// No exec, no fork, no new machine code from here on.
struct Restrict {
  using Answer = struct Restricted;
  static constexpr const char* kKind = "restrict";
};
BOOST_DESCRIBE_STRUCT(Restrict, (), ())

struct BuildFile {
  std::string name;  ///< Relative to the folder that the tools run in: see is_plain_name.
  std::uint64_t bytes = 0;
};
BOOST_DESCRIBE_STRUCT(BuildFile, (), (name, bytes))
inline constexpr std::size_t kMaxBuildFiles = 2000;
inline constexpr std::uint64_t kMaxBuildBytes = std::uint64_t{256} << 20;

/// Names a file below a folder and nothing else: relative, without "..", "." or empty parts.
[[nodiscard]] constexpr bool is_plain_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > 1000 || name.find('\0') != name.npos) return false;
  for (;;) {
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    if (slash == name.npos) return true;
    name.remove_prefix(slash + 1);
  }
}

struct ToolCommand {
  std::vector<std::string> arguments;  ///< arguments[0] is the program's absolute path.
  /// Where not empty: run in its place when `arguments` failed, whose log is then dropped.
  std::vector<std::string> otherwise;
};
BOOST_DESCRIBE_STRUCT(ToolCommand, (), (arguments, otherwise))

struct ToolStep {
  std::vector<ToolCommand> commands;  ///< Side by side.
};
BOOST_DESCRIBE_STRUCT(ToolStep, (), (commands))

/// Of a toolbox, a guest that may execute programs: write files, run commands, hand over what they
/// made. One descriptor: the files, one behind the other.
struct RunTools {
  using Answer = struct ToolsRan;
  static constexpr const char* kKind = "run_tools";
  std::vector<BuildFile> files;
  std::vector<ToolStep> steps;  ///< One after the other, up to the first in which one fails.
  std::string path;             ///< Where the tools find others, as in PATH.
  std::string product;          ///< The file that the last step makes.
  std::uint64_t max_product_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(RunTools, (), (files, steps, path, product, max_product_bytes))

using Request = std::variant<Prepare,
                             Probe,
                             Settle,
                             Wait,
                             CheckSyntax,
                             LoadReference,
                             LoadCandidate,
                             MakeInputs,
                             Call,
                             Restrict,
                             RunTools>;

/// Answered by the worker with one descriptor: shared memory of `bytes`.
struct Allocate {
  static constexpr const char* kKind = "allocate";
  std::uint64_t bytes = 0;
};
BOOST_DESCRIBE_STRUCT(Allocate, (), (bytes))

/// What makes a product of the files of a Build, and what the arguments are.
///
///   ptxas      "ptxas" or "ptxas-blackwell", then its arguments, without -o
///   c_module   the C compiler's arguments, without -o; the product is a shared library
///   extension  ":sources" and the files to compile (.cu by nvcc, others by the C++ compiler),
///              ":cxx", ":cuda" and ":link" and the flags of each; a shared library for Python
enum class Tool : std::uint8_t { ptxas, c_module, extension };
BOOST_DESCRIBE_ENUM(Tool, ptxas, c_module, extension)

/// Have something compiled outside. The last allocation, which the guest may no longer have mapped,
/// holds the files, one behind the other; there is none when they are empty.
struct Build {
  static constexpr const char* kKind = "build";
  Tool tool = Tool::ptxas;
  std::vector<std::string> arguments;
  std::vector<BuildFile> files;
};
BOOST_DESCRIBE_STRUCT(Build, (), (tool, arguments, files))

/// The worker's answer to Build. With one descriptor, the product, when `exit_code` is 0.
struct Built {
  std::int32_t exit_code = 0;
  std::uint64_t product_bytes = 0;
  std::string log;  ///< What the tools printed; of a long one its beginning and its end.
};
BOOST_DESCRIBE_STRUCT(Built, (), (exit_code, product_bytes, log))

struct Prepared {
  static constexpr const char* kKind = "prepared";
  std::string launch_problem;  ///< Not empty: launches cannot be watched, and why.
  std::string drop_problem;    ///< Not empty: LaunchMode::drop does nothing, and why.
};
BOOST_DESCRIBE_STRUCT(Prepared, (), (launch_problem, drop_problem))

struct Probed {
  static constexpr const char* kKind = "probed";
};
BOOST_DESCRIBE_STRUCT(Probed, (), ())

/// Three descriptors: maps, pagemap, mem; none where they cannot be opened. What is not so, and
/// why.
struct Settled {
  static constexpr const char* kKind = "settled";
  std::string memory_problem;
  std::string channel_problem;
};
BOOST_DESCRIBE_STRUCT(Settled, (), (memory_problem, channel_problem))

struct Waited {
  static constexpr const char* kKind = "waited";
};
BOOST_DESCRIBE_STRUCT(Waited, (), ())

struct SyntaxChecked {
  static constexpr const char* kKind = "syntax_checked";
};
BOOST_DESCRIBE_STRUCT(SyntaxChecked, (), ())

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

/// Of the values of one message, which must hold the rest of a request or reply as well.
inline constexpr std::size_t kMaxDescriptionBytes = std::size_t{128} * 1024;

/// Where counting them ends.
constexpr std::uint32_t kManyStreams = 4;

struct Called {
  static constexpr const char* kKind = "called";
  task::TimedCalls times;        ///< Of all calls; only those that are timed by the device's clock.
  std::uint64_t peak_bytes = 0;  ///< Of device memory that torch held during the request.
  std::optional<task::Profile> profile;
  std::vector<task::KernelLaunches> kernels;
  std::uint32_t streams = 0;  ///< That kernels were launched on, up to kManyStreams.
  std::uint64_t dropped_launches = 0;
  std::uint64_t kept_launches = 0;  ///< Own ones that should have been dropped and ran: in a graph.
  /// Of all calls on the inputs, those before the first that counts, too, but not of changed ones.
  std::optional<task::RepeatedWork> work;
  std::optional<BadLeaf> bad_leaf;  ///< Then there is no output.
  /// Programs of own kernels that were launched behind a call: where no clock runs.
  std::uint64_t outside_programs = 0;
  std::vector<std::string> overrides;  ///< Of torch's operations that the core itself calls.
  /// Elements in the last allocation. Where calls are sampled, a list: of each that was made, as it
  /// was when that call was over.
  value::Bundle output;
};
BOOST_DESCRIBE_STRUCT(Called,
                      (),
                      (times,
                       peak_bytes,
                       profile,
                       kernels,
                       streams,
                       dropped_launches,
                       kept_launches,
                       work,
                       bad_leaf,
                       outside_programs,
                       overrides,
                       output))

struct ToolsRan {
  static constexpr const char* kKind = "tools_ran";
  std::int32_t exit_code = 0;       ///< Of the first command that failed; 128 + signal if killed.
  std::uint64_t product_bytes = 0;  ///< In the last allocation, when `exit_code` is 0.
  std::string log;                  ///< See Built.
  std::vector<double> command_s;    ///< In the order in which they were begun.
};
BOOST_DESCRIBE_STRUCT(ToolsRan, (), (exit_code, product_bytes, log, command_s))

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
  std::string cuda;  ///< See task::Failure.
};
BOOST_DESCRIBE_STRUCT(Failed, (), (failure, what, error, cuda))

using Reply = std::variant<Allocate,
                           Build,
                           Prepared,
                           Probed,
                           Settled,
                           Waited,
                           SyntaxChecked,
                           Loaded,
                           InputsMade,
                           Called,
                           Restricted,
                           ToolsRan,
                           Failed>;

}  // namespace drk::guest
