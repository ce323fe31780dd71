// SPDX-License-Identifier: Apache-2.0
// Which devices NVML shows, or why it shows none.
#include "drk/gpu.h"

#include "nvml/fake.h"

namespace drk::gpu {
namespace {

using test::FakeNvml;

TEST(ListDevices, TellsWhatThereIs) {
  const FakeNvml fake;
  const Listing listing = list_devices(fake.library());
  EXPECT_EQ(listing.problem, "");
  EXPECT_EQ(listing.driver, "580.65.06");
  ASSERT_EQ(listing.devices.size(), 2U);
  const Device& device = listing.devices[1];
  EXPECT_EQ(device.uuid, "GPU-fake-1");
  EXPECT_EQ(device.name, "NVIDIA Fake");
  EXPECT_EQ(device.pci_bus_id, "00000000:1C:00.0");
  EXPECT_EQ(device.minor, 4U);
  EXPECT_EQ(device.memory_bytes, std::uint64_t{80} << 30);
  EXPECT_EQ(device.compute_major, 9U);
  EXPECT_EQ(device.compute_minor, 1U);
}

TEST(ListDevices, WithoutTheLibrarySaysSo) {
  const Listing listing = list_devices("libno-such-nvml.so.1");
  EXPECT_TRUE(listing.devices.empty());
  EXPECT_EQ(listing.driver, "");
  EXPECT_NE(listing.problem.find("libno-such-nvml.so.1"), std::string::npos) << listing.problem;
}

TEST(ListDevices, WithoutADriverOrADeviceSaysSo) {
  FakeNvml fake;
  fake.be("no_driver");
  EXPECT_EQ(list_devices(fake.library()).problem, "nvmlInit_v2 failed with error 9: Some Error");
  fake.be("devices 0");
  EXPECT_EQ(list_devices(fake.library()).problem, "the driver shows no GPU");
  fake.be("crash");
  EXPECT_EQ(list_devices(fake.library()).problem, "ended by signal 9");
}

TEST(ListDevices, ALostDeviceHidesNoOther) {
  FakeNvml fake;
  fake.be("lost 0");
  const Listing listing = list_devices(fake.library());
  ASSERT_EQ(listing.devices.size(), 1U);
  EXPECT_EQ(listing.devices[0].uuid, "GPU-fake-1");
  EXPECT_EQ(listing.problem,
            "GPU 0: nvmlDeviceGetHandleByIndex_v2 failed with error 15: GPU is lost");
}

TEST(ListDevices, WhatIsNotSupportedIsZero) {
  FakeNvml fake;
  fake.be("unsupported");
  const Listing listing = list_devices(fake.library());
  ASSERT_EQ(listing.devices.size(), 2U) << listing.problem;
  EXPECT_EQ(listing.devices[0].uuid, "GPU-fake-0");
  EXPECT_EQ(listing.devices[0].minor, 0U);
  EXPECT_EQ(listing.devices[0].memory_bytes, 0U);
  EXPECT_EQ(listing.devices[0].compute_major, 0U);
}

}  // namespace
}  // namespace drk::gpu
