// SPDX-License-Identifier: Apache-2.0
// Jitter moves times and nothing else: messages arrive intact and in order, their stages still sum, and a seed repeats.
#include "sim/jitter.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "tests/system/run_workload.h"

namespace sys::test {
namespace {

ScenarioConfig events(std::uint64_t seed, std::int64_t most) {
  ScenarioConfig s = one_workload(Op::send_lat, 3000, 50);
  s.workloads[0].completion = CompletionMode::event;
  s.workloads.push_back(s.workloads[0]);
  s.workloads[1].op = Op::write_bw;
  s.workloads[1].tx_depth = 16;
  const sim::Picos t{most};
  s.run.jitter = {t, t, t, t, t, t, t};
  s.seed = seed;
  return s;
}

/// What a run shows; empty if it went wrong.
std::string shown(const ScenarioConfig& s, sim::EngineMode mode = sim::EngineMode::run_ahead) {
  Simulation run(s, mode);
  run.run();
  if (!run.cluster->finished()) return {};
  std::string out;
  for (const auto& w : run.cluster->workloads())
    if (w->record().corrupted != 0 || w->record().wc_status.size() != 1) return {};
  for (const sim::Journey& j : run.journeys.all) {
    const sim::Picos sum = std::accumulate(j.stage.begin(), j.stage.end(), sim::Picos{0});
    if (sum != j.total()) return {};
    out += std::to_string(j.id) + " " + std::to_string(j.start.n) + " " + std::to_string(j.last.n) + "\n";
  }
  return out;
}

std::size_t in_child(const ScenarioConfig& s, sim::EngineMode mode = sim::EngineMode::run_ahead) {
  int fd[2];
  EXPECT_EQ(pipe(fd), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = shown(s, mode);
    const std::size_t hash = text.empty() ? 0 : std::hash<std::string>{}(text);
    _exit(write(fd[1], &hash, sizeof hash) == sizeof hash ? 0 : 1);
  }
  close(fd[1]);
  std::size_t hash = 0;
  EXPECT_EQ(read(fd[0], &hash, sizeof hash), static_cast<ssize_t>(sizeof hash));
  close(fd[0]);
  waitpid(child, nullptr, 0);
  EXPECT_NE(hash, 0u) << "a run went wrong";
  return hash;
}

TEST(JitterInARun, KeepsOrderBytesAndThePartitionOfLatency) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) in_child(events(seed, 2'000'000));
}

TEST(JitterInARun, RepeatsWithItsSeedInBothEngineModes) {
  const std::size_t a = in_child(events(3, 500'000));
  EXPECT_EQ(a, in_child(events(3, 500'000)));
  EXPECT_EQ(a, in_child(events(3, 500'000), sim::EngineMode::tick));
  EXPECT_NE(a, in_child(events(4, 500'000)));
  EXPECT_NE(a, in_child(events(3, 0)));
}

}  // namespace
}  // namespace sys::test
