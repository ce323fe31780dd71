// SPDX-License-Identifier: Apache-2.0
// Queries.
#include "gym/reader.h"

#include "drk/base/json.h"

#include "gym/tables.h"

#include <utility>

namespace drk::gym {

namespace {

std::optional<StoredResult> only_result(sqlite::Cursor cursor) {
  if (!cursor.next()) return std::nullopt;
  return StoredResult{cursor.text(0), cursor.text(1)};
}

std::string list_sql(const ListFilter& filter) {
  std::string sql(kSelectTask);
  sql += "WHERE (?1 = '' OR state = ?1) AND (?2 = '' OR client = ?2)";
  // These two have an index that finds the few among many.
  if (filter.dead_only) sql += " AND is_dead";
  if (filter.retried_only) sql += " AND attempts > 0";
  if (filter.state && !is_final(*filter.state)) sql.append(" AND ").append(kIsLive);
  return sql + " ORDER BY seq DESC LIMIT ?3";
}

}  // namespace

Reader::Reader(const std::string& path, std::string generation)
    : generation_(std::move(generation)),
      single_(path, sqlite::Access::read),
      find_(single_, std::string(kSelectTask) + "WHERE id = ?"),
      result_(single_,
              "SELECT result, detail FROM results"
              " WHERE id = (SELECT result_id FROM tasks WHERE id = ?)"),
      reusable_result_(single_,
                       "SELECT result, detail FROM results"
                       " WHERE content = ? AND reusable_generation = ? ORDER BY id DESC LIMIT 1"),
      many_(path, sqlite::Access::read) {}

std::optional<TaskView> Reader::find(const std::string& id) {
  const std::lock_guard lock(single_mutex_);
  sqlite::Cursor cursor = find_.query(id);
  if (!cursor.next()) return std::nullopt;
  return read_task(cursor).view;
}

std::optional<StoredResult> Reader::result(const std::string& task_id) {
  const std::lock_guard lock(single_mutex_);
  return only_result(result_.query(task_id));
}

std::optional<StoredResult> Reader::reusable_result(const std::string& content) {
  const std::lock_guard lock(single_mutex_);
  return only_result(reusable_result_.query(content, generation_));
}

std::vector<TaskView> Reader::list(const ListFilter& filter) {
  const std::lock_guard lock(many_mutex_);
  sqlite::Statement statement(many_, list_sql(filter));
  sqlite::Cursor cursor = statement.query(
      filter.state ? json::name_of(*filter.state) : "", filter.client, filter.limit);
  std::vector<TaskView> tasks;
  while (cursor.next()) tasks.push_back(read_task(cursor).view);
  return tasks;
}

std::vector<CodeHistory> Reader::codes() {
  const std::lock_guard lock(many_mutex_);
  sqlite::Statement statement(many_,
                              "SELECT code, crashes, timeouts, out_of_memory, lost_workers, infra,"
                              " last_task_id, last_what, last_ms, is_poisoned FROM codes"
                              " ORDER BY last_ms DESC, code LIMIT 1000");
  sqlite::Cursor cursor = statement.query();
  std::vector<CodeHistory> codes;
  while (cursor.next()) {
    codes.push_back({.code = cursor.text(0),
                     .crashes = cursor.natural(1),
                     .timeouts = cursor.natural(2),
                     .out_of_memory = cursor.natural(3),
                     .lost_workers = cursor.natural(4),
                     .infra = cursor.natural(5),
                     .last_task_id = cursor.text(6),
                     .last_what = cursor.text(7),
                     .last_ms = cursor.integer(8),
                     .is_poisoned = cursor.flag(9)});
  }
  return codes;
}

std::optional<Batch> Reader::batch(const std::string& id) {
  const std::lock_guard lock(many_mutex_);
  sqlite::Statement statement(
      many_, "SELECT id, content, task_ids, submitted_ms FROM batches WHERE id = ?");
  sqlite::Cursor cursor = statement.query(id);
  if (!cursor.next()) return std::nullopt;
  return Batch{cursor.text(0),
               cursor.text(1),
               json::from_json<std::vector<std::string>>(json::parse(cursor.text(2))),
               cursor.integer(3)};
}

}  // namespace drk::gym
