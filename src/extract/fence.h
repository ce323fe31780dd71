// SPDX-License-Identifier: Apache-2.0
// Single lines as fences: what opens a block, what closes it, what its info string names.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace drk::extract {

/// What stands before a fence, and so before each line of its block.
struct Container {
  std::size_t quotes = 0;   // `>` markers
  std::size_t columns = 0;  // indentation after them; a list marker counts as indentation
};

struct Opener {
  char mark = '`';         // or '~'
  std::size_t length = 0;  // 3 or more
  Container container;
  bool bare = false;     // no info string
  std::string language;  // as in Extraction
};

/// Reads `line`, from outside any block, as an opening fence.
[[nodiscard]] std::optional<Opener> parse_opener(std::string_view line);

/// Reads the end of `line` as an opening fence marked as Python, with prose before it.
[[nodiscard]] std::optional<Opener> parse_opener_after_prose(std::string_view line);

/// The part of `line` that belongs to a block in `container`, a suffix of it. Absent where the line
/// has left the block quote; a blank line stays in it even without its markers.
[[nodiscard]] std::optional<std::string_view> strip(std::string_view line, Container container);

/// Length of the closing fence at the start of a stripped `line`, with its indentation; absent if
/// the line does not close `opener`.
[[nodiscard]] std::optional<std::size_t> closer_length(std::string_view line, const Opener& opener);

/// Whether `line`, which starts with the fence's mark, is a fence that closes `opener` whatever its
/// indentation.
[[nodiscard]] bool is_closing_run(std::string_view line, const Opener& opener);

[[nodiscard]] bool is_python(std::string_view language);
[[nodiscard]] bool is_markdown(std::string_view language);

}  // namespace drk::extract
