// SPDX-License-Identifier: Apache-2.0
// Why clocks are not at their highest.
#include "gpu/throttle.h"

#include <fmt/format.h>

#include <array>

namespace drk::gpu {

namespace {

/// nvmlClocksEventReason…, by the number of the bit.
constexpr std::array kNames = {"gpu_idle",
                               "applications_clocks_setting",
                               "sw_power_cap",
                               "hw_slowdown",
                               "sync_boost",
                               "sw_thermal_slowdown",
                               "hw_thermal_slowdown",
                               "hw_power_brake_slowdown",
                               "display_clock_setting"};

}  // namespace

std::vector<std::string> throttle_names(std::uint64_t bits) {
  std::vector<std::string> names;
  for (std::size_t bit = 0; bit < 64; ++bit) {
    if ((bits >> bit & 1U) == 0) continue;
    names.push_back(bit < kNames.size() ? kNames[bit] : fmt::format("bit_{}", bit));
  }
  return names;
}

}  // namespace drk::gpu
