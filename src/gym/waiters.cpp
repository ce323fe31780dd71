// SPDX-License-Identifier: Apache-2.0
// Waits by task: met by a change, or by time.
#include "gym/waiters.h"

#include <algorithm>

namespace drk::gym {

struct Waiters::Wait {
  std::string task_id;
  Predicate is_met;
  Then then;
  Crew::Timer timer;  ///< Guarded by Waiters::mutex_.
};

void Waiters::on_change(const TaskView& task) {
  std::vector<std::shared_ptr<Wait>> met;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waits_.find(task.id);
    if (found == waits_.end()) return;
    std::copy_if(
        found->second.begin(), found->second.end(), std::back_inserter(met), [&](const auto& wait) {
          return wait->is_met(task);
        });
  }
  for (const std::shared_ptr<Wait>& wait : met) fire(wait, task);
}

Waiters::Handle Waiters::wait(const std::string& task_id,
                              Predicate is_met,
                              std::optional<std::chrono::milliseconds> limit,
                              Then then) {
  auto wait = std::make_shared<Wait>(Wait{task_id, std::move(is_met), std::move(then), {}});
  bool is_released = false;
  {
    const std::lock_guard lock(mutex_);
    is_released = is_released_;
    waits_[task_id].push_back(wait);
    if (limit) {
      // Not an owner: the timer lives in the wait.
      wait->timer = crew_.after(*limit, [this, handle = Handle(wait)] {
        if (const std::shared_ptr<Wait> held = handle.lock()) fire_now(held);
      });
    }
  }
  // After it is listed, so that no change slips through between.
  try {
    std::optional<TaskView> task = queue_.find(task_id);
    if (!task || is_released || wait->is_met(*task)) fire(wait, std::move(task));
  } catch (const Error&) {  // the caller answers; the wait must not as well
    (void)take(wait);
    throw;
  }
  return wait;
}

void Waiters::drop(const Handle& handle) {
  if (const std::shared_ptr<Wait> wait = handle.lock()) (void)take(wait);
}

void Waiters::release_all() {
  std::vector<std::shared_ptr<Wait>> all;
  {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    for (const auto& [id, waits] : waits_) all.insert(all.end(), waits.begin(), waits.end());
  }
  for (const std::shared_ptr<Wait>& wait : all) fire_now(wait);
}

void Waiters::fire_now(const std::shared_ptr<Wait>& wait) noexcept {
  std::optional<TaskView> task;
  try {
    task = queue_.find(wait->task_id);
  } catch (const Error&) {  // who waits is answered all the same
  }
  fire(wait, std::move(task));
}

bool Waiters::take(const std::shared_ptr<Wait>& wait) {
  Crew::Timer timer;  // ends outside the lock
  const std::lock_guard lock(mutex_);
  const auto found = waits_.find(wait->task_id);
  if (found == waits_.end() || std::erase(found->second, wait) == 0) return false;
  if (found->second.empty()) waits_.erase(found);
  timer = std::move(wait->timer);
  return true;
}

void Waiters::fire(const std::shared_ptr<Wait>& wait, std::optional<TaskView> task) {
  if (!take(wait)) return;
  crew_.post([wait, task = std::move(task)] { wait->then(task); });
}

}  // namespace drk::gym
