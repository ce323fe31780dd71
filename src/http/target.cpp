// SPDX-License-Identifier: Apache-2.0
// Percent-encoding, both ways, and request targets.
#include "http/target.h"

#include "drk/base/error.h"
#include "drk/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace drk::http {

namespace {

enum class Plus { is_plus, is_space };

std::optional<int> hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

char decode_escape(std::string_view text, std::size_t at) {
  if (at + 2 < text.size()) {
    const std::optional<int> high = hex_digit(text[at + 1]);
    const std::optional<int> low = hex_digit(text[at + 2]);
    if (high && low) return static_cast<char>(*high * 16 + *low);
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "request target: '%' at offset {} of '{}' begins no escape", at, sanitize_utf8(text)));
}

std::string percent_decode(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      c = decode_escape(text, i);
      i += 2;
    } else if (c == '+' && plus == Plus::is_space) {
      c = ' ';
    }
    // Whoever hands the text to a C interface would see another one than the router saw.
    if (c == '\0') throw Error(ErrorCode::invalid_argument, "request target: holds a NUL");
    decoded.push_back(c);
  }
  if (!is_valid_utf8(decoded)) {
    throw Error(ErrorCode::invalid_argument, "request target: not UTF-8 once decoded");
  }
  return decoded;
}

Fields parse_query(std::string_view text) {
  Fields query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view parameter = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (parameter.empty()) continue;
    const std::size_t equals = std::min(parameter.find('='), parameter.size());
    const std::string_view value = parameter.substr(std::min(equals + 1, parameter.size()));
    query.emplace_back(percent_decode(parameter.substr(0, equals), Plus::is_space),
                       percent_decode(value, Plus::is_space));
  }
  return query;
}

/// What a proxy is sent carries the scheme and the host too; only the rest is of interest.
std::string_view without_origin(std::string_view text) {
  const std::size_t scheme_end = text.find("://");
  if (text.starts_with('/') || scheme_end == std::string_view::npos) return text;
  const std::size_t path = text.find_first_of("/?", scheme_end + 3);
  return path == std::string_view::npos ? "/" : text.substr(path);
}

bool is_unreserved(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

Target parse_target(std::string_view text) {
  text = without_origin(text);
  const std::size_t path_end = std::min(text.find('?'), text.size());
  const std::string_view path = text.substr(0, path_end);
  Target target;
  target.path = path.empty() && path_end < text.size() ? "/" : percent_decode(path, Plus::is_plus);
  if (!target.path.starts_with('/') && target.path != "*") {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("request target: expected a path, got '{}'", sanitize_utf8(text)));
  }
  target.query = parse_query(text.substr(std::min(path_end + 1, text.size())));
  return target;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded.push_back('%');
    encoded.push_back(kDigits[byte >> 4U]);
    encoded.push_back(kDigits[byte & 15U]);
  }
  return encoded;
}

}  // namespace drk::http
