// SPDX-License-Identifier: Apache-2.0
// The first database is copied whole, planned points and all; of the others the points that are still missing are taken over. The
// copy gets its name when it is complete.
#include "experiment/sweep_merge.h"

#include "experiment/sweep_store.h"

namespace experiment {
namespace fs = std::filesystem;
namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

std::uint64_t count(Database& db, const std::string& sql) {
  Statement s(db, sql);
  return s.step() ? static_cast<std::uint64_t>(s.integer(0)) : 0;
}

std::string fact(Database& db, const std::string& schema, const std::string& key) {
  Statement s(db, "SELECT value FROM " + schema + ".sweep WHERE key = " + quoted(key));
  return s.step() ? s.text(0) : std::string{};
}

/// The database of a directory, whole in one file and of the right form. What a killed sweep left in its log is brought in.
fs::path settled(const fs::path& directory) {
  const fs::path file = directory / kSweepDatabase;
  if (!SweepStore::exists(directory))
    throw std::runtime_error(directory.string() + ": there is no " + kSweepDatabase + " in it");
  if (fs::exists(file.string() + "-wal")) {
    const DirectoryLock idle(directory);
    Database(file, Database::Mode::write).settle();
  }
  Database db(file, Database::Mode::read);
  if (const std::string schema = fact(db, "main", "schema"); schema != kSweepSchema)
    throw std::runtime_error(file.string() + ": expected a database of schema " + kSweepSchema + ", got \"" + schema +
                             "\"");
  return file;
}

void check_alike(Database& db, const fs::path& first, const fs::path& other) {
  for (const char* key : {"scenario_hash", "design"}) {
    const std::string ours = fact(db, "main", key), theirs = fact(db, "other", key);
    if (ours != theirs)
      throw std::runtime_error(other.string() + " is of another sweep than " + first.string() + ": its " +
                               (std::string(key) == "design" ? "design" : "scenario hash") + " is " + theirs +
                               ", not " + ours);
  }
}

/// Takes over what `other` has finished and main has not.
void take(Database& db) {
  Transaction all(db);
  db.execute(
      "CREATE TEMP TABLE fresh AS SELECT o.point FROM other.point o JOIN main.point m USING (point) "
      "WHERE o.verdict IS NOT NULL AND m.verdict IS NULL");
  db.execute(
      "UPDATE main.point SET (verdict, as_expected, why, version, sim_time_ns, wall_s) = "
      "(SELECT verdict, as_expected, why, version, sim_time_ns, wall_s FROM other.point o WHERE o.point = "
      "main.point.point) "
      "WHERE point IN (SELECT point FROM fresh)");
  for (const char* table : {"point_metric", "flow", "breakdown", "quantile"})
    db.execute(std::string("INSERT INTO main.") + table + " SELECT * FROM other." + table +
               " WHERE point IN (SELECT point FROM fresh)");
  db.execute("DROP TABLE fresh");
  all.commit();
}

SweepMerge merge_into(const fs::path& part, const std::vector<fs::path>& from) {
  SweepMerge m;
  Database(settled(from.front()), Database::Mode::read).execute("VACUUM INTO " + quoted(part.string()));
  Database db(part, Database::Mode::write);
  for (std::size_t i = 1; i < from.size(); ++i) {
    db.execute("ATTACH " + quoted(settled(from[i]).string()) + " AS other");
    check_alike(db, from.front(), from[i]);
    m.repeated +=
        count(db,
              "SELECT count(*) FROM other.point o JOIN main.point m USING (point) WHERE o.verdict IS NOT NULL AND "
              "m.verdict IS NOT NULL");
    take(db);
    db.execute("DETACH other");
  }
  m.points = count(db, "SELECT count(*) FROM point");
  m.taken = count(db, "SELECT count(*) FROM point WHERE verdict IS NOT NULL");
  {
    Statement missing(db, "SELECT point FROM point WHERE verdict IS NULL ORDER BY point");
    while (missing.step()) m.missing.push_back(static_cast<std::uint64_t>(missing.integer(0)));
  }
  db.settle();
  return m;
}

}  // namespace

SweepMerge merge_sweeps(const fs::path& out, const std::vector<fs::path>& from) {
  const fs::path file = out / kSweepDatabase, part = out / "sweep.sqlite.part";
  if (SweepStore::exists(out))
    throw std::runtime_error(file.string() + " is there already; merge into a new directory");
  std::error_code ignore;
  fs::remove(part, ignore);
  try {
    SweepMerge m = merge_into(part, from);
    fs::rename(part, file);
    return m;
  } catch (...) {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) fs::remove(part.string() + end, ignore);
    throw;
  }
}

}  // namespace experiment
