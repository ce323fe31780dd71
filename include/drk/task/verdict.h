// SPDX-License-Identifier: Apache-2.0
// What was decided: an outcome, the findings behind it, and whose fault it is.
#pragma once

#include "drk/task/observations.h"

#include <boost/describe.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace drk::task {

/// The closed list of suspicions.
enum class Reason : std::uint8_t {
  decoy_kernel,
  no_candidate_kernel,
  reference_reuse,
  cached_output,
  lazy_output,
  stream_escape,
  thread_escape,
  harness_tamper,
  input_mutation,
  uninitialized_output,
  wrong_output,
  precision_downgrade,
  partial_output,
  phase_detection,
  process_tamper,
  io_tamper,
  filesystem_escape,
  network_escape,
  torch_fallback,
  degenerate_problem,
  timing_implausible,
  crash,
  timeout,
};
BOOST_DESCRIBE_ENUM(Reason,
                    decoy_kernel,
                    no_candidate_kernel,
                    reference_reuse,
                    cached_output,
                    lazy_output,
                    stream_escape,
                    thread_escape,
                    harness_tamper,
                    input_mutation,
                    uninitialized_output,
                    wrong_output,
                    precision_downgrade,
                    partial_output,
                    phase_detection,
                    process_tamper,
                    io_tamper,
                    filesystem_escape,
                    network_escape,
                    torch_fallback,
                    degenerate_problem,
                    timing_implausible,
                    crash,
                    timeout)

enum class Severity : std::uint8_t { note, warn, reject };
BOOST_DESCRIBE_ENUM(Severity, note, warn, reject)

struct Finding {
  Reason reason = Reason::wrong_output;
  Severity severity = Severity::reject;
  std::string evidence;  ///< A sentence that a person can check.
};
BOOST_DESCRIBE_STRUCT(Finding, (), (reason, severity, evidence))

/// Whose fault a result is that is no measured verdict. `infra` is never held against a policy.
enum class Fault : std::uint8_t { candidate, task, infra };
BOOST_DESCRIBE_ENUM(Fault, candidate, task, infra)

/// Times of one model's calls. `clock` says by which clock ("host" in the interpreter).
struct Timing {
  std::string clock;
  std::uint32_t count = 0;
  double median_us = 0;
  double mean_us = 0;
  double std_us = 0;  ///< With count - 1; 0 for a single call.
  double min_us = 0;
  double max_us = 0;
  double p5_us = 0;
  double p95_us = 0;
  double median_low_us = 0;   ///< 95 % confidence interval of the median (order statistics);
  double median_high_us = 0;  ///< the extremes when there are fewer than six calls.
  /// On a GPU: the median of what the host took to queue a call's work. Where it is more than the
  /// device's time, a caller waits for the host.
  std::optional<double> host_us;
  bool host_bound = false;  ///< That is so.
  std::uint32_t gated = 0;  ///< Calls in whose times no gap of the host's is: see TimedCalls.
};
BOOST_DESCRIBE_STRUCT(Timing,
                      (),
                      (clock,
                       count,
                       median_us,
                       mean_us,
                       std_us,
                       min_us,
                       max_us,
                       p5_us,
                       p95_us,
                       median_low_us,
                       median_high_us,
                       host_us,
                       host_bound,
                       gated))

/// What a model's speed is told by: the median; under Protocol::kernelgym the mean.
[[nodiscard]] constexpr double headline_us(const Timing& timing, Protocol protocol) noexcept {
  return protocol == Protocol::kernelgym ? timing.mean_us : timing.median_us;
}

struct Accepted {
  static constexpr const char* kKind = "accepted";
  std::optional<Timing> timing;  ///< Absent when performance was not asked for.
  std::optional<Timing> reference_timing;
  std::optional<double> speedup;   ///< Of the headlines: reference / candidate; only from a GPU.
  std::optional<double> coverage;  ///< 0 to 1; only from a GPU.
  bool checked = true;             ///< False: it ran, but there was no output to compare with.
};
BOOST_DESCRIBE_STRUCT(Accepted, (), (timing, reference_timing, speedup, coverage, checked))

struct WrongOutput {
  static constexpr const char* kKind = "wrong_output";
  Mismatch mismatch;
  std::uint32_t trials_passed = 0;
  std::uint32_t trials_run = 0;
};
BOOST_DESCRIBE_STRUCT(WrongOutput, (), (mismatch, trials_passed, trials_run))

/// The code does not load: syntax, imports, entry point, construction, kernel compilation.
struct CompileFailed {
  static constexpr const char* kKind = "compile_failed";
  Failure failure;
};
BOOST_DESCRIBE_STRUCT(CompileFailed, (), (failure))

/// forward raised.
struct RuntimeFailed {
  static constexpr const char* kKind = "runtime_failed";
  Failure failure;
};
BOOST_DESCRIBE_STRUCT(RuntimeFailed, (), (failure))

struct Crashed {
  static constexpr const char* kKind = "crashed";
  Failure failure;
};
BOOST_DESCRIBE_STRUCT(Crashed, (), (failure))

struct TimedOut {
  static constexpr const char* kKind = "timed_out";
  Failure failure;
};
BOOST_DESCRIBE_STRUCT(TimedOut, (), (failure))

/// Memory, or the volume of its output, ran over a limit.
struct ResourceExhausted {
  static constexpr const char* kKind = "resource_exhausted";
  Failure failure;
};
BOOST_DESCRIBE_STRUCT(ResourceExhausted, (), (failure))

/// Right or not, a finding of severity reject decides.
struct Rejected {
  static constexpr const char* kKind = "rejected";
  Reason reason = Reason::harness_tamper;
};
BOOST_DESCRIBE_STRUCT(Rejected, (), (reason))

/// The request cannot be judged: the candidate's text or the problem is invalid (see the fault).
struct Invalid {
  static constexpr const char* kKind = "invalid";
  std::string what;
  std::optional<Failure> failure;
};
BOOST_DESCRIBE_STRUCT(Invalid, (), (what, failure))

/// We could not find out. Fault infra: no reward.
struct Undecided {
  static constexpr const char* kKind = "undecided";
  std::string what;
  std::optional<Failure> failure;
};
BOOST_DESCRIBE_STRUCT(Undecided, (), (what, failure))

using Outcome = std::variant<Accepted,
                             WrongOutput,
                             CompileFailed,
                             RuntimeFailed,
                             Crashed,
                             TimedOut,
                             ResourceExhausted,
                             Rejected,
                             Invalid,
                             Undecided>;

struct Verdict {
  Outcome outcome;
  std::vector<Finding> findings;
  std::optional<Fault> fault;  ///< Absent for a measured verdict (accepted, wrong, rejected).
};
BOOST_DESCRIBE_STRUCT(Verdict, (), (outcome, findings, fault))

[[nodiscard]] inline bool is_accepted(const Verdict& verdict) noexcept {
  return std::holds_alternative<Accepted>(verdict.outcome);
}
/// "accepted", "wrong_output", ...
[[nodiscard]] const char* outcome_kind(const Verdict& verdict) noexcept;

}  // namespace drk::task
