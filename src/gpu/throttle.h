// SPDX-License-Identifier: Apache-2.0
// Why clocks are not at their highest: NVML's bits by name. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace drk::gpu {

/// The bits that are set, lowest first: "sw_power_cap"; "bit_12" for one without a name.
[[nodiscard]] std::vector<std::string> throttle_names(std::uint64_t bits);

}  // namespace drk::gpu
