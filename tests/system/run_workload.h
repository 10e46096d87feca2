// SPDX-License-Identifier: Apache-2.0
// Runs one scenario struct in this process and keeps what a test wants to look at.
#pragma once

#include <memory>
#include <vector>

#include "sim/context.h"
#include "system/cluster.h"

namespace sys::test {

/// Keeps every finished journey.
struct JourneyLog : sim::JourneySink {
  std::vector<sim::Journey> all;
  void finished(const sim::Journey& j) override { all.push_back(j); }
};

struct Simulation {
  explicit Simulation(const ScenarioConfig& scenario, sim::EngineMode mode = sim::EngineMode::run_ahead,
                      bool reverse = false)
      : context(scenario.seed), cluster(std::make_unique<Cluster>(context, scenario, mode, reverse)) {
    context.journeys.set_sink(&journeys);
    cluster->start();
  }
  sim::Outcome run(sim::Picos until = sim::kNever) { return cluster->engine().run(until); }

  sim::Context context;
  JourneyLog journeys;
  std::unique_ptr<Cluster> cluster;
};

/// A scenario of one workload on two hosts with all defaults.
inline ScenarioConfig one_workload(Op op, std::uint64_t size, std::uint64_t iters) {
  ScenarioConfig s;
  WorkloadConfig w;
  w.op = op;
  w.size = sim::Bytes{size};
  w.iters = iters;
  w.rx_depth = 64;
  s.workloads.push_back(w);
  return s;
}

}  // namespace sys::test
