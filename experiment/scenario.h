// SPDX-License-Identifier: Apache-2.0
// A scenario file bound to its struct, what can be generated from the format, and the step from a scenario to a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment/run.h"
#include "sim/config_read.h"
#include "system/scenario.h"
#include "system/scenario_file.h"

namespace experiment {

struct Scenario {
  sys::ScenarioConfig config;
  sys::ScenarioDocument document;
  /// Name used in results: the file name without its extension.
  std::string name() const { return document.file.stem().string(); }
  std::vector<std::string> host_names() const;
};

/// Loads and checks `file`. Throws sim::ConfigFailure with every mistake.
Scenario load_scenario(const std::filesystem::path& file, const sys::Overrides& overrides);

/// Values that one delay may take in an exploration.
inline constexpr std::int64_t kMostDelayValues = 1'000'000;
/// Adds an error at `origin` unless `d` names a time of the scenario and has at most that many values.
void check_delay(const Scenario& s, const sys::DelayConfig& d, const sim::Origin& origin, sim::ConfigErrors& errors);

/// Effective values, with all inheritance, overrides and defaults; a scenario file itself.
sim::Json effective_config(const Scenario& s);
/// Names, types, defaults, ranges, meaning and provenance of everything that a scenario, or a profile, may say.
sim::TypeInfo scenario_format();
sim::TypeInfo profile_format();
/// The JSON Schemas that editors complete from.
sim::Json scenario_schema();
sim::Json profile_schema();
/// The reference page docs/parameters.md.
std::string parameter_reference();

/// Options of a run of `s`: seed, limit, expectations, effective configuration.
RunOptions run_options(const Scenario& s);
/// Builds the cluster of `s`, which must outlive what the factory makes.
MachineFactory machine_factory(const Scenario& s);

}  // namespace experiment
