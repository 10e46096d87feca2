// SPDX-License-Identifier: Apache-2.0
// Speed of the simulator: messages and packets per CPU second, events and heap allocations per message in the steady state,
// memory per queue pair and per host, start-up time. Each measurement runs in a child process of its own (SystemC has one
// kernel per process). CPU time only; compare within one run, because machines are noisy. The floor F, a timed sc_event
// to an SC_METHOD with 1,024 pending, is measured in the same run.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <systemc>
#include <vector>

#include "experiment/scenario.h"
#include "sim/context.h"
#include "system/cluster.h"

namespace {
std::uint64_t g_allocations = 0;
}
void* operator new(std::size_t n) {
  ++g_allocations;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

std::uint64_t resident_bytes() {
  std::ifstream f("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  f >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

struct Figures {
  double cpu = 0, setup = 0;
  std::uint64_t messages = 0, packets = 0, events = 0, allocations = 0, resident = 0;
};

// Takes stock when messages 1,000 and 2,000 have been delivered.
struct Counter : sim::JourneySink {
  std::uint64_t messages = 0, at_1000 = 0, at_2000 = 0;
  void finished(const sim::Journey&) override {
    ++messages;
    if (messages == 1000) at_1000 = g_allocations;
    if (messages == 2000) at_2000 = g_allocations;
  }
};

Figures measure(const std::filesystem::path& file, const std::vector<std::string>& sets) {
  const double t0 = cpu_seconds();
  const experiment::Scenario scenario = experiment::load_scenario(file, {sets});
  sim::Context context(scenario.config.seed);
  Counter counter;
  context.journeys.set_sink(&counter);
  sys::Cluster cluster(context, scenario.config, sim::EngineMode::run_ahead);
  double begun = 0;
  std::uint64_t events = 0;
  Figures f;
  cluster.on_measurement([&] {
    begun = cpu_seconds();
    events = context.scheduler.executed();
    f.resident = resident_bytes();
  });
  cluster.start();
  cluster.engine().run();
  f.cpu = cpu_seconds() - begun;
  f.setup = begun - t0;
  f.messages = counter.messages;
  f.events = context.scheduler.executed() - events;
  f.allocations = counter.at_2000 - counter.at_1000;
  for (const auto& [path, c] : context.stats.counters())
    if (path.ends_with(".hca.tx.packets")) f.packets += c.value;
  return f;
}

template <class T>
T in_child(const std::function<T()>& fn) {
  int fd[2];
  if (pipe(fd) != 0) std::abort();
  if (fork() == 0) {
    const T t = fn();
    if (write(fd[1], &t, sizeof t) != static_cast<ssize_t>(sizeof t)) _exit(1);
    _exit(0);
  }
  T t{};
  if (read(fd[0], &t, sizeof t) != static_cast<ssize_t>(sizeof t)) std::fprintf(stderr, "a measurement failed\n");
  close(fd[0]);
  close(fd[1]);
  wait(nullptr);
  return t;
}

// F: nanoseconds of CPU per timed sc_event notification with 1,024 pending.
SC_MODULE(Station) {
  sc_core::sc_event event;
  sim::Rng rng{1, "station"};
  std::uint64_t* count;
  SC_HAS_PROCESS(Station);
  Station(sc_core::sc_module_name n, std::uint64_t * c, unsigned i) : sc_module(n), rng(i, "station"), count(c) {
    SC_METHOD(step);
    sensitive << event;
  }
  void step() {
    if (++*count > 2'000'000) sc_core::sc_stop();
    event.notify(sc_core::sc_time(1.0 + rng.below(1'000'000), sc_core::SC_PS));
  }
};
double floor_ns() {
  std::uint64_t count = 0;
  std::vector<std::unique_ptr<Station>> stations;
  for (unsigned i = 0; i < 1024; ++i)
    stations.push_back(std::make_unique<Station>(("s" + std::to_string(i)).c_str(), &count, i));
  const double t0 = cpu_seconds();
  sc_core::sc_start();
  return (cpu_seconds() - t0) * 1e9 / static_cast<double>(count);
}

}  // namespace

int sc_main(int argc, char** argv) {
  const std::filesystem::path dir = argc > 1 ? argv[1] : "scenarios/bench";
  const double floor = in_child<double>(floor_ns);
  std::printf("floor F (timed sc_event to SC_METHOD, 1,024 pending): %.0f ns\n\n", floor);
  std::printf("%-22s %12s %12s %11s %11s %10s %9s %9s\n", "scenario", "msg/CPU s", "packet/CPU s", "events/msg",
              "ns/event", "ns/event/F", "allocs", "set-up");
  for (const char* name : {"write_lat_8b", "write_stream_8b", "write_stream_4k", "write_stream_1m"}) {
    Figures best;
    for (int i = 0; i < 3; ++i) {
      const Figures f = in_child<Figures>([&] { return measure(dir / (std::string(name) + ".json"), {}); });
      if (best.messages == 0 || f.cpu < best.cpu) best = f;
    }
    const double m = static_cast<double>(best.messages), e = static_cast<double>(best.events);
    std::printf("%-22s %12.0f %12.0f %11.1f %11.0f %10.2f %9lu %6.1f ms\n", name, m / best.cpu,
                static_cast<double>(best.packets) / best.cpu, e / m, best.cpu * 1e9 / e, best.cpu * 1e9 / e / floor,
                best.allocations, best.setup * 1e3);
  }
  const auto with_qps = [&](const char* n) {
    return in_child<Figures>([&] {
      return measure(dir / "write_stream_8b.json", {std::string("workloads.0.qps=") + n, "workloads.0.iters=10",
                                                    "workloads.0.tx_depth=4", "workloads.0.rx_depth=1"});
    });
  };
  const Figures few = with_qps("1"), many = with_qps("501");
  std::printf(
      "\nmemory: %.1f KB per pair of connected queue pairs (WQ buffers included), %.0f KB for two hosts with one\n",
      static_cast<double>(many.resident - few.resident) / 500 / 1e3, static_cast<double>(few.resident) / 1e3);
  return 0;
}
