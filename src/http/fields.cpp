// SPDX-License-Identifier: Apache-2.0
// Headers and parameters by their names.
#include "http/fields.h"

#include <algorithm>

namespace drk::http {

namespace {

// Not std::tolower: names are ASCII, whatever the locale.
char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::optional<std::string_view> find(const Fields& fields, std::string_view name) noexcept {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return std::nullopt;
}

bool has_header(const Fields& headers, std::string_view lower_case_name) {
  return std::any_of(headers.begin(), headers.end(), [&](const auto& header) {
    return to_lower(header.first) == lower_case_name;
  });
}

std::optional<std::string_view> Request::header(std::string_view name) const noexcept {
  return find(headers, name);
}

std::optional<std::string_view> Request::parameter(std::string_view name) const noexcept {
  return find(query, name);
}

std::optional<std::string_view> Answer::header(std::string_view name) const noexcept {
  return find(headers, name);
}

}  // namespace drk::http
