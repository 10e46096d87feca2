// SPDX-License-Identifier: Apache-2.0
// What is kept of the run of one point: made where the run was, stored by whoever owns the database.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiment/process_pool.h"
#include "experiment/result.h"
#include "experiment/sweep_plan.h"

namespace experiment {

/// One point's outcome.
struct SweepSample {
  /// The verdict of the result, but `cq_overrun` when a CQ overran and `unmet` when all went well and an expectation of the
  /// scenario is not met; `refused`, `bug`, `crashed`, `failed` or `wall_limit` when there is no result.
  std::string verdict;
  bool as_expected = false;      ///< all the scenario's expectations are met
  std::vector<std::string> why;  ///< what is outstanding, unmet or wrong
  std::string config_hash;       ///< of the configuration that really ran
  std::optional<double> sim_time_ns;
  std::vector<std::optional<double>> metrics;  ///< in the order of the plan
  struct Flow {
    std::string name;  ///< of the workload or program
    std::uint64_t messages = 0;
    double mean_ns = 0;
    struct Stage {
      std::string name;
      double mean_ns = 0, p50_ns = 0;  ///< over all messages, and of the median message
    };
    std::vector<Stage> stages;                         ///< that took any time, in the order of a message
    std::vector<std::pair<double, double>> quantiles;  ///< share of the messages, latency in ns
  };
  std::vector<Flow> flows;  ///< those with messages
  double wall_s = 0;
};

SweepSample sample_of(const Result& r, const std::vector<SweepMetric>& metrics);

/// Runs a point in this process.
SweepSample run_point(const SweepPlan& plan, const SweepPoint& point);

/// As text from one process to another, and back; nothing if it is not such a text.
std::string to_text(const SweepSample& s);
std::optional<SweepSample> sample_from(const std::string& text);
/// What the process of a point left: its sample, or how it died.
SweepSample sample_of(const JobEnd& end, double limit_s);

}  // namespace experiment
