// SPDX-License-Identifier: Apache-2.0
// Write-ahead log with full synchronisation: a commit costs one flush, and survives the process, the machine and the power.
// Where a file system has no shared memory for the log, SQLite stays with its rollback journal, which is as safe.
#include "experiment/sqlite.h"

#include <sqlite3.h>

namespace experiment {

Database::Database(const std::filesystem::path& file, Mode mode) : file_(file) {
  const int flags = mode == Mode::read    ? SQLITE_OPEN_READONLY
                    : mode == Mode::write ? SQLITE_OPEN_READWRITE
                                          : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  try {
    if (sqlite3_open_v2(file.c_str(), &db_, flags, nullptr) != SQLITE_OK) fail("cannot be opened");
    sqlite3_extended_result_codes(db_, 0);
    sqlite3_busy_timeout(db_, 5000);
    if (mode == Mode::read) return;
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = FULL");
    execute("PRAGMA foreign_keys = ON");
  } catch (...) {
    sqlite3_close(db_);
    throw;
  }
}

Database::~Database() { sqlite3_close(db_); }

void Database::fail(const std::string& doing) const {
  const int code = db_ != nullptr ? sqlite3_errcode(db_) & 0xff : SQLITE_NOMEM;
  std::string why = db_ != nullptr ? sqlite3_errmsg(db_) : "out of memory";
  if (code == SQLITE_FULL) why = "no space left: " + why;
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) why = "it is damaged, or no database: " + why;
  if (code == SQLITE_READONLY) why = "it may not be written: " + why;
  throw DatabaseError(file_.string() + ": " + doing + ": " + why, code);
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail("cannot be used");
}

void Database::settle() {
  sqlite3_busy_timeout(db_, 0);
  for (const char* sql : {"PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA journal_mode = DELETE"}) {
    const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
      return;  // somebody reads it now: the log stays, a part of the database
    if (code != SQLITE_OK) fail("cannot be written");
  }
}

Statement::Statement(Database& db, const std::string& sql) : db_(db) {
  if (sqlite3_prepare_v2(db.handle(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK) db.fail("cannot be read");
}
Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::bind(int i, std::string_view text) {
  if (sqlite3_bind_text(statement_, i, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT) != SQLITE_OK)
    db_.fail("cannot take a value");
  return *this;
}
Statement& Statement::bind(int i, std::int64_t n) {
  if (sqlite3_bind_int64(statement_, i, n) != SQLITE_OK) db_.fail("cannot take a value");
  return *this;
}
Statement& Statement::bind(int i, double d) {
  if (sqlite3_bind_double(statement_, i, d) != SQLITE_OK) db_.fail("cannot take a value");
  return *this;
}
Statement& Statement::bind_null(int i) {
  if (sqlite3_bind_null(statement_, i) != SQLITE_OK) db_.fail("cannot take a value");
  return *this;
}

bool Statement::step() {
  const int r = sqlite3_step(statement_);
  if (r != SQLITE_ROW && r != SQLITE_DONE)
    db_.fail(sqlite3_stmt_readonly(statement_) != 0 ? "cannot be read" : "cannot be written");
  return r == SQLITE_ROW;
}
void Statement::run() {
  while (step()) {}
  reset();
}
void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
bool Statement::is_numeric(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}
std::string Statement::text(int column) const {
  const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return t != nullptr ? std::string(t, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)))
                      : std::string{};
}
std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

Transaction::Transaction(Database& db) : db_(db) { db.execute("BEGIN IMMEDIATE"); }
Transaction::~Transaction() {
  if (open_) sqlite3_exec(db_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
  db_.execute("COMMIT");
  open_ = false;
}

}  // namespace experiment
