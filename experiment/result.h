// SPDX-License-Identifier: Apache-2.0
// What a run found out, and its JSON form, which docs/result.md describes. Everything except the `simulator` section
// depends on the scenario and the seed alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/statistics.h"
#include "sim/json.h"
#include "sim/stats.h"
#include "sim/units.h"
#include "system/cpu_meter.h"
#include "system/workload_error.h"

namespace experiment {

inline constexpr const char* kResultSchema = "rdmasim-result/1";

/// How the run ended. Unmet expectations are not a verdict: they are conditions on the result, which contains it.
enum class Verdict {
  ok,           ///< every program finished
  failed,       ///< a step of a program did not go as the program expects
  deadlock,     ///< no event is left, but programs wait or work requests are outstanding
  time_limit,   ///< the scenario's time limit came first
  interrupted,  ///< the user stopped it; what had happened until then is reported
};
std::string_view name_of(Verdict v);

struct WorkloadResult {
  std::string name, op;
  std::uint64_t messages = 0;              ///< delivered in success
  std::uint64_t bytes = 0;                 ///< their payload
  sim::Picos first_post{0}, last_done{0};  ///< the time span that rates refer to
  std::optional<LatencyStats> latency;
  std::optional<LatencyStats> half_round_trip;  ///< what perftest's *_lat programs print; ping-pong workloads only
  std::map<std::string, std::uint64_t> wc_status;
  std::vector<sys::WorkloadError> errors;  ///< the first work completions in error
  std::uint64_t corrupted = 0;  ///< messages whose bytes differed from those sent, if the workload verifies them
  std::optional<Breakdown> breakdown;
  std::optional<sim::Journey> slowest;  ///< the message with the greatest latency
  std::optional<Quantiles> quantiles;   ///< of the latency
  sys::CpuTime client_cpu, server_cpu;  ///< from the first turn of the measuring loop to the last
  bool percentiles_exact = true;        ///< false when percentiles come from a sample

  double bandwidth_gbps() const;
  double message_rate_mpps() const;
};

/// An asynchronous event as ibv_get_async_event would return it.
struct AsyncEvent {
  sim::Picos time{0};
  std::string host, type, object;
};

/// What a step program did and saw; experiment/program_result.cpp gives its JSON form.
struct ProgramResult {
  std::string name, host;
  bool finished = false, killed = false;
  std::string at;  ///< step under way, when it did not finish
  std::uint64_t steps = 0;
  sim::Picos started{0}, ended{0};
  std::uint64_t messages = 0;              ///< delivered in success, posted by its process
  sim::Picos first_post{0}, last_done{0};  ///< the time span that the rate refers to
  std::optional<LatencyStats> latency;
  std::optional<sim::Journey> slowest;
  std::optional<Breakdown> breakdown;  ///< for sweeps, not in the JSON, like the next
  std::optional<Quantiles> quantiles;
  sim::Json completions, events, mr;  ///< lists and object as docs/result.md describes them
  sys::CpuTime cpu;                   ///< of its steps
  std::map<std::string, std::uint64_t> wc_status;
  std::map<std::string, sim::Picos> marks;
  struct Failure {
    std::string at, step, message;
  };
  std::vector<Failure> failures;
  std::string plugin;            ///< file, when it is not a list of steps
  std::optional<int> exit_code;  ///< of its main(), when that has ended

  double message_rate_mpps() const;
};

/// The busiest resource. Saturated resources bound the throughput; otherwise latency or the programs do.
struct Bottleneck {
  static constexpr double kSaturated = 0.9;
  std::string resource;  ///< empty when no resource did anything
  double utilisation = 0;
  bool saturated() const { return utilisation >= kSaturated; }
};
Bottleneck bottleneck_of(const std::map<std::string, double>& utilisation);

struct ExpectationResult {
  std::string at, expected, actual, because;
  bool met = false;
};

/// What the run cost; differs from run to run.
struct SimulatorCost {
  std::uint64_t events = 0;
  double wall_s = 0, cpu_s = 0;
  std::uint64_t peak_rss_bytes = 0;
};

struct Result {
  std::string scenario, description, version;
  std::uint64_t seed = 0;
  sim::Picos sim_time{0};
  Verdict verdict = Verdict::ok;
  std::vector<std::pair<std::string, std::string>> summary;  ///< configuration in a few lines, for people
  std::vector<WorkloadResult> workloads;
  std::vector<ProgramResult> programs;
  std::vector<AsyncEvent> async_events;
  std::map<std::string, std::uint64_t> counters;
  std::map<std::string, double> utilisation;
  std::map<std::string, sim::Picos> kernel_time;  ///< per core: interrupts and softirqs in the time of `utilisation`
  std::vector<std::string> outstanding;           ///< who waits for what, when not everything finished
  sim::Json stuck = sim::Json::array();           ///< the same in members, one per line but the first
  sim::Json resources = sim::Json::array();       ///< live RDMA objects at the end, one member per host
  std::vector<std::pair<sim::Picos, sim::Json>> resources_at;  ///< the same at times that were asked for
  std::vector<ExpectationResult> expectations;
  sim::Json config;  ///< effective configuration: a scenario file itself
  SimulatorCost simulator;
  std::string trace_error;  ///< why a trace is incomplete (a full disk, say); not part of the JSON

  std::uint64_t messages() const;
  bool expectations_met() const;
};

/// The versioned form. `simulator` is left out when `with_cost` is false; what remains is the same for the same run.
sim::Json to_json(const Result& r, bool with_cost = true);

}  // namespace experiment
