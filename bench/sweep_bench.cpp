// SPDX-License-Identifier: Apache-2.0
// What a sweep costs beside its simulations: 1,000 points of some ten milliseconds on all processors. Used: processor time of the sweep
// and its points, of what the processors could give; the rest went to others, or was idle. Overhead: processor time of a point that is
// not its simulation's: planning apart, fork, loading of the scenario, storing, end of the process.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <systemc>
#include <thread>

#include "experiment/sweep.h"

namespace {

double cpu_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage u{};
    getrusage(who, &u);
    for (const timeval& t : {u.ru_utime, u.ru_stime})
      sum += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  }
  return sum;
}

/// Time in which processors of this machine had nothing to do, all of them together.
double idle_seconds() {
  std::ifstream f("/proc/stat");
  std::string cpu;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
  f >> cpu >> user >> nice >> system >> idle >> waiting;
  return static_cast<double>(idle + waiting) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

int sc_main(int, char**) {
  namespace fs = std::filesystem;
  using Clock = std::chrono::steady_clock;
  const fs::path dir = fs::temp_directory_path() / ("rdmasim_sweep_bench_" + std::to_string(getpid()));
  fs::create_directories(dir);
  std::ofstream(dir / "stream.json") << R"({"workloads": [{"op": "write_bw", "size": "64 B", "iters": 1000}],
    "sweep": {"parameters": [{"path": "workloads.0.size", "values": "1 B..1000 B +1 B"}],
              "metrics": {"simulation_s": "/simulator/cpu_s"}}})";
  experiment::SweepRequest request;
  request.file = dir / "stream.json";

  const auto begin = Clock::now();
  const experiment::SweepPlan plan = experiment::plan_sweep(request);
  const double planned = std::chrono::duration<double>(Clock::now() - begin).count();
  experiment::SweepStore store = experiment::SweepStore::create(dir, plan);
  experiment::SweepRunOptions options;
  options.jobs = std::max(1U, std::thread::hardware_concurrency());
  const double cpu = cpu_seconds(), idle = idle_seconds();
  const auto start = Clock::now();
  experiment::run_sweep(plan, store.unfinished(), store, options);
  const double wall = std::chrono::duration<double>(Clock::now() - start).count(), used = cpu_seconds() - cpu,
               unused = idle_seconds() - idle;
  double simulated = 0;
  const auto rows = store.rows();
  for (const experiment::SweepRow& r : rows) simulated += r.metrics.empty() ? 0 : r.metrics.front().value_or(0);
  const double room = wall * options.jobs, points = static_cast<double>(rows.size());
  std::printf("%zu points, %u at a time: planned in %.2f s, run in %.2f s\n", rows.size(), options.jobs, planned, wall);
  std::printf("%u processors: used %.1f %%, idle %.1f %%; simulation %.1f ms, overhead %.2f ms per point\n",
              options.jobs, 100 * used / room, 100 * unused / room, 1e3 * simulated / points,
              1e3 * (used - simulated) / points);
  fs::remove_all(dir);
  return 0;
}

int main(int argc, char** argv) {
  setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);
  return sc_core::sc_elab_and_sim(argc, argv);
}
