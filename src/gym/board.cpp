// SPDX-License-Identifier: Apache-2.0
// Published changes and what is asked of them.
#include "gym/board.h"

namespace drk::gym {

void Board::apply(std::span<const Change> changes) {
  const std::lock_guard lock(mutex_);
  for (const Change& change : changes) {
    live_.apply(change);
    if (const auto* task = std::get_if<TaskChange>(&change)) show(*task);
  }
}

void Board::show(const TaskChange& change) {
  const auto found = shown_.find(change.task.id);
  if (found != shown_.end()) shown_.erase(found);
  if (!change.after || is_final(change.after->state)) return;
  auto shown = std::make_unique<Shown>(Shown{change.seq, change.task});
  const std::string_view id = shown->task.id;
  shown_.emplace(id, std::move(shown));
}

std::optional<TaskView> Board::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(id);
  if (found == shown_.end()) return std::nullopt;
  return found->second->task;
}

std::optional<Place> Board::place(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = shown_.find(id);
  if (found == shown_.end()) return std::nullopt;
  return live_.schedule().place(found->second->seq);
}

QueueCounts Board::counts(std::int64_t now_ms) const {
  const std::lock_guard lock(mutex_);
  return live_.counts(now_ms);
}

LiveTasks Board::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

}  // namespace drk::gym
