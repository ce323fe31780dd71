// SPDX-License-Identifier: Apache-2.0
// The tables of the queue's file, and the statements that the writing thread runs on them.
#pragma once

#include "drk/gym/queue.h"

#include "gym/live_tasks.h"
#include "gym/schedule.h"
#include "gym/sqlite.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drk::gym {

/// A row of `tasks`.
struct TaskRow {
  Seq seq = 0;
  TaskView view;
  std::string code;
  bool force_refresh = false;
  std::uint64_t fence = 0;  ///< Of the last lease.
  std::optional<std::int64_t> lease_until_ms;
  std::optional<std::int64_t> result_id;
};

/// What read_task() reads, in its order, and where it is to be read from.
inline constexpr std::string_view kSelectTask =
    "SELECT seq, id, content, code, client, workflow, priority, force_refresh, state, attempts,"
    " submitted_ms, started_ms, finished_ms, deadline_ms, lease_until_ms, fence, worker,"
    " last_trouble, is_cached, is_dead, is_no_verdict, result_id FROM tasks ";
/// The term that the index of live tasks is made with.
inline constexpr std::string_view kIsLive = "state IN ('pending', 'processing')";
[[nodiscard]] TaskRow read_task(const sqlite::Cursor& cursor);

/// Opens the file for writing and makes its tables if it has none.
/// Throws Error{unavailable or corrupt}.
[[nodiscard]] sqlite::Database open_for_writing(const std::string& path);

/// What a result is known by before its text is read.
struct ResultHead {
  std::int64_t id = 0;
  State state = State::completed;
};

/// What is to be added to the history of a code.
struct CodeNote {
  std::optional<TroubleKind> kind;
  std::string what;
  std::string task_id;
  std::int64_t now_ms = 0;
  bool is_poisoned = false;
};

/// Each call is one statement; the caller sees to transactions.
class Tables {
 public:
  explicit Tables(sqlite::Database& database);

  [[nodiscard]] std::optional<TaskRow> find(const std::string& id);
  [[nodiscard]] TaskRow at(Seq seq);
  [[nodiscard]] std::vector<TaskRow> live();
  [[nodiscard]] FinalCounts final_counts();
  [[nodiscard]] Seq last_seq();
  void insert(const TaskRow& row);
  void update(const TaskRow& row);  ///< All that can change once it is inserted.
  void erase(Seq seq);

  void put_request(Seq seq, const std::string& request);
  [[nodiscard]] std::string request(Seq seq);
  void erase_request(Seq seq);

  /// Returns its id.
  std::int64_t put_result(const TaskRow& of,
                          const StoredResult& result,
                          const std::optional<std::string>& reusable_generation);
  [[nodiscard]] std::optional<ResultHead> result(std::int64_t id);
  [[nodiscard]] std::optional<ResultHead> reusable_result(const std::string& content,
                                                          const std::string& generation);
  /// Unless it is reusable, for then others may have it too.
  void erase_own_result(std::int64_t id);

  void note(const std::string& code, const CodeNote& note);
  [[nodiscard]] bool is_poisoned(const std::string& code);
  bool erase_code(const std::string& code);

  [[nodiscard]] std::optional<std::string> batch_content(const std::string& id);
  void put_batch(const Batch& batch);

  /// A number that is larger each time; durable with the transaction.
  std::uint64_t next_epoch();

 private:
  sqlite::Database& database_;
  sqlite::Statement find_, at_, insert_, update_, erase_;
  sqlite::Statement put_request_, request_, erase_request_;
  sqlite::Statement put_result_, result_, reusable_result_, erase_own_result_;
  sqlite::Statement note_, is_poisoned_, erase_code_;
  sqlite::Statement batch_content_, put_batch_;
};

}  // namespace drk::gym
