// SPDX-License-Identifier: Apache-2.0
// What readers see of live tasks: never ahead of what is durable.
#pragma once

#include "drk/gym/queue.h"

#include "gym/live_tasks.h"

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace drk::gym {

/// Thread-safe.
class Board {
 public:
  Board(LiveTasks live, std::span<const Change> changes) : live_(std::move(live)) {
    apply(changes);
  }

  void apply(std::span<const Change> changes);

  /// Of a live task.
  [[nodiscard]] std::optional<TaskView> find(const std::string& id) const;
  [[nodiscard]] std::optional<Place> place(const std::string& id) const;
  [[nodiscard]] QueueCounts counts(std::int64_t now_ms) const;
  [[nodiscard]] LiveTasks live() const;

 private:
  struct Shown {
    Seq seq = 0;
    TaskView task;
  };
  void show(const TaskChange& change);

  mutable std::mutex mutex_;
  LiveTasks live_;  // guarded by mutex_, as is the next
  std::unordered_map<std::string_view, std::unique_ptr<Shown>> shown_;  ///< By Shown::task.id.
};

}  // namespace drk::gym
