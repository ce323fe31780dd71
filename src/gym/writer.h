// SPDX-License-Identifier: Apache-2.0
// The thread that writes the queue's file. It does all that was asked for meanwhile in one
// transaction, so that many share one fsync.
#pragma once

#include "drk/base/error.h"
#include "drk/gym/queue.h"
#include "drk/gym/sqlite_store.h"

#include "gym/board.h"
#include "gym/operations.h"
#include "gym/sqlite.h"
#include "gym/tables.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace drk::gym {

/// Something asked of the writing thread.
class Errand {
 public:
  Errand() = default;
  Errand(const Errand&) = delete;
  Errand& operator=(const Errand&) = delete;
  virtual ~Errand() = default;
  virtual void apply(Operations& operations) = 0;
  virtual void refuse(const Error& error) = 0;  ///< In place of whatever apply() brought.
  virtual void answer() = 0;                    ///< Once it is durable.
};

template <class T>
class ErrandOf final : public Errand {
 public:
  using Outcome = std::variant<T, Error>;
  ErrandOf(std::function<T(Operations&)> body, Queue::Done<T> done)
      : body_(std::move(body)), done_(std::move(done)) {}
  void apply(Operations& operations) override { outcome_.emplace(body_(operations)); }
  void refuse(const Error& error) override { outcome_.emplace(error); }
  void answer() override {
    if (done_) done_(*std::move(outcome_));
  }

 private:
  std::function<T(Operations&)> body_;
  Queue::Done<T> done_;
  std::optional<Outcome> outcome_;
};

/// Thread-safe. Its end waits until all that was asked for is done.
class Writer {
 public:
  /// Opens the file at `path`, or makes it. `options` must outlive the writer.
  Writer(const SqliteOptions& options, const std::string& path);

  /// Has `body` done in its turn, and then `done` called.
  template <class T, class Body>
  void ask(Queue::Done<T> done, Body body) {
    enqueue(std::make_unique<ErrandOf<T>>(std::move(body), std::move(done)));
  }
  void listen(std::function<void(const TaskView&)> changed);
  [[nodiscard]] const Board& board() const noexcept { return board_; }
  [[nodiscard]] std::int64_t now_ms() const;

 private:
  using Group = std::vector<std::unique_ptr<Errand>>;

  [[nodiscard]] std::uint64_t next_epoch();
  void recover();
  void enqueue(std::unique_ptr<Errand> errand);
  void run(const std::stop_token& stop);
  /// What was asked for meanwhile; nothing of it when it is time to look at the clock; empty at the
  /// end.
  [[nodiscard]] std::optional<Group> next_group(const std::stop_token& stop);
  /// Does all of the group in one transaction; false when nothing came of it.
  [[nodiscard]] bool change(Group& group);
  void sweep();
  /// Returns what went wrong if it went wrong before anything was changed; throws what went wrong
  /// later, for then the whole transaction has to go.
  template <class Body>
  [[nodiscard]] std::optional<Error> attempt(Body body);
  /// Shows readers and the listener what is durable now.
  void publish();

  const SqliteOptions& options_;
  sqlite::Database database_;  // of the thread, once it runs, as are tables_ and operations_
  Tables tables_;
  Board board_;  // of all; it is there before operations_, which start from it
  Operations operations_;

  std::mutex mutex_;
  std::condition_variable_any wanted_;
  std::deque<std::unique_ptr<Errand>> errands_;  // guarded by mutex_, as is the next
  std::function<void(const TaskView&)> changed_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace drk::gym
