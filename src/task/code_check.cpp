// SPDX-License-Identifier: Apache-2.0
// Encoding and length of submitted code.
#include "code_check.h"

#include "drk/base/utf8.h"
#include "drk/task/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace drk::task {

namespace {

std::string_view strip(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::size_t line_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
}

}  // namespace

std::size_t character_count(std::string_view utf8) {
  const auto starts_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  };
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), starts_character));
}

std::optional<std::string> code_problem(const std::string& code, const std::string& name) {
  if (const auto at = first_invalid_utf8(code)) {
    return fmt::format("{}: byte {} (line {}) is not valid UTF-8", name, *at, line_at(code, *at));
  }
  if (const std::size_t at = code.find('\0'); at != std::string::npos) {
    return fmt::format("{}: NUL byte in line {}", name, line_at(code, at));
  }
  const std::size_t size = character_count(strip(code));
  if (size < kMinCodeChars || size > kMaxCodeChars) {
    return fmt::format("{}: {} characters of code; {} to {} are allowed",
                       name,
                       size,
                       kMinCodeChars,
                       kMaxCodeChars);
  }
  return std::nullopt;
}

}  // namespace drk::task
