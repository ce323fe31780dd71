// SPDX-License-Identifier: Apache-2.0
// Turns and memory on one GPU, without one: who waits for whom.
#include "worker/gpu_slot.h"

#include "drk/base/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace drk::worker {
namespace {

constexpr std::chrono::seconds kSoon(20);         // far more than any of these takes
constexpr std::chrono::milliseconds kAWhile(30);  // in which what must wait would have come

gpu::Device device() {
  gpu::Device device;
  device.uuid = "GPU-1";
  device.name = "Some GPU";
  device.memory_bytes = 1000;
  return device;
}

class GpuSlotTest : public ::testing::Test {
 protected:
  GpuSlot slot_{device(), 800, nullptr};
  std::stop_source stop_;

  template <class Work>
  static auto begin(Work work) {
    return std::async(std::launch::async, std::move(work));
  }
  template <class Right>
  static bool waits(std::future<Right>& right) {
    return right.wait_for(kAWhile) == std::future_status::timeout;
  }
  template <class Right>
  static bool comes(std::future<Right>& right) {
    return right.wait_for(kSoon) == std::future_status::ready;
  }
};

TEST_F(GpuSlotTest, ManyRunWhileNobodyMeasures) {
  GpuSlot::Running first = slot_.run({});
  GpuSlot::Running second = slot_.run({});
  auto measuring = begin([&] { return slot_.measure({}); });
  EXPECT_TRUE(waits(measuring));
  first.reset();
  EXPECT_TRUE(waits(measuring));
  second.reset();
  EXPECT_TRUE(comes(measuring));
}

TEST_F(GpuSlotTest, OneMeasuresWhileNobodyRuns) {
  GpuSlot::Measuring measuring = slot_.measure({});
  auto running = begin([&] { return slot_.run({}); });
  auto other = begin([&] { return slot_.measure({}); });
  EXPECT_TRUE(waits(running));
  EXPECT_TRUE(waits(other));
  measuring.reset();
  ASSERT_TRUE(comes(other));
  other.get().reset();
  EXPECT_TRUE(comes(running));
}

TEST_F(GpuSlotTest, WhoMeasuresComesBeforeThoseThatWantToRunLater) {
  GpuSlot::Running running = slot_.run({});
  auto measuring = begin([&] { return slot_.measure({}); });
  ASSERT_TRUE(waits(measuring));
  auto later = begin([&] { return slot_.run({}); });
  EXPECT_TRUE(waits(later));
  running.reset();
  ASSERT_TRUE(comes(measuring));
  EXPECT_TRUE(waits(later));
  measuring.get().reset();
  EXPECT_TRUE(comes(later));
}

TEST_F(GpuSlotTest, MemoryIsWaitedFor) {
  GpuSlot::Memory large = slot_.reserve(600, {});
  GpuSlot::Memory small = slot_.reserve(200, {});
  auto more = begin([&] { return slot_.reserve(300, {}); });
  EXPECT_TRUE(waits(more));
  large.reset();
  ASSERT_TRUE(comes(more));
  EXPECT_EQ(more.get().bytes(), 300U);
}

TEST_F(GpuSlotTest, MoreThanThereIsMeansAll) {
  EXPECT_EQ(slot_.reserve(5000, {}).bytes(), 800U);
  EXPECT_EQ(slot_.reserve(GpuSlot::kAllMemory, {}).bytes(), 800U);
}

TEST_F(GpuSlotTest, WhoWantsAllIsNotStarvedByThoseThatWantLittle) {
  GpuSlot::Memory small = slot_.reserve(100, {});
  auto all = begin([&] { return slot_.reserve(GpuSlot::kAllMemory, {}); });
  ASSERT_TRUE(waits(all));
  auto later = begin([&] { return slot_.reserve(100, {}); });
  EXPECT_TRUE(waits(later));
  small.reset();
  ASSERT_TRUE(comes(all));
  all.get().reset();
  EXPECT_TRUE(comes(later));
}

TEST_F(GpuSlotTest, AStopEndsEveryWait) {
  GpuSlot::Measuring measuring = slot_.measure({});
  const GpuSlot::Memory memory = slot_.reserve(GpuSlot::kAllMemory, {});
  std::vector<std::future<bool>> waiting;
  const auto is_told_to_stop = [&](auto wait) {
    waiting.push_back(begin([this, wait] {
      try {
        wait(stop_.get_token());
      } catch (const Error& error) {
        return error.code() == ErrorCode::timed_out;
      }
      return false;
    }));
  };
  is_told_to_stop([this](const std::stop_token& stop) { (void)slot_.run(stop); });
  is_told_to_stop([this](const std::stop_token& stop) { (void)slot_.measure(stop); });
  is_told_to_stop([this](const std::stop_token& stop) { (void)slot_.reserve(100, stop); });
  is_told_to_stop(
      [this](const std::stop_token& stop) { (void)slot_.reserve(GpuSlot::kAllMemory, stop); });
  for (auto& wait : waiting) EXPECT_TRUE(waits(wait));
  stop_.request_stop();
  for (auto& wait : waiting) EXPECT_TRUE(wait.get());
  // Those that gave up stand in nobody's way.
  measuring.reset();
  EXPECT_NO_THROW((void)slot_.run({}));
}

TEST_F(GpuSlotTest, RemembersTheLargestNeedOfAReference) {
  EXPECT_EQ(slot_.need_bytes("a"), 0U);
  slot_.note_need("a", 300);
  slot_.note_need("a", 200);
  EXPECT_EQ(slot_.need_bytes("a"), 300U);
}

TEST_F(GpuSlotTest, NeverHasMoreReservedThanThereIs) {
  std::atomic<std::uint64_t> in_use = 0, most = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 200; ++round) {
          const GpuSlot::Memory memory = slot_.reserve(i == 0 ? 5000 : 100 * i, {});
          most = std::max<std::uint64_t>(most, in_use += memory.bytes());
          in_use -= memory.bytes();
        }
      });
    }
  }
  EXPECT_LE(most, 800U);
}

}  // namespace
}  // namespace drk::worker
