// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets look for.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace drk::fuzz {

/// A rule that the product broke. Whatever else a replay throws is one too.
struct Finding : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool holds, std::string_view rule) {
  if (!holds) throw Finding(std::string(rule));
}

}  // namespace drk::fuzz
