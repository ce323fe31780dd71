// SPDX-License-Identifier: Apache-2.0
// Line endings and blanks.
#include "cursor.h"

#include <algorithm>

namespace drk::extract {

Cursor::Cursor(std::string_view text, std::size_t line_number)
    : text_(text), line_number_(line_number) {
  find_line_end();
}

void Cursor::next_line() {
  at_ = next_;
  ++line_number_;
  find_line_end();
}

void Cursor::find_line_end() {
  end_ = at_;
  while (end_ < text_.size() && text_[end_] != '\n' && text_[end_] != '\r') ++end_;
  next_ = end_;
  if (next_ < text_.size() && text_[next_] == '\r') ++next_;
  if (next_ < text_.size() && text_[next_] == '\n') ++next_;
}

bool is_blank(std::string_view line) {
  return trim_left(line).empty();
}

std::string_view trim_left(std::string_view line) {
  const auto count = std::min(line.find_first_not_of(" \t"), line.size());
  return line.substr(count);
}

std::string_view trim_right(std::string_view line) {
  return line.substr(0, line.find_last_not_of(" \t") + 1);  // npos + 1 is 0: a line of blanks
}

bool is_blank_text(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace drk::extract
