// SPDX-License-Identifier: Apache-2.0
// The order of a run: context and sinks, machine, programs, engine, verdict, collection, expectations, closing of traces.
// The clock of the machine this runs on is read only for the `simulator` section.
#include "experiment/run.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>

#include "experiment/expectation.h"
#include "experiment/interrupt.h"
#include "experiment/progress.h"
#include "sim/check.h"

namespace experiment {
namespace {

/// Busy shares from the beginning of the measurement to its end, or to that of the run if that came first. What set-up and
/// tear-down do, and the wait for timers afterwards, does not count.
class UtilisationWindow {
 public:
  void begin(const sim::Context& context) {
    if (!start_) start_ = snapshot(context);
  }
  void end(const sim::Context& context) {
    if (!end_) end_ = snapshot(context);
  }
  std::map<std::string, double> shares(const sim::Context& context) const {
    const Snapshot from = start_.value_or(Snapshot{}), to = end_ ? *end_ : snapshot(context);
    std::map<std::string, double> out;
    const sim::Picos elapsed = to.time - from.time;
    if (elapsed.n <= 0) return out;
    for (const auto& [path, busy] : to.busy) {
      const auto before = from.busy.find(path);
      const sim::Picos used = busy - (before == from.busy.end() ? sim::Picos{0} : before->second);
      out[path] =
          static_cast<double>(used.n) / (static_cast<double>(elapsed.n) * context.stats.busy_times().at(path).capacity);
    }
    return out;
  }
  /// Busy time within the window of every path that ends in `suffix`, without it.
  std::map<std::string, sim::Picos> busy(const sim::Context& context, std::string_view suffix) const {
    const Snapshot from = start_.value_or(Snapshot{}), to = end_ ? *end_ : snapshot(context);
    std::map<std::string, sim::Picos> out;
    for (const auto& [path, t] : to.busy) {
      if (!path.ends_with(suffix)) continue;
      const auto before = from.busy.find(path);
      out[path.substr(0, path.size() - suffix.size())] =
          t - (before == from.busy.end() ? sim::Picos{0} : before->second);
    }
    return out;
  }

 private:
  struct Snapshot {
    sim::Picos time{0};
    std::map<std::string, sim::Picos> busy;
  };
  static Snapshot snapshot(const sim::Context& context) {
    Snapshot s{context.now(), {}};
    for (const auto& [path, busy] : context.stats.busy_times()) s.busy[path] = busy.busy;
    return s;
  }
  std::optional<Snapshot> start_, end_;
};

/// Wall and CPU time since construction.
class CostMeter {
 public:
  SimulatorCost cost(const sim::Context& context) const {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_;
    return {context.scheduler.executed(), wall.count(), cpu_seconds() - cpu_,
            static_cast<std::uint64_t>(usage.ru_maxrss) << 10};
  }

 private:
  static double cpu_seconds() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
  }
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  double cpu_ = cpu_seconds();
};

/// Ends the traces with a run that ended at `end`; what went wrong, empty if nothing.
std::string close_traces(sim::Context& context, sim::Picos end) {
  try {
    context.tracer.close(end);
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::string running_name(sim::Engine& engine) {
  const sim::ProgramThread* t = engine.running();
  return t != nullptr ? "program " + t->name() : "hardware";
}

/// Runs to the end, to `limit`, or until nothing but endless retries goes on, which counts as no event being left.
sim::Outcome run_watched(Machine& machine, sim::Picos now, sim::Picos limit, sim::Picos stall_limit, bool& stalled) {
  if (stall_limit.n == 0) return machine.engine().run(limit);
  for (sim::Picos next = stall_limit * (now / stall_limit + 1);; next += stall_limit) {
    const sim::Outcome outcome = machine.engine().run(sim::min(limit, next));
    if (outcome != sim::Outcome::time_limit || limit <= next) return outcome;
    stalled = machine.stalled(next, stall_limit);
    if (stalled) return sim::Outcome::quiescent;
  }
}

sim::Outcome run_engine(Machine& machine, sim::Context& context, const RunOptions& options, sim::Picos limit,
                        bool& stalled) {
  sim::Engine& engine = machine.engine();
  try {
    return run_watched(machine, context.now(), limit, options.stall_limit, stalled);
  } catch (const sim::SimulatorBug& bug) {
    const std::string where =
        " (at simulated time " + sim::to_string(context.now()) + ", in " + running_name(engine) + ")";
    close_traces(context, context.now());
    throw sim::SimulatorBug(bug.what() + where);
  } catch (...) {
    close_traces(context, context.now());
    throw;
  }
}

/// Runs to the end or the limit, and lists the live objects at the times asked for that come before that.
sim::Outcome run_and_list(Machine& machine, sim::Context& context, const RunOptions& options, bool& stalled,
                          std::vector<std::pair<sim::Picos, sim::Json>>& listings) {
  std::vector<sim::Picos> times = options.resources_at;
  std::ranges::sort(times);
  for (const sim::Picos t : times) {
    if (t >= options.time_limit) break;
    const sim::Outcome outcome = run_engine(machine, context, options, t, stalled);
    if (outcome != sim::Outcome::time_limit) return outcome;
    listings.emplace_back(t, machine.resources());
  }
  return run_engine(machine, context, options, options.time_limit, stalled);
}

Verdict verdict_of(sim::Outcome outcome, bool interrupted, bool finished, bool failed) {
  if (interrupted && !finished) return Verdict::interrupted;
  if (failed) return Verdict::failed;
  if (finished) return Verdict::ok;
  return outcome == sim::Outcome::time_limit ? Verdict::time_limit : Verdict::deadlock;
}

void add_journeys(Result& r, const LatencyRecorder& recorder) {
  for (std::size_t i = 0; i < r.programs.size(); ++i) {
    ProgramResult& p = r.programs[i];
    const std::size_t flow = r.workloads.size() + i;
    p.messages = recorder.count(flow);
    p.first_post = recorder.first_post(flow);
    p.last_done = recorder.last_done(flow);
    p.latency = recorder.latency(flow);
    p.breakdown = recorder.breakdown(flow);
    p.quantiles = recorder.quantiles(flow);
    p.slowest = recorder.slowest(flow);
  }
  for (std::size_t i = 0; i < r.workloads.size(); ++i) {
    WorkloadResult& w = r.workloads[i];
    w.latency = recorder.latency(i);
    w.breakdown = recorder.breakdown(i);
    w.slowest = recorder.slowest(i);
    w.quantiles = recorder.quantiles(i);
    w.percentiles_exact = recorder.exact(i);
    if (w.messages == 0) w.messages = recorder.count(i);
    if (w.bytes == 0) w.bytes = recorder.bytes(i);
    if (w.last_done.n == 0) {
      w.first_post = recorder.first_post(i);
      w.last_done = recorder.last_done(i);
    }
  }
}

/// What programs of the user print goes to standard error while they run: standard output is for the report.
class StandardOutputAside {
 public:
  StandardOutputAside() {
    std::fflush(stdout);
    std::cout.flush();
    if (saved_ >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~StandardOutputAside() {
    std::fflush(stdout);
    std::cout.flush();
    if (saved_ < 0) return;
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
  }
  StandardOutputAside(const StandardOutputAside&) = delete;
  StandardOutputAside& operator=(const StandardOutputAside&) = delete;

 private:
  const int saved_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
};

/// Hands finished journeys to the statistics and, when tracing, those and the failed ones to the trace.
struct JourneyTee final : sim::JourneySink {
  JourneyTee(LatencyRecorder& r, sim::trace::Tracer* t) : recorder(r), tracer(t) {}
  void finished(const sim::Journey& j) override {
    recorder.finished(j);
    if (tracer != nullptr) tracer->emit(j);
  }
  void failed(const sim::Journey& j) override {
    if (tracer != nullptr) tracer->emit(j);
  }
  LatencyRecorder& recorder;
  sim::trace::Tracer* tracer;
};

}  // namespace

Result run(RunOptions options, const MachineFactory& factory) {
  const CostMeter meter;
  sim::Context context(options.seed);
  for (auto& sink : options.sinks) context.tracer.add_sink(std::move(sink));
  const bool traced = !options.sinks.empty();
  const std::unique_ptr<Machine> machine = factory(context, options.mode);
  sim::Engine& engine = machine->engine();
  LatencyRecorder recorder(machine->workloads() + machine->programs(), options.seed);
  JourneyTee tee(recorder, traced ? &context.tracer : nullptr);
  context.journeys.set_sink(&tee);
  if (traced)
    context.tracer.open({options.scenario, options.version, options.seed, machine->hosts(), options.config.compact()},
                        options.trace_categories);
  UtilisationWindow window;
  machine->on_measurement([&] { window.begin(context); });
  recorder.notify_at(machine->expected_messages(), [&] { window.end(context); });

  machine->start();
  sim::Outcome outcome{};
  std::vector<std::pair<sim::Picos, sim::Json>> listings;
  bool interrupted = false, stalled = false;
  {
    const InterruptScope interrupt(engine);
    const StandardOutputAside aside;
    std::optional<ProgressBar> bar;
    if (options.progress)
      bar.emplace(
          engine, [&] { return recorder.total(); }, machine->expected_messages());
    outcome = run_and_list(*machine, context, options, stalled, listings);
    interrupted = interrupt.interrupted();
  }

  Result r;
  r.scenario = options.scenario;
  r.description = options.description;
  r.version = options.version;
  r.seed = options.seed;
  r.config = options.config;
  r.sim_time = context.now();
  r.verdict = verdict_of(outcome, interrupted, machine->finished(), machine->failed());
  machine->collect(r);
  context.journeys.end(r.sim_time);
  context.journeys.set_sink(nullptr);
  r.resources = machine->resources();
  r.resources_at = std::move(listings);
  if (r.verdict == Verdict::deadlock)
    r.outstanding.insert(r.outstanding.begin(), stalled
                                                    ? "only retries without end are left; no program has moved for " +
                                                          sim::to_string(options.stall_limit)
                                                    : "no event is left");
  SIM_CHECK(r.workloads.size() == machine->workloads(), "the machine did not report every workload");
  add_journeys(r, recorder);
  for (const auto& [path, counter] : context.stats.counters()) r.counters[path] = counter.value;
  r.utilisation = window.shares(context);
  r.kernel_time = window.busy(context, ".kernel");
  if (r.verdict != Verdict::interrupted) evaluate_all(options.expectations, r);
  r.simulator = meter.cost(context);
  if (traced) r.trace_error = close_traces(context, r.sim_time);
  return r;
}

int exit_code(const Result& r) {
  if (r.verdict == Verdict::interrupted) return 130;
  if (r.verdict == Verdict::deadlock && !verdict_expected(r)) return 4;
  return r.expectations_met() && r.verdict != Verdict::failed ? 0 : 1;
}

}  // namespace experiment
