// SPDX-License-Identifier: Apache-2.0
// Groups of requests, their transaction, and what is told afterwards.
#include "gym/writer.h"

#include "drk/base/clock.h"

#include <chrono>
#include <exception>
#include <pthread.h>
#include <tuple>

namespace drk::gym {

namespace {

constexpr std::size_t kLargestGroup = 512;  // bounds how long the first of a group waits

}  // namespace

Writer::Writer(const SqliteOptions& options, const std::string& path)
    : options_(options),
      database_(open_for_writing(path)),
      tables_(database_),
      board_(LiveTasks(tables_.final_counts()), read_live(tables_)),
      operations_(tables_, board_.live(), options_, next_epoch()) {
  recover();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

std::uint64_t Writer::next_epoch() {
  sqlite::Transaction transaction(database_);
  const std::uint64_t epoch = tables_.next_epoch();
  transaction.commit();
  return epoch;
}

void Writer::recover() {
  sqlite::Transaction transaction(database_);
  operations_.set_now(now_ms());
  operations_.lose_all();
  transaction.commit();
  board_.apply(operations_.take_changes());
}

std::int64_t Writer::now_ms() const {
  return options_.unix_ms ? options_.unix_ms() : unix_now_ms();
}

void Writer::listen(std::function<void(const TaskView&)> changed) {
  const std::lock_guard lock(mutex_);
  changed_ = std::move(changed);
}

void Writer::enqueue(std::unique_ptr<Errand> errand) {
  {
    const std::lock_guard lock(mutex_);
    errands_.push_back(std::move(errand));
  }
  wanted_.notify_one();
}

void Writer::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "drk-store");
  while (std::optional<Group> group = next_group(stop)) {
    operations_.set_now(now_ms());
    if (group->empty() && !operations_.is_due()) continue;
    if (change(*group)) publish();
    for (const std::unique_ptr<Errand>& errand : *group) errand->answer();
  }
}

std::optional<Writer::Group> Writer::next_group(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto is_wanted = [this] { return !errands_.empty(); };
  if (operations_.has_timers()) {
    wanted_.wait_for(
        lock, stop, std::chrono::duration<double>(options_.sweep_interval_s), is_wanted);
  } else {
    wanted_.wait(lock, stop, is_wanted);
  }
  if (errands_.empty() && stop.stop_requested()) return std::nullopt;
  Group group;
  while (!errands_.empty() && group.size() < kLargestGroup) {
    group.push_back(std::move(errands_.front()));
    errands_.pop_front();
  }
  return group;
}

bool Writer::change(Group& group) {
  try {
    sqlite::Transaction transaction(database_);
    sweep();
    for (const std::unique_ptr<Errand>& errand : group) {
      operations_.set_now(now_ms());
      sweep();
      const std::optional<Error> error = attempt([&] { errand->apply(operations_); });
      if (error) errand->refuse(*error);
    }
    transaction.commit();
    return true;
  } catch (const std::exception& error) {  // the disk is full, most likely
    operations_.restart(board_.live());
    const Error refusal(ErrorCode::unavailable,
                        "queue: cannot write in folder " + options_.folder +
                            ", nothing was changed: " + error.what());
    for (const std::unique_ptr<Errand>& errand : group) errand->refuse(refusal);
    return false;
  }
}

void Writer::sweep() {
  while (operations_.is_due()) {
    // What cannot be ended now is still due, and tried again later.
    if (attempt([&] { operations_.sweep(); })) return;
  }
}

template <class Body>
std::optional<Error> Writer::attempt(Body body) {
  const auto progress = [&] {
    return std::tuple(database_.in_transaction(), database_.total_changes(), operations_.changes());
  };
  const auto before = progress();
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    if (progress() != before) throw;
    return error;
  } catch (const std::exception& error) {
    if (progress() != before) throw;
    return Error(ErrorCode::internal, error.what());
  }
}

void Writer::publish() {
  const std::vector<Change> changes = operations_.take_changes();
  board_.apply(changes);
  std::unique_lock lock(mutex_);
  const std::function<void(const TaskView&)> changed = changed_;
  lock.unlock();  // the listener may ask for something
  if (!changed) return;
  for (const Change& change : changes) {
    const auto* task = std::get_if<TaskChange>(&change);
    if (task == nullptr || !task->after) continue;
    if (!task->before || task->before->state != task->after->state) changed(task->task);
  }
}

}  // namespace drk::gym
