// SPDX-License-Identifier: Apache-2.0
// Content addresses.
#pragma once

#include <string>
#include <string_view>

namespace drk {

/// SHA-256 of the bytes, 64 lower-case hex digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace drk
