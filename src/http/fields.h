// SPDX-License-Identifier: Apache-2.0
// Names and values of headers.
#pragma once

#include "drk/http.h"

#include <optional>
#include <string>
#include <string_view>

namespace drk::http {

[[nodiscard]] std::string to_lower(std::string_view text);
/// The first value of that very name.
[[nodiscard]] std::optional<std::string_view> find(const Fields& fields,
                                                   std::string_view name) noexcept;
/// The same with letters of either case.
[[nodiscard]] bool has_header(const Fields& headers, std::string_view lower_case_name);

}  // namespace drk::http
