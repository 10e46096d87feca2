// SPDX-License-Identifier: Apache-2.0
// The database of a sweep, sweep.sqlite; docs/sweep.md describes its tables. All points are in it from the beginning; a point
// is finished when it has a verdict, and is written in one transaction that is on the disk before the next one begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/sqlite.h"
#include "experiment/sweep_plan.h"
#include "experiment/sweep_sample.h"

namespace experiment {

inline constexpr const char* kSweepSchema = "rdmasim-sweep/1";
inline constexpr const char* kSweepDatabase = "sweep.sqlite";

/// Keeps a second sweep out of a directory for as long as it lives. The lock goes with the process, however that ends, and is
/// not inherited by its children.
class DirectoryLock {
 public:
  /// Throws std::runtime_error when another process has it (with its pid), or the directory cannot be written.
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int fd_ = -1;
};

/// A finished or planned point as the database has it.
struct SweepRow {
  std::uint64_t number = 0, combination = 0, seed = 0;
  std::uint32_t replication = 0;
  std::string config_hash, verdict, why, version;  ///< verdict empty: not run yet
  bool as_expected = false;
  std::optional<double> sim_time_ns, wall_s;
  std::vector<std::optional<double>> values;   ///< of each parameter, in its unit; nothing for names
  std::vector<std::string> texts;              ///< the same as text
  std::vector<std::optional<double>> metrics;  ///< of each metric
};

class SweepStore {
 public:
  /// Makes the database of `plan` in `directory`, which must have none.
  static SweepStore create(const std::filesystem::path& directory, const SweepPlan& plan);
  /// Opens that of an earlier sweep and checks that it is of the same scenario and design: throws std::runtime_error with
  /// everything that differs.
  static SweepStore resume(const std::filesystem::path& directory, const SweepPlan& plan);
  static bool exists(const std::filesystem::path& directory);

  /// Writes a point. Throws DatabaseError when that is not possible, and the point stays unfinished.
  void finish(std::uint64_t number, const SweepSample& sample);
  /// Numbers of the points without a verdict, ascending.
  std::vector<std::uint64_t> unfinished();
  /// Versions of the simulator that finished points.
  std::vector<std::string> versions();
  std::vector<SweepRow> rows();
  Database& database() { return *db_; }

  /// For the end: leaves the one file sweep.sqlite.
  void settle();

 private:
  explicit SweepStore(std::unique_ptr<Database> db) : db_(std::move(db)) {}
  void prepare();

  std::unique_ptr<Database> db_;
  struct Statements;
  std::shared_ptr<Statements> statements_;
};

}  // namespace experiment
