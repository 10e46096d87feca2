// SPDX-License-Identifier: Apache-2.0
// Workloads that run as kernel modules: latency against a program's, listings, beside programs on one device, in every poll
// context, under jitter, and with adaptive moderation.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "kernel/core/resource_tracking.h"
#include "tests/system/run_workload.h"

namespace sys::test {
namespace {

using kernel::PollContext;
using sim::Picos;
using sim::Stage;

ScenarioConfig in_kernel(Op op, std::uint64_t size, std::uint64_t iters, PollContext context = PollContext::softirq) {
  ScenarioConfig s = one_workload(op, size, iters);
  s.workloads[0].consumer = ConsumerKind::kernel;
  s.workloads[0].poll_context = context;
  return s;
}

Picos stage(const sim::Journey& j, Stage s) { return j.stage[static_cast<std::size_t>(s)]; }

std::uint64_t counter(Simulation& run, const std::string& path) { return run.context.stats.counter(path).value; }

void expect_complete(Simulation& run) {
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  ASSERT_TRUE(run.cluster->finished());
  for (const auto& w : run.cluster->workloads()) {
    EXPECT_EQ(w->record().corrupted, 0u);
    EXPECT_EQ(w->record().wc_status.size(), 1u);
    EXPECT_EQ(w->record().wc_status.count("SUCCESS"), 1u);
  }
  EXPECT_EQ(run.journeys.all.size(), run.cluster->expected_messages());
  for (std::size_t h = 0; h < 2; ++h) {
    const kernel::Resources r = kernel::list_resources(run.cluster->host(h).kernel());
    EXPECT_TRUE(r.pd.empty() && r.cq.empty() && r.qp.empty() && r.mr.empty());
  }
}

/// A steady message of an event-driven ping-pong of programs, without BlueFlame, as the kernel has none.
sim::Journey of_program() {
  ScenarioConfig s = one_workload(Op::send_lat, 64, 16);
  s.workloads[0].completion = CompletionMode::event;
  for (HostConfig& h : s.hosts) h.env["MLX5_SHUT_UP_BF"] = "1";
  Simulation run(s);
  EXPECT_EQ(run.run(), sim::Outcome::quiescent);
  return run.journeys.all.at(28);
}
sim::Journey of_module(PollContext context) {
  Simulation run(in_kernel(Op::send_lat, 64, 16, context));
  EXPECT_EQ(run.run(), sim::Outcome::quiescent);
  return run.journeys.all.at(28);
}

// One simulation per process: the program's figures are sums of its configuration (closed_form_test), and compared here.
TEST(KernelConsumer, ALatencyIsThatOfAProgramWithoutTheStagesThatItSkips) {
  const sim::Journey j = of_module(PollContext::softirq);
  const HostConfig h{};
  const auto& i = h.kernel.interrupt;
  const auto& v = h.kernel.verbs;
  EXPECT_EQ(stage(j, Stage::eqe_write).n, h.hca.completion.eqe_build.n);
  EXPECT_EQ(stage(j, Stage::irq_entry).n, i.irq_entry.n);
  EXPECT_EQ(stage(j, Stage::irq_handler).n, (i.eqe + h.kernel.cq_poll.comp_handler + i.eq_rearm).n);
  EXPECT_EQ(stage(j, Stage::softirq).n, h.kernel.cq_poll.softirq_delay.n);
  for (const Stage s : {Stage::tasklet, Stage::wake_up, Stage::syscall_return}) EXPECT_EQ(stage(j, s).n, 0);
  // The ownership byte comes from the cache that the device wrote into, so does that of the next CQE, which is not there.
  const auto& c = h.core;
  EXPECT_EQ(stage(j, Stage::poll).n, (v.poll_call + c.lock_cost + h.memory.llc_latency + c.lfence_cost + c.load_cost +
                                      v.poll_cqe + h.memory.llc_latency + c.store_cost * 2)
                                         .n);
  // Post: four stores of the control segment and three of the data segment, the record between two fences, the doorbell.
  // The first fence waits for the last store of the WQE, the second for the record.
  const Picos post = v.post_send_call + c.lock_cost + v.post_send_wr + v.sge + c.store_cost * 9 +
                     c.store_visible_after * 2 + c.load_cost + c.uc_store_cost;
  EXPECT_EQ(stage(j, Stage::cpu_post).n, post.n);
  EXPECT_EQ(stage(j, Stage::store_buffer_wc).n, c.uc_store_latency.n);
  // One page of kernel memory is named by a key of DMA addresses: no translation table.
  EXPECT_EQ(stage(j, Stage::translation).n, h.hca.context.mpt_hit.n);
}

TEST(KernelConsumer, AProgramTakesTheStagesThatAModuleSkips) {
  const sim::Journey j = of_program();
  const HostConfig h{};
  const auto& i = h.kernel.interrupt;
  EXPECT_EQ(stage(j, Stage::softirq).n, 0);
  const Picos skipped = i.tasklet_delay + i.comp_handler + i.wake_up + i.context_switch + h.kernel.syscall.event_read +
                        h.kernel.syscall.exit;
  EXPECT_EQ((stage(j, Stage::tasklet) + stage(j, Stage::wake_up) + stage(j, Stage::syscall_return)).n, skipped.n);
  EXPECT_GT(skipped, h.kernel.cq_poll.softirq_delay + h.kernel.cq_poll.comp_handler);
}

TEST(KernelConsumer, AWorkQueueCostsAWakeUp) {
  const sim::Journey j = of_module(PollContext::workqueue);
  const HostConfig h{};
  EXPECT_EQ(stage(j, Stage::wake_up).n, h.kernel.cq_poll.work_delay.n);
  EXPECT_EQ(stage(j, Stage::softirq).n, 0);
  EXPECT_EQ(stage(j, Stage::irq_handler).n, (h.kernel.interrupt.eqe + h.kernel.cq_poll.comp_handler).n);
}

TEST(KernelConsumer, DirectPollingTakesNoInterrupt) {
  Simulation run(in_kernel(Op::send_lat, 64, 50, PollContext::direct));
  expect_complete(run);
  for (const Stage s : {Stage::eqe_write, Stage::msix, Stage::irq_entry, Stage::irq_handler, Stage::softirq})
    EXPECT_EQ(stage(run.journeys.all[40], s).n, 0);
}

TEST(KernelConsumer, SkippedAndPerformedEmptyPollsSeeTheSameInstants) {
  ScenarioConfig s = in_kernel(Op::send_lat, 64, 20, PollContext::direct);
  s.hosts[0].core.poll_mode = s.hosts[1].core.poll_mode = cpu::PollMode::spin;
  Simulation run(s);
  expect_complete(run);
  const Picos round = run.cluster->workloads()[0]->record().half_round_trip.at(15);
  // An empty poll is over before the next begins; the message is seen at most one of them late.
  const HostConfig h{};
  EXPECT_LT(stage(run.journeys.all[30], Stage::poll),
            h.kernel.verbs.poll_call * 2 + h.kernel.verbs.poll_cqe + Picos{100'000});
  EXPECT_GT(round.n, 0);
}

TEST(KernelConsumer, ItsObjectsHaveNoContextAndBelongToTheModule) {
  Simulation run(in_kernel(Op::send_lat, 64, 1000));
  run.run(Picos{3'000'000'000});
  ASSERT_FALSE(run.cluster->finished());
  const kernel::Resources r = kernel::list_resources(run.cluster->host(0).kernel());
  EXPECT_TRUE(r.ctx.empty());
  ASSERT_EQ(r.qp.size(), 1u);
  ASSERT_EQ(r.cq.size(), 1u);
  ASSERT_EQ(r.mr.size(), 1u);
  ASSERT_EQ(r.pd.size(), 1u);
  EXPECT_EQ(r.qp[0].owner.pid, 0u);
  EXPECT_EQ(r.qp[0].owner.comm, "perftest_ulp");
  EXPECT_EQ(r.cq[0].poll_ctx, "SOFTIRQ");
  EXPECT_EQ(r.cq[0].users, 2u);
  EXPECT_TRUE(run.cluster->host(0).processes().empty());
}

using Sides = std::tuple<Op, PollContext, int>;  // 0: both in the kernel, 1: the client, 2: the server
class EachKind : public testing::TestWithParam<Sides> {};
TEST_P(EachKind, WorksWithAPeerOfEitherKind) {
  const auto [op, context, sides] = GetParam();
  ScenarioConfig s = one_workload(op, 3000, 60);
  WorkloadConfig& w = s.workloads[0];
  w.mtu = 1024;
  w.poll_context = context;
  if (sides != 2) w.client_consumer = ConsumerKind::kernel;
  if (sides != 1) w.server_consumer = ConsumerKind::kernel;
  if (op == Op::send_bw || op == Op::write_bw || op == Op::read_bw) {
    w.tx_depth = 16;
    w.cq_mod = 4;
    w.post_list = 2;
    w.qps = 2;
    w.rx_depth = 60;
  }
  Simulation run(s);
  expect_complete(run);
}
INSTANTIATE_TEST_SUITE_P(
    KernelConsumers, EachKind,
    testing::Combine(testing::Values(Op::send_lat, Op::read_lat, Op::send_bw, Op::write_bw, Op::read_bw),
                     testing::Values(PollContext::direct, PollContext::softirq, PollContext::workqueue),
                     testing::Range(0, 3)));

TEST(KernelConsumer, ProgramsAndModulesShareTheDevice) {
  ScenarioConfig s = in_kernel(Op::send_bw, 256, 200);
  s.workloads[0].rx_depth = 200;
  ScenarioConfig user = one_workload(Op::send_lat, 64, 200);
  user.workloads[0].completion = CompletionMode::event;
  s.workloads.push_back(user.workloads[0]);
  Simulation run(s);
  expect_complete(run);
}

TEST(KernelConsumer, InlineDataComesFromKernelMemory) {
  ScenarioConfig s = in_kernel(Op::send_lat, 40, 20);
  s.workloads[0].inline_size = 40;
  Simulation run(s);
  expect_complete(run);
  EXPECT_EQ(stage(run.journeys.all[10], Stage::payload_dma).n, 0);
}

TEST(KernelConsumer, NoCompletionIsLostByEitherRuleOfArming_S_CE_20) {
  for (const auto rule : {hca::ArmRule::compare_ci, hca::ArmRule::next_cqe}) {
    if (const pid_t child = fork(); child == 0) {  // one simulation per process
      {
        ScenarioConfig s = in_kernel(Op::send_bw, 64, 3000);
        s.workloads[0].rx_depth = 512;
        s.workloads[0].tx_depth = 8;
        s.run.jitter = {.step = {900'000},
                        .mmio = {700'000},
                        .dma_write = {300'000},
                        .cqe_write = {400'000},
                        .interrupt = {500'000},
                        .tasklet = {800'000},
                        .wake_up = {0}};
        for (HostConfig& h : s.hosts) {
          h.hca.completion.arm_rule = rule;
          h.kernel.verbs.arm_read_back = rule == hca::ArmRule::next_cqe;
        }
        Simulation run(s);
        const bool ok =
            run.run() == sim::Outcome::quiescent && run.cluster->finished() && run.journeys.all.size() == 3000;
        _exit(ok ? 0 : 1);
      }
    } else {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << sim::enum_name(rule);
    }
  }
}

// The driver is unbound, or the adapter is pulled out, while the modules work: the RDMA core has the module give everything
// back, and then the device goes.
class ModuleAndRemoval : public testing::TestWithParam<std::tuple<PollContext, bool>> {};
TEST_P(ModuleAndRemoval, TheModuleGivesEverythingBack_S_DEV_8) {
  const auto [context, surprise] = GetParam();
  Simulation run(in_kernel(Op::send_lat, 64, 100'000, context));
  Host& host = run.cluster->host(0);
  kernel::Kernel& k = host.kernel();
  run.run(Picos{5'000'000'000});
  ASSERT_EQ(kernel::list_resources(k).qp.size(), 1u);
  host.remove_device(surprise);
  std::string why;
  try {
    run.run(Picos{3'000'000'000'000});
  } catch (const ProgramFailure& e) {
    why = e.what();
  }
  EXPECT_NE(why.find("the device was removed"), std::string::npos) << why;
  EXPECT_FALSE(k.ready());
}
INSTANTIATE_TEST_SUITE_P(KernelConsumers, ModuleAndRemoval,
                         testing::Combine(testing::Values(PollContext::direct, PollContext::softirq,
                                                          PollContext::workqueue),
                                          testing::Bool()));

TEST(KernelConsumer, ErrorsReachTheModule) {
  ScenarioConfig s = in_kernel(Op::send_bw, 64, 50);
  s.workloads[0].rx_depth = 1;
  s.workloads[0].rnr_retry = 0;
  Simulation run(s);
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  EXPECT_EQ(run.cluster->workloads()[0]->record().wc_status.count("RNR_RETRY_EXC_ERR"), 1u);
}

TEST(KernelConsumerConfig, WhatHasNoMeaningIsRefused) {
  const auto refused = [](auto change) {
    WorkloadConfig w = in_kernel(Op::send_lat, 64, 1).workloads[0];
    change(w);
    std::string field;
    w.check([&](const std::string& f, const std::string&) { field = f; });
    return field;
  };
  EXPECT_EQ(refused([](WorkloadConfig&) {}), "");
  EXPECT_EQ(refused([](WorkloadConfig& w) { w.op = Op::write_lat; }), "op");
  EXPECT_EQ(refused([](WorkloadConfig& w) { w.completion = CompletionMode::event; }), "completion");
  EXPECT_EQ(refused([](WorkloadConfig& w) { w.server_completion = CompletionMode::event; }), "server_completion");
  EXPECT_EQ(refused([](WorkloadConfig& w) { w.rate_limit = 5; }), "rate_limit");
  EXPECT_EQ(refused([](WorkloadConfig& w) {
              w.dim = true;
              w.poll_context = PollContext::direct;
            }),
            "dim");
  EXPECT_EQ(refused([](WorkloadConfig& w) {
              w.consumer = ConsumerKind::user;
              w.dim = true;
            }),
            "dim");
  EXPECT_EQ(refused([](WorkloadConfig& w) {
              w.consumer = ConsumerKind::user;
              w.poll_context = PollContext::direct;
            }),
            "poll_context");
}

// Adaptive moderation ------------------------------------------------------------------------------------------------------

/// A program sends at random intervals to a module.
ScenarioConfig busy_stream(bool dim) {
  ScenarioConfig s = one_workload(Op::send_bw, 64, 20'000);
  s.workloads[0].server_consumer = ConsumerKind::kernel;
  s.workloads[0].tx_depth = 64;
  s.workloads[0].rx_depth = 512;
  s.workloads[0].dim = dim;
  s.run.jitter.step = Picos{2'000'000};
  return s;
}

/// Interrupts of the receiving host for 20000 messages.
double interrupts_per_message(bool dim) {
  double result = -1;
  int fd[2];
  if (pipe(fd) != 0) return result;
  if (const pid_t child = fork(); child == 0) {
    Simulation run(busy_stream(dim));
    run.run();
    const double per = static_cast<double>(counter(run, "host1.kernel.interrupts")) / 20'000;
    const bool ok = run.cluster->finished() && (counter(run, "host1.kernel.dim_changes") > 0) == dim;
    const double out = ok ? per : -1;
    _exit(write(fd[1], &out, sizeof out) == sizeof out ? 0 : 1);
  } else {
    waitpid(child, nullptr, 0);
    if (read(fd[0], &result, sizeof result) != sizeof result) result = -1;
  }
  close(fd[0]);
  close(fd[1]);
  return result;
}

TEST(Dim, UnderAStreamFewerEventsAnnounceTheSameCompletions) {
  const double without = interrupts_per_message(false), with = interrupts_per_message(true);
  ASSERT_GT(without, 0);
  ASSERT_GT(with, 0);
  EXPECT_LT(with, without * 0.5);
}

TEST(Dim, APingPongKeepsItsLatency) {
  ScenarioConfig s = in_kernel(Op::send_lat, 64, 400);
  s.workloads[0].dim = true;
  Simulation run(s);
  expect_complete(run);
  const HostConfig h{};
  std::vector<std::int64_t> waits;
  for (const sim::Journey& j : run.journeys.all) waits.push_back(stage(j, Stage::eqe_write).n);
  std::ranges::sort(waits);
  EXPECT_EQ(waits[waits.size() / 2], h.hca.completion.eqe_build.n);
}

}  // namespace
}  // namespace sys::test
