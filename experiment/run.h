// SPDX-License-Identifier: Apache-2.0
// One simulation from an assembled machine to a Result.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiment/result.h"
#include "sim/context.h"
#include "sim/engine.h"
#include "system/expect.h"

namespace experiment {

/// What run() needs of an assembled system: hosts, fabric and the programs of the workloads.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual sim::Engine& engine() = 0;
  /// Names of the hosts, by number.
  virtual std::vector<std::string> hosts() const = 0;
  virtual std::size_t workloads() const = 0;
  /// Step programs, whose journeys have the flow numbers behind those of the workloads.
  virtual std::size_t programs() const { return 0; }
  /// A step of a program did not go as its program expects.
  virtual bool failed() const { return false; }
  /// Messages that all workloads will deliver, 0 when unknown; for progress and as the end of the measurement.
  virtual std::uint64_t expected_messages() const { return 0; }
  /// Starts the programs.
  virtual void start() = 0;
  /// `begin` is to be called once when set-up is over and the first message is posted; utilisation counts from there.
  virtual void on_measurement(std::function<void()> begin) { (void)begin; }
  /// True when every program has returned.
  virtual bool finished() const = 0;
  /// The live RDMA objects now: an array, one member per host (docs/result.md).
  virtual sim::Json resources() { return sim::Json::array(); }
  /// At time `now`, no program has moved for `limit`, and what still happens will never end.
  virtual bool stalled(sim::Picos now, sim::Picos limit) {
    (void)now, (void)limit;
    return false;
  }
  /// Adds what only the system knows: per workload name, op, WC statuses and half round trip; summary, asynchronous
  /// events and who waits for what. Messages, bytes and times may be left zero: they then come from the journeys.
  virtual void collect(Result& r) = 0;
};
using MachineFactory = std::function<std::unique_ptr<Machine>(sim::Context& context, sim::EngineMode mode)>;

struct RunOptions {
  std::string scenario, description, version;
  std::uint64_t seed = 1;
  sim::EngineMode mode = sim::EngineMode::run_ahead;
  sim::Picos time_limit = sim::kNever;
  sim::Picos stall_limit{0};  ///< see sys::RunConfig; 0 = none
  sim::Json config;           ///< effective configuration, for the result and the traces
  std::vector<std::unique_ptr<sim::trace::Sink>> sinks;
  std::uint32_t trace_categories = ~0U;  ///< mask over sim::trace::Category
  std::vector<sys::ExpectationConfig> expectations;
  std::vector<sim::Picos> resources_at;  ///< when to list the live objects during the run
  bool progress = false;                 ///< a progress bar on stderr once a second
};

/// Builds the machine, runs it to its end, its time limit or an interrupt, and collects the result; expectations are
/// checked unless it was interrupted. Throws what a model threw (sim::SimulatorBug with the simulated time added), after
/// closing the traces.
Result run(RunOptions options, const MachineFactory& factory);

/// Exit code of `rdmasim run`: 130 interrupted, 4 unexpected deadlock, 1 expectation unmet or a step failed, 0 otherwise.
int exit_code(const Result& r);

}  // namespace experiment
