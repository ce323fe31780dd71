// SPDX-License-Identifier: Apache-2.0
// What a watch tells of devices, and what it does when NVML hangs, fails or is not there.
#include "drk/base/clock.h"
#include "drk/base/error.h"
#include "drk/gpu.h"

#include "nvml/fake.h"

namespace drk::gpu {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using test::eventually;
using test::FakeNvml;

const std::string kFirst = "GPU-fake-0";
const std::string kSecond = "GPU-fake-1";

std::vector<Device> devices() {
  std::vector<Device> devices(2);
  devices[0].uuid = kFirst;
  devices[1].uuid = kSecond;
  return devices;
}

WatchOptions options_for(const FakeNvml& fake) {
  WatchOptions options;
  options.library = fake.library();
  options.interval = 20ms;
  return options;
}

/// The code and text of what `sample_now` throws.
std::pair<ErrorCode, std::string> refusal(Watch& watch, const std::string& uuid) {
  try {
    (void)watch.sample_now(uuid);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::internal, "it was not refused"};
}

bool falls_sick(const Watch& watch, const std::string& uuid) {
  return eventually([&] { return watch.sickness(uuid).has_value(); });
}

class WatchTest : public ::testing::Test {
 protected:
  FakeNvml fake_;
};

TEST_F(WatchTest, SamplesEveryPart) {
  fake_.be("used 0 1048576\nthrottle 0 68\necc 0 3\nprocess 0 4242 1024\nprocess 0 4343\n");
  Watch watch(devices(), options_for(fake_));
  const std::int64_t asked_ns = now_ns();
  const Sample sample = watch.sample_now(kFirst);
  EXPECT_EQ(sample.used_bytes, 1048576U);
  EXPECT_EQ(sample.total_bytes, std::uint64_t{80} << 30);
  EXPECT_EQ(sample.sm_clock_mhz, 1980U);
  EXPECT_EQ(sample.memory_clock_mhz, 2619U);
  EXPECT_EQ(sample.temperature_c, 41U);
  EXPECT_EQ(sample.throttle_reasons,
            std::vector<std::string>({"sw_power_cap", "hw_thermal_slowdown"}));
  EXPECT_EQ(sample.uncorrected_ecc_errors, 3U);
  ASSERT_EQ(sample.processes.size(), 2U);
  EXPECT_EQ(sample.processes[0].pid, 4242U);
  EXPECT_EQ(sample.processes[0].used_bytes, 1024U);
  EXPECT_EQ(sample.processes[1].used_bytes, std::nullopt);
  EXPECT_GE(sample.taken_ns, asked_ns);
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
  EXPECT_EQ(watch.problem(), "");
}

TEST_F(WatchTest, SamplesByItself) {
  Watch watch(devices(), options_for(fake_));
  ASSERT_TRUE(eventually([&] { return watch.sample(kSecond).has_value(); }));
  fake_.be("used 1 7");
  EXPECT_TRUE(eventually([&] { return watch.sample(kSecond)->used_bytes == 7; }));
}

TEST_F(WatchTest, SamplesNowHoweverSeldomItDoesByItself) {
  WatchOptions options = options_for(fake_);
  options.interval = 1h;
  options.hang_limit = 2h;
  Watch watch(devices(), options);
  for (std::uint64_t used = 1; used <= 20; ++used) {
    fake_.be("used 0 " + std::to_string(used));
    EXPECT_EQ(watch.sample_now(kFirst).used_bytes, used);
  }
}

TEST_F(WatchTest, AnswersManyAtOnce) {
  fake_.be("used 0 100\nused 1 101\n");
  Watch watch(devices(), options_for(fake_));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string& uuid = i % 2 == 0 ? kFirst : kSecond;
      for (int k = 0; k < 20; ++k) {
        EXPECT_EQ(watch.sample_now(uuid).used_bytes, i % 2 == 0 ? 100U : 101U);
      }
    });
  }
}

TEST_F(WatchTest, IsMadeBesideBusyThreads) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) (void)describe_xid(31).append(1000, ' ');  // allocates
    });
  }
  for (int i = 0; i < 20; ++i) {
    Watch watch(devices(), options_for(fake_));
    EXPECT_EQ(watch.sample_now(kFirst).temperature_c, 41U);
  }
}

TEST_F(WatchTest, SeesMoreProcessesThanItExpected) {
  std::string lines;
  for (int i = 1; i <= 100; ++i) lines += "process 0 " + std::to_string(i) + " 5\n";
  fake_.be(lines);
  Watch watch(devices(), options_for(fake_));
  const Sample sample = watch.sample_now(kFirst);
  ASSERT_EQ(sample.processes.size(), 100U);
  EXPECT_EQ(sample.processes[99].pid, 100U);
}

TEST_F(WatchTest, WhatIsNotSupportedIsAbsent) {
  fake_.be("unsupported");
  Watch watch(devices(), options_for(fake_));
  const Sample sample = watch.sample_now(kFirst);
  EXPECT_EQ(sample.total_bytes, 0U);
  EXPECT_EQ(sample.uncorrected_ecc_errors, std::nullopt);
  EXPECT_TRUE(sample.throttle_reasons.empty());
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
  EXPECT_NE(watch.problem().find("GPU-fake-0: no Xid events: nvmlDeviceRegisterEvents failed"),
            std::string::npos)
      << watch.problem();
}

TEST_F(WatchTest, AnOldNvmlTellsWhatItCan) {
  FakeNvml old("old_fake_nvml.so");
  old.be("throttle 0 4\nprocess 0 4242 1024\necc 0 3\n");
  Watch watch(devices(), options_for(old));
  const Sample sample = watch.sample_now(kFirst);
  EXPECT_EQ(sample.throttle_reasons, std::vector<std::string>({"sw_power_cap"}));
  ASSERT_EQ(sample.processes.size(), 1U);
  EXPECT_EQ(sample.processes[0].pid, 4242U);
  EXPECT_EQ(sample.uncorrected_ecc_errors, std::nullopt);
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
  EXPECT_NE(watch.problem().find("nvmlEventSetCreate failed with error 13"), std::string::npos)
      << watch.problem();
}

TEST_F(WatchTest, ALostDeviceIsSickForGood) {
  Watch watch(devices(), options_for(fake_));
  EXPECT_EQ(watch.sample_now(kSecond).total_bytes, std::uint64_t{80} << 30);
  fake_.be("lost 1");
  ASSERT_TRUE(falls_sick(watch, kSecond));
  EXPECT_EQ(watch.sickness(kSecond),
            "contact lost: nvmlDeviceGetMemoryInfo failed with error 15: GPU is lost");
  EXPECT_EQ(refusal(watch, kSecond).first, ErrorCode::unavailable);
  fake_.be("");
  EXPECT_EQ(watch.sample_now(kFirst).temperature_c, 41U);
  EXPECT_TRUE(watch.sickness(kSecond).has_value());
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
}

TEST_F(WatchTest, ADeviceThatTheDriverDoesNotShowIsSick) {
  fake_.be("devices 1");
  const Watch watch(devices(), options_for(fake_));
  ASSERT_TRUE(falls_sick(watch, kSecond));
  EXPECT_EQ(watch.sickness(kSecond), "contact lost: the driver does not show it");
}

TEST_F(WatchTest, ADeviceThatOnlyFailsIsSickAfterAWhile) {
  WatchOptions options = options_for(fake_);
  options.hang_limit = 300ms;
  Watch watch(devices(), options);
  (void)watch.sample_now(kFirst);
  fake_.be("failing 0");
  EXPECT_EQ(refusal(watch, kFirst),
            std::pair(ErrorCode::unavailable,
                      std::string("gpu GPU-fake-0: nvmlDeviceGetMemoryInfo failed with error 999: "
                                  "Some Error")));
  ASSERT_TRUE(falls_sick(watch, kFirst));
  EXPECT_NE(watch.sickness(kFirst)->find("error 999"), std::string::npos);
  fake_.be("");
  EXPECT_TRUE(eventually([&] { return !watch.sickness(kFirst); }));
}

TEST_F(WatchTest, MemoryErrorsThatComeMakeADeviceSick) {
  fake_.be("ecc 0 3");
  Watch watch(devices(), options_for(fake_));
  EXPECT_EQ(watch.sample_now(kFirst).uncorrected_ecc_errors, 3U);
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
  fake_.be("ecc 0 4");
  ASSERT_TRUE(falls_sick(watch, kFirst));
  EXPECT_EQ(watch.sickness(kFirst), "1 uncorrected memory errors since the watch began");
}

TEST_F(WatchTest, TellsTheXidOfACandidateAndKeepsTheDevice) {
  Watch watch(devices(), options_for(fake_));
  fake_.also("event 8 0 31");
  (void)watch.sample_now(kFirst);  // after which the event has been heard of
  const std::vector<Event> events = watch.events_since(0);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].uuid, kFirst);
  EXPECT_EQ(events[0].xid, 31U);
  EXPECT_EQ(events[0].kind, XidKind::candidate);
  EXPECT_EQ(events[0].what, "Xid 31: GPU memory page fault");
  EXPECT_LE(events[0].at_ns, now_ns());
  EXPECT_TRUE(watch.events_since(events[0].at_ns + 1).empty());
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
}

TEST_F(WatchTest, AnXidOfTheDeviceMakesItSick) {
  const Watch watch(devices(), options_for(fake_));
  fake_.also("event 8 1 119");
  ASSERT_TRUE(falls_sick(watch, kSecond));
  EXPECT_EQ(watch.sickness(kSecond), "Xid 119: GSP firmware does not answer");
  EXPECT_EQ(watch.sickness(kFirst), std::nullopt);
}

TEST_F(WatchTest, ADoubleBitErrorIsXid48) {
  const Watch watch(devices(), options_for(fake_));
  fake_.also("event 2 0 0");
  ASSERT_TRUE(falls_sick(watch, kFirst));
  EXPECT_EQ(watch.sickness(kFirst), "Xid 48: double-bit ECC error");
}

TEST_F(WatchTest, AHangIsASicknessAndHoldsNobodyUp) {
  WatchOptions options = options_for(fake_);
  options.hang_limit = 300ms;
  const std::int64_t start_ns = now_ns();
  {
    Watch watch(devices(), options);
    (void)watch.sample_now(kFirst);
    fake_.be("hang");
    EXPECT_EQ(refusal(watch, kFirst).first, ErrorCode::timed_out);
    ASSERT_TRUE(falls_sick(watch, kFirst));
    EXPECT_TRUE(watch.sickness(kFirst)->starts_with("NVML has not answered for 0."));
    EXPECT_EQ(refusal(watch, kFirst).first, ErrorCode::unavailable);
  }
  EXPECT_LT(now_ns() - start_ns, std::chrono::nanoseconds(10s).count());
}

TEST_F(WatchTest, ACrashOfNvmlIsASickness) {
  Watch watch(devices(), options_for(fake_));
  (void)watch.sample_now(kFirst);
  fake_.be("crash");
  ASSERT_TRUE(falls_sick(watch, kFirst));
  const std::string why = "the process that watches the GPUs ended by signal 9";
  EXPECT_EQ(watch.sickness(kSecond), "contact lost: " + why);
  EXPECT_EQ(watch.problem(), why);
  EXPECT_EQ(refusal(watch, kFirst).first, ErrorCode::unavailable);
}

TEST_F(WatchTest, KnowsOnlyItsDevices) {
  Watch watch(devices(), options_for(fake_));
  EXPECT_EQ(refusal(watch, "GPU-other"),
            std::pair(ErrorCode::not_found, std::string("gpu GPU-other: is not watched")));
  EXPECT_THROW((void)watch.sample("GPU-other"), Error);
  EXPECT_THROW((void)watch.sickness("GPU-other"), Error);
}

TEST(WatchWithoutNvml, SaysSo) {
  WatchOptions options;
  options.library = "libno-such-nvml.so.1";
  Watch watch(devices(), options);
  ASSERT_TRUE(falls_sick(watch, kFirst));
  EXPECT_NE(watch.sickness(kFirst)->find("libno-such-nvml.so.1"), std::string::npos);
  EXPECT_NE(watch.problem().find("libno-such-nvml.so.1"), std::string::npos);
  EXPECT_FALSE(watch.sample(kFirst).has_value());
  EXPECT_TRUE(watch.events_since(0).empty());
  EXPECT_EQ(refusal(watch, kFirst).first, ErrorCode::unavailable);
}

}  // namespace
}  // namespace drk::gpu
