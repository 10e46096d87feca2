// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

TEST(Polling, ReturnsAtTheFirstPollAtOrAfterTheWrite) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  std::vector<sim::Picos> seen;
  m.program([&](Thread& t) {
    t.compute(3_ns);
    for (int i = 0; i < 3; ++i) {
      const auto cause = t.wait_for_write(p, 8, 10_ns);
      seen.push_back(t.now());
      EXPECT_EQ(cause.msg, static_cast<sim::MsgId>(i + 1));
    }
  });
  m.at(2_ns, [&] {
    m.device_write(p, std::uint64_t{1}, {1, 0});
  });  // before the wait by the thread's clock: first poll
  m.at(43_ns, [&] { m.device_write(p, std::uint64_t{2}, {2, 0}); });  // exactly at a poll
  m.at(44_ns, [&] { m.device_write(p, std::uint64_t{3}, {3, 0}); });
  EXPECT_EQ(m.run(), sim::Outcome::quiescent);
  EXPECT_EQ(seen, (std::vector<sim::Picos>{13_ns, 43_ns, 53_ns}));
}

TEST(Polling, IgnoresWritesBesideTheRangesAndWakesOnAnyOfThem) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(3 * 4096));
  sim::Picos woke{};
  m.program([&](Thread& t) {
    const Thread::Range ranges[] = {{p, 8}, {p + 1024, 8}};
    t.wait_for_write(ranges, 1_ns);
    woke = t.now();
  });
  m.at(10_ns, [&] { m.device_write(p + 1, std::uint64_t{1}); });
  m.at(20_ns, [&] { m.device_write(p + 1024, std::uint64_t{1}); });
  m.run();
  EXPECT_EQ(woke, 20_ns);
  EXPECT_FALSE(m.host.watched(m.phys(p)));
  EXPECT_FALSE(m.host.watched(m.phys(p + 1024)));
}

TEST(Polling, WaitThatCannotEndLeavesTheSimulationQuiescent) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  Thread& t = m.program([&](Thread& self) { self.wait_for_write(p, 8, 10_ns); });
  EXPECT_EQ(m.run(), sim::Outcome::quiescent);
  EXPECT_FALSE(t.finished());
  EXPECT_STREQ(t.program_thread().wait_reason(), "polling memory");
}

TEST(Polling, UnparkDuringAPollIsKeptForTheNextPark) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  sim::Picos polled{}, parked{};
  Thread& t = m.program([&](Thread& self) {
    self.wait_for_write(p, 8, 10_ns);
    polled = self.now();
    self.park("test");
    parked = self.now();
  });
  m.at(20_ns, [&] { t.unpark(25_ns); });
  m.at(95_ns, [&] { m.device_write(p, std::uint64_t{1}); });
  EXPECT_EQ(m.run(), sim::Outcome::quiescent);
  EXPECT_EQ(polled, 100_ns);
  EXPECT_EQ(parked, 100_ns);
  EXPECT_TRUE(t.finished());
}

TEST(Polling, StoreOfAnotherCoreIsSeenWhenItDrains) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  sim::Picos woke{};
  m.program([&](Thread& t) {
    t.wait_for_write(p, 8, 1_ns);
    woke = t.now();
    EXPECT_EQ(t.load(p), 5U);
  });
  m.program(
      [&](Thread& t) {
        t.compute(99_ns);
        t.store(p, std::uint64_t{5});
        t.compute(10_us);  // the event for the drain does not wait for this thread
      },
      1);
  m.run();
  EXPECT_EQ(woke, 110_ns);
}

/// Two cores of the same machine run the same program, one skipping polls and one performing them, beside the same writes
/// and the same kernel work.
TEST(Polling, FastForwardEqualsSpinOverRandomWritesAndKernelWork) {
  Machine m(plain_costs(), 0);
  auto spin = plain_costs();
  spin.poll_mode = PollMode::spin;
  m.add_core(plain_costs());
  m.add_core(spin);
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  auto* q = static_cast<std::uint64_t*>(m.space.alloc(4096));
  constexpr int kRounds = 3000;
  struct Seen {
    sim::Picos t;
    sim::MsgId msg;
    std::uint64_t value;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> seen[2];
  for (unsigned c = 0; c < 2; ++c) {
    m.program(
        [&, c](Thread& t) {
          sim::Rng rng(7, "program");
          for (int i = 0; i < kRounds; ++i) {
            t.compute(sim::Picos{rng.below(30'000)});
            if (rng.chance(0.5)) t.sync();
            const sim::Picos interval{1 + (rng.chance(0.3) ? rng.below(3) : rng.below(20'000))};
            const Thread::Range ranges[] = {{p, 8}, {q + 5, 4}};
            const auto cause = t.wait_for_write(std::span(ranges, 1 + rng.below(2)), interval);
            seen[c].push_back({t.now(), cause.msg, m.device_view(p)});
          }
        },
        c);
  }
  // Writes and interrupts on a coarse grid, so that exact ties with polls and with each other are common.
  struct Driver {
    Machine* m;
    std::uint64_t *p, *q;
    std::vector<Seen>* seen;
    sim::Rng rng{11, "driver"};
    std::uint64_t n = 0;
    static void step(void* self, std::uint64_t) {
      auto* d = static_cast<Driver*>(self);
      if (d->rng.chance(0.7)) d->m->device_write(d->p, ++d->n, {d->n, 0});
      else d->m->device_write(d->q + 5, static_cast<std::uint64_t>(++d->n), {d->n, 0});
      if (d->rng.chance(0.3)) {
        const sim::Picos at = d->m->context.now() + sim::Picos{d->rng.chance(0.5) ? 0 : 1000LL * d->rng.below(30)};
        const sim::Picos length{1000LL * d->rng.below(60)};
        for (auto& core : d->m->core) core->steal(at, length);
      }
      const bool done = d->seen[0].size() == kRounds && d->seen[1].size() == kRounds;
      if (!done)
        d->m->context.scheduler.after(sim::Picos{d->rng.chance(0.3) ? 0 : 1000LL * d->rng.below(90)}, &step, d);
    }
  } driver{&m, p, q, seen};
  m.context.scheduler.at(0_ps, &Driver::step, &driver);
  m.run();
  ASSERT_EQ(seen[0].size(), static_cast<std::size_t>(kRounds));
  ASSERT_EQ(seen[1].size(), static_cast<std::size_t>(kRounds));
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_EQ(seen[0][static_cast<std::size_t>(i)].t, seen[1][static_cast<std::size_t>(i)].t) << i;
    ASSERT_EQ(seen[0][static_cast<std::size_t>(i)], seen[1][static_cast<std::size_t>(i)]) << i;
  }
}

}  // namespace
}  // namespace cpu
