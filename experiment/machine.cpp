// SPDX-License-Identifier: Apache-2.0
// The cluster of a scenario as the machine of a run.
#include "experiment/program_result.h"
#include "experiment/scenario.h"
#include "system/cluster.h"
#include "system/resources.h"
#include "system/watchdog.h"

namespace experiment {
namespace {

class ClusterMachine : public Machine {
 public:
  ClusterMachine(sim::Context& context, sim::EngineMode mode, const sys::ScenarioConfig& config)
      : cluster_(context, config, mode) {}

  sim::Engine& engine() override { return cluster_.engine(); }
  std::vector<std::string> hosts() const override { return cluster_.host_names(); }
  std::size_t workloads() const override { return cluster_.workloads().size(); }
  std::size_t programs() const override {
    return cluster_.programs() != nullptr ? cluster_.programs()->records().size() : 0;
  }
  bool failed() const override { return cluster_.programs() != nullptr && cluster_.programs()->failed(); }
  bool stalled(sim::Picos now, sim::Picos limit) override { return cluster_.stalled(now, limit); }
  std::uint64_t expected_messages() const override { return cluster_.expected_messages(); }
  void start() override { cluster_.start(); }
  void on_measurement(std::function<void()> begin) override { cluster_.on_measurement(std::move(begin)); }
  bool finished() const override { return cluster_.finished(); }
  sim::Json resources() override { return sys::resources_of(cluster_); }
  void collect(Result& r) override {
    for (const auto& w : cluster_.workloads()) {
      const sys::WorkloadRecord& record = w->record();
      WorkloadResult& out = r.workloads.emplace_back();
      out.name = record.name;
      out.op = record.op;
      out.wc_status = record.wc_status;
      out.errors = record.errors;
      out.corrupted = record.corrupted;
      out.first_post = record.started;
      out.last_done = record.ended;
      out.client_cpu = record.client_cpu.read(r.sim_time);
      out.server_cpu = record.server_cpu.read(r.sim_time);
      std::vector<sim::Picos> trips = record.half_round_trip;
      out.half_round_trip = statistics_of(trips);
    }
    if (cluster_.programs() != nullptr) r.programs = program_results(*cluster_.programs(), r.sim_time);
    for (const sys::AsyncEventRecord& e : cluster_.async_events())
      r.async_events.push_back({e.time, e.host, e.type, e.object});
    r.summary = cluster_.summary();
    if (cluster_.finished()) r.sim_time = cluster_.finished_at();  // later events are timers that nobody waits for
    else
      for (sys::Stuck& s : cluster_.stuck()) {
        r.outstanding.push_back(std::move(s.text));
        r.stuck.push_back(std::move(s.facts));
      }
  }

 private:
  mutable sys::Cluster cluster_;  // Cluster::workloads() has no const form
};

}  // namespace

MachineFactory machine_factory(const Scenario& s) {
  return [&s](sim::Context& context, sim::EngineMode mode) {
    return std::make_unique<ClusterMachine>(context, mode, s.config);
  };
}

}  // namespace experiment
