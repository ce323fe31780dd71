// SPDX-License-Identifier: Apache-2.0
// Checks of a task before anything runs.
#include "drk/task/task.h"

#include "drk/task/verdict.h"

#include "code_check.h"
#include "ranges.h"

#include <fmt/format.h>

namespace drk::task {

namespace {

std::optional<std::string> count_problem(const char* name, std::uint32_t value, Range range) {
  if (value >= range.low && value <= range.high) return std::nullopt;
  return fmt::format("{}: {} is not in {} to {}", name, value, range.low, range.high);
}

/// Of what the candidate is held against.
std::optional<std::string> basis_problem(const Task& task) {
  if (task.workflow == Workflow::kernelbench) {
    return code_problem(task.reference_code, "reference");
  }
  if (task.cases_json.size() > kMaxCasesBytes) {
    return fmt::format("cases: {} bytes; {} are allowed", task.cases_json.size(), kMaxCasesBytes);
  }
  if (task.cases_code.empty()) return std::nullopt;
  return code_problem(task.cases_code, "cases_code");
}

}  // namespace

std::optional<Invalidity> find_invalidity(const Task& task) {
  if (auto what = basis_problem(task)) return Invalidity{false, *what};
  if (auto what = code_problem(task.candidate_code, "candidate")) return Invalidity{true, *what};
  for (const auto& what :
       {count_problem("num_correct_trials", task.num_correct_trials, kCorrectTrials),
        count_problem("num_perf_trials", task.num_perf_trials, kPerfTrials),
        count_problem("num_warmup", task.num_warmup, kWarmup)}) {
    if (what) return Invalidity{false, *what};
  }
  return std::nullopt;
}

// NOLINTNEXTLINE(bugprone-exception-escape): an outcome always holds one of its alternatives
const char* outcome_kind(const Verdict& verdict) noexcept {
  return std::visit([](const auto& outcome) { return std::decay_t<decltype(outcome)>::kKind; },
                    verdict.outcome);
}

}  // namespace drk::task
