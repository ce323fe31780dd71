// SPDX-License-Identifier: Apache-2.0
// The order of precedence: an invalid task, a reference that fails, a candidate that fails, and
// only then what the trials have shown.
#include "drk/judge.h"

#include "findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace drk::judge {

namespace {

using task::Failure;
using task::FailureKind;
using task::Fault;
using task::Finding;
using task::Observations;
using task::Reason;
using task::Verdict;

Verdict invalid_task(const task::Invalidity& invalidity) {
  const Fault fault = invalidity.in_candidate ? Fault::candidate : Fault::task;
  return {task::Invalid{invalidity.what, std::nullopt}, {}, fault};
}

Verdict undecided(std::string what, std::optional<Failure> failure) {
  return {task::Undecided{std::move(what), std::move(failure)}, {}, Fault::infra};
}

/// In kernel_simple the reference's place is taken by the cases.
Verdict failed_reference(const Failure& failure, task::Workflow workflow) {
  const bool has_cases = workflow == task::Workflow::kernel_simple;
  const std::string of_whom = has_cases ? "the cases' code" : "the reference";
  switch (failure.kind) {
    case FailureKind::needs_gpu:
      return undecided(of_whom + " needs a GPU: " + failure.what, failure);
    case FailureKind::protocol_error:
      // The problem's code has no reason to attack us: something of ours is broken.
      return undecided("the process of " + of_whom + " cannot be understood: " + failure.what,
                       failure);
    default:
      return {task::Invalid{of_whom + " fails: " + failure.what, failure}, {}, Fault::task};
  }
}

task::Outcome outcome_of(const Failure& failure) {
  switch (failure.kind) {
    case FailureKind::syntax_error:
    case FailureKind::import_error:
    case FailureKind::load_error:
    case FailureKind::no_entry_point:
    case FailureKind::construct_error:
    case FailureKind::compile_error:
      return task::CompileFailed{failure};
    case FailureKind::out_of_memory:
    case FailureKind::output_flood:
      return task::ResourceExhausted{failure};
    case FailureKind::died:
    case FailureKind::cuda_error:
      return task::Crashed{failure};
    case FailureKind::timed_out:
      return task::TimedOut{failure};
    case FailureKind::protocol_error:
      return task::Rejected{Reason::io_tamper};
    case FailureKind::inputs_error:
    case FailureKind::call_error:
    case FailureKind::needs_gpu:  // behind calls that needed none
      break;
  }
  return task::RuntimeFailed{failure};
}

/// An exception that leaves the candidate's code ends the run as surely as a signal does.
std::optional<Reason> reason_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::timed_out:
      return Reason::timeout;
    case FailureKind::protocol_error:
      return Reason::io_tamper;
    case FailureKind::load_error:
    case FailureKind::construct_error:
    case FailureKind::died:
    case FailureKind::cuda_error:
    case FailureKind::inputs_error:
    case FailureKind::call_error:
    case FailureKind::needs_gpu:
    case FailureKind::out_of_memory:
    case FailureKind::output_flood:
      return Reason::crash;
    default:
      return std::nullopt;
  }
}

bool rejects(const Finding& finding) noexcept {
  return finding.severity == task::Severity::reject;
}

/// Cheating that decides even where the output is wrong: what was compared is then not to be
/// trusted, or was an attempt rather than a mistake.
bool outranks_wrong_output(const Finding& finding) noexcept {
  constexpr std::array kReasons{Reason::input_mutation,
                                Reason::io_tamper,
                                Reason::process_tamper,
                                Reason::harness_tamper,
                                Reason::lazy_output};
  return rejects(finding) &&
         std::find(kReasons.begin(), kReasons.end(), finding.reason) != kReasons.end();
}

task::WrongOutput wrong_output_of(const std::vector<task::Trial>& trials) {
  task::WrongOutput outcome;
  bool is_first = true;
  for (const task::Trial& trial : trials) {
    if (!trial.compared) continue;
    ++outcome.trials_run;
    const auto& mismatch = trial.comparison.mismatch;
    if (!mismatch) ++outcome.trials_passed;
    if (!mismatch || mismatch->kind == task::MismatchKind::subclass) continue;
    if (std::exchange(is_first, false)) outcome.mismatch = *mismatch;
  }
  return outcome;
}

/// The share of the kernels' time that is the candidate's own; absent where records are missing or
/// nothing ran.
std::optional<double> time_coverage(const task::Profile& profile) {
  const auto share = task::share_of(profile);
  if (!share || share->all_us <= 0) return std::nullopt;
  return share->own_us / share->all_us;
}

task::Timing timing_of(const task::TimedCalls& calls, const std::string& clock) {
  task::Timing timing = summarize(calls.us, clock);
  if (!calls.host_us.empty()) {
    timing.host_us = summarize(calls.host_us, "host").median_us;
    timing.host_bound = *timing.host_us > timing.median_us;
  }
  timing.gated = static_cast<std::uint32_t>(std::min<std::uint64_t>(calls.gated, timing.count));
  return timing;
}

/// No number is a claim about speed unless a GPU gave it.
task::Accepted accepted(const Observations& observations, const task::Policy& policy) {
  const bool on_gpu = observations.mode == task::Mode::gpu;
  const std::string clock = on_gpu ? "device" : "host";
  task::Accepted outcome;
  outcome.checked = std::any_of(observations.trials.begin(),
                                observations.trials.end(),
                                [](const task::Trial& trial) { return trial.compared; });
  const auto summary = [&](const std::optional<task::TimedCalls>& calls) {
    const bool has_any = calls && !calls->us.empty();
    return has_any ? std::optional(timing_of(*calls, clock)) : std::nullopt;
  };
  outcome.timing = summary(observations.candidate_times);
  outcome.reference_timing = summary(observations.reference_times);
  if (on_gpu && outcome.timing && outcome.reference_timing && outcome.timing->median_us > 0) {
    outcome.speedup = headline_us(*outcome.reference_timing, policy.protocol) /
                      headline_us(*outcome.timing, policy.protocol);
  }
  if (observations.profile) outcome.coverage = time_coverage(*observations.profile);
  return outcome;
}

Verdict measured(const Observations& observations, const task::Policy& policy) {
  if (observations.trials.empty()) return undecided("no trial was run", std::nullopt);
  Verdict verdict;
  verdict.findings = find(observations, policy);
  const auto& findings = verdict.findings;
  const auto cheating = std::find_if(findings.begin(), findings.end(), outranks_wrong_output);
  const auto wrong = std::find_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return rejects(finding) && finding.reason == Reason::wrong_output;
  });
  const auto rejecting = std::find_if(findings.begin(), findings.end(), rejects);
  if (!observations.degenerate.empty()) {
    // Nothing that follows could tell a good answer from a bad one.
    verdict.outcome = task::Rejected{Reason::degenerate_problem};
    verdict.fault = Fault::task;
  } else if (cheating != findings.end()) {
    verdict.outcome = task::Rejected{cheating->reason};
  } else if (wrong != findings.end()) {
    verdict.outcome = wrong_output_of(observations.trials);
  } else if (rejecting != findings.end()) {
    verdict.outcome = task::Rejected{rejecting->reason};
  } else {
    verdict.outcome = accepted(observations, policy);
  }
  return verdict;
}

/// Failures in which a machine lacks something, which a candidate can bring about at will.
bool blames_the_machine(const Failure& failure) noexcept {
  return failure.kind == FailureKind::needs_gpu;
}

bool shows_a_mismatch(const Observations& observations) noexcept {
  return std::any_of(
      observations.trials.begin(), observations.trials.end(), [](const task::Trial& trial) {
        return trial.comparison.mismatch.has_value();
      });
}

Verdict failed_candidate(const Failure& failure,
                         const Observations& observations,
                         const task::Policy& policy) {
  if (blames_the_machine(failure)) {
    // Else whoever is wrong would only have to ask for a GPU afterwards to be undecided.
    if (shows_a_mismatch(observations)) return measured(observations, policy);
    if (observations.trials.empty()) {
      return undecided("the candidate needs a GPU: " + failure.what, failure);
    }
  }
  Verdict verdict = {outcome_of(failure), {}, Fault::candidate};
  if (std::holds_alternative<task::Rejected>(verdict.outcome)) verdict.fault.reset();
  if (const auto reason = reason_of(failure.kind)) {
    verdict.findings.push_back({*reason, severity_of(*reason, policy), failure.what});
  }
  // What it had done before it failed stays on record.
  std::vector<Finding> seen = find(observations, policy);
  std::move(seen.begin(), seen.end(), std::back_inserter(verdict.findings));
  return verdict;
}

}  // namespace

Verdict decide(const Observations& observations, const task::Task& task) {
  if (observations.invalidity) return invalid_task(*observations.invalidity);
  if (observations.reference_failure) {
    return failed_reference(*observations.reference_failure, task.workflow);
  }
  if (observations.candidate_failure) {
    return failed_candidate(*observations.candidate_failure, observations, task.policy);
  }
  return measured(observations, task.policy);
}

}  // namespace drk::judge
