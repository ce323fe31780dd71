// SPDX-License-Identifier: Apache-2.0
// Texts that the user names: a file, or "-" for standard input.
#pragma once

#include <cstddef>
#include <string>

namespace drk::cli {

inline constexpr const char* kStandardInput = "-";
inline constexpr std::size_t kMaxInputBytes = std::size_t{16} << 20;

/// The whole text. Throws Error{not_found, unavailable, exhausted}: "cannot read a.py: ...".
[[nodiscard]] std::string read_input(const std::string& file);

}  // namespace drk::cli
