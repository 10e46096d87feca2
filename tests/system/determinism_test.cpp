// SPDX-License-Identifier: Apache-2.0
// The same scenario gives the same times whatever the engine mode, the order of construction and the way polls pass time.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "tests/system/run_workload.h"

namespace sys::test {
namespace {

/// Counts records.
struct CountingSink final : sim::trace::Sink {
  explicit CountingSink(std::size_t& n) : records(n) {}
  using Sink::on;
  void on(const sim::trace::Span&) override { ++records; }
  void on(const sim::trace::Level&) override { ++records; }
  void close(sim::Picos) override {}
  std::size_t& records;
};

// Everything that a run makes visible, as text.
std::string fingerprint(const ScenarioConfig& s, sim::EngineMode mode, bool reverse, bool traced) {
  std::size_t records = 0;
  Simulation run(s, mode, reverse);
  if (traced) {
    run.context.tracer.add_sink(std::make_unique<CountingSink>(records));
    run.context.tracer.open({});
  }
  run.run();
  std::string out;
  for (const sim::Journey& j : run.journeys.all) {
    out += std::to_string(j.id) + " " + std::to_string(j.start.n);
    for (const sim::Picos p : j.stage) out += " " + std::to_string(p.n);
    out += "\n";
  }
  for (const auto& [path, c] : run.context.stats.counters()) out += path + " " + std::to_string(c.value) + "\n";
  for (const auto& [path, b] : run.context.stats.busy_times()) out += path + " " + std::to_string(b.busy.n) + "\n";
  if (traced && records < run.journeys.all.size()) out += "too few records\n";
  return out;
}

// SystemC has one kernel per process, so each variant runs in a child that writes its fingerprint to a pipe.
std::string in_child(const ScenarioConfig& s, sim::EngineMode mode, bool reverse, bool traced = false) {
  int fd[2];
  if (pipe(fd) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = fingerprint(s, mode, reverse, traced);
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = write(fd[1], text.data() + done, text.size() - done);
      if (n <= 0) _exit(1);
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(fd[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(fd[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(fd[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return text;
}

ScenarioConfig mixed() {
  ScenarioConfig s = one_workload(Op::send_lat, 4096, 30);
  s.workloads.push_back(s.workloads[0]);
  s.workloads[1].op = Op::write_bw;
  s.workloads[1].size = sim::Bytes{3000};
  s.workloads[1].iters = 100;
  s.workloads[1].tx_depth = 16;
  s.workloads.push_back(s.workloads[0]);
  s.workloads[2].completion = CompletionMode::event;
  s.workloads[2].size = sim::Bytes{64};
  return s;
}

TEST(Determinism, TwoRunsAreEqual) {
  const auto s = mixed();
  const std::string a = in_child(s, sim::EngineMode::run_ahead, false);
  EXPECT_GT(a.size(), 10'000u);
  EXPECT_EQ(a, in_child(s, sim::EngineMode::run_ahead, false));
}

TEST(Determinism, TracingChangesNothing) {
  auto s = mixed();
  s.workloads.push_back(s.workloads[2]);
  s.workloads[3].consumer = ConsumerKind::kernel;
  EXPECT_EQ(in_child(s, sim::EngineMode::run_ahead, false), in_child(s, sim::EngineMode::run_ahead, false, true));
}

TEST(Determinism, RunAheadEqualsTick) {
  const auto s = mixed();
  EXPECT_EQ(in_child(s, sim::EngineMode::run_ahead, false), in_child(s, sim::EngineMode::tick, false));
}

// Idle states, foreign work, moderated event queues, lost events, a link that flaps.
ScenarioConfig disturbed() {
  ScenarioConfig s = mixed();
  for (WorkloadConfig& w : s.workloads) w.completion = CompletionMode::event;
  s.fabric.link.down = {{sim::Picos{2'000'000'000}, sim::Picos{100'000'000}}};
  for (HostConfig& h : s.hosts) {
    h.core.cstate_exit_latency = {10'000'000};
    h.core.cstate_entry = {2'000'000};
    h.core.noise_interval = {20'000'000};
    h.core.noise_length = {3'000'000};
    h.hca.completion.eq_moderation_period = {8'000'000};
    h.kernel.driver.irq_affinity = {1, 0};
  }
  return s;
}

TEST(Determinism, RunAheadEqualsTickWhateverDisturbsTheCores) {
  const auto s = disturbed();
  const std::string a = in_child(s, sim::EngineMode::run_ahead, false);
  EXPECT_NE(a.find("cstate_exits"), std::string::npos);
  EXPECT_EQ(a, in_child(s, sim::EngineMode::tick, false));
  EXPECT_EQ(a, in_child(s, sim::EngineMode::run_ahead, true));
}

TEST(Determinism, OrderOfConstructionDoesNotShow) {
  const auto s = mixed();
  EXPECT_EQ(in_child(s, sim::EngineMode::run_ahead, false), in_child(s, sim::EngineMode::run_ahead, true));
}

TEST(Determinism, FastForwardedPollsEqualSpunPolls) {
  auto s = one_workload(Op::send_lat, 512, 20);
  s.workloads.push_back(s.workloads[0]);
  s.workloads[1].op = Op::write_lat;
  const std::string fast = in_child(s, sim::EngineMode::run_ahead, false);
  for (auto& h : s.hosts) h.core.poll_mode = cpu::PollMode::spin;
  EXPECT_EQ(fast, in_child(s, sim::EngineMode::run_ahead, false));
}

TEST(Determinism, SeedChangesOnlyWhatIsRandom) {
  auto s = one_workload(Op::send_lat, 512, 20);
  const std::string a = in_child(s, sim::EngineMode::run_ahead, false);
  s.seed = 99;
  EXPECT_EQ(a, in_child(s, sim::EngineMode::run_ahead, false)) << "an undisturbed link draws no random numbers";
}

}  // namespace
}  // namespace sys::test
