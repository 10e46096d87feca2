// SPDX-License-Identifier: Apache-2.0
// Everything that a scenario describes, built: hosts, cables, workloads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/link.h"
#include "kernel/core/gid_table.h"
#include "sim/context.h"
#include "sim/engine.h"
#include "system/exchange.h"
#include "system/host.h"
#include "system/programs.h"
#include "system/scenario.h"
#include "system/workload.h"

namespace sys {

struct Stuck;

class Cluster {
 public:
  /// Builds the machines of `scenario`. With `reverse`, modules are constructed in the opposite order: the results are the
  /// same, which a test proves.
  Cluster(sim::Context& context, const ScenarioConfig& scenario, sim::EngineMode mode, bool reverse = false);
  ~Cluster();

  sim::Engine& engine() { return engine_; }
  std::vector<std::string> host_names() const;
  Host& host(std::size_t i) { return *hosts_[i]; }
  fabric::Link& link(std::size_t i) { return *links_[i]; }
  std::vector<std::unique_ptr<Workload>>& workloads() { return workloads_; }
  /// The step programs; nullptr when the scenario has none.
  Programs* programs() { return programs_.get(); }
  const ScenarioConfig& scenario() const { return scenario_; }

  /// Boots the kernels; the workloads' programs start together once every host is ready. Call once.
  void start();
  /// `begin` runs when the first message of any workload is posted.
  void on_measurement(std::function<void()> begin) { on_measurement_ = std::move(begin); }
  /// Runs `program` once every host is ready, instead of or beside workloads; for tests.
  void on_ready(std::function<void(sim::Picos)> program) { on_ready_ = std::move(program); }

  bool finished() const;
  /// When the last program of the workloads returned.
  sim::Picos finished_at() const;
  /// Messages that the workloads will deliver, 0 when programs send too.
  std::uint64_t expected_messages() const;
  /// Asynchronous events that programs have read, in time order.
  const std::vector<AsyncEventRecord>& async_events() const { return async_events_; }
  /// Configuration in a few lines for people: what, value.
  std::vector<std::pair<std::string, std::string>> summary() const;
  /// Who waits for what: one line for each program thread that has not ended, then the work that is outstanding.
  std::vector<std::string> waiting() const;
  /// The same with its facts.
  std::vector<Stuck> stuck() const;
  /// At time `now`, no program has moved for `limit` and nothing but retries for ever goes on.
  bool stalled(sim::Picos now, sim::Picos limit) const;

 private:
  static void host_ready(void* self);
  std::size_t host_number(const std::string& name, std::size_t fallback) const;

  sim::Context& context_;
  const ScenarioConfig scenario_;
  sim::Engine engine_;
  Exchange exchange_;
  kernel::NeighbourTable neighbours_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<fabric::Link>> links_;
  std::vector<AsyncEventRecord> async_events_;
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::unique_ptr<Programs> programs_;
  std::function<void()> on_measurement_;
  std::function<void(sim::Picos)> on_ready_;
  std::size_t ready_ = 0;
};

}  // namespace sys
