// SPDX-License-Identifier: Apache-2.0
// Runs the points of a sweep that its database does not have yet.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiment/sweep_plan.h"
#include "experiment/sweep_store.h"

namespace experiment {

struct SweepProgress {
  std::uint64_t done = 0, total = 0;  ///< of this call
  std::uint64_t not_ok = 0;           ///< of `done`, with another verdict than ok
  double elapsed_s = 0;
};

struct SweepRunOptions {
  unsigned jobs = 1;
  double limit_s = 0;  ///< most wall time of one point; 0 = none
  /// Called after each point and about once a second.
  std::function<void(const SweepProgress&)> progress;
};

/// Runs `points` (numbers) and stores each as it ends. Returns true when a signal ended it. Throws DatabaseError when a point
/// cannot be stored, and std::runtime_error when the scenario was changed meanwhile; what was stored before stays.
bool run_sweep(const SweepPlan& plan, const std::vector<std::uint64_t>& points, SweepStore& store,
               const SweepRunOptions& options);

/// Refuses a sample that was made from another configuration than the plan's: a file was changed while the sweep ran.
void check_configuration(const SweepPlan& plan, std::uint64_t number, const SweepSample& sample);

/// "[####......]  40 %  400 of 1000 points, 3 not ok, 12 s left".
std::string progress_text(const SweepProgress& p);

}  // namespace experiment
