// SPDX-License-Identifier: Apache-2.0
// Counts who waits; a timer runs while nobody does.
#include "gym/interest.h"

namespace drk::gym {

void Interest::submitted(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[task_id];
  ++entry.waiting;
  entry.timer = Crew::Timer();
}

void Interest::joined(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(task_id);
  if (found == entries_.end()) return;
  ++found->second.waiting;
  found->second.timer = Crew::Timer();
}

void Interest::left(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(task_id);
  if (found == entries_.end() || found->second.waiting == 0) return;
  if (--found->second.waiting == 0) start_timer(task_id, found->second);
}

void Interest::asked(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(task_id);
  if (found == entries_.end() || found->second.waiting > 0) return;
  start_timer(task_id, found->second);
}

void Interest::ended(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  entries_.erase(task_id);
}

void Interest::start_timer(const std::string& task_id, Entry& entry) {
  entry.timer = crew_.after(grace_, [this, task_id] { expire(task_id); });
}

void Interest::expire(const std::string& task_id) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(task_id);
    if (found == entries_.end() || found->second.waiting > 0) return;
    entries_.erase(found);
  }
  abandoned_(task_id);
}

}  // namespace drk::gym
