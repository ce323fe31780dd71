// SPDX-License-Identifier: Apache-2.0
// What is pending and processing, kept in memory beside the file: order, timers, counts.
//
// The writing thread has one, which is ahead of the file's last commit by the changes of its group;
// readers have another, to which the same changes are applied after the commit.
#pragma once

#include "drk/gym/queue.h"

#include "gym/schedule.h"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <variant>

namespace drk::gym {

/// As much of a task as order, timers and counts depend on.
struct Standing {
  State state = State::pending;
  bool is_dead = false;
  /// When something must be done if nothing happens: the deadline of a pending task, the end of the
  /// lease of a processing one.
  std::optional<std::int64_t> due_ms;
};

/// A task came (no `before`), went (no `after`) or changed.
struct TaskChange {
  Seq seq = 0;
  std::optional<Standing> before;
  std::optional<Standing> after;
  TaskView task;
};

/// Pending tasks moved up by age.
struct Ageing {
  std::int64_t now_ms = 0;
};

using Change = std::variant<TaskChange, Ageing>;

/// What a file holds beside live tasks.
struct FinalCounts {
  std::uint64_t stored = 0;
  std::uint64_t dead = 0;
};

/// A copy is independent. Not thread-safe.
class LiveTasks {
 public:
  explicit LiveTasks(const FinalCounts& finals) noexcept
      : stored_(finals.stored), dead_(finals.dead) {}

  void apply(const Change& change);
  [[nodiscard]] const Schedule& schedule() const noexcept { return schedule_; }
  /// The task whose time is up, if any.
  [[nodiscard]] std::optional<Seq> due(std::int64_t now_ms) const;
  [[nodiscard]] bool is_ageing_due(std::int64_t now_ms) const;
  /// Whether time alone can change something.
  [[nodiscard]] bool has_timers() const {
    return !timers_.empty() || schedule_.next_ageing_ms().has_value();
  }
  [[nodiscard]] QueueCounts counts(std::int64_t now_ms) const;

 private:
  void apply_task(const TaskChange& change);
  void reschedule(const TaskChange& change);

  Schedule schedule_;
  std::set<std::pair<std::int64_t, Seq>> timers_;
  std::uint64_t stored_;
  std::uint64_t dead_;
};

}  // namespace drk::gym
