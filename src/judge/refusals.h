// SPDX-License-Identifier: Apache-2.0
// What a system call that the sandbox refused was an attempt at.
#pragma once

#include "drk/task/verdict.h"

#include <string_view>

namespace drk::judge {

struct Attempt {
  task::Reason reason = task::Reason::process_tamper;
  bool harmless = false;  ///< Ordinary libraries make this call too: worth a note at most.
};

/// `call` as Refusal::call has it: "ptrace", "socket(AF_INET)".
[[nodiscard]] Attempt attempt_of(std::string_view call) noexcept;

}  // namespace drk::judge
