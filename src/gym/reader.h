// SPDX-License-Identifier: Apache-2.0
// What is asked of the queue's file, beside the thread that writes it.
#pragma once

#include "drk/gym/queue.h"

#include "gym/sqlite.h"

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace drk::gym {

/// Two connections, so that a long list holds up nobody who asks for one task. Thread-safe.
class Reader {
 public:
  /// The file at `path` has its tables.
  Reader(const std::string& path, std::string generation);

  [[nodiscard]] std::optional<TaskView> find(const std::string& id);
  [[nodiscard]] std::optional<StoredResult> result(const std::string& task_id);
  [[nodiscard]] std::optional<StoredResult> reusable_result(const std::string& content);

  [[nodiscard]] std::vector<TaskView> list(const ListFilter& filter);
  [[nodiscard]] std::vector<CodeHistory> codes();
  [[nodiscard]] std::optional<Batch> batch(const std::string& id);

 private:
  const std::string generation_;

  std::mutex single_mutex_;
  sqlite::Database single_;  // guarded by single_mutex_, as are the statements on it
  sqlite::Statement find_;
  sqlite::Statement result_;
  sqlite::Statement reusable_result_;

  std::mutex many_mutex_;
  sqlite::Database many_;  // guarded by many_mutex_
};

}  // namespace drk::gym
