// SPDX-License-Identifier: Apache-2.0
// What is known of a candidate's process without asking it: its code, its clock, its end, and what
// the driver and the memory's ledger say.
#include "drk/base/json.h"

#include "worker/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

namespace drk::worker {

void Evaluation::note_alteration(const std::string& what) {
  auto& known = observed().alterations;
  if (std::find(known.begin(), known.end(), what) == known.end()) known.push_back(what);
}

void Evaluation::look_at_code() {
  for (const std::string& change : candidate_->code_changes()) note_alteration(change);
}

void Evaluation::hold_clock_against_ours() {
  constexpr double kWaitUs = 2000;
  constexpr int kTimes = 3;  // of which the least counts: a busy machine answers late
  constexpr std::chrono::seconds kLimit(10);
  auto& clock = observed().clock;
  // With its code altered nothing that it says is worth asking for.
  if (!clock || !candidate_->is_alive() || !observed().alterations.empty()) return;
  clock->asked_us = kWaitUs;
  AskOptions options;
  options.stage = task::Stage::time;
  options.limit = kLimit;
  options.stop = options_.stop;
  for (int i = 0; i < kTimes; ++i) {
    const std::int64_t begin_ns = now_ns();
    const auto outcome = candidate_->ask(guest::Wait{kWaitUs}, {}, options);
    const double waited_us = static_cast<double>(now_ns() - begin_ns) * 1e-3;
    if (const auto* failure = std::get_if<task::Failure>(&outcome)) {
      observed().candidate_failure = *failure;
      return;
    }
    clock->waited_us = i == 0 ? waited_us : std::min(clock->waited_us, waited_us);
  }
}

void Evaluation::finish_candidate(bool complete) {
  if (!candidate_) return;
  look_at_code();
  if (complete) hold_clock_against_ours();
  observed().process = candidate_->finish();
  result_.candidate_stdout = candidate_->standard_output();
  result_.candidate_stderr = candidate_->standard_error();
  candidate_.reset();
}

void Evaluation::note_memory_failure() {
  if (is_interpreted()) return;
  for (auto* failure : {&observed().candidate_failure, &observed().reference_failure}) {
    if (!*failure || (*failure)->kind != task::FailureKind::out_of_memory) continue;
    if ((*failure)->cuda.empty()) continue;  // the host's memory
    if (memory_.bytes() < gpu_->capacity_bytes()) {
      wants_ = {GpuSlot::kAllMemory, means_.queues};
    } else {
      constexpr double kGiB = 1 << 30;
      (*failure)->what += fmt::format("; it needs more than the {:.0f} GiB that {} could give it",
                                      static_cast<double>(gpu_->capacity_bytes()) / kGiB,
                                      gpu_->device().name);
    }
  }
}

/// What the driver has reported meanwhile belongs to a failure on the device.
void Evaluation::note_xids() {
  auto& failure = observed().candidate_failure;
  if (is_interpreted() || !failure) return;
  const std::string xids = gpu_->xids_since(begin_ns_);
  if (!xids.empty()) failure->what += "; the driver reports " + xids;
}

}  // namespace drk::worker
