// SPDX-License-Identifier: Apache-2.0
// Strings, comments, brackets and the statements that define the entry point.
#include "python_scanner.h"

#include "cursor.h"

#include <algorithm>

namespace drk::extract {
namespace {

bool is_name_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         byte >= 0x80;  // names may hold letters beyond ASCII
}

std::string_view leading_name(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_name_char);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Blocks are read as Python whatever they are marked as, so `class X : public Y {` must not count.
bool is_cpp_base_list(std::string_view after_colon) {
  const auto word = leading_name(trim_left(after_colon));
  return word == "public" || word == "private" || word == "protected" || word == "virtual";
}

bool goes_on_as_class(std::string_view rest) {
  if (rest.starts_with(':')) return !is_cpp_base_list(rest.substr(1));
  return rest.starts_with('(') || rest.starts_with('[');
}

bool goes_on_as_function(std::string_view rest) {
  return rest.starts_with('(') || rest.starts_with('[');
}

bool goes_on_as_assignment(std::string_view rest) {
  if (rest.starts_with(':')) return rest.find('=') != std::string_view::npos;  // annotated
  return rest.starts_with('=') && !rest.starts_with("==");
}

}  // namespace

LineFacts PythonScanner::scan_line(std::string_view line) {
  LineFacts facts;
  std::size_t at = 0;
  if (in_string()) {
    at = skip_string(line, 0);
  } else {
    facts.defines_entry = start_line(line);
  }
  continued_ = false;
  while (at < line.size()) {
    const char c = line[at];
    if (c == '#') {
      facts.comment = at;
      return facts;
    }
    if (c == '"' || c == '\'') {
      at = open_string(line, at);
      continue;
    }
    if (c == '`' && !facts.backtick) facts.backtick = at;
    scan_symbol(c);
    ++at;
    if (c == '\\' && at == line.size()) continued_ = true;
    if (c == ';' && depth_ == 0 && top_level_) {
      facts.defines_entry |= defines(trim_left(line.substr(at)));
    }
  }
  return facts;
}

/// Returns whether the line, which starts outside strings, starts with a definition of the entry
/// point.
bool PythonScanner::start_line(std::string_view line) {
  const bool in_column_0 = !line.empty() && !is_blank(line[0]);
  const auto word = leading_name(line);
  if (word == "class" || word == "def") {
    // No bracket can be open here: one that is was never closed. Forget it, or the rest of a
    // candidate that does not compile would go unread.
    depth_ = 0;
    continued_ = false;
  }
  if (depth_ > 0 || continued_) return false;
  top_level_ = in_column_0;
  return in_column_0 && defines(line);
}

bool PythonScanner::defines(std::string_view statement) const {
  const auto word = leading_name(statement);
  const auto rest = trim_left(statement.substr(word.size()));
  if (word == "class" || word == "def") {
    const auto name = leading_name(rest);
    const auto after = trim_left(rest.substr(name.size()));
    return name == entry_point_ && !name.empty() &&
           (word == "class" ? goes_on_as_class(after) : goes_on_as_function(after));
  }
  return word == entry_point_ && !word.empty() && goes_on_as_assignment(rest);
}

std::size_t PythonScanner::open_string(std::string_view line, std::size_t at) {
  quote_ = line[at];
  const auto quotes = line.substr(at, 3);
  triple_ = quotes.size() == 3 && quotes[1] == quote_ && quotes[2] == quote_;
  return skip_string(line, at + (triple_ ? 3 : 1));
}

/// The place after the end of the open string, or the end of the line. A backslash keeps the next
/// character from ending the string, in raw strings too.
std::size_t PythonScanner::skip_string(std::string_view line, std::size_t at) {
  bool escaped_end = false;
  while (at < line.size()) {
    if (line[at] == '\\') {
      escaped_end = at + 1 == line.size();
      at += 2;
      continue;
    }
    const bool ends =
        line[at] == quote_ && (!triple_ || (line.substr(at, 3).size() == 3 &&
                                            line[at + 1] == quote_ && line[at + 2] == quote_));
    if (ends) {
      quote_ = '\0';
      return at + (triple_ ? 3 : 1);
    }
    ++at;
  }
  if (!triple_ && !escaped_end) quote_ = '\0';
  return line.size();
}

void PythonScanner::scan_symbol(char symbol) {
  if (symbol == '(' || symbol == '[' || symbol == '{') ++depth_;
  if ((symbol == ')' || symbol == ']' || symbol == '}') && depth_ > 0) --depth_;
}

bool defines_entry_point(std::string_view text, std::string_view entry_point) {
  PythonScanner scanner(entry_point);
  for (Cursor cursor(text, 1); !cursor.done(); cursor.next_line()) {
    if (scanner.scan_line(cursor.rest()).defines_entry) return true;
  }
  return false;
}

}  // namespace drk::extract
