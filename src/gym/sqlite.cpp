// SPDX-License-Identifier: Apache-2.0
// Connections, statements, result codes.
#include "gym/sqlite.h"

#include "drk/base/error.h"

#include <sqlite3.h>

namespace drk::gym::sqlite {

namespace {

constexpr int kBusyTimeoutMs = 5'000;  // somebody looks into the file with another program

ErrorCode code_of(int result) {
  switch (result & 0xff) {  // the primary code
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
      return ErrorCode::corrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
    case SQLITE_PROTOCOL:
      return ErrorCode::unavailable;
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return ErrorCode::exhausted;
    default:
      return ErrorCode::internal;
  }
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const noexcept {
  ::sqlite3_close_v2(handle);
}

Database::Database(const std::string& path, Access access) : path_(path) {
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (access == Access::write ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY);
  sqlite3* handle = nullptr;
  const int result = ::sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  check(result, "open");
  ::sqlite3_extended_result_codes(handle, 1);
  ::sqlite3_busy_timeout(handle, kBusyTimeoutMs);
}

void Database::exec(const char* sql) {
  check(::sqlite3_exec(get(), sql, nullptr, nullptr, nullptr), sql);
}

std::int64_t Database::integer(const char* sql) {
  Statement statement(*this, sql);
  Cursor cursor = statement.query();
  DRK_CHECK(cursor.next());
  return cursor.integer(0);
}

std::int64_t Database::last_insert_id() const {
  return ::sqlite3_last_insert_rowid(get());
}

std::int64_t Database::total_changes() const {
  return ::sqlite3_total_changes64(get());
}

bool Database::in_transaction() const {
  return ::sqlite3_get_autocommit(get()) == 0;
}

void Database::check(int code, std::string_view what) const {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  const char* reason = get() == nullptr ? ::sqlite3_errstr(code) : ::sqlite3_errmsg(get());
  throw Error(code_of(code), "sqlite: " + path_ + ": " + reason + " (" + std::string(what) + ")");
}

Cursor::~Cursor() {
  ::sqlite3_reset(statement_);
  ::sqlite3_clear_bindings(statement_);
}

bool Cursor::next() {
  const int result = ::sqlite3_step(statement_);
  database_.check(result, ::sqlite3_sql(statement_));
  return result == SQLITE_ROW;
}

std::int64_t Cursor::integer(int column) const {
  return ::sqlite3_column_int64(statement_, column);
}

std::optional<std::int64_t> Cursor::optional_integer(int column) const {
  if (::sqlite3_column_type(statement_, column) == SQLITE_NULL) return std::nullopt;
  return integer(column);
}

std::string Cursor::text(int column) const {
  // The text first: asking for it may change how many bytes it has.
  const void* text = ::sqlite3_column_text(statement_, column);
  const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column));
  return text == nullptr ? std::string() : std::string(static_cast<const char*>(text), size);
}

void Statement::Finalize::operator()(sqlite3_stmt* handle) const noexcept {
  ::sqlite3_finalize(handle);
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  const int result = ::sqlite3_prepare_v3(database.get(),
                                          sql.data(),
                                          static_cast<int>(sql.size()),
                                          SQLITE_PREPARE_PERSISTENT,
                                          &handle,
                                          nullptr);
  handle_.reset(handle);
  database.check(result, sql);
}

void Statement::bind(int index, Lifetime lifetime, std::string_view text) {
  // An empty view may hold a null pointer, which SQLite would store as NULL.
  const char* data = text.empty() ? "" : text.data();
  // SQLITE_TRANSIENT is an integer cast to a pointer, as its interface wants it.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const sqlite3_destructor_type owner = lifetime == Lifetime::copy ? SQLITE_TRANSIENT : nullptr;
  database_.check(
      ::sqlite3_bind_text64(handle_.get(), index, data, text.size(), owner, SQLITE_UTF8), "bind");
}

void Statement::bind(int index, Lifetime /*lifetime*/, const std::optional<std::int64_t>& value) {
  database_.check(value ? ::sqlite3_bind_int64(handle_.get(), index, *value)
                        : ::sqlite3_bind_null(handle_.get(), index),
                  "bind");
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.exec("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // After some failures SQLite has rolled back already.
  if (database_.in_transaction()) {
    ::sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Transaction::commit() {
  database_.exec("COMMIT");
}

}  // namespace drk::gym::sqlite
