// SPDX-License-Identifier: Apache-2.0
#include "cpu/thread.h"

#include <gtest/gtest.h>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

TEST(Thread, CurrentIsTheRunningThreadAndNobodyInHardware) {
  Machine m;
  std::vector<const Thread*> seen;
  m.at(5_ns, [&] { EXPECT_EQ(current_or_null(), nullptr); });
  for (unsigned i = 0; i < 2; ++i) {
    m.program(
        [&](Thread& t) {
          EXPECT_EQ(&current(), &t);
          t.compute(5_ns);
          t.sync();
          EXPECT_EQ(&current(), &t);
          t.sleep(10_ns);
          EXPECT_EQ(&current(), &t);
        },
        i);
  }
  EXPECT_THROW(current(), sim::SimulatorBug);
  m.run();
  EXPECT_EQ(current_or_null(), nullptr);
}

TEST(Thread, LoadCostsWhatTheCacheThatHoldsTheLineCosts) {
  Machine m;  // LLC 20 ns, DRAM 85 ns
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  std::vector<sim::Picos> cost;
  const auto timed = [&](Thread& t) {
    const sim::Picos before = t.now();
    t.load(p);
    cost.push_back(t.now() - before);
  };
  m.program([&](Thread& t) {
    timed(t);  // never touched
    timed(t);
    t.sleep(1_us);
    timed(t);  // a device has written the line, by DDIO
    timed(t);
  });
  m.at(500_ns, [&] {
    EXPECT_EQ(m.host.device_write_latency(m.phys(p), 8), 20_ns);
    m.device_write(p, std::uint64_t{1});
  });
  m.run();
  EXPECT_EQ(cost, (std::vector<sim::Picos>{85_ns, 1_ns, 20_ns, 1_ns}));
}

TEST(Thread, CopyIsChargedPerLineAndVisibleWhenItDrains) {
  Machine m;
  auto* p = static_cast<unsigned char*>(m.space.alloc(3 * 4096));
  std::vector<unsigned char> source(5000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<unsigned char>(i * 7 + 1);
  m.program([&](Thread& t) {
    t.copy(p + 32, source.data(), source.size());  // lines: 32, 77 * 64, 40 bytes
    EXPECT_EQ(t.now(), 4_ns * 79);
    std::vector<unsigned char> back(5000);
    t.copy(back.data(), p + 32, back.size());  // sees the own stores
    EXPECT_EQ(back, source);
  });
  m.at(13_ns, [&] { EXPECT_EQ(m.device_view(p + 32), 0); });
  m.at(14_ns, [&] {
    EXPECT_EQ(m.device_view(p + 63), source[31]);
    EXPECT_EQ(m.device_view(p + 64), 0);
  });
  std::vector<unsigned char> device(5000);
  m.at(10_us, [&] {
    for (std::size_t i = 0; i < 5000; ++i) device[i] = m.device_view(p + 32 + i);
  });
  m.run();
  EXPECT_EQ(device, source);
}

TEST(Thread, ParkEndsAtTheWakeUpAndAnEarlierWakeUpIsKept) {
  Machine m;
  std::vector<sim::Picos> woke;
  Thread& t = m.program([&](Thread& self) {
    self.park("a");
    woke.push_back(self.now());
    self.compute(1_us);
    self.sync();
    self.park("b");
    woke.push_back(self.now());
  });
  m.at(100_ns, [&] { t.unpark(150_ns); });
  m.at(200_ns, [&] { t.unpark(250_ns); });
  m.run();
  EXPECT_EQ(woke, (std::vector<sim::Picos>{150_ns, 1150_ns}));
}

TEST(Thread, KernelWorkDelaysARunningThreadOnce) {
  Machine m;
  std::vector<sim::Picos> at;
  m.program([&](Thread& t) {
    t.compute(1_us);
    t.sync();
    at.push_back(t.now());
    t.compute(1_us);
    t.sync();
    at.push_back(t.now());
  });
  m.at(300_ns, [&] { EXPECT_EQ(m.core[0]->steal(300_ns, 500_ns), 300_ns); });
  m.at(400_ns, [&] { EXPECT_EQ(m.core[0]->steal(400_ns, 100_ns), 800_ns); });   // after the first piece of work
  m.at(450_ns, [&] { EXPECT_EQ(m.core[0]->steal(1550_ns, 50_ns), 1550_ns); });  // within the delay of the first two
  m.run();
  EXPECT_EQ(at, (std::vector<sim::Picos>{1650_ns, 2650_ns}));
  EXPECT_EQ(m.context.stats.busy("host0.cpu0.kernel").busy, 650_ns);
}

TEST(Thread, KernelWorkDoesNotDelayOtherCoresNorABlockedThread) {
  Machine m;
  sim::Picos slept{}, other{};
  m.program([&](Thread& t) {
    t.sleep(1_us);
    slept = t.now();
  });
  m.program(
      [&](Thread& t) {
        t.compute(1_us);
        t.sync();
        other = t.now();
      },
      1);
  m.at(100_ns, [&] { m.core[0]->steal(100_ns, 300_ns); });
  m.run();
  EXPECT_EQ(slept, 1_us);
  EXPECT_EQ(other, 1_us);
}

TEST(Thread, ThreadThatWakesDuringKernelWorkWaitsForItsEnd) {
  Machine m;
  sim::Picos slept{}, parked{};
  Thread& t = m.program([&](Thread& self) {
    self.sleep(1_us);
    slept = self.now();
    self.park("test");
    parked = self.now();
  });
  m.at(900_ns, [&] { m.core[0]->steal(900_ns, 300_ns); });
  m.at(2_us, [&] {
    t.unpark(2_us + 100_ns);
    m.core[0]->steal(2_us, 400_ns);
  });
  m.run();
  EXPECT_EQ(slept, 1200_ns);
  EXPECT_EQ(parked, 2400_ns);
}

TEST(Thread, KernelWorkThatInterruptsTheComputingBeforeAParkCounts) {
  Machine m;
  sim::Picos woke{};
  Thread& t = m.program([&](Thread& self) {
    self.compute(1_us);  // runs ahead of the engine, then blocks
    self.park("test");
    woke = self.now();
  });
  m.at(500_ns, [&] { m.core[0]->steal(500_ns, 200_ns); });
  m.at(600_ns, [&] { t.unpark(600_ns); });
  m.run();
  EXPECT_EQ(woke, 1200_ns);
}

TEST(Thread, SpinLockExcludesAndHandsOverInTheOrderOfComing) {
  Machine m(plain_costs(), 3);
  SpinLock lock;
  std::vector<std::pair<sim::Picos, sim::Picos>> held;
  for (unsigned i = 0; i < 3; ++i) {
    m.program(
        [&, i](Thread& t) {
          t.compute(10_ns * i);
          t.sync();
          t.lock(lock);
          const sim::Picos from = t.now();
          t.compute(100_ns);
          t.sync();
          t.unlock(lock);
          held.emplace_back(from, t.now());
        },
        i);
  }
  m.run();
  ASSERT_EQ(held.size(), 3U);
  // The waiters look every 6 ns since 16 and 26 ns.
  EXPECT_EQ(held[0], (std::pair{6_ns, 107_ns}));
  EXPECT_EQ(held[1], (std::pair{112_ns, 213_ns}));
  EXPECT_EQ(held[2], (std::pair{218_ns, 319_ns}));
  EXPECT_FALSE(lock.held);
}

TEST(Thread, UncontendedLockCostsItsInstructionOnly) {
  Machine m;
  SpinLock lock;
  m.program([&](Thread& t) {
    for (int i = 0; i < 3; ++i) {
      const sim::Picos before = t.now();
      t.lock(lock);
      EXPECT_EQ(t.now() - before, 6_ns);
      t.unlock(lock);
    }
    EXPECT_EQ(t.now(), 21_ns);
    EXPECT_EQ(m.context.now(), 0_ps);  // never had to wait for the engine
  });
  m.run();
}

TEST(Thread, LockReleasedAtALaterLocalTimeIsWaitedFor) {
  Machine m;
  SpinLock lock;
  sim::Picos second{};
  m.program([&](Thread& t) {
    t.lock(lock);
    t.compute(1_us);
    t.unlock(lock);  // at 1007 ns of its own time, while the engine stands at 0
  });
  m.program(
      [&](Thread& t) {
        t.lock(lock);
        second = t.now();
      },
      1);
  m.run();
  EXPECT_EQ(second, 1008_ns);  // 6 ns + 167 turns of 6 ns
}

TEST(Thread, LockedInstructionOfX86DrainsStoresThatOfArmDoesNot) {
  Machine m(plain_costs(), 0);
  m.add_core(plain_costs(Arch::x86_64));
  auto arm = plain_costs(Arch::arm64);
  arm.weak_drain_spread = 0_ps;
  m.add_core(arm);
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  SpinLock plain[2], wc[2];
  std::vector<sim::Picos> at(4);
  for (unsigned c = 0; c < 2; ++c) {
    m.program(
        [&, c](Thread& t) {
          t.store(p + 32 * c, std::uint64_t{1});  // at 1 ns, visible at 11 ns
          t.lock(plain[c]);
          at[2 * c] = t.now();
          t.store(p + 32 * c, std::uint64_t{2});
          const sim::Picos visible = t.now() + 10_ns;
          t.lock(wc[c], true);
          at[2 * c + 1] = t.now() - visible;
        },
        c);
  }
  m.run();
  EXPECT_EQ(at[0], 11_ns);
  EXPECT_EQ(at[1], 0_ps);
  EXPECT_EQ(at[2], 7_ns);
  EXPECT_EQ(at[3], 17_ns);  // 6 ns for the lock and 21 ns for dsb st
}

TEST(Thread, JourneyLeavesTheCpuWithTheDoorbell) {
  Machine m;
  struct Sink : sim::JourneySink {
    sim::Journey last;
    void finished(const sim::Journey& j) override { last = j; }
  } sink;
  m.context.journeys.set_sink(&sink);
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    t.compute(5_ns);
    t.set_cause({m.context.journeys.begin(t.now(), 0, 0, 8), 0});
    t.compute(20_ns);
    for (unsigned i = 0; i < 8; ++i) t.mmio_store64(wc + 8 * i, i);
  });
  m.device.on_write = [&] {
    m.context.journeys.finish(m.device.writes.at(0).cause.msg, sim::Stage::poll, m.context.now());
  };
  m.run();
  EXPECT_EQ(sink.last.stage[static_cast<std::size_t>(sim::Stage::cpu_post)], 28_ns);
  EXPECT_EQ(sink.last.stage[static_cast<std::size_t>(sim::Stage::store_buffer_wc)], 40_ns);
  EXPECT_EQ(sink.last.total(), 68_ns);
}

TEST(InterruptThread, ItsWorkDelaysTheProgramsOfItsCoreAndNoOther) {
  Machine m;
  std::vector<sim::Picos> end(2);
  for (unsigned core = 0; core < 2; ++core)
    m.program(
        [&, core](Thread& t) {
          for (int i = 0; i < 10; ++i) {
            t.compute(100_ns);
            t.sync();
          }
          end[core] = t.now();
        },
        core);
  sim::Picos softirq{0};
  m.program(
      [&](Thread& t) {
        t.take_core();
        t.park("softirq");
        t.compute(70_ns);
        t.sync();
        t.compute(30_ns);
        t.park("softirq");
        softirq = t.now();
        t.compute(5_ns);
      },
      0);
  m.at(250_ns, [&] { m.threads[2]->unpark(250_ns); });
  m.at(600_ns, [&] { m.threads[2]->unpark(600_ns); });
  m.run();
  EXPECT_EQ(end[0], 1105_ns);
  EXPECT_EQ(end[1], 1000_ns);
  EXPECT_EQ(softirq, 600_ns);
}

TEST(InterruptThread, AHardInterruptDelaysIt) {
  Machine m;
  sim::Picos end{0};
  m.program([&](Thread& t) {
    t.take_core();
    t.park("softirq");  // woken in the middle of a hard interrupt
    EXPECT_EQ(t.now(), 150_ns);
    t.compute(100_ns);
    t.sync();
    t.compute(100_ns);
    t.sync();
    end = t.now();
  });
  m.at(100_ns, [&] { m.core[0]->steal(100_ns, 50_ns); });
  m.at(120_ns, [&] { m.threads[0]->unpark(120_ns); });
  m.at(200_ns, [&] { EXPECT_EQ(m.core[0]->steal(200_ns, 40_ns), 250_ns); });  // behind the work that has begun
  m.run();
  EXPECT_EQ(end, 390_ns);
}

}  // namespace
}  // namespace cpu
