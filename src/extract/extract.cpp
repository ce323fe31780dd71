// SPDX-License-Identifier: Apache-2.0
// The face: a reply is walked, a plain file is taken as it is.
#include "drk/extract.h"

#include "candidates.h"
#include "cursor.h"
#include "fence.h"
#include "python_scanner.h"
#include "reasoning.h"
#include "walk.h"

namespace drk::extract {
namespace {

std::string_view without_bom(std::string_view text) {
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  if (text.starts_with(kBom)) text.remove_prefix(kBom.size());
  return text;
}

/// What no line of Python starts with.
bool starts_as_reply(std::string_view line) {
  return parse_opener(line) || leading_opening_tag(line) || leading_closing_tag(line);
}

/// What ends a line of prose in a reply; a comment may end like that as well.
bool ends_as_reply(std::string_view line, const LineFacts& facts) {
  return !facts.comment && (parse_opener_after_prose(line) || trailing_closing_tag(line));
}

}  // namespace

std::string_view to_string(Rule rule) noexcept {
  switch (rule) {
    case Rule::entry_point:
      return "entry_point";
    case Rule::python_fence:
      return "python_fence";
    case Rule::last_fence:
      return "last_fence";
    case Rule::unclosed_fence:
      return "unclosed_fence";
    case Rule::whole_text:
      return "whole_text";
    case Rule::none:
      return "none";
  }
  return "none";
}

bool looks_like_reply(std::string_view text) {
  PythonScanner scanner({});
  bool fence_in_open_string = false;
  for (Cursor cursor(without_bom(text), 1); !cursor.done(); cursor.next_line()) {
    const auto line = cursor.rest();
    const bool starts_in_string = scanner.in_string();
    const auto facts = scanner.scan_line(line);
    const bool starts = starts_as_reply(line);
    const bool ends = ends_as_reply(line, facts);
    if ((starts && !starts_in_string) || (ends && !starts_in_string && !scanner.in_string())) {
      return true;
    }
    if (!starts_in_string) fence_in_open_string = false;
    fence_in_open_string |= starts || ends;
  }
  // A string that never ends is none: quotes in prose, most likely.
  return scanner.in_string() && fence_in_open_string;
}

Extraction extract_code(std::string_view reply, const Options& options) {
  const auto text = without_bom(reply);
  Candidates candidates(options.entry_point);
  if (looks_like_reply(text)) {
    walk_reply(text, options.entry_point, candidates);
  } else {
    candidates.add_text({.bytes = text, .first_line = 1});
  }
  return candidates.choose();
}

}  // namespace drk::extract
