// SPDX-License-Identifier: Apache-2.0
// Counts who waits; a timer runs while nobody does.
#include "gym/interest.h"

namespace drk::gym {

Interest::Token Interest::submitted(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[task_id];
  entry.generation = ++last_generation_;
  entry.waiting = 0;
  return wait_on(task_id, entry);
}

Interest::Token Interest::joined(const std::string& task_id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(task_id);
  return found == entries_.end() ? nullptr : wait_on(task_id, found->second);
}

Interest::Token Interest::wait_on(const std::string& task_id, Entry& entry) {
  ++entry.waiting;
  entry.timer = Crew::Timer();
  const std::uint64_t generation = entry.generation;
  return {nullptr, [this, task_id, generation](void*) { left(task_id, generation); }};
}

void Interest::left(const std::string& task_id, std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(task_id);
  if (found == entries_.end() || found->second.generation != generation) return;
  if (--found->second.waiting == 0) start_timer(task_id, found->second);
}

void Interest::kept(const std::string& task_id) {
  ended(task_id);
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
  entry.timer = crew_.after(
      grace_, [this, task_id, generation = entry.generation] { expire(task_id, generation); });
}

void Interest::expire(const std::string& task_id, std::uint64_t generation) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(task_id);
    if (found == entries_.end() || found->second.generation != generation ||
        found->second.waiting > 0) {
      return;
    }
    entries_.erase(found);
  }
  abandoned_(task_id);
}

}  // namespace drk::gym
