// SPDX-License-Identifier: Apache-2.0
// What a sweep takes from the result of each point.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/json.h"
#include "sim/units.h"
#include "system/scenario.h"

namespace experiment {

/// A number out of the result JSON: the value at a pointer, less another, divided by a third, times a
/// factor. A part of a pointer may have
/// "*": it stands for any text, and what all matches hold is added up ("/counters/host0.pcie.*.wire_bytes").
struct SweepMetric {
  std::string name, at, minus, per;  ///< minus, per: empty for none
  double factor = 1;
  /// As parse_metric() reads it.
  std::string text() const;
  /// The value; nothing where the result has none, or nothing to divide by.
  std::optional<double> of(const sim::Json& result) const;
};

/// Reads "POINTER [minus POINTER] [per POINTER] [x FACTOR]"; the error says what was expected.
sim::Parsed<SweepMetric> parse_metric(const std::string& name, std::string_view text);

/// For a scenario that names none: of each workload and program what is usually asked for, and the simulated time.
std::vector<SweepMetric> default_metrics(const sys::ScenarioConfig& config);

}  // namespace experiment
