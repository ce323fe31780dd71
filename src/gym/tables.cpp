// SPDX-License-Identifier: Apache-2.0
// Schema and statements.
#include "gym/tables.h"

#include "drk/base/error.h"
#include "drk/base/json.h"

namespace drk::gym {

namespace {

// Says that the file is ours ("drkq") and how it is laid out.
constexpr std::int64_t kApplicationId = 0x64726b71;
constexpr std::int64_t kVersion = 1;

// Small rows in `tasks`, so that looking through them is quick; what is long is beside them.
// `results` outlive tasks: a reusable one answers any number of them.
constexpr const char* kSchema = R"(
CREATE TABLE tasks(
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, content TEXT NOT NULL, code TEXT NOT NULL,
  client TEXT NOT NULL, workflow TEXT NOT NULL, priority TEXT NOT NULL, force_refresh INTEGER NOT NULL,
  state TEXT NOT NULL, attempts INTEGER NOT NULL, submitted_ms INTEGER NOT NULL, started_ms INTEGER,
  finished_ms INTEGER, deadline_ms INTEGER, lease_until_ms INTEGER, fence INTEGER NOT NULL,
  worker TEXT NOT NULL, last_trouble TEXT NOT NULL, is_cached INTEGER NOT NULL,
  is_dead INTEGER NOT NULL, is_no_verdict INTEGER NOT NULL, result_id INTEGER);
CREATE INDEX tasks_live ON tasks(seq) WHERE state IN ('pending', 'processing');
CREATE INDEX tasks_dead ON tasks(seq) WHERE is_dead;
CREATE TABLE requests(seq INTEGER PRIMARY KEY, request TEXT NOT NULL);
CREATE TABLE results(
  id INTEGER PRIMARY KEY, content TEXT NOT NULL, reusable_generation TEXT, state TEXT NOT NULL,
  result TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX results_reusable ON results(content, reusable_generation)
  WHERE reusable_generation IS NOT NULL;
CREATE TABLE codes(
  code TEXT PRIMARY KEY, crashes INTEGER NOT NULL, timeouts INTEGER NOT NULL,
  out_of_memory INTEGER NOT NULL, lost_workers INTEGER NOT NULL, infra INTEGER NOT NULL,
  last_task_id TEXT NOT NULL, last_what TEXT NOT NULL, last_ms INTEGER NOT NULL,
  is_poisoned INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE batches(
  id TEXT PRIMARY KEY, content TEXT NOT NULL, task_ids TEXT NOT NULL, submitted_ms INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE meta(epoch INTEGER NOT NULL);
INSERT INTO meta VALUES(0);
)";

std::string join(std::string_view a, std::string_view b) {
  std::string text(a);
  text += b;
  return text;
}

template <class E>
E enum_at(const sqlite::Cursor& cursor, int column) {
  const std::string name = cursor.text(column);
  const std::optional<E> value = json::enum_from<E>(name);
  if (!value) throw Error(ErrorCode::corrupt, "queue: the file says \"" + name + "\" for a state");
  return *value;
}

void make_tables(sqlite::Database& database) {
  database.exec("PRAGMA page_size=8192");  // most requests fit
  database.exec("PRAGMA journal_mode=WAL");
  sqlite::Transaction transaction(database);
  database.exec(kSchema);
  database.exec(("PRAGMA application_id=" + std::to_string(kApplicationId)).c_str());
  database.exec(("PRAGMA user_version=" + std::to_string(kVersion)).c_str());
  transaction.commit();
}

void check_tables(sqlite::Database& database, const std::string& path) {
  if (database.integer("PRAGMA application_id") != kApplicationId) {
    throw Error(ErrorCode::corrupt, "queue: " + path + " is a database, but not one of a queue");
  }
  const std::int64_t version = database.integer("PRAGMA user_version");
  if (version != kVersion) {
    throw Error(ErrorCode::corrupt,
                "queue: " + path + " has layout " + std::to_string(version) + ", wanted " +
                    std::to_string(kVersion) + "; it was written by another version");
  }
}

}  // namespace

sqlite::Database open_for_writing(const std::string& path) {
  sqlite::Database database(path, sqlite::Access::write);
  if (database.integer("SELECT count(*) FROM sqlite_master") == 0 &&
      database.integer("PRAGMA application_id") == 0) {
    make_tables(database);
  }
  check_tables(database, path);
  database.exec("PRAGMA journal_mode=WAL");
  database.exec("PRAGMA synchronous=FULL");
  database.exec("PRAGMA cache_size=-32768");        // KiB
  database.exec("PRAGMA wal_autocheckpoint=2000");  // pages: 16 MB
  database.exec("PRAGMA journal_size_limit=67108864");
  return database;
}

TaskRow read_task(const sqlite::Cursor& cursor) {
  TaskRow row;
  TaskView& view = row.view;
  row.seq = cursor.integer(0);
  view.id = cursor.text(1);
  view.content = cursor.text(2);
  row.code = cursor.text(3);
  view.client = cursor.text(4);
  view.workflow = cursor.text(5);
  view.priority = enum_at<Priority>(cursor, 6);
  row.force_refresh = cursor.flag(7);
  view.state = enum_at<State>(cursor, 8);
  view.attempts = static_cast<std::uint32_t>(cursor.integer(9));
  view.submitted_ms = cursor.integer(10);
  view.started_ms = cursor.optional_integer(11);
  view.finished_ms = cursor.optional_integer(12);
  view.deadline_ms = cursor.optional_integer(13);
  row.lease_until_ms = cursor.optional_integer(14);
  row.fence = cursor.natural(15);
  view.worker = cursor.text(16);
  view.last_trouble = cursor.text(17);
  view.is_cached = cursor.flag(18);
  view.is_dead = cursor.flag(19);
  view.is_no_verdict = cursor.flag(20);
  row.result_id = cursor.optional_integer(21);
  return row;
}

Tables::Tables(sqlite::Database& database)
    : database_(database),
      find_(database, join(kSelectTask, "WHERE id = ?")),
      at_(database, join(kSelectTask, "WHERE seq = ?")),
      insert_(database,
              "INSERT INTO tasks VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
              " ?, ?)"),
      update_(database,
              "UPDATE tasks SET state = ?, attempts = ?, started_ms = ?, finished_ms = ?,"
              " lease_until_ms = ?, fence = ?, worker = ?, last_trouble = ?, is_cached = ?,"
              " is_dead = ?, is_no_verdict = ?, result_id = ? WHERE seq = ?"),
      erase_(database, "DELETE FROM tasks WHERE seq = ?"),
      put_request_(database, "INSERT INTO requests VALUES(?, ?)"),
      request_(database, "SELECT request FROM requests WHERE seq = ?"),
      erase_request_(database, "DELETE FROM requests WHERE seq = ?"),
      put_result_(database,
                  "INSERT INTO results(content, reusable_generation, state, result, detail)"
                  " VALUES(?, ?, ?, ?, ?)"),
      result_(database, "SELECT id, state FROM results WHERE id = ?"),
      reusable_result_(database,
                       "SELECT id, state FROM results WHERE content = ? AND reusable_generation = ?"
                       " ORDER BY id DESC LIMIT 1"),
      erase_own_result_(database,
                        "DELETE FROM results WHERE id = ? AND reusable_generation IS NULL"),
      note_(database,
            "INSERT INTO codes VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(code) DO UPDATE SET"
            " crashes = crashes + excluded.crashes, timeouts = timeouts + excluded.timeouts,"
            " out_of_memory = out_of_memory + excluded.out_of_memory,"
            " lost_workers = lost_workers + excluded.lost_workers, infra = infra + excluded.infra,"
            " last_task_id = excluded.last_task_id, last_what = excluded.last_what,"
            " last_ms = excluded.last_ms, is_poisoned = max(is_poisoned, excluded.is_poisoned)"),
      is_poisoned_(database, "SELECT 1 FROM codes WHERE code = ? AND is_poisoned"),
      erase_code_(database, "DELETE FROM codes WHERE code = ?"),
      batch_content_(database, "SELECT content FROM batches WHERE id = ?"),
      put_batch_(database, "INSERT INTO batches VALUES(?, ?, ?, ?)") {}

std::optional<TaskRow> Tables::find(const std::string& id) {
  sqlite::Cursor cursor = find_.query(id);
  if (!cursor.next()) return std::nullopt;
  return read_task(cursor);
}

TaskRow Tables::at(Seq seq) {
  sqlite::Cursor cursor = at_.query(seq);
  DRK_CHECK(cursor.next());
  return read_task(cursor);
}

std::vector<TaskRow> Tables::live() {
  sqlite::Statement statement(database_,
                              join(join(kSelectTask, "WHERE "), join(kIsLive, " ORDER BY seq")));
  sqlite::Cursor cursor = statement.query();
  std::vector<TaskRow> rows;
  while (cursor.next()) rows.push_back(read_task(cursor));
  return rows;
}

FinalCounts Tables::final_counts() {
  const std::string live = join("SELECT count(*) FROM tasks WHERE ", kIsLive);
  const std::int64_t all = database_.integer("SELECT count(*) FROM tasks");
  return {
      static_cast<std::uint64_t>(all - database_.integer(live.c_str())),
      static_cast<std::uint64_t>(database_.integer("SELECT count(*) FROM tasks WHERE is_dead"))};
}

Seq Tables::last_seq() {
  return database_.integer("SELECT coalesce(max(seq), 0) FROM tasks");
}

void Tables::insert(const TaskRow& row) {
  const TaskView& view = row.view;
  insert_.exec(row.seq,
               view.id,
               view.content,
               row.code,
               view.client,
               view.workflow,
               json::name_of(view.priority),
               row.force_refresh,
               json::name_of(view.state),
               view.attempts,
               view.submitted_ms,
               view.started_ms,
               view.finished_ms,
               view.deadline_ms,
               row.lease_until_ms,
               row.fence,
               view.worker,
               view.last_trouble,
               view.is_cached,
               view.is_dead,
               view.is_no_verdict,
               row.result_id);
}

void Tables::update(const TaskRow& row) {
  const TaskView& view = row.view;
  update_.exec(json::name_of(view.state),
               view.attempts,
               view.started_ms,
               view.finished_ms,
               row.lease_until_ms,
               row.fence,
               view.worker,
               view.last_trouble,
               view.is_cached,
               view.is_dead,
               view.is_no_verdict,
               row.result_id,
               row.seq);
}

void Tables::erase(Seq seq) {
  erase_.exec(seq);
}

void Tables::put_request(Seq seq, const std::string& request) {
  put_request_.exec(seq, request);
}

std::string Tables::request(Seq seq) {
  sqlite::Cursor cursor = request_.query(seq);
  DRK_CHECK(cursor.next());
  return cursor.text(0);
}

void Tables::erase_request(Seq seq) {
  erase_request_.exec(seq);
}

std::int64_t Tables::put_result(const TaskRow& of,
                                const StoredResult& result,
                                const std::optional<std::string>& reusable_generation) {
  put_result_.exec(of.view.content,
                   reusable_generation,
                   json::name_of(of.view.state),
                   result.result,
                   result.detail);
  return database_.last_insert_id();
}

std::optional<ResultHead> Tables::result(std::int64_t id) {
  sqlite::Cursor cursor = result_.query(id);
  if (!cursor.next()) return std::nullopt;
  return ResultHead{cursor.integer(0), enum_at<State>(cursor, 1)};
}

std::optional<ResultHead> Tables::reusable_result(const std::string& content,
                                                  const std::string& generation) {
  sqlite::Cursor cursor = reusable_result_.query(content, generation);
  if (!cursor.next()) return std::nullopt;
  return ResultHead{cursor.integer(0), enum_at<State>(cursor, 1)};
}

void Tables::erase_own_result(std::int64_t id) {
  erase_own_result_.exec(id);
}

void Tables::note(const std::string& code, const CodeNote& note) {
  note_.exec(code,
             note.kind == TroubleKind::crash,
             note.kind == TroubleKind::timeout,
             note.kind == TroubleKind::out_of_memory,
             note.kind == TroubleKind::lost_worker,
             note.kind == TroubleKind::infra,
             note.task_id,
             note.what,
             note.now_ms,
             note.is_poisoned);
}

bool Tables::is_poisoned(const std::string& code) {
  return is_poisoned_.query(code).next();
}

bool Tables::erase_code(const std::string& code) {
  const std::int64_t before = database_.total_changes();
  erase_code_.exec(code);
  return database_.total_changes() != before;
}

std::optional<std::string> Tables::batch_content(const std::string& id) {
  sqlite::Cursor cursor = batch_content_.query(id);
  if (!cursor.next()) return std::nullopt;
  return cursor.text(0);
}

void Tables::put_batch(const Batch& batch) {
  put_batch_.exec(
      batch.id, batch.content, json::dump(json::to_json(batch.task_ids)), batch.submitted_ms);
}

std::uint64_t Tables::next_epoch() {
  database_.exec("UPDATE meta SET epoch = epoch + 1");
  return static_cast<std::uint64_t>(database_.integer("SELECT epoch FROM meta"));
}

}  // namespace drk::gym
