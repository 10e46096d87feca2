// SPDX-License-Identifier: Apache-2.0
// Poll contexts of the core: where the work completions are handled, when, and that none is left behind.
#include "kernel/core/cq_poll.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <tuple>

#include "kernel_consumer.h"

namespace test {
namespace {

using kernel::PollContext;
constexpr sim::Picos kMicro{1'000'000};

/// A polled CQ with a queue pair on it; counts its receives.
struct Consumer : kernel::WrCqe {
  Consumer(KernelMachine& machine, PollContext context, std::uint32_t cqe = 511, bool dim = false) : m(machine) {
    done = &Consumer::received;
    kernel::Device& device = m.kernel->device();
    EXPECT_EQ(kernel::ib_alloc_kernel_pd(device, 0, m.consumer(), pd), 0);
    EXPECT_EQ(kernel::ib_alloc_cq(device, {cqe, 0, context, dim}, m.consumer(), this, cq), 0);
    kernel::QpInitAttr init;
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {4, cqe, 1, 1, 0};
    EXPECT_EQ(kernel::ib_create_qp(*pd, init, m.consumer(), nullptr, qp), 0);
    ibv_recv_wr wr{};
    const ibv_recv_wr* bad = nullptr;
    wr.wr_id = kernel::wr_id_of(*this);
    for (std::uint32_t i = 0; i < cqe; ++i) EXPECT_EQ(kernel::ib_post_recv(*qp, &wr, &bad), 0);
    cpu::current().sleep(kMicro);
  }
  static void received(kernel::Cq& cq, const ibv_wc& wc) {
    auto& self = *static_cast<Consumer*>(cq.context);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    cpu::Thread& t = cpu::current();
    t.compute(self.work);
    self.at.push_back(t.now());
    self.by = t.name();
    self.recv_space = &t.space();
  }
  /// The device receives `n` messages now.
  void arrive(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) m.complete(*cq, counter++, KernelMachine::received(qp->qpn, 1));
  }
  void event() { m.device.post_completion(cq->cqn); }
  void destroy() {
    EXPECT_EQ(kernel::ib_free_cq(*cq), -EBUSY);
    EXPECT_EQ(kernel::ib_destroy_qp(*qp), 0);
    EXPECT_EQ(kernel::ib_free_cq(*cq), 0);
    EXPECT_EQ(kernel::ib_dealloc_pd(*pd), 0);
  }
  std::size_t arms() const {
    std::size_t n = 0;
    for (const auto& w : m.device.uar_writes)
      n +=
          w.offset == prm::kUarCqDoorbell && prm::be32(*reinterpret_cast<const std::uint32_t*>(&w.bytes[4])) == cq->cqn;
    return n;
  }

  KernelMachine& m;
  std::unique_ptr<kernel::Pd> pd;
  std::unique_ptr<kernel::Cq> cq;
  std::unique_ptr<kernel::Qp> qp;
  std::uint32_t counter = 0;
  sim::Picos work{0};
  std::vector<sim::Picos> at;
  std::string by;
  const memory::AddressSpace* recv_space = nullptr;
};

TEST(CqPoll, SoftirqHandlesTheCompletionAfterTheSumOfTheConfiguredSteps_S_CE_9) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::softirq);
    EXPECT_EQ(c.arms(), 1u);  // from the beginning
    cpu::current().sync();
    const sim::Picos start = m.context.now();
    c.arrive(1);
    c.event();
    cpu::current().sleep(kMicro * 20);
    ASSERT_EQ(c.at.size(), 1u);
    const kernel::KernelConfig& k = m.kernel->config();
    const cpu::CoreConfig& core = m.core0.config();
    const sim::Picos interrupt =
        k.interrupt.irq_entry + k.interrupt.eqe + k.cq_poll.comp_handler + k.interrupt.eq_rearm;
    // Of the CQE the ownership byte comes from memory, the rest with it; then the next slot's byte, which says that this
    // was all, from the cache. The stores are the consumer index and the end of the lock.
    const sim::Picos dram = memory::MemoryConfig{}.dram_latency, cache = memory::MemoryConfig{}.llc_latency;
    const sim::Picos poll = k.verbs.poll_call + core.lock_cost + dram + core.lfence_cost + core.load_cost +
                            k.verbs.poll_cqe + cache + core.store_cost * 2;
    EXPECT_EQ((c.at[0] - start).n, (interrupt + k.cq_poll.softirq_delay + poll + k.cq_poll.done_call).n);
    EXPECT_EQ(c.by, "host0.irq_poll0");
    EXPECT_EQ(c.recv_space, &m.kernel->space());
    EXPECT_EQ(c.arms(), 2u);
    c.destroy();
  });
}

TEST(CqPoll, WorkqueueHandlesItInAKworker) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::workqueue);
    cpu::current().sync();
    const sim::Picos start = m.context.now();
    c.arrive(1);
    c.event();
    cpu::current().sleep(kMicro * 20);
    ASSERT_EQ(c.at.size(), 1u);
    const kernel::KernelConfig& k = m.kernel->config();
    const sim::Picos handler = k.interrupt.irq_entry + k.interrupt.eqe + k.cq_poll.comp_handler;
    EXPECT_GE(c.at[0] - start, handler + k.cq_poll.work_delay + k.verbs.poll_call + k.verbs.poll_cqe);
    EXPECT_LE(c.at[0] - start, handler + k.cq_poll.work_delay + sim::Picos{150'000});
    EXPECT_EQ(c.by, "host0.ib-comp-wq0");
    EXPECT_EQ(c.arms(), 2u);
    c.destroy();
  });
}

TEST(CqPoll, DirectHandlesNothingUntilTheConsumerPolls) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::direct);
    c.arrive(20);
    cpu::current().sleep(kMicro * 20);
    EXPECT_TRUE(c.at.empty());
    EXPECT_EQ(c.arms(), 0u);
    EXPECT_EQ(kernel::ib_process_cq_direct(*c.cq, 5), 5);
    EXPECT_EQ(kernel::ib_process_cq_direct(*c.cq, -1), 15);
    EXPECT_EQ(kernel::ib_process_cq_direct(*c.cq, -1), 0);
    EXPECT_EQ(c.by, "host0.ulp");
    c.destroy();
  });
}

TEST(CqPoll, ABudgetEndsASoftirqAndTheRestComesInTheNext) {
  kernel::KernelConfig config = default_config();
  config.cq_poll.irq_poll_budget = 32;
  config.cq_poll.batch = 8;
  config.cq_poll.softirq_delay = kMicro * 5;
  KernelMachine m(config);
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::softirq);
    c.arrive(70);
    c.event();
    cpu::current().sleep(kMicro * 100);
    ASSERT_EQ(c.at.size(), 70u);
    EXPECT_LT(c.at[31] - c.at[0], kMicro * 5);
    EXPECT_GE(c.at[32] - c.at[31], kMicro * 5);
    EXPECT_LT(c.at[63] - c.at[32], kMicro * 5);
    EXPECT_GE(c.at[64] - c.at[63], kMicro * 5);
    EXPECT_EQ(c.arms(), 2u);  // only when nothing was left
    c.destroy();
  });
}

TEST(CqPoll, WorkTakesTheCoreAwayFromItsPrograms) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::softirq);
    c.work = kMicro * 3;
    c.arrive(10);
    c.event();
    const sim::Picos before = cpu::current().stolen();
    for (int i = 0; i < 600; ++i) {  // a program that computes
      cpu::current().compute(sim::Picos{100'000});
      cpu::current().sync();
    }
    EXPECT_GE(cpu::current().stolen() - before, kMicro * 30);
    EXPECT_LT(cpu::current().stolen() - before, kMicro * 34);
    EXPECT_EQ(c.at.size(), 10u);
    c.destroy();
  });
}

TEST(CqPoll, ABusyInstanceIsWaitedForBeforeTheCqGoes) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::softirq);
    c.work = kMicro * 10;
    c.arrive(5);
    c.event();
    cpu::current().sleep(kMicro * 4);  // the softirq has begun
    EXPECT_EQ(kernel::ib_destroy_qp(*c.qp), 0);
    EXPECT_EQ(kernel::ib_free_cq(*c.cq), 0);
    EXPECT_EQ(kernel::ib_dealloc_pd(*c.pd), 0);
    const std::size_t handled = c.at.size();
    cpu::current().sleep(kMicro * 500);
    EXPECT_EQ(c.at.size(), handled);
  });
}

// Completions come at any time around the poll that finds nothing and the arm, with an event only if the device sees an arm
// before them, as with a device that does not compare (S-CE-21). Whatever the timing, each is handled soon.
class Race : public testing::TestWithParam<std::tuple<PollContext, int>> {};
TEST_P(Race, NoCompletionIsLeftBehind_S_CE_20_A_35) {
  const auto [context, seed] = GetParam();
  KernelMachine m;
  m.run_in_kernel([&, context = context, seed = seed] {
    Consumer c(m, context, 4000);
    sim::Rng rng = m.context.rng("arrivals" + std::to_string(seed));
    std::size_t arms = 0;
    std::uint32_t sent = 0;
    cpu::Thread& t = cpu::current();
    for (int i = 0; i < 400; ++i) {
      t.sleep(sim::Picos{static_cast<std::int64_t>(rng.next() % 2'400'000) + 1});
      const bool armed = c.arms() > arms;
      const auto n = static_cast<std::uint32_t>(rng.next() % 3 + 1);
      c.arrive(n);
      sent += n;
      if (armed) {
        arms = c.arms();
        c.event();
      }
    }
    t.sleep(kMicro * 50);
    EXPECT_EQ(c.at.size(), sent);
    c.destroy();
  });
}
INSTANTIATE_TEST_SUITE_P(Contexts, Race,
                         testing::Combine(testing::Values(PollContext::softirq, PollContext::workqueue),
                                          testing::Range(0, 5)));

TEST(CqPoll, AdaptiveModerationSetsTheProfileByAWorkItem) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer c(m, PollContext::softirq, 4000, true);
    ASSERT_NE(c.cq->poll->dim, nullptr);
    const auto burst = [&](int events, sim::Picos apart) {
      for (int i = 0; i < events; ++i) {
        c.arrive(1);
        c.event();
        cpu::current().sleep(apart);
      }
    };
    burst(65, kMicro * 40);
    EXPECT_EQ(c.cq->poll->dim->index(), 0u);
    burst(64, kMicro * 10);
    cpu::current().sleep(kMicro * 50);
    EXPECT_EQ(c.cq->poll->dim->index(), 1u);
    EXPECT_EQ(m.kernel->counter("dim_changes").value, 1u);
    const std::byte* in = m.device.last_input.back().data();
    EXPECT_EQ(m.device.opcodes.back(), prm::kModifyCq);
    EXPECT_EQ(prm::get(in + prm::kCqcOffset, prm::kCqcMaxCount), 4u);
    EXPECT_EQ(prm::get(in + prm::kCqcOffset, prm::kCqcPeriod), 1u);
    c.destroy();
  });
}

TEST(CqPoll, ListingsNameThePollContext) {
  KernelMachine m;
  m.run_in_kernel([&] {
    Consumer softirq(m, PollContext::softirq, 15, true), work(m, PollContext::workqueue, 15),
        direct(m, PollContext::direct, 15);
    const auto r = kernel::list_resources(*m.kernel).cq;
    ASSERT_EQ(r.size(), 3u);
    EXPECT_EQ(r[0].poll_ctx, "SOFTIRQ");
    EXPECT_TRUE(r[0].adaptive_moderation);
    EXPECT_EQ(r[1].poll_ctx, "WORKQUEUE");
    EXPECT_FALSE(r[1].adaptive_moderation);
    EXPECT_EQ(r[2].poll_ctx, "DIRECT");
    softirq.destroy();
    work.destroy();
    direct.destroy();
  });
}

}  // namespace
}  // namespace test
