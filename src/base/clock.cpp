// SPDX-License-Identifier: Apache-2.0
// Time.
#include "drk/base/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace drk {

std::chrono::milliseconds Deadline::left() const noexcept {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(at_ - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

std::int64_t unix_now_ms() noexcept {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string utc_text(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts = {};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     parts.tm_year + 1900,
                     parts.tm_mon + 1,
                     parts.tm_mday,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec,
                     unix_ms % 1000);
}

}  // namespace drk
