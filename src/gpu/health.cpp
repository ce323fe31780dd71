// SPDX-License-Identifier: Apache-2.0
// When a device is sick.
#include "gpu/health.h"

#include <fmt/format.h>

namespace drk::gpu {

void Health::see(const Sample& sample) {
  heard_ns_ = sample.taken_ns;
  missed_.clear();
  const std::optional<std::uint64_t>& errors = sample.uncorrected_ecc_errors;
  if (!errors) return;
  if (!first_ecc_errors_) first_ecc_errors_ = errors;  // of the time before us
  if (*errors <= *first_ecc_errors_) return;
  fall_sick(fmt::format("{} uncorrected memory errors since the watch began",
                        *errors - *first_ecc_errors_));
}

void Health::see(const Event& event) {
  if (event.kind == XidKind::device) fall_sick(event.what);
}

void Health::lose(const std::string& why) {
  fall_sick("contact lost: " + why);
}

void Health::fall_sick(const std::string& why) {
  if (sickness_.empty()) sickness_ = why;
}

std::optional<std::string> Health::sickness(std::int64_t now_ns) const {
  if (!sickness_.empty()) return sickness_;
  const std::chrono::nanoseconds silence(now_ns - heard_ns_);
  if (silence <= silence_limit_) return std::nullopt;
  const double silence_s = std::chrono::duration<double>(silence).count();
  if (missed_.empty()) return fmt::format("NVML has not answered for {:.1f} s", silence_s);
  return fmt::format("NVML has failed for {:.1f} s: {}", silence_s, missed_);
}

}  // namespace drk::gpu
