// SPDX-License-Identifier: Apache-2.0
// Fences after CommonMark 0.31 section 4.5, with the leniences listed at extract_code.
#include "fence.h"

#include "cursor.h"

#include <algorithm>
#include <array>

namespace drk::extract {
namespace {

constexpr std::size_t kMinFence = 3;
constexpr std::size_t kMaxCloserIndent = 3;  // columns, beyond the opening fence's own
constexpr std::size_t kTabStop = 4;
constexpr std::size_t kMaxListDigits = 9;
constexpr std::size_t kMaxLanguage = 32;

/// A place in a line, with its column: tabs reach to the next multiple of four.
struct Place {
  std::size_t at = 0;
  std::size_t column = 0;
};

std::size_t column_after(char c, std::size_t column) {
  return c == '\t' ? (column / kTabStop + 1) * kTabStop : column + 1;
}

/// Past the blanks at `place` that end at or before `max_column`; a tab is taken whole or not at
/// all.
Place skip_blanks(std::string_view line, Place place, std::size_t max_column) {
  while (place.at < line.size() && is_blank(line[place.at])) {
    const auto column = column_after(line[place.at], place.column);
    if (column > max_column) break;
    place = {place.at + 1, column};
  }
  return place;
}

Place skip_blanks(std::string_view line, Place place) {
  return skip_blanks(line, place, std::string_view::npos);
}

/// Length of one quote marker at the start of `line` with the blanks around it; 0 if there is none.
std::size_t quote_marker(std::string_view line) {
  const auto at = skip_blanks(line, {}).at;
  if (at == line.size() || line[at] != '>') return 0;
  return at + 1 < line.size() && line[at + 1] == ' ' ? at + 2 : at + 1;
}

/// Length of a list marker (`-`, `*`, `+`, `1.`, `1)`) at `at` that a blank follows; 0 if none.
std::size_t list_marker(std::string_view line, std::size_t at) {
  auto end = at;
  while (end < line.size() && end - at < kMaxListDigits && line[end] >= '0' && line[end] <= '9') {
    ++end;
  }
  const std::string_view last = end > at ? ".)" : "-*+";
  if (end >= line.size() || last.find(line[end]) == std::string_view::npos) return 0;
  ++end;
  return end < line.size() && is_blank(line[end]) ? end - at : 0;
}

std::size_t run_length(std::string_view line, char mark) {
  return std::min(line.find_first_not_of(mark), line.size());
}

bool is_language_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view{"+#._-"}.find(c) != std::string_view::npos;
}

/// `python title=x`, `Python,ignore`, `{.python .numberLines}` and `{python}` all name python.
std::string parse_language(std::string_view info) {
  if (info.starts_with('{')) info.remove_prefix(1);
  if (info.starts_with('.')) info.remove_prefix(1);
  std::string language;
  for (const char c : info.substr(0, kMaxLanguage)) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower == '=') return {};  // an attribute, with no language before it
    if (!is_language_char(lower)) break;
    language += lower;
  }
  return language;
}

/// What follows the run of backticks or tildes is no info string but the next thing in the reply.
bool is_trailing_tag(std::string_view info) {
  return info.starts_with("</") || info.starts_with("<|");
}

/// A fence at the very start of `text`.
std::optional<Opener> parse_run(std::string_view text, Container container) {
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return std::nullopt;
  const char mark = text[0];
  const auto length = run_length(text, mark);
  if (length < kMinFence) return std::nullopt;
  const auto info = trim_left(text.substr(length));
  if (is_trailing_tag(info)) return std::nullopt;
  if (mark == '`' && info.find('`') != std::string_view::npos) return std::nullopt;
  return Opener{.mark = mark,
                .length = length,
                .container = container,
                .bare = info.empty(),
                .language = parse_language(info)};
}

}  // namespace

std::optional<Opener> parse_opener(std::string_view line) {
  Container container;
  while (const auto length = quote_marker(line)) {
    line.remove_prefix(length);
    ++container.quotes;
  }
  auto place = skip_blanks(line, {});
  while (const auto length = list_marker(line, place.at)) {
    place = skip_blanks(line, {place.at + length, place.column + length});
  }
  container.columns = place.column;
  return parse_run(line.substr(place.at), container);
}

std::optional<Opener> parse_opener_after_prose(std::string_view line) {
  const auto last = line.rfind('`');
  if (last == std::string_view::npos || last + 1 < kMinFence) return std::nullopt;
  const auto first = line.find("```");
  if (first == std::string_view::npos || first == 0) return std::nullopt;
  // Only the last run may be a fence: with an earlier one this is a code span.
  if (first + run_length(line.substr(first), '`') != last + 1) return std::nullopt;
  const auto indent = skip_blanks(line, {});
  auto opener = parse_run(line.substr(first), {.quotes = 0, .columns = indent.column});
  const auto info = trim_right(trim_left(line.substr(last + 1)));
  if (!opener || !is_python(opener->language) || info.size() != opener->language.size()) {
    return std::nullopt;
  }
  return opener;
}

std::optional<std::string_view> strip(std::string_view line, Container container) {
  if (container.quotes > 0 && is_blank(line)) return line.substr(line.size());
  for (std::size_t i = 0; i < container.quotes; ++i) {
    const auto length = quote_marker(line);
    if (length == 0) return std::nullopt;
    line.remove_prefix(length);
  }
  return line.substr(skip_blanks(line, {}, container.columns).at);
}

std::optional<std::size_t> closer_length(std::string_view line, const Opener& opener) {
  const auto indent = skip_blanks(line, {}, kMaxCloserIndent).at;
  if (!is_closing_run(line.substr(indent), opener)) return std::nullopt;
  return indent + run_length(line.substr(indent), opener.mark);
}

bool is_closing_run(std::string_view line, const Opener& opener) {
  const auto length = run_length(line, opener.mark);
  if (length < opener.length) return false;
  const auto after = line.substr(length);
  return is_blank(after) || is_trailing_tag(trim_left(after));
}

bool is_python(std::string_view language) {
  if (language == "py" || language == "py3" || language == "triton") return true;
  // Also python3, python3.12 and the like.
  return language.starts_with("python") &&
         language.substr(6).find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_markdown(std::string_view language) {
  return language == "markdown" || language == "md";
}

}  // namespace drk::extract
