// SPDX-License-Identifier: Apache-2.0
// Queue and result store in one SQLite file.
#pragma once

#include "drk/gym/queue.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace drk::gym {

struct SqliteOptions {
  std::string folder;  ///< Made when it is not there. One process at a time.
  std::uint64_t max_pending = 20'000;
  std::uint32_t max_attempts = 3;
  /// What results of other versions are not reused by: hash of the program and what it runs.
  std::string generation;
  /// Result of a task that ends without a worker: its deadline passed in the queue, it was
  /// cancelled, its worker was lost too often. `what` is for people. Empty: an empty text. Called
  /// on the writing thread; must not throw.
  std::function<std::string(State state, const std::string& what)> result_of_end;
  double sweep_interval_s = 0.25;  ///< How often leases and deadlines are looked at, when idle.
  std::function<std::int64_t()> unix_ms;  ///< The time, for any thread. Empty: the system's.
};

/// SQLite in WAL mode, synchronous=FULL, one writing thread that commits in groups: a `done` is
/// called after the fsync that its change is in. Survives kill -9 at any moment: on opening, tasks
/// that were processing are pending again (an attempt counts, or they are dead).
class SqliteStore final : public Queue, public ResultStore {
 public:
  /// Throws Error{unavailable} when another process has the folder or it cannot be written,
  /// Error{corrupt} when the file is no database of ours.
  explicit SqliteStore(SqliteOptions options);
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;
  ~SqliteStore() override;  ///< Completes what was asked for.

  void submit(SubmitRequest request, Done<std::vector<Admitted>> done) override;
  void lease(const std::string& worker, double lease_s, Done<std::optional<Lease>> done) override;
  void renew(std::vector<LeaseId> leases, double lease_s, Done<std::vector<bool>> done) override;
  void finish(const LeaseId& lease, Ending ending, Done<bool> done) override;
  void give_back(const LeaseId& lease, GiveBack how, Done<bool> done) override;
  void cancel(const std::string& id, Done<CancelOutcome> done) override;
  void clear_code(const std::string& code, Done<bool> done) override;

  [[nodiscard]] std::optional<TaskView> find(const std::string& id) override;
  [[nodiscard]] std::optional<Place> place(const std::string& id) override;
  [[nodiscard]] std::vector<TaskView> list(const ListFilter& filter) override;
  [[nodiscard]] QueueCounts counts() override;
  [[nodiscard]] std::vector<CodeHistory> troubled_codes() override;
  [[nodiscard]] std::optional<Batch> batch(const std::string& id) override;
  void listen(std::function<void(const TaskView&)> changed) override;

  [[nodiscard]] std::optional<StoredResult> result(const std::string& task_id) override;
  [[nodiscard]] std::optional<StoredResult> find_content(const std::string& content) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drk::gym
