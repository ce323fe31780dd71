// SPDX-License-Identifier: Apache-2.0
// Changes of tasks, as order, timers and counts see them.
#include "gym/live_tasks.h"

#include <algorithm>

namespace drk::gym {

namespace {

bool is_in(const std::optional<Standing>& standing, State state) {
  return standing && standing->state == state;
}

bool is_live(const std::optional<Standing>& standing) {
  return standing && !is_final(standing->state);
}

}  // namespace

void LiveTasks::apply(const Change& change) {
  if (const auto* task = std::get_if<TaskChange>(&change)) {
    apply_task(*task);
  } else {
    schedule_.age(std::get<Ageing>(change).now_ms);
  }
}

void LiveTasks::apply_task(const TaskChange& change) {
  const auto& [seq, before, after, task] = change;
  if (before) {
    --stored_;
    if (before->is_dead) --dead_;
    if (before->due_ms) timers_.erase({*before->due_ms, seq});
  }
  if (after) {
    ++stored_;
    if (after->is_dead) ++dead_;
    if (after->due_ms) timers_.emplace(*after->due_ms, seq);
  }
  reschedule(change);
}

void LiveTasks::reschedule(const TaskChange& change) {
  const auto& [seq, before, after, task] = change;
  if (!is_live(before)) {
    if (is_live(after)) schedule_.add(seq, task.client, task.priority, task.submitted_ms);
    if (is_in(after, State::processing)) schedule_.lease(seq);
  } else if (!is_live(after)) {
    schedule_.remove(seq);
  } else if (before->state != after->state) {
    if (after->state == State::processing) {
      schedule_.lease(seq);
    } else {
      schedule_.give_back(seq);
    }
  }
}

std::optional<Seq> LiveTasks::due(std::int64_t now_ms) const {
  if (timers_.empty() || timers_.begin()->first > now_ms) return std::nullopt;
  return timers_.begin()->second;
}

bool LiveTasks::is_ageing_due(std::int64_t now_ms) const {
  const std::optional<std::int64_t> next = schedule_.next_ageing_ms();
  return next && *next <= now_ms;
}

QueueCounts LiveTasks::counts(std::int64_t now_ms) const {
  const std::int64_t oldest_ms = schedule_.oldest_submitted_ms().value_or(now_ms);
  return {.pending_low = schedule_.pending(Priority::low),
          .pending_normal = schedule_.pending(Priority::normal),
          .pending_high = schedule_.pending(Priority::high),
          .processing = schedule_.leased(),
          .dead = dead_,
          .stored = stored_,
          .oldest_pending_ms =
              static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ms - oldest_ms))};
}

}  // namespace drk::gym
