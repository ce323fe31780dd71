// SPDX-License-Identifier: Apache-2.0
// SQLite with owners: a connection, prepared statements, a transaction. Faults are drk::Error.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace drk::gym::sqlite {

enum class Access : std::uint8_t { read, write };

/// One connection to one file. Not thread-safe.
class Database {
 public:
  /// Access::write makes the file when it is not there.
  /// Throws Error{unavailable}, or Error{corrupt} when it is no SQLite file.
  Database(const std::string& path, Access access);

  void exec(const char* sql);
  [[nodiscard]] std::int64_t integer(const char* sql);  ///< The one value that `sql` asks for.
  [[nodiscard]] std::int64_t last_insert_id() const;
  /// Rows changed since the connection was opened.
  [[nodiscard]] std::int64_t total_changes() const;
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] sqlite3* get() const noexcept { return handle_.get(); }
  /// Throws Error for a result code that is a failure. `what` was tried.
  void check(int code, std::string_view what) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// Rows of a statement that runs; when it goes, the statement is free again.
class Cursor {
 public:
  Cursor(const Database& database, sqlite3_stmt* statement) noexcept
      : database_(database), statement_(statement) {}
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  ~Cursor();

  [[nodiscard]] bool next();
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::uint64_t natural(int column) const {
    return static_cast<std::uint64_t>(integer(column));
  }
  [[nodiscard]] std::optional<std::int64_t> optional_integer(int column) const;
  [[nodiscard]] bool flag(int column) const { return integer(column) != 0; }
  [[nodiscard]] std::string text(int column) const;

 private:
  const Database& database_;
  sqlite3_stmt* statement_;
};

/// A prepared statement; its database must outlive it. Parameters are numbered from 1, in the order
/// of the values.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);

  /// Runs it to its end.
  template <class... Ts>
  void exec(const Ts&... values) {
    Cursor cursor(database_, handle_.get());
    bind_all(Lifetime::call, values...);
    while (cursor.next()) {
    }
  }
  template <class... Ts>
  [[nodiscard]] Cursor query(const Ts&... values) {
    bind_all(Lifetime::copy, values...);
    return {database_, handle_.get()};
  }

 private:
  /// call: a text outlives the run of the statement, so it need not be copied.
  enum class Lifetime : std::uint8_t { call, copy };
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const noexcept;
  };

  template <class... Ts>
  void bind_all([[maybe_unused]] Lifetime lifetime, const Ts&... values) {
    int index = 0;
    (bind(++index, lifetime, values), ...);
  }
  void bind(int index, Lifetime lifetime, std::string_view text);
  void bind(int index, Lifetime lifetime, const std::optional<std::int64_t>& value);
  void bind(int index, Lifetime lifetime, const char* text) {
    bind(index, lifetime, std::string_view(text));
  }
  void bind(int index, Lifetime lifetime, const std::string& text) {
    bind(index, lifetime, std::string_view(text));
  }
  void bind(int index, Lifetime lifetime, const std::optional<std::string>& text) {
    if (text) {
      bind(index, lifetime, std::string_view(*text));
    } else {
      bind(index, lifetime, std::optional<std::int64_t>());
    }
  }
  template <std::integral T>
  void bind(int index, Lifetime lifetime, T value) {
    bind(index, lifetime, std::optional(static_cast<std::int64_t>(value)));
  }

  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// Rolled back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
};

}  // namespace drk::gym::sqlite
