// SPDX-License-Identifier: Apache-2.0
// NVML's bits have the names of nvml.h.
#include "gpu/throttle.h"

#include <gtest/gtest.h>

namespace drk::gpu {
namespace {

using Names = std::vector<std::string>;

TEST(ThrottleNames, NameEachBitThatIsSet) {
  EXPECT_EQ(throttle_names(0), Names());
  EXPECT_EQ(throttle_names(0x1), Names({"gpu_idle"}));
  EXPECT_EQ(throttle_names(0x4 | 0x40), Names({"sw_power_cap", "hw_thermal_slowdown"}));
  EXPECT_EQ(throttle_names(0x80 | 0x100),
            Names({"hw_power_brake_slowdown", "display_clock_setting"}));
}

TEST(ThrottleNames, KeepABitWithoutAName) {
  EXPECT_EQ(throttle_names(0x8 | 0x1000), Names({"hw_slowdown", "bit_12"}));
  EXPECT_EQ(throttle_names(std::uint64_t{1} << 63), Names({"bit_63"}));
}

}  // namespace
}  // namespace drk::gpu
