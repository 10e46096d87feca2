// SPDX-License-Identifier: Apache-2.0
// The sweep command apart from who makes the runs: processes of this machine, or the ranks of an MPI job.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/commands.h"
#include "experiment/sweep.h"

namespace cli {

/// Makes the runs of a sweep.
class SweepDriver {
 public:
  virtual ~SweepDriver() = default;
  /// True in the one process that has the database and talks to the user.
  virtual bool owner() const { return true; }
  /// In the owner: runs `points` and stores them; true when a signal ended it. See experiment::run_sweep().
  virtual bool run(const experiment::SweepPlan& plan, const std::vector<std::uint64_t>& points,
                   experiment::SweepStore& store, const experiment::SweepRunOptions& options);
  /// In all others: makes the runs that the owner asks for, until it asks for no more.
  virtual void serve(const experiment::SweepPlan&, const experiment::SweepRunOptions&) {}
};

/// `rdmasim sweep` with these arguments.
int sweep_with(const Arguments& arguments, SweepDriver& driver);

}  // namespace cli
