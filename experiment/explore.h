// SPDX-License-Identifier: Apache-2.0
// The race finder: runs a scenario again and again with other delays and seeds, and tells which of them end otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/run_pool.h"
#include "sim/json.h"
#include "system/explore_config.h"

namespace experiment {

struct ExploreOptions {
  std::filesystem::path file;
  std::vector<std::string> sets;         ///< `--set` of every run
  std::optional<std::uint64_t> seed;     ///< of a scan, and of the first random run; else the scenario's
  std::optional<sys::DelayConfig> scan;  ///< takes every value
  std::vector<sys::DelayConfig> delays;  ///< drawn at random
  std::uint64_t tries = 0;               ///< random runs, with seed, seed + 1, …
  unsigned jobs = 1;
  std::function<void(std::size_t done, std::size_t total)> progress;
};

/// One run: what was varied, and what came of it.
struct ExploredRun {
  std::uint64_t seed = 0;
  std::vector<std::pair<std::string, sim::Picos>> delays;
  RunOutcome outcome;
  /// The `rdmasim run` that repeats it, for a POSIX shell.
  std::string command;
};

/// Neighbours in a scan with the same outcome.
struct ScanRange {
  sim::Picos from{0}, to{0};
  std::uint64_t runs = 0;
  bool differs = false;
  ExploredRun first;
};

struct Exploration {
  std::string scenario;
  std::optional<sys::DelayConfig> scan;
  std::vector<sys::DelayConfig> delays;
  std::uint64_t seed = 0, tries = 0;
  RunOutcome base;  ///< the scenario as it is
  bool base_differs = false;
  std::vector<ScanRange> ranges;                                ///< in the order of the scan
  std::vector<std::pair<std::string, std::uint64_t>> outcomes;  ///< of the random runs: how many of each
  std::vector<ExploredRun> differing;                           ///< random runs that end otherwise
  /// Per outcome of these, its first run without the delays that it does not need.
  std::vector<ExploredRun> reduced;
  std::uint64_t runs = 0;
  bool interrupted = false;
  bool differs() const;
};

/// Makes the runs. A run differs when it is not as the scenario expects; if the scenario expects nothing, when its outcome is
/// not that of the scenario as it is. Throws sim::ConfigFailure for a scenario, a path or a bound that cannot be used.
Exploration explore(const ExploreOptions& options);

sim::Json to_json(const Exploration& e);
/// For people.
std::string to_table(const Exploration& e);

}  // namespace experiment
