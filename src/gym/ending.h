// SPDX-License-Identifier: Apache-2.0
// A result of an evaluation as the queue keeps it. Pure.
#pragma once

#include "drk/gym/queue.h"
#include "drk/task/result.h"

#include <string>

namespace drk::gym {

/// What the end of a lease is, by its evaluation.
struct Decision {
  Ending ending;
  bool is_infra = false;  ///< Nothing was found out, and another attempt might.
  std::string outcome;    ///< "accepted", "crashed" ...
  std::string what;       ///< One sentence of an infra fault.
};
[[nodiscard]] Decision decide_ending(const task::Result& result);

/// How the guest of an evaluation died, for statistics: "SIGSEGV", "exit", "timeout", "memory";
/// empty when it lived.
[[nodiscard]] std::string death_cause(const task::Result& result);

/// The stored short form of a task that ended without an evaluation's verdict: fault infra, unless
/// it was cancelled.
[[nodiscard]] std::string result_without_verdict(State state, const std::string& what);

/// The answer's form of a stored short one: with the task's id and times, and the time in the
/// queue as the first span of its timeline.
[[nodiscard]] json::Object render_result(const TaskView& task, const std::string& stored);
/// A text member of such a form, if it is there.
[[nodiscard]] std::optional<std::string> text_in(const json::Object& result, const char* name);

}  // namespace drk::gym
