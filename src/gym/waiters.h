// SPDX-License-Identifier: Apache-2.0
// Who waits for what to become of a task.
#pragma once

#include "drk/gym/queue.h"

#include "gym/crew.h"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace drk::gym {

/// Thread-safe.
class Waiters {
 public:
  using Predicate = std::function<bool(const TaskView&)>;
  /// Gets the task as it then is; empty when there is none. Runs on the crew.
  using Then = std::function<void(const std::optional<TaskView>&)>;

  Waiters(Queue& queue, Crew& crew) : queue_(queue), crew_(crew) {}

  void on_change(const TaskView& task);

 private:
  struct Wait;

 public:
  using Handle = std::weak_ptr<Wait>;
  /// Calls `then` once: when `is_met` (at once if it is already), when there is no such task, or
  /// after `limit`.
  Handle wait(const std::string& task_id,
              Predicate is_met,
              std::optional<std::chrono::milliseconds> limit,
              Then then);
  /// Forgets it; `then` is not called any more, unless it is being called.
  void drop(const Handle& handle);
  /// Calls every `then` now, and from now on each at once.
  void release_all();

 private:
  void fire(const std::shared_ptr<Wait>& wait, std::optional<TaskView> task);
  /// `fire` with the task as it is now; without, when the store does not say.
  void fire_now(const std::shared_ptr<Wait>& wait) noexcept;
  /// True for the first that takes it off the list.
  [[nodiscard]] bool take(const std::shared_ptr<Wait>& wait);

  Queue& queue_;
  Crew& crew_;
  std::mutex mutex_;  ///< Guards all below.
  bool is_released_ = false;
  std::map<std::string, std::vector<std::shared_ptr<Wait>>> waits_;  ///< By task.
};

}  // namespace drk::gym
