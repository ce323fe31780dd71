// SPDX-License-Identifier: Apache-2.0
// Reads Python line by line, knowing just enough to tell code from strings and comments.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace drk::extract {

struct LineFacts {
  bool defines_entry = false;           // a top-level class, def or assignment of the entry point
  std::optional<std::size_t> backtick;  // the first outside strings and comments
  std::optional<std::size_t> comment;   // its '#'
};

/// Takes any text: what is no Python is read as if it were. A string in single quotes ends with its
/// line, so an apostrophe in prose costs no more than that. Quotes nested in an f-string's braces
/// (PEP 701) are read as ends and starts of strings, which comes out even.
/// An annotated assignment (`X: T = ...`) is known by a '=' on its first line.
class PythonScanner {
 public:
  /// `entry_point` must outlive the scanner; an empty one is never defined.
  explicit PythonScanner(std::string_view entry_point) : entry_point_(entry_point) {}

  LineFacts scan_line(std::string_view line);

  /// Whether the next line starts inside a string.
  [[nodiscard]] bool in_string() const { return quote_ != '\0'; }

 private:
  [[nodiscard]] bool start_line(std::string_view line);
  [[nodiscard]] bool defines(std::string_view statement) const;
  [[nodiscard]] std::size_t open_string(std::string_view line, std::size_t at);
  [[nodiscard]] std::size_t skip_string(std::string_view line, std::size_t at);
  void scan_symbol(char symbol);

  std::string_view entry_point_;
  char quote_ = '\0';       // of the open string, or none
  bool triple_ = false;     // the open string has three quotes
  bool continued_ = false;  // the last line ended in a backslash
  bool top_level_ = false;  // the current statement started in column 0
  std::size_t depth_ = 0;   // open brackets
};

/// Whether `text`, read as Python, defines `entry_point` at top level.
[[nodiscard]] bool defines_entry_point(std::string_view text, std::string_view entry_point);

}  // namespace drk::extract
