// SPDX-License-Identifier: Apache-2.0
// What a sweep as a whole has to show: a condition on each point, or a trend along a parameter.
#pragma once

#include <string>
#include <vector>

#include "experiment/sweep_plan.h"
#include "experiment/sweep_store.h"

namespace experiment {

struct SweepExpectationResult {
  std::string text;  ///< the condition, for people
  std::string because;
  bool met = true;
  std::uint64_t looked_at = 0;        ///< points, or steps from point to point
  std::vector<std::string> failures;  ///< the first few, each with its point
};

/// Names that conditions use beside parameters and metrics, and columns of the tables: not for either of them.
bool is_reserved(const std::string& name);

/// Adds what is wrong with the expectations of `plan`: names, syntax, kinds that do not go together.
void check_expectations(const SweepPlan& plan, sim::ConfigErrors& errors);

/// Looks at the finished points. An expectation that finds none to look at is not met.
std::vector<SweepExpectationResult> evaluate_sweep(const SweepPlan& plan, const std::vector<SweepRow>& rows);

}  // namespace experiment
