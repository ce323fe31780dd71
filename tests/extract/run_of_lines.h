// SPDX-License-Identifier: Apache-2.0
// What every extraction has in common: its code is a run of the reply's lines.
#pragma once

#include "drk/extract.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace drk::extract {

/// Lines of `text` without their endings: LF, CRLF or CR.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && text[i] != '\r') continue;
    lines.push_back(text.substr(start, i - start));
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
    start = i + 1;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

/// Whether the code is a run of the reply's lines: each the end of its line, for what stands before
/// it is indentation, quote markers or a reasoning tag; the last may also stop short, at a fence.
inline bool is_run_of_lines(std::string_view reply, const Extraction& got) {
  if (reply.starts_with("\xEF\xBB\xBF")) reply.remove_prefix(3);
  const auto code = lines_of(got.code);
  const auto lines = lines_of(reply);
  if (!got.first_line) return code.empty();
  if (*got.first_line == 0 || *got.first_line - 1 + code.size() > lines.size()) return false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto line = lines[*got.first_line - 1 + i];
    const bool is_last = i + 1 == code.size();
    if (!line.ends_with(code[i]) && !(is_last && line.find(code[i]) != line.npos)) return false;
  }
  return true;
}

}  // namespace drk::extract
