// SPDX-License-Identifier: Apache-2.0
// A result for people: the verdict in one line, its cause, and what was measured.
#pragma once

#include "drk/task/result.h"

#include "terminal.h"

#include <cstddef>
#include <optional>
#include <string>

namespace drk::cli {

/// What the program ends with: kAccepted, kRejected (also for a bad problem), kUnusable (infra).
[[nodiscard]] int exit_code_of(const task::Verdict& verdict) noexcept;

/// "REJECTED: wrong output (2 of 3 trials passed)"
[[nodiscard]] std::string headline(const task::Result& result, const Style& style);

/// The whole page, headline included. `reply_line`: see render_cause.
[[nodiscard]] std::string render_verdict(const task::Result& result,
                                         const Style& style,
                                         std::optional<std::size_t> reply_line = {});

}  // namespace drk::cli
