// SPDX-License-Identifier: Apache-2.0
// UTF-8 checks for texts that come from outside.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace drk {

/// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629), if any.
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text) noexcept;
[[nodiscard]] inline bool is_valid_utf8(std::string_view text) noexcept {
  return !first_invalid_utf8(text).has_value();
}
/// A copy in which every byte that is not part of well-formed UTF-8 became U+FFFD.
[[nodiscard]] std::string sanitize_utf8(std::string_view text);

}  // namespace drk
