// SPDX-License-Identifier: Apache-2.0
// A server at a glance.
#pragma once

#include "drk/base/json.h"

#include "terminal.h"

#include <string>

namespace drk::cli {

/// What the server said, each the body of one answer.
struct TopView {
  std::string url;
  json::Object health;
  json::Object metrics;
  json::Object workers;
  json::Object running;  ///< Of /tasks?state=processing
  json::Object pending;  ///< Of /tasks?state=pending
};

/// At most `rows` lines of at most `columns` characters (beside colours).
[[nodiscard]] std::string render_top(const TopView& view,
                                     const Style& style,
                                     std::size_t rows,
                                     std::size_t columns);

}  // namespace drk::cli
