// SPDX-License-Identifier: Apache-2.0
// What each operation on the queue does, inside a transaction of the writing thread.
#pragma once

#include "drk/gym/queue.h"
#include "drk/gym/sqlite_store.h"

#include "gym/live_tasks.h"
#include "gym/tables.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drk::gym {

/// Rounded up, and bounded so that no sum of times overflows.
[[nodiscard]] std::int64_t ms_of(double seconds);

/// The live tasks of the file, as coming.
[[nodiscard]] std::vector<Change> read_live(Tables& tables);

/// Every operation checks first and changes then: what it throws before its first change concerns
/// it alone, what it throws later spoils the transaction. Not thread-safe.
class Operations {
 public:
  /// `live` is what `tables` holds. `epoch` is larger than in every earlier process.
  Operations(Tables& tables, LiveTasks live, const SqliteOptions& options, std::uint64_t epoch);

  /// The time of the operations from here on.
  void set_now(std::int64_t now_ms) noexcept { now_ms_ = now_ms; }
  [[nodiscard]] std::vector<Admitted> submit(SubmitRequest request);
  [[nodiscard]] std::optional<Lease> lease(const std::string& worker, double lease_s);
  [[nodiscard]] std::vector<bool> renew(const std::vector<LeaseId>& leases, double lease_s);
  [[nodiscard]] bool finish(const LeaseId& lease, const Ending& ending);
  [[nodiscard]] bool give_back(const LeaseId& lease, const GiveBack& how);
  [[nodiscard]] CancelOutcome cancel(const std::string& id);
  [[nodiscard]] bool clear_code(const std::string& code);

  /// Whether sweep() has something to do.
  [[nodiscard]] bool is_due() const;
  /// Lets pending tasks age, and ends one lease or task whose time is up.
  void sweep();
  /// Ends all leases: their workers are gone.
  void lose_all();
  /// Whether time alone can make something due.
  [[nodiscard]] bool has_timers() const { return live_.has_timers(); }

  /// What the operations since the last call changed, in order.
  [[nodiscard]] std::vector<Change> take_changes();
  [[nodiscard]] std::size_t changes() const noexcept { return changes_.size(); }
  /// The transaction was rolled back: `live` is what the tables hold now.
  void restart(LiveTasks live);

 private:
  /// What is to become of one submission.
  struct Plan {
    Submission submission;
    Admission admission = Admission::created;
    std::optional<TaskRow> old;
    std::optional<ResultHead> earlier;  ///< Answers it.
  };

  [[nodiscard]] Plan plan(Submission submission);
  void check_room(const std::vector<Plan>& plans) const;
  [[nodiscard]] TaskRow new_row(const Plan& plan) const;
  Admitted carry_out(Plan plan);
  /// The task, if the lease is held.
  [[nodiscard]] std::optional<TaskRow> held(const LeaseId& lease);
  void end_lost_lease(const TaskRow& row, const std::string& why);
  void end_attempt(const TaskRow& before, const GiveBack& how);
  void end_without_verdict(const TaskRow& before,
                           TaskRow after,
                           State state,
                           const std::string& result);
  /// `after` has its state and its result.
  void end(const TaskRow& before, TaskRow after);
  void blame(const TaskRow& row, const std::optional<Trouble>& trouble, bool is_poisoned);
  [[nodiscard]] std::string result_of_end(State state, const std::string& what) const;
  [[nodiscard]] std::int64_t lease_until_ms(double lease_s) const;

  void insert(const TaskRow& row);
  void update(const TaskRow& before, const TaskRow& after);
  void erase(const TaskRow& row);
  void record(Change change);

  Tables& tables_;
  const SqliteOptions& options_;
  LiveTasks live_;
  std::vector<Change> changes_;
  std::int64_t now_ms_ = 0;
  Seq last_seq_;
  std::uint64_t last_fence_;  ///< The epoch in the upper half: no need to store each.
};

}  // namespace drk::gym
