// SPDX-License-Identifier: Apache-2.0
// The points of a sweep, all known and checked before the first of them runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/scenario.h"
#include "experiment/sweep_condition.h"
#include "experiment/sweep_metric.h"
#include "experiment/sweep_value.h"
#include "sim/json.h"

namespace experiment {

/// What the command line says beside the scenario; it wins over the scenario's `sweep` section.
struct SweepRequest {
  std::filesystem::path file;
  std::vector<std::string> sets;     ///< --set of every point
  std::vector<std::string> vary;     ///< PATH=VALUES: replaces the values of that parameter, or adds one
  std::vector<std::string> metrics;  ///< NAME=POINTER[ per POINTER]: adds a metric, or replaces it
  std::vector<std::string> where;    ///< further conditions
  std::optional<sys::Design> design;
  std::optional<std::uint64_t> points, seed, replications;
};

struct SweepParameter {
  std::string name;
  std::vector<std::string> paths;  ///< that take the value; the first one names it
  SweepValues values;
  SweepValue::Kind kind = SweepValue::Kind::integer;  ///< text when the values are of several kinds
  /// Name of its column: the name and the unit, "size_bytes".
  std::string column() const;
};

/// One run.
struct SweepPoint {
  std::uint64_t number = 0;       ///< from 0
  std::uint64_t combination = 0;  ///< runs of one combination differ by their seed
  std::uint32_t replication = 0;
  std::uint64_t seed = 0;
  std::vector<SweepValue> values;  ///< of each parameter
  std::string config_hash;         ///< of the effective configuration
};

struct SweepPlan {
  std::filesystem::path file;
  std::vector<std::string> sets;
  std::string scenario, description, teaches;
  std::string scenario_hash;  ///< of the effective configuration without its `sweep` and `explore` sections
  sys::Design design = sys::Design::grid;
  std::vector<SweepParameter> parameters;
  std::vector<Condition> where;
  std::vector<SweepMetric> metrics;
  std::vector<sys::SweepExpectationConfig> expect;
  std::vector<SweepPoint> points;
  std::uint64_t left_out = 0;  ///< runs that conditions drop
  sim::Json description_json;  ///< the design in full, for the database and the results: equal for equal sweeps
  sim::Json config;            ///< effective configuration of the scenario

  /// What makes the configuration of this point out of the scenario file.
  sys::Overrides overrides(const SweepPoint& p) const;
  /// The `rdmasim run` that repeats it, for a POSIX shell.
  std::string command(const SweepPoint& p) const;
};

/// Most runs of one sweep.
inline constexpr std::uint64_t kMostSweepPoints = 1'000'000;

/// Reads the scenario, expands the design and checks every point by loading it. Throws sim::ConfigFailure with every
/// mistake: paths, values, conditions, metrics, expectations.
SweepPlan plan_sweep(const SweepRequest& request);

/// Hash of the configuration that a run uses: everything but what is not for runs (`sweep`, `explore`, descriptions).
std::string config_hash(const sim::Json& effective);

}  // namespace experiment
