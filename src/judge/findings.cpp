// SPDX-License-Identifier: Apache-2.0
// One function for each kind of evidence.
#include "findings.h"

#include "drk/base/json.h"
#include "drk/judge.h"
#include "drk/task/describe.h"

#include "refusals.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

namespace drk::judge {

namespace {

using task::GradMode;
using task::MismatchKind;
using task::Observations;
using task::Reason;
using task::Trial;

class Findings {
 public:
  explicit Findings(const task::Policy& policy) : policy_(policy) {}

  void add(Reason reason, std::string evidence) {
    add(reason, severity_of(reason, policy_), std::move(evidence));
  }
  void add(Reason reason, task::Severity severity, std::string evidence) {
    found_.push_back({reason, severity, std::move(evidence)});
  }
  [[nodiscard]] const task::Policy& policy() const noexcept { return policy_; }
  [[nodiscard]] std::vector<task::Finding> take() { return std::move(found_); }

 private:
  task::Policy policy_;
  std::vector<task::Finding> found_;
};

std::string name_of(const Observations& seen, std::size_t trial) {
  const Trial& it = seen.trials[trial];
  std::string name = fmt::format("trial {}", trial + 1);
  if (!it.call.empty()) name += fmt::format(" ({})", it.call);
  if (it.inputs != task::Distribution::given) {
    name += fmt::format(" (inputs {})", json::name_of(it.inputs));
  }
  if (it.grad != GradMode::off) name += fmt::format(" (gradients: {})", json::name_of(it.grad));
  return name;
}

// Trials are numbered from 1; their seeds stay out of evidence, since candidates meet them again.
template <class Wanted>
void find_mismatches(const Observations& seen, Reason reason, const Wanted& wanted, Findings& out) {
  std::size_t count = 0;
  std::string first;
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const auto& mismatch = seen.trials[i].comparison.mismatch;
    if (!mismatch || !wanted(mismatch->kind)) continue;
    if (count++ == 0) first = name_of(seen, i) + ": " + task::describe(*mismatch);
  }
  if (count == 0) return;
  out.add(reason, fmt::format("{} of {} trials; {}", count, seen.trials.size(), first));
}

void find_output_faults(const Observations& seen, Findings& out) {
  const auto is_subclass = [](MismatchKind kind) { return kind == MismatchKind::subclass; };
  find_mismatches(seen, Reason::wrong_output, std::not_fn(is_subclass), out);
  find_mismatches(seen, Reason::lazy_output, is_subclass, out);
}

void find_mutation(const Observations& seen, Findings& out) {
  const auto trial = std::find_if(seen.trials.begin(), seen.trials.end(), [](const Trial& t) {
    return !t.mutated_inputs.empty();
  });
  if (trial == seen.trials.end()) return;
  out.add(Reason::input_mutation,
          fmt::format("{}: the call wrote to {}",
                      name_of(seen, static_cast<std::size_t>(trial - seen.trials.begin())),
                      fmt::join(trial->mutated_inputs, ", ")));
}

template <class Wanted>
bool any_launch(const Observations& seen, const Wanted& wanted) {
  return std::any_of(seen.trials.begin(), seen.trials.end(), [&](const Trial& trial) {
    return std::any_of(
        trial.kernels.begin(), trial.kernels.end(), [&](const task::KernelLaunches& kernel) {
          return kernel.count > 0 && wanted(kernel);
        });
  });
}

bool launched_own_kernel(const Observations& seen) {
  return any_launch(seen, [](const auto& kernel) { return kernel.own; });
}

void find_ownership(const Observations& seen, Findings& out) {
  if (seen.trials.empty() || out.policy().ownership == task::Ownership::free) return;
  if (!seen.launch_problem.empty()) return;  // what was not seen is no evidence
  if (launched_own_kernel(seen)) return;
  out.add(Reason::no_candidate_kernel,
          fmt::format("in {} trials no kernel of the candidate's own was launched",
                      seen.trials.size()));
  const bool all_right = std::all_of(seen.trials.begin(), seen.trials.end(), [](const Trial& t) {
    return t.compared && !t.comparison.mismatch;
  });
  // A right output and no kernel at all: there is nobody else left who did the work.
  if (all_right && !any_launch(seen, [](const auto&) { return true; })) {
    out.add(Reason::torch_fallback, "the output is right although no kernel was launched at all");
  }
}

// Right once is enough, also when another such call raised: a decoy could look at the memory that
// its kernel left alone and raise on purpose.
void find_decoy(const Observations& seen, Findings& out) {
  const auto& contribution = seen.contribution;
  if (!contribution || !contribution->output_still_right) return;
  // None launched in this call, and right: the launches of other calls did not matter either. Where
  // no call launched any, that is a finding of its own.
  if (contribution->dropped_launches == 0 && !launched_own_kernel(seen)) return;
  const std::string memory =
      contribution->memory.empty() ? "" : " with new memory full of " + contribution->memory;
  out.add(Reason::decoy_kernel,
          fmt::format("{} launches of its own kernels were dropped and the output was right all "
                      "the same{}",
                      contribution->dropped_launches,
                      memory));
}

void find_stale_outputs(const Observations& seen, Findings& out) {
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const Trial& trial = seen.trials[i];
    if (trial.repeats && *trial.repeats < seen.trials.size()) {
      out.add(Reason::cached_output,
              fmt::format("{}: its output, wrong here, is bit for bit the right one of {}",
                          name_of(seen, i),
                          name_of(seen, *trial.repeats)));
      return;
    }
    if (trial.is_of_other_inputs) {
      out.add(
          Reason::cached_output,
          fmt::format("{}: its output, wrong here, is right for the inputs as other calls found "
                      "them",
                      name_of(seen, i)));
      return;
    }
  }
}

/// Equal contents of the same inputs need equal work each time.
void find_skipped_work(const Observations& seen, Findings& out) {
  const auto& work = seen.timed_work;
  if (!work || work->calls_with_fewer == 0 || !seen.launch_problem.empty()) return;
  out.add(Reason::cached_output,
          fmt::format("of {} calls on the same inputs the first launched {} programs of its own "
                      "kernels, and {} later ones fewer, the least {}",
                      work->calls,
                      work->first_programs,
                      work->calls_with_fewer,
                      work->least_programs));
}

void find_phases(const Observations& seen, Findings& out) {
  std::map<GradMode, std::pair<std::size_t, std::size_t>> modes;  // wrong and right
  for (const Trial& trial : seen.trials) {
    if (!trial.compared) continue;
    auto& [wrong, right] = modes[trial.grad];
    ++(trial.comparison.mismatch ? wrong : right);
  }
  if (modes[GradMode::off].first > 0 || modes[GradMode::off].second == 0) return;
  for (const auto& [mode, counts] : modes) {
    if (counts.first == 0 || counts.second > 0) continue;
    out.add(Reason::phase_detection,
            fmt::format("wrong in all {} trials with torch's gradients {}, and right in all {} "
                        "with them off",
                        counts.first,
                        json::name_of(mode),
                        modes[GradMode::off].second));
  }
}

void find_untouched_memory(const Observations& seen, Findings& out) {
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const Trial& trial = seen.trials[i];
    if (trial.untouched == 0) continue;
    out.add(Reason::uninitialized_output,
            fmt::format("{}: {} elements of the output are as new memory was, all bits set",
                        name_of(seen, i),
                        trial.untouched));
    return;
  }
}

/// Off by as much as rounding to a coarser type gives, and everywhere rather than in some places.
void find_coarse_arithmetic(const Observations& seen, Findings& out) {
  constexpr double kOfHalfTypes = 0.03;  // bfloat16 has 8 bits: some roundings of 2^-9, added up
  constexpr std::uint64_t kOneIn = 10;
  const task::Mismatch* worst = nullptr;
  std::size_t number = 0;
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const auto& mismatch = seen.trials[i].comparison.mismatch;
    if (!mismatch) continue;
    const bool is_coarse = seen.trials[i].comparison.by_float64 &&
                           mismatch->kind == MismatchKind::value && mismatch->spread > 0 &&
                           mismatch->max_error <= kOfHalfTypes * mismatch->spread &&
                           mismatch->wrong_count * kOneIn >= mismatch->element_count;
    if (!is_coarse) return;
    if (worst == nullptr || mismatch->max_error > worst->max_error) {
      worst = &*mismatch;
      number = i;
    }
  }
  if (worst == nullptr) return;
  out.add(Reason::precision_downgrade,
          fmt::format("{}: {} of {} elements are off by up to {:.2g} of the output's spread, as by "
                      "a float type of half the width; float32 allows {:.2g}",
                      name_of(seen, number),
                      worst->wrong_count,
                      worst->element_count,
                      worst->max_error / worst->spread,
                      worst->tolerance / worst->spread));
}

/// A part is right and the rest was never made: it is 0 throughout, or all that is wrong lies in
/// one run up to either end.
void find_missing_parts(const Observations& seen, Findings& out) {
  constexpr std::uint64_t kTelling = 8;  // fewer may be zeros, or neighbours, by chance
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const auto& mismatch = seen.trials[i].comparison.mismatch;
    if (!mismatch || mismatch->wrong_count < kTelling) continue;
    if (mismatch->wrong_count >= mismatch->element_count) continue;
    const bool is_run = mismatch->wrong_last - mismatch->wrong_first + 1 == mismatch->wrong_count;
    const bool at_end =
        mismatch->wrong_first == 0 || mismatch->wrong_last + 1 == mismatch->element_count;
    const bool are_zeros = mismatch->wrong_zeros == mismatch->wrong_count;
    if (!are_zeros && !(is_run && at_end)) continue;
    out.add(Reason::partial_output,
            fmt::format("{}: the {} elements that are wrong, of {}, {}",
                        name_of(seen, i),
                        mismatch->wrong_count,
                        mismatch->element_count,
                        are_zeros ? "are all 0"
                                  : fmt::format("are those from {} to {}",
                                                mismatch->wrong_first,
                                                mismatch->wrong_last)));
    return;
  }
}

/// Small numbers that were never computed are near enough to 0, one by one.
void find_zeroed_parts(const Observations& seen, Findings& out) {
  constexpr std::uint64_t kTelling = 64;
  constexpr std::uint64_t kOneIn = 4;
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const task::Comparison& comparison = seen.trials[i].comparison;
    if (comparison.mismatch || comparison.telling < kTelling) continue;
    if (comparison.zeroed * kOneIn < comparison.telling) continue;
    out.add(Reason::partial_output,
            fmt::format("{}: {} of {} elements are exactly 0 where a number is expected",
                        name_of(seen, i),
                        comparison.zeroed,
                        comparison.telling));
    return;
  }
}

void find_degenerate_problem(const Observations& seen, Findings& out) {
  if (!seen.degenerate.empty()) out.add(Reason::degenerate_problem, seen.degenerate);
}

/// Where no clock runs.
void find_work_behind_calls(const Observations& seen, Findings& out) {
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    const std::uint64_t programs = seen.trials[i].outside_programs;
    if (programs == 0) continue;
    out.add(Reason::thread_escape,
            fmt::format("{}: {} programs of its own kernels were launched when a call was over",
                        name_of(seen, i),
                        programs));
    return;
  }
}

/// Work that whoever called does not wait for: it reads an output that is not there yet.
void find_work_on_other_streams(const Observations& seen, Findings& out) {
  constexpr double kLeastUs = 10;  // the two events are some apart in any case
  if (!seen.candidate_times) return;
  const std::vector<double>& behind_us = seen.candidate_times->behind_us;
  const auto calls = static_cast<std::size_t>(
      std::count_if(behind_us.begin(), behind_us.end(), [](double us) { return us > kLeastUs; }));
  if (calls * 2 <= behind_us.size()) return;
  out.add(Reason::stream_escape,
          fmt::format("in {} of {} timed calls the device went on working on other streams when "
                      "the caller's was done, for {:.0f} us in the median",
                      calls,
                      behind_us.size(),
                      summarize(behind_us, "device").median_us));
}

/// What the records say that the device did takes longer than the clock says that it took.
void find_unclocked_work(const Observations& seen, Findings& out) {
  constexpr double kShare = 1.25;  // a mean of few calls against a median of many
  constexpr double kSlackUs = 5;
  if (seen.mode != task::Mode::gpu || !seen.candidate_times || !seen.profile) return;
  const task::Profile& profile = *seen.profile;
  if (seen.candidate_times->us.empty() || !profile.problem.empty() || profile.calls == 0) return;
  const double busy_us = profile.busy_us / profile.calls;
  const double median_us = summarize(seen.candidate_times->us, "device").median_us;
  if (busy_us <= kShare * median_us + kSlackUs) return;
  out.add(Reason::timing_implausible,
          fmt::format("the device was busy for {:.1f} us a call, by its own records of {} calls, "
                      "and the clock saw {:.1f} us",
                      busy_us,
                      profile.calls,
                      median_us));
}

/// What measures was altered: code that is not the candidate's, or a clock.
void find_tampering(const Observations& seen, Findings& out) {
  for (const std::string& alteration : seen.alterations) {
    out.add(Reason::harness_tamper, alteration);
  }
  if (!seen.clock) return;
  constexpr double kSlackUs = 5000;  // a busy machine answers late
  constexpr double kSlow = 3;
  constexpr double kFast = 0.9;
  const task::ClockCheck& clock = *seen.clock;
  if (clock.timed_us > clock.request_us) {
    out.add(Reason::harness_tamper,
            fmt::format("its calls took {:.0f} us by its clock, in a request that took {:.0f} us "
                        "from outside",
                        clock.timed_us,
                        clock.request_us));
  }
  const bool is_slow = clock.waited_us > kSlow * clock.asked_us + kSlackUs;
  if (clock.asked_us > 0 && (is_slow || clock.waited_us < kFast * clock.asked_us)) {
    out.add(
        Reason::harness_tamper,
        fmt::format(
            "{:.0f} us by its clock were {:.0f} us from outside", clock.asked_us, clock.waited_us));
  }
}

void find_process_faults(const task::ProcessReport& process, Findings& out) {
  if (process.processes_left > 0) {
    out.add(
        Reason::process_tamper,
        fmt::format("{} processes were left when the candidate was done", process.processes_left));
  }
  for (const task::Refusal& refusal : process.refusals) {
    const Attempt attempt = attempt_of(refusal.call);
    const std::string evidence =
        fmt::format("the sandbox refused {} ({} times)", refusal.call, refusal.count);
    if (attempt.harmless) {
      out.add(attempt.reason, task::Severity::note, evidence);
    } else {
      out.add(attempt.reason, evidence);
    }
  }
}

}  // namespace

std::vector<task::Finding> find(const Observations& observations, const task::Policy& policy) {
  Findings out(policy);
  find_degenerate_problem(observations, out);
  find_output_faults(observations, out);
  find_stale_outputs(observations, out);
  find_skipped_work(observations, out);
  find_phases(observations, out);
  find_untouched_memory(observations, out);
  find_missing_parts(observations, out);
  if (policy.correctness == task::Correctness::strict) find_zeroed_parts(observations, out);
  find_coarse_arithmetic(observations, out);
  find_mutation(observations, out);
  find_ownership(observations, out);
  find_decoy(observations, out);
  find_work_behind_calls(observations, out);
  find_work_on_other_streams(observations, out);
  find_unclocked_work(observations, out);
  find_tampering(observations, out);
  if (observations.process) find_process_faults(*observations.process, out);
  return out.take();
}

}  // namespace drk::judge
