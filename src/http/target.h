// SPDX-License-Identifier: Apache-2.0
// The target of a request line, taken apart and decoded.
#pragma once

#include "drk/http.h"

#include <string>
#include <string_view>

namespace drk::http {

struct Target {
  std::string path;
  Fields query;
};

/// Takes "/path?query", "http://host/path?query" and "*". Throws Error{invalid_argument} for any
/// other form, an escape that is none, and text that holds a NUL or is not UTF-8 once decoded.
[[nodiscard]] Target parse_target(std::string_view text);

}  // namespace drk::http
