// SPDX-License-Identifier: Apache-2.0
// SQLite with exceptions: a connection, a statement, a transaction.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace experiment {

/// What a database could not do, with its file and the reason: a full disk, no permission, damage.
struct DatabaseError : std::runtime_error {
  DatabaseError(const std::string& message, int c) : std::runtime_error(message), code(c) {}
  int code;  ///< primary result code of SQLite
};

class Database {
 public:
  enum class Mode { create, write, read };
  /// Opens `file`; `create` makes it. Commits are on the disk when they return.
  Database(const std::filesystem::path& file, Mode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void execute(const std::string& sql);
  /// Merges what is pending into the file and leaves no file beside it, unless somebody reads it now. For the end.
  void settle();
  const std::filesystem::path& file() const { return file_; }
  sqlite3* handle() const { return db_; }
  [[noreturn]] void fail(const std::string& doing) const;

 private:
  std::filesystem::path file_;
  sqlite3* db_ = nullptr;
};

/// A prepared statement. Parameters count from 1, columns from 0.
class Statement {
 public:
  Statement(Database& db, const std::string& sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int i, std::string_view text);
  Statement& bind(int i, std::int64_t n);
  Statement& bind(int i, double d);
  Statement& bind_null(int i);
  template <class T>
  Statement& bind(int i, const std::optional<T>& v) {
    return v ? bind(i, *v) : bind_null(i);
  }
  /// True while there is a row.
  bool step();
  /// Runs it to its end and makes it ready for the next parameters.
  void run();
  void reset();

  bool is_null(int column) const;
  bool is_numeric(int column) const;
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

 private:
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
};

/// Undone unless commit() is reached.
class Transaction {
 public:
  explicit Transaction(Database& db);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& db_;
  bool open_ = true;
};

}  // namespace experiment
