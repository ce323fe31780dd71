// SPDX-License-Identifier: Apache-2.0
// Names and tokens, a pair a line.
#include "tokens.h"

#include "drk/base/error.h"

#include <fmt/format.h>

#include <sstream>

namespace drk::cli {

namespace {

constexpr std::size_t kMinTokenChars = 16;

[[noreturn]] void refuse(const std::string& file, std::size_t line, const std::string& what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}, line {}: {}", file, line, what));
}

}  // namespace

std::map<std::string, std::string> parse_tokens(const std::string& text, const std::string& file) {
  std::map<std::string, std::string> tokens;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string name;
    std::string token;
    std::string more;
    words >> name >> token >> more;
    if (name.empty() || name.front() == '#') continue;
    // A token is a secret: no message shows one.
    if (token.empty() || !more.empty()) refuse(file, number, "a line is NAME TOKEN");
    if (token.size() < kMinTokenChars) {
      refuse(file, number, fmt::format("a token has at least {} characters", kMinTokenChars));
    }
    if (!tokens.emplace(token, name).second) refuse(file, number, "this token is there before");
  }
  if (tokens.empty()) throw Error(ErrorCode::invalid_argument, file + " holds no token");
  return tokens;
}

}  // namespace drk::cli
