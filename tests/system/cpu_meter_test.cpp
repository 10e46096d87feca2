// SPDX-License-Identifier: Apache-2.0
// What polling and sleeping cost: the span of a side is time on the core, asleep and interrupted, to the picosecond.
#include "system/cpu_meter.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/run_workload.h"

namespace sys::test {
namespace {

using sim::Picos;

constexpr std::uint64_t kMessages = 40;

struct Costs {
  CpuTime client, server;
  Picos server_kernel{0};
};

ScenarioConfig paced(CompletionMode mode, std::uint64_t rate) {
  ScenarioConfig s = one_workload(Op::send_lat, 64, kMessages);
  s.workloads[0].completion = mode;
  s.workloads[0].rate_limit = rate;
  return s;
}

Costs costs_of(const ScenarioConfig& s) {
  Simulation run(s);
  run.run();
  EXPECT_TRUE(run.cluster->finished());
  const WorkloadRecord& r = run.cluster->workloads()[0]->record();
  const Picos now = run.context.now();
  return {r.client_cpu.read(now), r.server_cpu.read(now), run.context.stats.busy("host1.cpu0.kernel").busy};
}

void expect_partition(const CpuTime& t) {
  EXPECT_EQ(t.on_cpu + t.asleep + t.interrupted, t.span);
  EXPECT_GT(t.on_cpu, Picos{0});
}

TEST(CpuMeter, APollerIsOnItsCoreAllTheTime) {
  const Costs c = costs_of(paced(CompletionMode::poll, 50'000));
  for (const CpuTime& t : {c.client, c.server}) {
    expect_partition(t);
    EXPECT_EQ(t.asleep, Picos{0});
    EXPECT_EQ(t.on_cpu + t.interrupted, t.span);
  }
  EXPECT_GE(c.server.span, Picos{20'000'000} * static_cast<std::int64_t>(kMessages - 1)) << "20 us between messages";
}

TEST(CpuMeter, ASleeperPaysPerMessageWhateverTheRate) {
  const Costs slow = costs_of(paced(CompletionMode::event, 10'000));
  expect_partition(slow.client);
  expect_partition(slow.server);
  EXPECT_GT(slow.server.asleep * 10, slow.server.span * 9);
  // Per message of the server: two waits (its receive, its send), nothing else; a few hundred nanoseconds.
  EXPECT_LT(slow.server.on_cpu, Picos{3'000'000} * static_cast<std::int64_t>(kMessages));
}

TEST(CpuMeter, HalfTheRateIsTheSameWorkOfASleeper) {
  // In processes of their own there is one engine each; here the two runs are one scenario with two workloads on two cores.
  ScenarioConfig s = paced(CompletionMode::event, 20'000);
  s.workloads.push_back(s.workloads[0]);
  s.workloads[1].rate_limit = 10'000;
  Simulation run(s);
  run.run();
  const Picos now = run.context.now();
  const CpuTime fast = run.cluster->workloads()[0]->record().server_cpu.read(now);
  const CpuTime slow = run.cluster->workloads()[1]->record().server_cpu.read(now);
  EXPECT_GT(slow.span * 10, fast.span * 19);
  const std::int64_t apart = (slow.on_cpu - fast.on_cpu).n;
  EXPECT_LT(std::abs(apart), fast.on_cpu.n / 50) << fast.on_cpu.n << " and " << slow.on_cpu.n;
}

TEST(CpuMeter, EachSideWaitsInItsOwnManner) {
  ScenarioConfig s = paced(CompletionMode::poll, 50'000);
  s.workloads[0].server_completion = CompletionMode::event;
  const Costs c = costs_of(s);
  EXPECT_EQ(c.client.asleep, Picos{0});
  EXPECT_GT(c.server.asleep * 2, c.server.span);
}

/// Both sides of a poller that shares its core with the interrupts of a sleeper, as numbers.
std::vector<std::int64_t> beside_interrupts(cpu::PollMode mode) {
  ScenarioConfig s = one_workload(Op::send_lat, 64, 200);
  s.workloads.push_back(s.workloads[0]);
  s.workloads[1].completion = CompletionMode::event;
  for (HostConfig& h : s.hosts) {
    h.core.poll_mode = mode;
    h.kernel.driver.comp_vectors = 1;
  }
  int fd[2];
  EXPECT_EQ(pipe(fd), 0);
  const pid_t child = fork();
  std::vector<std::int64_t> out(16);
  if (child == 0) {
    Simulation run(s);
    run.run();
    out.clear();
    for (const auto& w : run.cluster->workloads())
      for (const CpuMeter* m : {&w->record().client_cpu, &w->record().server_cpu}) {
        const CpuTime t = m->read(run.context.now());
        out.insert(out.end(), {t.span.n, t.on_cpu.n, t.asleep.n, t.interrupted.n});
      }
    _exit(write(fd[1], out.data(), 128) == 128 ? 0 : 1);
  }
  close(fd[1]);
  EXPECT_EQ(read(fd[0], out.data(), 128), 128);
  close(fd[0]);
  waitpid(child, nullptr, 0);
  return out;
}

TEST(CpuMeter, PollsThatAreSkippedCostWhatSpunOnesDo) {
  const std::vector<std::int64_t> skipped = beside_interrupts(cpu::PollMode::fast_forward);
  EXPECT_EQ(skipped, beside_interrupts(cpu::PollMode::spin));
  EXPECT_GT(skipped[3], 0) << "the poller is interrupted for the other workload";
  EXPECT_EQ(skipped[2], 0);
  EXPECT_EQ(skipped[0], skipped[1] + skipped[3]);
}

TEST(RateLimit, SpacesTheMessagesOfEveryOp) {
  for (const Op op : {Op::send_lat, Op::write_lat, Op::read_lat, Op::send_bw, Op::write_bw, Op::read_bw}) {
    ScenarioConfig s = one_workload(op, 64, 11);
    s.workloads[0].rate_limit = 100'000;
    s.workloads.push_back(s.workloads[0]);
    s.workloads[1].completion = CompletionMode::event;
    if (op == Op::write_lat) s.workloads.pop_back();  // polls memory whatever the mode
    const pid_t child = fork();
    if (child == 0) {
      Simulation run(s);
      run.run();
      std::vector<Picos> last(s.workloads.size());
      bool spaced = run.cluster->finished();
      for (const sim::Journey& j : run.journeys.all) {
        if (op == Op::send_lat || op == Op::write_lat) continue;  // both directions are in the log
        if (last[j.flow].n != 0 && j.start - last[j.flow] < Picos{10'000'000}) spaced = false;
        last[j.flow] = j.start;
      }
      for (const auto& w : run.cluster->workloads())
        spaced &= w->record().ended - w->record().started >= Picos{100'000'000};
      _exit(spaced ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << sim::enum_name(op);
  }
}

}  // namespace
}  // namespace sys::test
