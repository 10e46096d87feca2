// SPDX-License-Identifier: Apache-2.0
// Many runs of a scenario, each in a process of its own, and how they ended.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "experiment/result.h"
#include "system/scenario_file.h"

namespace experiment {

/// How one of many runs ended.
struct RunOutcome {
  /// The verdict; `unmet` instead of ok when an expectation is not met; `refused` when the scenario does not take the
  /// values; `bug` and `crashed` when the simulator failed. Empty when the run was not made.
  std::string outcome;
  /// Every expectation of the scenario is met and no step went wrong.
  bool good = false;
  /// What is outstanding, unmet or wrong, as `rdmasim run` would print it.
  std::vector<std::string> why;
  bool operator==(const RunOutcome&) const = default;
};

/// How a run ended that has a result.
RunOutcome outcome_of(const Result& r);
/// How a run ended that threw instead.
RunOutcome outcome_of_failure(std::exception_ptr failure);

/// Runs `file` once per element of `runs`, at most `jobs` at a time, and returns the outcomes in the order of `runs`. The
/// process must not have built a SystemC module yet. SIGINT and SIGTERM end the runs under way and start no more;
/// `interrupted` tells. `progress` is called after each run with how many have ended.
std::vector<RunOutcome> run_all(const std::filesystem::path& file, const std::vector<sys::Overrides>& runs,
                                unsigned jobs, const std::function<void(std::size_t)>& progress, bool& interrupted);

}  // namespace experiment
