// SPDX-License-Identifier: Apache-2.0
// Checks of a task before anything runs.
#include "drk/task/task.h"

#include "drk/task/verdict.h"

#include "code_check.h"

#include <fmt/format.h>

namespace drk::task {

namespace {

std::optional<std::string> count_problem(const char* name,
                                         std::uint32_t value,
                                         std::uint32_t low,
                                         std::uint32_t high) {
  if (value >= low && value <= high) return std::nullopt;
  return fmt::format("{}: {} is not in {} to {}", name, value, low, high);
}

}  // namespace

std::optional<Invalidity> find_invalidity(const Task& task) {
  if (auto what = code_problem(task.reference_code, "reference")) return Invalidity{false, *what};
  if (auto what = code_problem(task.candidate_code, "candidate")) return Invalidity{true, *what};
  for (const auto& what : {count_problem("num_correct_trials", task.num_correct_trials, 1, 20),
                           count_problem("num_perf_trials", task.num_perf_trials, 1, 1000),
                           count_problem("num_warmup", task.num_warmup, 0, 100)}) {
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
