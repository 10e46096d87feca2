// SPDX-License-Identifier: Apache-2.0
// The results of a sweep as files for other programs, and as text for people; all from the database.
#pragma once

#include <string>
#include <vector>

#include "experiment/sweep_expectation.h"
#include "experiment/sweep_plan.h"
#include "experiment/sweep_store.h"

namespace experiment {

/// One row per finished point, with a head; units are in the names of the columns (RFC 4180).
std::string sweep_csv(Database& db);
/// Facts, design, finished points, missing points, expectations. `expectations` may be empty.
sim::Json sweep_json(Database& db, const std::vector<SweepExpectationResult>& expectations);
/// Verdicts, expectations and what went wrong, for people.
std::string sweep_table(const SweepPlan& plan, const std::vector<SweepRow>& rows,
                        const std::vector<SweepExpectationResult>& expectations);
/// Every point with its values and seed, for --dry-run.
std::string sweep_listing(const SweepPlan& plan);

}  // namespace experiment
