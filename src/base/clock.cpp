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

std::string utc_now_text() {
  std::timespec now = {};
  std::timespec_get(&now, TIME_UTC);
  std::tm parts = {};
  gmtime_r(&now.tv_sec, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
                     parts.tm_year + 1900,
                     parts.tm_mon + 1,
                     parts.tm_mday,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec,
                     now.tv_nsec / 1'000'000);
}

}  // namespace drk
