// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include "machine.h"

namespace {

using namespace test;

struct Channel : Verbs {
  explicit Channel(Machine& machine) : Verbs(machine) {
    EXPECT_EQ(open(), 0);
    chan = channel();
    EXPECT_GE(chan, 0);
  }
  int chan = -1;
};

std::uint64_t read_event(Verbs& v, int fd) {
  std::uint64_t element = 0;
  EXPECT_EQ(v.p.read(fd, &element, 8), 8);
  return element;
}

TEST(Event, TimeFromInterruptToReaderIsTheSumOfTheConfiguredSteps) {
  Machine m;
  sim::Picos posted, returned;
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq, 15, c.chan, 0xabcd), 0);
    cpu::Thread& t = cpu::current();
    t.sync();
    posted = t.now() + sim::Picos{50'000'000};
    struct Arg {
      Machine* m;
      std::uint32_t cqn;
    } arg{&m, cq.cqn};
    m.context.scheduler.at(
        posted,
        [](void* a, std::uint64_t) {
          auto* x = static_cast<Arg*>(a);
          x->m->device.post_completion(x->cqn, {});
        },
        &arg);
    EXPECT_EQ(read_event(c, c.chan), 0xabcdU);
    returned = t.now();
  });
  const auto& i = m.kernel->config().interrupt;
  const auto& s = m.kernel->config().syscall;
  EXPECT_EQ((returned - posted).n, (i.irq_entry + i.eqe + i.eq_rearm + i.tasklet_delay + i.comp_handler + i.wake_up +
                                    i.context_switch + s.event_read + s.exit)
                                       .n);
}

TEST(Event, A37_NonBlockingReadPollAndRecordSize) {
  Machine m;
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq, 15, c.chan, 5), 0);
    ASSERT_EQ(c.p.set_nonblock(c.chan, true), 0);
    std::uint64_t buf[8]{};
    EXPECT_EQ(c.p.read(c.chan, buf, 8), -EAGAIN);
    kernel::PollFd p{c.chan, POLLIN, 0};
    EXPECT_EQ(c.p.poll({&p, 1}, {}), 0);
    const sim::Picos before = cpu::current().now();
    EXPECT_EQ(c.p.poll({&p, 1}, sim::Picos{7'000'000}), 0);
    EXPECT_GE((cpu::current().now() - before).n, 7'000'000);
    m.device.post_completion(cq.cqn);
    EXPECT_EQ(c.p.poll({&p, 1}, sim::Picos{-1}), 1);
    EXPECT_EQ(p.revents, POLLIN);
    EXPECT_EQ(c.p.read(c.chan, buf, 4), -EINVAL);
    EXPECT_EQ(c.p.read(c.chan, buf, 64), 8);
    EXPECT_EQ(buf[0], 5U);
    EXPECT_EQ(c.p.read(c.chan, buf, 8), -EAGAIN);
    kernel::PollFd bad{55, POLLIN, 0};
    EXPECT_EQ(c.p.poll({&bad, 1}, {}), 1);
    EXPECT_EQ(bad.revents, POLLNVAL);
    EXPECT_EQ(c.p.read(c.fd, buf, 8), -EINVAL);
    EXPECT_EQ(c.p.read(55, buf, 8), -EBADF);
  });
}

TEST(Event, A38_TwoCqsOnOneChannelInOrder) {
  Machine m;
  m.run([&] {
    Channel c(m);
    Verbs::Cq a, b;
    ASSERT_EQ(c.create_cq(a, 15, c.chan, 0xa), 0);
    ASSERT_EQ(c.create_cq(b, 15, c.chan, 0xb), 0);
    m.device.post_completion(b.cqn);
    m.device.post_completion(a.cqn);
    EXPECT_EQ(read_event(c, c.chan), 0xbU);
    EXPECT_EQ(read_event(c, c.chan), 0xaU);
    ib_uverbs_destroy_cq_resp r{};
    ASSERT_EQ(c.destroy_cq(a.handle, &r), 0);
    EXPECT_EQ(r.comp_events_reported, 1U);
  });
}

TEST(Event, A36_UnreadEventsGoWithTheirCq) {
  Machine m;
  m.run([&] {
    Channel c(m);
    Verbs::Cq a, b;
    ASSERT_EQ(c.create_cq(a, 15, c.chan, 0xa), 0);
    ASSERT_EQ(c.create_cq(b, 15, c.chan, 0xb), 0);
    m.device.post_completion(a.cqn);
    m.device.post_completion(b.cqn);
    cpu::current().sleep(sim::Picos{100'000'000});
    ib_uverbs_destroy_cq_resp r{};
    ASSERT_EQ(c.destroy_cq(a.handle, &r), 0);
    EXPECT_EQ(r.comp_events_reported, 0U);
    EXPECT_EQ(read_event(c, c.chan), 0xbU);
    m.device.post_async(prm::kEventCqError, a.cqn);  // a stale event of a CQ that is gone
    cpu::current().sleep(sim::Picos{100'000'000});
    EXPECT_EQ(m.kernel->counter("unknown_cqn").value, 1U);
  });
}

TEST(Event, CqWithoutChannelMakesNoEvent) {
  Machine m;
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq), 0);
    m.device.post_completion(cq.cqn);
    cpu::current().sleep(sim::Picos{100'000'000});
    ASSERT_EQ(c.p.set_nonblock(c.chan, true), 0);
    std::uint64_t e;
    EXPECT_EQ(c.p.read(c.chan, &e, 8), -EAGAIN);
  });
}

TEST(Event, AnEventWithoutMemoryIsLost_S_CE_10) {
  kernel::KernelConfig config = default_config();
  config.interrupt.event_alloc_failures = 1;
  Machine m(config);
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq, 15, c.chan, 1), 0);
    for (int i = 0; i < 3; ++i) {
      m.device.post_completion(cq.cqn);
      cpu::current().sleep(sim::Picos{100'000'000});
    }
    ASSERT_EQ(c.p.set_nonblock(c.chan, true), 0);
    std::uint64_t e;
    EXPECT_EQ(c.p.read(c.chan, &e, 8), -EAGAIN);
    ib_uverbs_destroy_cq_resp r{};
    ASSERT_EQ(c.destroy_cq(cq.handle, &r), 0);
    EXPECT_EQ(r.comp_events_reported, 0U) << "nobody has to acknowledge what nobody got";
  });
  EXPECT_EQ(m.kernel->counter("events_lost").value, 3U);
}

TEST(Event, SomeEventsAreLostWhenMemoryIsShort_S_CE_10) {
  kernel::KernelConfig config = default_config();
  config.interrupt.event_alloc_failures = 0.5;
  Machine m(config);
  unsigned got = 0;
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq, 15, c.chan, 1), 0);
    ASSERT_EQ(c.p.set_nonblock(c.chan, true), 0);
    for (int i = 0; i < 100; ++i) {
      m.device.post_completion(cq.cqn);
      cpu::current().sleep(sim::Picos{100'000'000});
      std::uint64_t e;
      got += c.p.read(c.chan, &e, 8) == 8;
    }
  });
  EXPECT_GT(got, 30U);
  EXPECT_LT(got, 70U);
  EXPECT_EQ(m.kernel->counter("events_lost").value + got, 100U);
}

TEST(Event, TwoReadersOneEvent) {
  Machine m;
  Verbs v(m);
  int chan = -1;
  unsigned got = 0;
  Verbs::Cq cq;
  auto& first = m.program([&] {
    ASSERT_EQ(v.open(), 0);
    chan = v.channel();
    ASSERT_EQ(v.create_cq(cq, 15, chan, 9), 0);
    cpu::current().sync();
    m.programs[1]->unpark(cpu::current().now());
    got += read_event(v, chan) == 9;
    m.device.post_completion(cq.cqn);
  });
  (void)first;
  m.program([&] {
    cpu::current().park("start");
    cpu::current().sleep(sim::Picos{1'000'000});
    m.device.post_completion(cq.cqn);
    got += read_event(v, chan) == 9;
  });
  m.run();
  EXPECT_EQ(got, 2U);
}

TEST(Eq, A32_OwnerBitFlipsAndConsumerIndexWraps) {
  kernel::KernelConfig config = default_config();
  config.driver.log_comp_eq_size = 4;
  config.driver.comp_vectors = 1;
  Machine m(config);
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq, 15, c.chan, 1), 0);
    for (int i = 0; i < 40; ++i) {
      m.device.post_completion(cq.cqn);
      EXPECT_EQ(read_event(c, c.chan), 1U);
    }
    EXPECT_EQ(m.kernel->comp_eq(0).consumer(), 40U);
    const auto& last = m.device.uar_writes.back();
    EXPECT_EQ(last.offset, prm::kUarEqDoorbellArm);
    std::uint32_t value;
    std::memcpy(&value, last.bytes.data(), 4);
    EXPECT_EQ(prm::be32(value), std::uint32_t{m.kernel->comp_eq(0).eqn()} << 24 | 40);
  });
}

TEST(Eq, VectorsGoToTheCoresThatTheListSays) {
  kernel::KernelConfig config = default_config();
  config.driver.comp_vectors = 4;
  config.driver.irq_affinity = {1, 1, 0};
  Machine m(config);
  m.run([] {});
  const cpu::Core* expected[] = {&m.core1, &m.core1, &m.core0, &m.core1};
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(&m.kernel->comp_eq(i).core(), expected[i]) << i;
  EXPECT_EQ(&m.kernel->async_eq().core(), &m.core0);
}

TEST(Eq, OneInterruptHandlesAtMostItsBudget) {
  kernel::KernelConfig config = default_config();
  config.interrupt.eqe_budget = 3;
  Machine m(config);
  m.run([&] {
    Channel c(m);
    std::vector<Verbs::Cq> cqs(8);
    for (std::size_t i = 0; i < cqs.size(); ++i) ASSERT_EQ(c.create_cq(cqs[i], 15, c.chan, i), 0);
    cpu::current().sync();
    const auto interrupts = m.kernel->counter("interrupts").value;
    for (const auto& cq : cqs) m.device.post_completion(cq.cqn);
    for (std::size_t i = 0; i < cqs.size(); ++i) EXPECT_EQ(read_event(c, c.chan), i);
    cpu::current().sleep(sim::Picos{100'000'000});
    EXPECT_EQ(m.kernel->counter("interrupts").value - interrupts, 3U);  // 3 + 3 + 2
  });
}

TEST(Tasklet, GivesWayAfterItsBudget) {
  kernel::KernelConfig config = default_config();
  config.interrupt.tasklet_budget = config.interrupt.comp_handler * 2;
  Machine m(config);
  m.run([&] {
    Channel c(m);
    std::vector<Verbs::Cq> cqs(7);
    for (std::size_t i = 0; i < cqs.size(); ++i) ASSERT_EQ(c.create_cq(cqs[i], 15, c.chan, i), 0);
    for (const auto& cq : cqs) m.device.post_completion(cq.cqn);
    for (std::size_t i = 0; i < cqs.size(); ++i) EXPECT_EQ(read_event(c, c.chan), i);
  });
  EXPECT_EQ(m.kernel->counter("tasklet_reschedules").value, 3U);
}

TEST(Tasklet, ACqIsListedOnceHoweverManyEntriesItHas) {
  Machine m;
  m.run([&] {
    Channel c(m);
    Verbs::Cq cq;
    ASSERT_EQ(c.create_cq(cq, 15, c.chan, 4), 0);
    m.device.post_completion(cq.cqn);
    m.device.post_completion(cq.cqn);
    EXPECT_EQ(read_event(c, c.chan), 4U);
    cpu::current().sleep(sim::Picos{100'000'000});
    c.p.set_nonblock(c.chan, true);
    std::uint64_t e;
    EXPECT_EQ(c.p.read(c.chan, &e, 8), -EAGAIN);
  });
}

TEST(Async, EventsOfObjectsAndPorts) {  // S-AE-1, S-AE-2
  Machine m;
  m.run([&] {
    Channel c(m);
    std::uint32_t pd;
    Verbs::Cq cq;
    Verbs::Qp qp;
    ASSERT_EQ(c.alloc_pd(pd), 0);
    ASSERT_EQ(c.create_cq(cq, 15, -1, 0xc), 0);
    ASSERT_EQ(c.create_qp(qp, pd, cq.handle, cq.handle, IBV_QPT_RC, 0xd), 0);
    m.device.post_async(prm::kEventCqError, cq.cqn);
    m.device.post_async(prm::kEventWqCatas, qp.qpn);
    m.device.post_async(prm::kEventWqAccess, qp.qpn);
    m.device.post_async(prm::kEventCommEst, 0x999);  // nobody's
    const auto fd = static_cast<int>(c.context.base().async_fd);
    ib_uverbs_async_event_desc e{};
    const std::pair<std::uint64_t, std::uint32_t> expected[] = {
        {0xc, IBV_EVENT_CQ_ERR}, {0xd, IBV_EVENT_QP_FATAL}, {0xd, IBV_EVENT_QP_ACCESS_ERR}};
    for (const auto& [element, type] : expected) {
      ASSERT_EQ(c.p.read(fd, &e, sizeof e), 16);
      EXPECT_EQ(e.element, element);
      EXPECT_EQ(e.event_type, type);
    }
    ib_uverbs_destroy_qp_resp r{};
    ASSERT_EQ(c.destroy_qp(qp.handle, &r), 0);
    EXPECT_EQ(r.events_reported, 2U);
    EXPECT_EQ(m.kernel->counter("unknown_qpn").value, 1U);
  });
}

}  // namespace
