// SPDX-License-Identifier: Apache-2.0
// What was wrong with a candidate (or a problem), in words.
#pragma once

#include "drk/task/result.h"

#include "terminal.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace drk::cli {

/// The failure that decided, where one did.
[[nodiscard]] const task::Failure* failure_of(const task::Verdict& verdict);

/// Whether `failure` is one of the reference's, so that its lines are lines of the reference.
[[nodiscard]] bool is_of_reference(const task::Result& result) noexcept;

/// Line `line` of `code` with two lines before and after it, numbered, the line itself marked.
/// Empty when there is no such line.
[[nodiscard]] std::string source_excerpt(std::string_view code,
                                         std::size_t line,
                                         const Style& style);

/// Lines that explain a verdict that is not `accepted`, indented by two, each with its newline.
/// `reply_line` is where in a reply the candidate's code began, if it came from one.
[[nodiscard]] std::string render_cause(const task::Result& result,
                                       const Style& style,
                                       std::optional<std::size_t> reply_line);

}  // namespace drk::cli
