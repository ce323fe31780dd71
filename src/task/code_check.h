// SPDX-License-Identifier: Apache-2.0
// What makes a text no code that can be judged.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drk::task {

/// Characters (code points) of well-formed UTF-8.
[[nodiscard]] std::size_t character_count(std::string_view utf8);

/// "<name>: NUL byte in line 3", if the code is invalid: bytes that are no UTF-8, NUL, or too few
/// or too many characters (without blanks at either end).
[[nodiscard]] std::optional<std::string> code_problem(const std::string& code,
                                                      const std::string& name);

}  // namespace drk::task
