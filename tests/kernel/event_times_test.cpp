// SPDX-License-Identifier: Apache-2.0
// Which stage of a message's latency each part of the way from the EQE to the reader is charged to, waiting included. The
// fake device makes an EQE visible and raises its interrupt at one instant.
#include "kernel/event_times.h"

#include <vector>

#include "machine.h"

namespace {

using namespace test;
using sim::Picos;
using sim::Stage;

struct Sink : sim::JourneySink {
  void finished(const sim::Journey& j) override { all.push_back(j); }
  std::vector<sim::Journey> all;
  Picos stage(std::size_t i, Stage s) const { return all.at(i).stage[static_cast<std::size_t>(s)]; }
};

struct EventTimesTest : testing::Test {
  EventTimesTest() { m.context.journeys.set_sink(&sink); }

  /// One message of a CQ whose event the device posts `after` from now.
  sim::MsgId announce(std::uint32_t cqn, Picos after) {
    struct Late {
      Machine* m;
      std::uint32_t cqn;
      sim::MsgId msg;
    };
    cpu::current().sync();
    const Picos at = cpu::current().now() + after;
    const sim::MsgId msg = m.context.journeys.begin(at, 0, 0, 8);
    m.context.scheduler.at(
        at,
        [](void* p, std::uint64_t) {
          const auto* l = static_cast<Late*>(p);
          l->m->device.post_completion(l->cqn, {l->msg, 0, false, true});
          delete l;
        },
        new Late{&m, cqn, msg});
    return msg;
  }
  void steal(cpu::Core& core, Picos after, Picos length) {
    struct Work {
      cpu::Core* core;
      Picos length;
    };
    m.context.scheduler.at(
        cpu::current().now() + after,
        [](void* p, std::uint64_t) {
          const auto* w = static_cast<Work*>(p);
          w->core->steal({}, w->length);
          delete w;
        },
        new Work{&core, length});
  }
  std::uint64_t read(Verbs& v, int chan) {
    std::uint64_t element = 0;
    EXPECT_EQ(v.p.read(chan, &element, 8), 8);
    return element;
  }
  void finish(sim::MsgId msg) { m.context.journeys.finish(msg, Stage::poll, cpu::current().now()); }
  /// Message `i` spent the configured time in each stage, apart from what `extra` adds.
  void expect_steps(std::size_t i, Stage where = Stage::poll, Picos extra = {}) {
    const auto& c = m.kernel->config().interrupt;
    const auto& s = m.kernel->config().syscall;
    const std::pair<Stage, Picos> steps[] = {{Stage::eqe_write, {}},
                                             {Stage::msix, {}},
                                             {Stage::irq_entry, c.irq_entry},
                                             {Stage::irq_handler, c.eqe + c.eq_rearm},
                                             {Stage::tasklet, c.tasklet_delay + c.comp_handler},
                                             {Stage::wake_up, c.wake_up + c.context_switch},
                                             {Stage::syscall_return, s.event_read + s.exit}};
    Picos sum{0};
    for (const auto& [stage, step] : steps) {
      EXPECT_EQ(sink.stage(i, stage).n, (step + (stage == where ? extra : Picos{0})).n) << sim::name_of(stage);
      sum += sink.stage(i, stage);
    }
    EXPECT_EQ(sum + sink.stage(i, Stage::poll), sink.all[i].total());
  }

  Machine m;
  Sink sink;
};

TEST_F(EventTimesTest, EachStepOfAnEventHasItsStage_S_CE_13) {
  m.run([&] {
    Verbs v(m);
    Verbs::Cq cq;
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    ASSERT_EQ(v.create_cq(cq, 15, chan, 1), 0);
    const sim::MsgId msg = announce(cq.cqn, Picos{50'000'000});
    read(v, chan);
    finish(msg);
  });
  expect_steps(0);
  EXPECT_EQ(sink.stage(0, Stage::poll).n, 0);
}

// Foreign kernel work of 7 us begins when the message's interrupt, softirq or wake-up is about to need the core.
TEST_F(EventTimesTest, ABusyCoreDelaysTheStageThatNeedsIt) {
  constexpr Picos kBusy{7'000'000};
  m.run([&] {
    Verbs v(m);
    Verbs::Cq cq;
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    ASSERT_EQ(v.create_cq(cq, 15, chan, 1), 0);
    const auto& c = m.kernel->config().interrupt;
    const Picos interrupt{50'000'000}, hard = c.irq_entry + c.eqe + c.eq_rearm;
    const Picos queued = hard + c.tasklet_delay + c.comp_handler;
    for (const Picos busy_from : {Picos{-1'000}, hard + Picos{1'000}, queued + Picos{1'000}}) {
      steal(m.core0, interrupt + busy_from, kBusy);
      const sim::MsgId msg = announce(cq.cqn, interrupt);
      read(v, chan);
      finish(msg);
    }
  });
  const auto& c = m.kernel->config().interrupt;
  expect_steps(0, Stage::irq_entry, kBusy - Picos{1'000});
  expect_steps(1, Stage::tasklet, kBusy + Picos{1'000} - c.tasklet_delay);
  expect_steps(2, Stage::wake_up, kBusy + Picos{1'000} - c.wake_up - c.context_switch);
}

// The reader sleeps on another core than the one that runs the tasklet.
TEST_F(EventTimesTest, AWakeUpAcrossCoresTakesLonger) {
  m.program(
      [&] {
        Verbs v(m);
        Verbs::Cq cq;
        ASSERT_EQ(v.open(), 0);
        const int chan = v.channel();
        ASSERT_EQ(v.create_cq(cq, 15, chan, 1), 0);
        const sim::MsgId msg = announce(cq.cqn, Picos{50'000'000});
        read(v, chan);
        finish(msg);
      },
      &m.core1);
  m.run();
  expect_steps(0, Stage::wake_up, m.kernel->config().interrupt.remote_wake_up);
}

// The second CQ's EQE comes while the interrupt of the first is under way and is handled by it.
TEST_F(EventTimesTest, AMessageInAnothersInterruptIsChargedForItself) {
  m.run([&] {
    Verbs v(m);
    Verbs::Cq a, b;
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    ASSERT_EQ(v.create_cq(a, 15, chan, 1), 0);
    ASSERT_EQ(v.create_cq(b, 15, chan, 2), 0);
    const auto& c = m.kernel->config().interrupt;
    const sim::MsgId first = announce(a.cqn, Picos{50'000'000});
    const sim::MsgId second = announce(b.cqn, Picos{50'000'000} + c.irq_entry + Picos{1'000});
    EXPECT_EQ(read(v, chan), 1U);
    finish(first);
    EXPECT_EQ(read(v, chan), 2U);
    finish(second);
  });
  const auto& c = m.kernel->config().interrupt;
  expect_steps(0, Stage::irq_handler, c.eqe);
  EXPECT_EQ(sink.stage(1, Stage::msix).n, 0);
  EXPECT_EQ(sink.stage(1, Stage::irq_entry).n, 0);
  EXPECT_EQ(sink.stage(1, Stage::irq_handler), c.eqe * 2 + c.eq_rearm - Picos{1'000});
  EXPECT_EQ(sink.stage(1, Stage::tasklet), c.tasklet_delay + c.comp_handler * 2);
}

TEST_F(EventTimesTest, AnEventThatCameBeforeItsReaderWaitsInWakeUp) {
  m.run([&] {
    Verbs v(m);
    Verbs::Cq cq;
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    ASSERT_EQ(v.create_cq(cq, 15, chan, 1), 0);
    const sim::MsgId msg = announce(cq.cqn, Picos{1'000'000});
    cpu::current().sleep(Picos{90'000'000});
    read(v, chan);
    finish(msg);
  });
  const auto& c = m.kernel->config().interrupt;
  const Picos queued = Picos{1'000'000} + c.irq_entry + c.eqe + c.eq_rearm + c.tasklet_delay + c.comp_handler;
  expect_steps(0, Stage::wake_up,
               Picos{90'000'000} - queued + m.kernel->config().syscall.entry - c.wake_up - c.context_switch);
}

TEST_F(EventTimesTest, AMessageThatAPollFoundFirstDidNotWaitForItsEvent) {
  m.run([&] {
    Verbs v(m);
    Verbs::Cq cq;
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    ASSERT_EQ(v.create_cq(cq, 15, chan, 1), 0);
    const sim::MsgId msg = announce(cq.cqn, Picos{1'000'000});
    cpu::current().sleep(Picos{20'000'000});
    finish(msg);
    read(v, chan);
    const sim::MsgId other = announce(cq.cqn, Picos{1'000'000});
    m.context.journeys.take_back(other);
    read(v, chan);
  });
  ASSERT_EQ(sink.all.size(), 1U);
  EXPECT_EQ(sink.stage(0, Stage::poll), sink.all[0].total());
}

// A sender's own completion of a SEND is not on the message's way (critical is off): its event charges nothing.
TEST_F(EventTimesTest, AnEventBesideTheCriticalPathChargesNothing) {
  m.run([&] {
    Verbs v(m);
    Verbs::Cq cq;
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    ASSERT_EQ(v.create_cq(cq, 15, chan, 1), 0);
    cpu::current().sync();
    const sim::MsgId msg = m.context.journeys.begin(cpu::current().now(), 0, 0, 8);
    m.device.post_completion(cq.cqn, {msg, 0, false, false});
    read(v, chan);
    finish(msg);
  });
  EXPECT_EQ(sink.stage(0, Stage::poll), sink.all.at(0).total());
}

}  // namespace
