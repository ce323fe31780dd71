// SPDX-License-Identifier: Apache-2.0
// Matches reasoning tags without regard to case.
#include "reasoning.h"

#include "cursor.h"

#include <algorithm>
#include <array>

namespace drk::extract {
namespace {

constexpr std::array<std::string_view, 3> kNames{"think", "thinking", "reasoning"};

bool starts_with_name(std::string_view text, std::string_view name) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return text.size() >= name.size() &&
         std::equal(
             name.begin(), name.end(), text.begin(), [&](char b, char a) { return same(a, b); });
}

/// Length of the tag at the start of `text`; 0 if there is none. `head` is "<" or "</".
std::size_t tag_length(std::string_view text, std::string_view head) {
  if (!text.starts_with(head)) return 0;
  for (const auto name : kNames) {
    if (!starts_with_name(text.substr(head.size()), name)) continue;
    const auto rest = trim_left(text.substr(head.size() + name.size()));
    if (rest.starts_with('>')) return text.size() - rest.size() + 1;
  }
  return 0;
}

std::optional<std::size_t> leading_tag(std::string_view line, std::string_view head) {
  const auto text = trim_left(line);
  const auto length = tag_length(text, head);
  if (length == 0) return std::nullopt;
  return line.size() - text.size() + length;
}

bool is_spoken_of(std::string_view line, std::size_t at) {
  return at > 0 && std::string_view{"`'\""}.find(line[at - 1]) != std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> leading_opening_tag(std::string_view line) {
  return leading_tag(line, "<");
}

std::optional<std::size_t> leading_closing_tag(std::string_view line) {
  return leading_tag(line, "</");
}

std::optional<std::size_t> trailing_closing_tag(std::string_view line) {
  const auto text = trim_right(line);
  const auto at = text.rfind("</");
  if (at == std::string_view::npos) return std::nullopt;
  if (tag_length(text.substr(at), "</") != text.size() - at) return std::nullopt;
  return at;
}

std::optional<std::size_t> past_closing_tag(std::string_view line) {
  for (auto at = line.find("</"); at != std::string_view::npos; at = line.find("</", at + 1)) {
    const auto length = tag_length(line.substr(at), "</");
    if (length > 0 && !is_spoken_of(line, at)) return at + length;
  }
  return std::nullopt;
}

}  // namespace drk::extract
