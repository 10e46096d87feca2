// SPDX-License-Identifier: Apache-2.0
// A loop of empty polls that is skipped returns at the very instant at which the loop would have, and journeys and tags
// follow the WRs.
#include <gtest/gtest.h>

#include <cstring>

#include "fake_kernel.h"
#include "machine_fixture.h"
#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::test {
namespace {

cpu::CoreConfig with_mode(cpu::PollMode mode) {
  cpu::CoreConfig c;
  c.poll_mode = mode;
  return c;
}

/// One process on one core with a QP in RTS, which sees its CQEs written at given times.
struct Poller {
  Poller(Machine& m, cpu::Core& on, std::int32_t host, const std::vector<sim::Picos>& times)
      : machine(m), core(on), kernel(m.space), when(times) {
    state.syscalls = &kernel;
    state.config = &m.config;
    state.context = &m.context;
    state.host = host;
  }

  void run() {
    ibv_device** list = ibv_get_device_list(nullptr);
    ibv_context* context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    ibv_pd* pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 15, nullptr, nullptr, 0);
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = cq;
    a.cap = {64, 64, 1, 1, 0};
    a.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(pd, &a);
    for (const ibv_qp_state s : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      ibv_qp_attr attr{};
      attr.qp_state = s;
      ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    }
    for (std::size_t i = 0; i < when.size(); ++i) {
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_RDMA_READ;
      wr.wr_id = i;
      wr.send_flags = IBV_SEND_SIGNALED;
      ibv_send_wr* bad = nullptr;
      ASSERT_EQ(::ibv_post_send(qp, &wr, &bad), 0);
    }
    cpu::Thread& t = cpu::current();
    t.sync();
    for (std::size_t i = 0; i < when.size(); ++i) machine.context.scheduler.at(when[i], &Poller::write_cqe, this, i);
    while (seen.size() < when.size()) {
      ibv_wc wc{};
      const int n = ::ibv_poll_cq(cq, 1, &wc);
      ASSERT_GE(n, 0);
      ++calls;
      if (n == 1) {
        EXPECT_EQ(wc.wr_id, seen.size());
        seen.push_back(t.now());
      }
    }
  }

  /// The device writes CQE number i.
  static void write_cqe(void* self, std::uint64_t i) {
    auto& p = *static_cast<Poller*>(self);
    mlx5::Cq& cq = mlx5::cq_of(p.cq);
    mlx5_cqe64 cqe{};
    cqe.srqn_uidx = 0;
    cqe.sop_drop_qpn = mlx5::be32(static_cast<std::uint32_t>(MLX5_OPCODE_RDMA_READ) << 24 | p.qp->qp_num);
    cqe.wqe_counter = mlx5::be16(static_cast<std::uint16_t>(i));
    cqe.op_own = (i & cq.entries) != 0 ? 1 : 0;
    const auto* bytes = reinterpret_cast<const std::byte*>(&cqe);
    p.machine.memory.write(p.machine.space.phys_of(memory::va_of(cq.buf + (i & (cq.entries - 1)) * 64)),
                           {bytes, sizeof cqe});
  }

  Machine& machine;
  cpu::Core& core;
  FakeKernel kernel;
  ProcessState state;
  std::vector<sim::Picos> when;
  std::vector<sim::Picos> seen;
  std::uint64_t calls = 0;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
};

TEST(Polling, SkippedAndPerformedEmptyPollsSeeTheSameInstants) {
  Machine m(with_mode(cpu::PollMode::fast_forward));
  cpu::Core spinning("spinning", m.context, with_mode(cpu::PollMode::spin), m.memory, 1, 1);
  spinning.mmio.bind(m.sink);
  std::vector<sim::Picos> times;
  for (std::int64_t i = 0; i < 40; ++i) times.push_back(sim::Picos{50'000'000 + i * 1'000'137 + (i % 7) * 3'001});
  Poller fast(m, m.core, 0, times), slow(m, spinning, 1, times);
  m.program_on(m.core, fast.state, [&] { fast.run(); });
  m.program_on(spinning, slow.state, [&] { slow.run(); });
  m.run();
  ASSERT_EQ(fast.seen.size(), times.size());
  ASSERT_EQ(slow.seen.size(), times.size());
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_EQ(fast.seen[i].n, slow.seen[i].n) << "CQE " << i;
  EXPECT_LT(fast.calls, times.size() * 5);
  EXPECT_GT(slow.calls, times.size() * 20);
  EXPECT_EQ(m.context.stats.counter("host0.verbs.empty_polls").value,
            m.context.stats.counter("host1.verbs.empty_polls").value);
}

struct Sink : sim::JourneySink {
  void finished(const sim::Journey& j) override { all.push_back(j); }
  std::vector<sim::Journey> all;
};

TEST(Journeys, AReadEndsWhenThePollReturns) {
  Machine m;
  Sink sink;
  m.context.journeys.set_sink(&sink);
  Poller p(m, m.core, 0, {sim::Picos{50'000'000}});
  p.state.flow = 7;
  m.program_on(m.core, p.state, [&] { p.run(); });
  m.run();
  ASSERT_EQ(sink.all.size(), 1u);
  const sim::Journey& j = sink.all.front();
  EXPECT_EQ(j.flow, 7u);
  EXPECT_EQ(j.opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(j.last.n, p.seen.front().n);
  EXPECT_GT(j.stage[static_cast<std::size_t>(sim::Stage::cpu_post)].n, 0);
  sim::Picos sum{0};
  for (const sim::Picos s : j.stage) sum += s;
  EXPECT_EQ(sum.n, j.total().n);
  EXPECT_EQ(m.context.journeys.count_under_way(), 0u);
}

TEST(Tags, TheHcaFindsTheMessageOfAWqe) {
  Machine m;
  Poller p(m, m.core, 0, {sim::Picos{50'000'000}, sim::Picos{60'000'000}});
  m.program_on(m.core, p.state, [&] { p.run(); });
  m.run();
  EXPECT_EQ(m.context.wqe_tags.sq.find(0, 0x123, 0), 1u);
  EXPECT_EQ(m.context.wqe_tags.sq.find(0, 0x123, 1), 2u);
  EXPECT_FALSE(m.sink.writes.empty());
  EXPECT_EQ(m.sink.writes.front().cause.msg, 1u);
}

}  // namespace
}  // namespace verbs::test
