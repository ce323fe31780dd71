// SPDX-License-Identifier: Apache-2.0
// Scheme, host, port.
#include "http/url.h"

#include "drk/base/error.h"
#include "drk/base/utf8.h"

#include "http/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace drk::http {

namespace {

[[noreturn]] void throw_bad_url(std::string_view url, std::string_view why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("http: cannot use the URL '{}': {}; wanted http://HOST:PORT or https://",
                          sanitize_utf8(url),
                          why));
}

bool is_host_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

bool is_port(std::string_view text) noexcept {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

}  // namespace

Origin parse_origin(std::string_view url) {
  Origin origin;
  std::string_view rest = url;
  const std::size_t scheme_end = rest.find("://");
  if (scheme_end == std::string_view::npos) throw_bad_url(url, "it has no scheme");
  const std::string scheme = to_lower(rest.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") throw_bad_url(url, "unknown scheme");
  origin.is_tls = scheme == "https";
  rest.remove_prefix(scheme_end + 3);
  if (rest.ends_with('/')) rest.remove_suffix(1);

  const bool is_bracketed = rest.starts_with('[');
  const std::size_t host_end =
      is_bracketed ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) throw_bad_url(url, "a bracket is not closed");
  origin.host = rest.substr(is_bracketed ? 1 : 0, host_end - (is_bracketed ? 1 : 0));
  rest.remove_prefix(host_end + (is_bracketed ? 1 : 0));
  if (origin.host.empty()) throw_bad_url(url, "it has no host");
  for (const char c : origin.host) {
    // An address in brackets may name its interface: "fe80::1%eth0".
    const bool is_fine = is_host_character(c) || (is_bracketed && (c == ':' || c == '%'));
    if (!is_fine) throw_bad_url(url, "its host has a character that hosts do not have");
  }

  origin.port = origin.is_tls ? "443" : "80";
  if (!rest.empty()) {
    if (!rest.starts_with(':') || !is_port(rest.substr(1))) throw_bad_url(url, "bad port or path");
    origin.port = rest.substr(1);
  }
  const std::string host = is_bracketed ? "[" + origin.host + "]" : origin.host;
  origin.host_header = host + ":" + origin.port;
  return origin;
}

}  // namespace drk::http
