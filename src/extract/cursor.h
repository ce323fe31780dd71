// SPDX-License-Identifier: Apache-2.0
// Reads a text line by line; a copy of a cursor is a place to come back to.
#pragma once

#include <cstddef>
#include <string_view>

namespace drk::extract {

/// A line ends with LF, CRLF or a lone CR, as CommonMark and Python's tokenizer have it.
class Cursor {
 public:
  /// `line_number` is that of the first line of `text`, which must outlive the cursor.
  Cursor(std::string_view text, std::size_t line_number);

  [[nodiscard]] bool done() const { return at_ == text_.size(); }
  /// What is left of the current line, without its ending.
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_, end_ - at_); }
  [[nodiscard]] std::size_t offset() const { return at_; }
  [[nodiscard]] std::size_t line_number() const { return line_number_; }
  /// False only for a last line that the text leaves without an ending.
  [[nodiscard]] bool line_is_ended() const { return next_ > end_; }

  /// Moves on by `count` bytes of the current line, at most rest().size().
  void advance(std::size_t count) { at_ += count; }
  void next_line();

 private:
  void find_line_end();

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;   // of the current line, before its ending
  std::size_t next_ = 0;  // start of the next line
  std::size_t line_number_;
};

[[nodiscard]] inline bool is_blank(char c) {
  return c == ' ' || c == '\t';
}
[[nodiscard]] bool is_blank(std::string_view line);
[[nodiscard]] std::string_view trim_left(std::string_view line);
[[nodiscard]] std::string_view trim_right(std::string_view line);

/// True if no line of `text` has anything but blanks.
[[nodiscard]] bool is_blank_text(std::string_view text);

}  // namespace drk::extract
