// SPDX-License-Identifier: Apache-2.0
// The order of pending tasks, against a plain twin and by hand.
#include "gym/schedule.h"

#include "drk/base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace drk::gym {
namespace {

constexpr std::int64_t kMinuteMs = 60'000;

/// Leases all, in turn.
std::vector<Seq> drain(Schedule schedule) {
  std::vector<Seq> order;
  while (const std::optional<Seq> next = schedule.next()) {
    schedule.lease(*next);
    order.push_back(*next);
  }
  return order;
}

/// Every place is where draining comes to the task.
void expect_exact_places(const Schedule& schedule) {
  std::uint64_t position = 0;
  for (const Seq seq : drain(schedule)) {
    const std::optional<Place> place = schedule.place(seq);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->position, ++position) << "task " << seq;
    EXPECT_EQ(place->position, 1 + place->ahead_higher + place->ahead_same);
  }
}

using Order = std::vector<Seq>;

TEST(Schedule, NothingIsNext) {
  const Schedule schedule;
  EXPECT_EQ(schedule.next(), std::nullopt);
  EXPECT_EQ(schedule.place(1), std::nullopt);
  EXPECT_EQ(schedule.next_ageing_ms(), std::nullopt);
  EXPECT_EQ(schedule.oldest_submitted_ms(), std::nullopt);
}

TEST(Schedule, HigherPrioritiesGoFirstThenTheOrderOfSubmission) {
  Schedule schedule;
  schedule.add(1, "a", Priority::low, 0);
  schedule.add(2, "a", Priority::normal, 0);
  schedule.add(3, "a", Priority::high, 0);
  schedule.add(4, "a", Priority::normal, 0);
  EXPECT_EQ(drain(schedule), (Order{3, 2, 4, 1}));
  EXPECT_EQ(schedule.place(1)->ahead_higher, 3U);
  EXPECT_EQ(schedule.place(4)->ahead_same, 1U);
  EXPECT_EQ(schedule.pending(Priority::normal), 2U);
  expect_exact_places(schedule);
}

TEST(Schedule, ClientsTakeTurns) {
  Schedule schedule;
  for (const Seq seq : {1, 2, 3, 4}) schedule.add(seq, "many", Priority::normal, 0);
  schedule.add(5, "few", Priority::normal, 0);
  schedule.add(6, "few", Priority::normal, 0);
  EXPECT_EQ(drain(schedule), (Order{1, 5, 2, 6, 3, 4}));
  expect_exact_places(schedule);
}

TEST(Schedule, TheClientWithTheFewestLeasesIsNext) {
  Schedule schedule;
  for (const Seq seq : {1, 2, 3}) schedule.add(seq, "a", Priority::normal, 0);
  schedule.lease(1);
  schedule.lease(2);
  for (const Seq seq : {4, 5, 6}) schedule.add(seq, "b", Priority::normal, 0);
  // b catches up to two leases; then a, which has waited longer.
  EXPECT_EQ(drain(schedule), (Order{4, 5, 3, 6}));
  expect_exact_places(schedule);
  schedule.remove(1);
  schedule.remove(2);
  EXPECT_EQ(drain(schedule), (Order{3, 4, 5, 6}));
}

TEST(Schedule, LeasesOfOnePriorityDoNotCountInAnother) {
  Schedule schedule;
  schedule.add(1, "a", Priority::high, 0);
  schedule.lease(1);
  schedule.add(2, "a", Priority::normal, 0);
  schedule.add(3, "b", Priority::normal, 0);
  EXPECT_EQ(drain(schedule), (Order{2, 3}));
}

TEST(Schedule, AmongEqualsTheOneThatWaitedLongestIsNext) {
  Schedule schedule;
  schedule.add(1, "a", Priority::normal, 0);
  schedule.add(2, "a", Priority::normal, 0);
  schedule.add(3, "b", Priority::normal, 0);
  schedule.lease(1);
  schedule.remove(1);  // none holds any now, but a had its turn
  EXPECT_EQ(drain(schedule), (Order{3, 2}));
  expect_exact_places(schedule);
}

TEST(Schedule, AGivenBackTaskHasItsOldPlace) {
  Schedule schedule;
  for (const Seq seq : {1, 2, 3}) schedule.add(seq, "a", Priority::normal, 0);
  schedule.lease(1);
  schedule.lease(2);
  schedule.give_back(1);
  EXPECT_EQ(schedule.pending(), 2U);
  EXPECT_EQ(schedule.leased(), 1U);
  EXPECT_EQ(drain(schedule), (Order{1, 3}));
}

TEST(Schedule, AgeMovesTasksUp) {
  Schedule schedule;
  schedule.add(1, "a", Priority::low, 0);
  schedule.add(2, "a", Priority::normal, 15 * kMinuteMs);
  schedule.add(3, "a", Priority::high, 15 * kMinuteMs);
  EXPECT_EQ(schedule.next_ageing_ms(), 10 * kMinuteMs);
  EXPECT_EQ(drain(schedule), (Order{3, 2, 1}));
  schedule.age(10 * kMinuteMs - 1);
  EXPECT_EQ(drain(schedule), (Order{3, 2, 1}));
  schedule.age(10 * kMinuteMs);
  EXPECT_EQ(drain(schedule), (Order{3, 1, 2}));
  expect_exact_places(schedule);
  EXPECT_EQ(schedule.pending(Priority::low), 1U) << "its own priority stays what it is";
  schedule.age(20 * kMinuteMs);
  EXPECT_EQ(drain(schedule), (Order{1, 3, 2}));
  EXPECT_EQ(schedule.next_ageing_ms(), 25 * kMinuteMs);
}

TEST(Schedule, ALateCallAgesByBothSteps) {
  Schedule schedule;
  schedule.add(1, "a", Priority::low, 0);
  schedule.add(2, "a", Priority::high, 0);
  schedule.age(60 * kMinuteMs);
  EXPECT_EQ(drain(schedule), (Order{1, 2}));
  EXPECT_EQ(schedule.next_ageing_ms(), std::nullopt);
}

TEST(Schedule, AGivenBackTaskAgesByItsSubmission) {
  Schedule schedule;
  schedule.add(1, "a", Priority::low, 0);
  schedule.add(2, "a", Priority::normal, 0);
  schedule.age(20 * kMinuteMs);
  schedule.lease(1);
  schedule.give_back(1);
  schedule.age(20 * kMinuteMs);
  EXPECT_EQ(drain(schedule), (Order{1, 2}));
}

TEST(Schedule, WhatIsNotThereIsABrokenInvariant) {
  Schedule schedule;
  schedule.add(1, "a", Priority::low, 0);
  EXPECT_THROW(schedule.add(1, "a", Priority::low, 0), Error);
  EXPECT_THROW(schedule.lease(2), Error);
  EXPECT_THROW(schedule.give_back(1), Error);
  EXPECT_THROW(schedule.remove(2), Error);
}

/// The same rules by plain loops over all tasks.
class Twin {
 public:
  struct Task {
    std::string client;
    std::int64_t lane = 0;
    std::int64_t own = 0;
    std::int64_t submitted_ms = 0;
    bool is_leased = false;
  };
  std::map<Seq, Task> tasks;

  void begin_to_wait(const Task& task) {
    const bool waits_already = std::any_of(tasks.begin(), tasks.end(), [&](const auto& other) {
      return !other.second.is_leased && &other.second != &task &&
             other.second.client == task.client && other.second.lane == task.lane;
    });
    if (!waits_already) waits_since_[{task.client, task.lane}] = ++turn_;
  }
  void lease(Seq seq) {
    Task& task = tasks.at(seq);
    task.is_leased = true;
    waits_since_[{task.client, task.lane}] = ++turn_;
  }
  void age(std::int64_t now_ms) {
    // In the order in which they become old enough.
    std::map<std::pair<std::int64_t, Seq>, Task*> due;
    for (;;) {
      due.clear();
      for (auto& [seq, task] : tasks) {
        const std::int64_t at_ms = task.submitted_ms + kAgeingStepMs * (task.lane - task.own + 1);
        if (!task.is_leased && task.lane < 2 && at_ms <= now_ms) due[{at_ms, seq}] = &task;
      }
      if (due.empty()) return;
      Task& task = *due.begin()->second;
      ++task.lane;
      begin_to_wait(task);
    }
  }
  [[nodiscard]] std::optional<Seq> next() const {
    std::optional<Seq> best;
    for (const auto& [seq, task] : tasks) {
      if (!task.is_leased && (!best || key(seq) < key(*best))) best = seq;
    }
    return best;
  }

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, std::uint64_t, Seq>;
  [[nodiscard]] Key key(Seq seq) const {
    const Task& task = tasks.at(seq);
    const auto held = std::count_if(tasks.begin(), tasks.end(), [&](const auto& other) {
      return other.second.is_leased && other.second.client == task.client &&
             other.second.lane == task.lane;
    });
    return {-task.lane, held, waits_since_.at({task.client, task.lane}), seq};
  }
  std::map<std::pair<std::string, std::int64_t>, std::uint64_t> waits_since_;
  std::uint64_t turn_ = 0;
};

TEST(Schedule, AgreesWithPlainLoops) {
  std::mt19937 random(7);
  const auto pick = [&](std::uint32_t bound) { return static_cast<int>(random() % bound); };
  for (int round = 0; round < 20; ++round) {
    Schedule schedule;
    Twin twin;
    std::int64_t now_ms = 0;
    Seq last = 0;
    for (int step = 0; step < 300; ++step) {
      now_ms += pick(2 * kMinuteMs);
      schedule.age(now_ms);
      twin.age(now_ms);
      ASSERT_EQ(schedule.next(), twin.next()) << "round " << round << " step " << step;
      const auto chosen =
          twin.tasks.empty()
              ? twin.tasks.end()
              : std::next(twin.tasks.begin(), pick(static_cast<std::uint32_t>(twin.tasks.size())));
      switch (pick(5)) {
        case 0:
        case 1: {
          const int lane = pick(3);
          const std::string client(1, static_cast<char>('a' + pick(4)));
          schedule.add(++last, client, static_cast<Priority>(lane), now_ms);
          twin.begin_to_wait(twin.tasks[last] = {client, lane, lane, now_ms, false});
          break;
        }
        case 2:
          if (const std::optional<Seq> next = twin.next()) {
            schedule.lease(*next);
            twin.lease(*next);
          }
          break;
        case 3:
          if (chosen == twin.tasks.end()) break;
          schedule.remove(chosen->first);
          twin.tasks.erase(chosen);
          break;
        default:
          if (chosen == twin.tasks.end() || !chosen->second.is_leased) break;
          schedule.give_back(chosen->first);
          chosen->second.is_leased = false;
          chosen->second.lane = chosen->second.own;
          twin.begin_to_wait(chosen->second);
          break;
      }
      if (step % 20 == 0) expect_exact_places(schedule);
    }
  }
}

}  // namespace
}  // namespace drk::gym
