// SPDX-License-Identifier: Apache-2.0
// The one table of what each reason does to a verdict.
#include "drk/judge.h"

#include <algorithm>
#include <array>

namespace drk::judge {

namespace {

using task::Reason;
using task::Severity;

struct Row {
  Reason reason;
  Severity severity;          ///< ownership = mixed or strict
  Severity with_free_owners;  ///< ownership = free
};

constexpr Severity kNote = Severity::note;
constexpr Severity kReject = Severity::reject;

constexpr std::array kTable{
    // Whose kernels did the work: no question where anything goes.
    Row{Reason::decoy_kernel, kReject, kNote},
    Row{Reason::no_candidate_kernel, kReject, kNote},
    Row{Reason::torch_fallback, kReject, kNote},
    // The answer is wrong, or is no answer to this input.
    Row{Reason::wrong_output, kReject, kReject},
    Row{Reason::partial_output, kReject, kReject},
    Row{Reason::uninitialized_output, kReject, kReject},
    Row{Reason::precision_downgrade, kReject, kReject},
    Row{Reason::reference_reuse, kReject, kReject},
    Row{Reason::cached_output, kReject, kReject},
    Row{Reason::lazy_output, kReject, kReject},
    Row{Reason::phase_detection, kReject, kReject},
    // Work hidden from the clock.
    Row{Reason::stream_escape, kReject, kReject},
    Row{Reason::thread_escape, kReject, kReject},
    Row{Reason::timing_implausible, kReject, kReject},
    // Hands on what is not the candidate's.
    Row{Reason::harness_tamper, kReject, kReject},
    Row{Reason::input_mutation, kReject, kReject},
    Row{Reason::process_tamper, kReject, kReject},
    Row{Reason::io_tamper, kReject, kReject},
    Row{Reason::filesystem_escape, kReject, kReject},
    Row{Reason::network_escape, kReject, kReject},
    // It did not come to its end.
    Row{Reason::crash, kReject, kReject},
    Row{Reason::timeout, kReject, kReject},
    // The problem measures nothing: no candidate can be accepted, and none is at fault.
    Row{Reason::degenerate_problem, kReject, kReject},
};
static_assert(kTable.size() == static_cast<std::size_t>(Reason::timeout) + 1,
              "every reason has one row");

}  // namespace

Severity severity_of(Reason reason, const task::Policy& policy) noexcept {
  const auto row = std::find_if(
      kTable.begin(), kTable.end(), [reason](const Row& r) { return r.reason == reason; });
  return policy.ownership == task::Ownership::free ? row->with_free_owners : row->severity;
}

}  // namespace drk::judge
