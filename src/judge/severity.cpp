// SPDX-License-Identifier: Apache-2.0
// The one table of what each reason does to a verdict.
#include "drk/base/json.h"
#include "drk/judge.h"

#include <fmt/format.h>

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
  const char* meaning;
};

constexpr Severity kNote = Severity::note;
constexpr Severity kReject = Severity::reject;

constexpr std::array kTable{
    // Whose kernels did the work: no question where anything goes.
    Row{Reason::decoy_kernel,
        kReject,
        kNote,
        "The output is right although the candidate's own kernels did nothing: they do not "
        "matter."},
    Row{Reason::no_candidate_kernel,
        kReject,
        kNote,
        "No kernel of the candidate's own was launched in any trial."},
    Row{Reason::torch_fallback,
        kReject,
        kNote,
        "The output is right and no kernel was launched at all: PyTorch did the work."},
    // The answer is wrong, or is no answer to this input.
    Row{Reason::wrong_output,
        kReject,
        kReject,
        "The output differs from what was expected, in structure, shape, dtype, NaN, infinities or "
        "values."},
    Row{Reason::partial_output,
        kReject,
        kReject,
        "A part of the output is right and the rest was never made: it is wrong and 0, or wrong in "
        "one run up to an end; or a quarter is exactly 0 where small numbers are expected."},
    Row{Reason::uninitialized_output,
        kReject,
        kReject,
        "Elements of a wrong output are as new memory was before the call, all bits set."},
    Row{Reason::precision_downgrade,
        kReject,
        kReject,
        "The errors are as large, and as widespread, as those of a float type of half the width."},
    Row{Reason::reference_reuse,
        kReject,
        kReject,
        "The reference's code or answers were used. Out of reach here: no process of a candidate "
        "holds them."},
    Row{Reason::cached_output,
        kReject,
        kReject,
        "A wrong output is an earlier right one bit for bit, or later calls on equal inputs did "
        "less work than the first."},
    Row{Reason::lazy_output,
        kReject,
        kReject,
        "The output is a Tensor subclass: what it holds would be decided after the call."},
    Row{Reason::phase_detection,
        kReject,
        kReject,
        "Wrong in one of torch's gradient modes alone: the candidate tells phases of the "
        "evaluation apart."},
    // Work hidden from the clock.
    Row{Reason::stream_escape,
        kReject,
        kReject,
        "In most timed calls the device went on working, on streams that the caller's does not "
        "wait "
        "for, when the call was over for the caller."},
    Row{Reason::thread_escape,
        kReject,
        kReject,
        "Own kernels were launched when a call was over, where no clock runs: by a thread, or by "
        "what "
        "the end of a call sets off."},
    Row{Reason::timing_implausible,
        kReject,
        kReject,
        "The clock saw less time than the device, by its records, was busy. (Limits of memory and "
        "arithmetic are not looked at yet.)"},
    // Hands on what is not the candidate's.
    Row{Reason::harness_tamper,
        kReject,
        kReject,
        "Machine code that is not the candidate's own was written to in its process, an operation "
        "of "
        "torch's that the core calls was overridden, or its clock does not run as the worker's."},
    Row{Reason::input_mutation, kReject, kReject, "The call wrote to its inputs."},
    Row{Reason::process_tamper,
        kReject,
        kReject,
        "Processes were left behind, or system calls refused that start, stop or look into "
        "others."},
    Row{Reason::io_tamper,
        kReject,
        kReject,
        "The channel to the worker carried what our core never sends."},
    Row{Reason::filesystem_escape,
        kReject,
        kReject,
        "System calls refused that change the file tree outside the candidate's folder."},
    Row{Reason::network_escape, kReject, kReject, "System calls refused that reach for a network."},
    // It did not come to its end.
    Row{Reason::crash,
        kReject,
        kReject,
        "The code raised, ran out of memory, or its process or device context ended."},
    Row{Reason::timeout, kReject, kReject, "It was stopped at a limit of time."},
    // The problem measures nothing: no candidate can be accepted, and none is at fault.
    Row{Reason::degenerate_problem,
        kReject,
        kReject,
        "An answer that looks at no input is right in every trial: the problem measures nothing. "
        "Nobody's fault but the problem's."},
};
static_assert(kTable.size() == static_cast<std::size_t>(Reason::timeout) + 1,
              "every reason has one row");

}  // namespace

Severity severity_of(Reason reason, const task::Policy& policy) noexcept {
  const auto row = std::find_if(
      kTable.begin(), kTable.end(), [reason](const Row& r) { return r.reason == reason; });
  return policy.ownership == task::Ownership::free ? row->with_free_owners : row->severity;
}

std::string findings_page() {
  std::string page =
      "# Findings\n\n"
      "The closed list of what a verdict may say against a candidate, and what each finding does "
      "under a policy. "
      "`reject`\ndecides the verdict, `note` does not. Each comes with evidence, a sentence that a "
      "person can check. "
      "Where a check could\nnot run, there is no finding: what was not seen is unknown.\n\n"
      "This page is made of the table in `src/judge/severity.cpp`; a test holds it to that "
      "(`DRK_UPDATE_DOCS=1` rewrites it).\n\n"
      "| finding | ownership mixed, strict | ownership free | means |\n"
      "| --- | --- | --- | --- |\n";
  for (const Row& row : kTable) {
    page += fmt::format("| `{}` | {} | {} | {} |\n",
                        json::name_of(row.reason),
                        json::name_of(row.severity),
                        json::name_of(row.with_free_owners),
                        row.meaning);
  }
  return page;
}

}  // namespace drk::judge
