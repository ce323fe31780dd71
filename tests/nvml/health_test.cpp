// SPDX-License-Identifier: Apache-2.0
// When a device is sick.
#include "gpu/health.h"

#include <gtest/gtest.h>

namespace drk::gpu {
namespace {

using std::chrono_literals::operator""s;

constexpr std::int64_t kSecond = 1'000'000'000;

Sample sample_at(std::int64_t at_ns, std::optional<std::uint64_t> ecc_errors = {}) {
  Sample sample;
  sample.taken_ns = at_ns;
  sample.uncorrected_ecc_errors = ecc_errors;
  return sample;
}

Event xid(std::uint32_t number) {
  return {0, "GPU-1", number, xid_kind(number), describe_xid(number)};
}

TEST(Health, SilenceIsASicknessThatEnds) {
  Health health(0, 10s);
  EXPECT_EQ(health.sickness(10 * kSecond), std::nullopt);
  EXPECT_EQ(health.sickness(12 * kSecond), "NVML has not answered for 12.0 s");
  health.see(sample_at(13 * kSecond));
  EXPECT_EQ(health.sickness(23 * kSecond), std::nullopt);
}

TEST(Health, FailureIsSilenceWithAReason) {
  Health health(0, 10s);
  health.miss("unknown error");
  EXPECT_EQ(health.sickness(5 * kSecond), std::nullopt);
  EXPECT_EQ(health.missed(), "unknown error");
  EXPECT_EQ(health.sickness(11 * kSecond), "NVML has failed for 11.0 s: unknown error");
  health.see(sample_at(11 * kSecond));
  EXPECT_EQ(health.sickness(11 * kSecond), std::nullopt);
  EXPECT_EQ(health.missed(), "");
}

TEST(Health, OldMemoryErrorsAreNone) {
  Health health(0, 10s);
  health.see(sample_at(1, 5));
  health.see(sample_at(2));  // could not be told
  health.see(sample_at(3, 5));
  EXPECT_EQ(health.sickness(4), std::nullopt);
  health.see(sample_at(4, 7));
  EXPECT_EQ(health.sickness(5), "2 uncorrected memory errors since the watch began");
  health.see(sample_at(5, 0));  // somebody cleared the counter
  EXPECT_TRUE(health.sickness(5).has_value());
}

TEST(Health, OnlyTheXidsOfADeviceMakeItSick) {
  Health health(0, 10s);
  for (const std::uint32_t number : {13U, 31U, 43U, 45U, 92U}) health.see(xid(number));
  EXPECT_EQ(health.sickness(0), std::nullopt);
  health.see(xid(79));
  EXPECT_EQ(health.sickness(0), "Xid 79: GPU has fallen off the bus");
}

TEST(Health, TheFirstSicknessIsToldAndStays) {
  Health health(0, 10s);
  health.lose("GPU is lost");
  health.see(xid(79));
  health.see(sample_at(kSecond));
  EXPECT_EQ(health.sickness(kSecond), "contact lost: GPU is lost");
}

}  // namespace
}  // namespace drk::gpu
