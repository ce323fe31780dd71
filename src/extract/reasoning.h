// SPDX-License-Identifier: Apache-2.0
// The tags that models put around their reasoning, found in a single line.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace drk::extract {

/// Tags are <think>, <thinking> and <reasoning>, in any case and with blanks before their '>'. One
/// kind may close another: a mismatch is the model's slip, and reading on would cost the whole
/// answer.

/// Length of an opening tag at the start of `line`, with the blanks before it.
[[nodiscard]] std::optional<std::size_t> leading_opening_tag(std::string_view line);

/// Length of a closing tag at the start of `line`, with the blanks before it.
[[nodiscard]] std::optional<std::size_t> leading_closing_tag(std::string_view line);

/// Offset of a closing tag that ends `line`, up to blanks.
[[nodiscard]] std::optional<std::size_t> trailing_closing_tag(std::string_view line);

/// Offset just past the first closing tag in `line`. A tag right after a backtick or a quote is
/// spoken of, not used.
[[nodiscard]] std::optional<std::size_t> past_closing_tag(std::string_view line);

}  // namespace drk::extract
