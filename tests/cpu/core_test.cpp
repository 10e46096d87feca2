// SPDX-License-Identifier: Apache-2.0
// The idle state of a core, and foreign kernel work on it.
#include "cpu/core.h"

#include <gtest/gtest.h>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

CoreConfig with_idle_state() {
  CoreConfig c = plain_costs();
  c.cstate_entry = 5_us;
  c.cstate_exit_latency = 10_us;
  return c;
}

TEST(IdleState, KernelWorkOnAnIdleCoreBeginsAfterTheExit) {
  Machine m(with_idle_state());
  std::vector<sim::Picos> starts;
  const auto work = [&] { starts.push_back(m.core[0]->steal({}, 1_us)); };
  m.at(3_us, work);    // not idle for long enough
  m.at(100_us, work);  // idle
  m.at(105_us, work);  // on its way out: behind the first
  m.at(116_us, work);  // it has been idle for 4 us
  m.at(130_us, work);
  m.run();
  EXPECT_EQ(starts, (std::vector<sim::Picos>{3_us, 110_us, 111_us, 116_us, 140_us}));
  EXPECT_EQ(m.counter("cpu0.cstate_exits"), 2u);
}

TEST(IdleState, AWakeUpAndTheEndOfASleepPayForTheExit) {
  Machine m(with_idle_state());
  std::vector<sim::Picos> woken;
  m.program([&](Thread& t) {
    t.sleep(50_us);
    woken.push_back(t.now());
    t.park("test");
    woken.push_back(t.now());
    t.sleep(2_us);
    woken.push_back(t.now());
    t.park("test");
    woken.push_back(t.now());
  });
  m.at(100_us, [&] { m.threads[0]->unpark(102_us); });
  m.at(115_us, [&] { m.threads[0]->unpark(116_us); });
  m.run();
  EXPECT_EQ(woken, (std::vector<sim::Picos>{60_us, 112_us, 114_us, 116_us}));
}

// While the thread of a core is on its way, the core is not idle: the exit is paid once.
TEST(IdleState, AnInterruptDuringTheWakeUpDoesNotPayAgain) {
  Machine m(with_idle_state());
  sim::Picos start{}, woken{};
  m.program([&](Thread& t) {
    t.park("test");
    woken = t.now();
  });
  m.at(100_us, [&] { m.threads[0]->unpark(130_us); });
  m.at(125_us, [&] { start = m.core[0]->steal({}, 1_us); });
  m.run();
  EXPECT_EQ(woken, 140_us);
  EXPECT_EQ(start, 125_us);
}

TEST(IdleState, ACoreThatPollsOrComputesNeverEntersIt) {
  Machine m(with_idle_state());
  auto* flag = static_cast<std::uint64_t*>(m.space.alloc(4096));
  std::vector<sim::Picos> starts;
  m.program([&](Thread& t) { t.wait_for_write(flag, 8, 10_ns); }, 0);
  m.program(
      [&](Thread& t) {
        t.compute(200_us);
        t.sync();
      },
      1);
  for (unsigned core : {0u, 1u}) m.at(100_us, [&, core] { starts.push_back(m.core[core]->steal({}, 1_us)); });
  m.at(150_us, [&] { m.device_write(flag, std::uint64_t{1}); });
  m.run();
  EXPECT_EQ(starts, (std::vector<sim::Picos>{100_us, 100_us}));
  EXPECT_EQ(m.counter("cpu0.cstate_exits") + m.counter("cpu1.cstate_exits"), 0u);
}

TEST(Noise, ForeignWorkTakesItsShareOfTheCoreAndEndsWithTheRun) {
  CoreConfig c = plain_costs();
  c.noise_interval = 10_us;
  c.noise_length = 2_us;
  Machine m(c, 1);
  sim::Picos stolen{};
  m.program([&](Thread& t) {
    for (int i = 0; i < 1000; ++i) {
      t.compute(1_us);
      t.sync();
    }
    stolen = t.stolen();
  });
  EXPECT_EQ(m.run(), sim::Outcome::quiescent);
  const auto pieces = static_cast<std::int64_t>(m.counter("cpu0.noise"));
  EXPECT_GT(pieces, 70);  // 1000 us and the 200 us that the noise itself adds, one piece in 10 us
  EXPECT_LT(pieces, 150);
  EXPECT_LE(stolen, 2_us * pieces);
  EXPECT_GE(stolen, 2_us * (pieces - 2));
}

TEST(Noise, DependsOnTheSeedAlone) {
  CoreConfig c = plain_costs();
  c.noise_interval = 10_us;
  Machine m(c, 2);
  std::vector<sim::Picos> ends;
  for (unsigned i = 0; i < 2; ++i)
    m.program(
        [&](Thread& t) {
          for (int k = 0; k < 200; ++k) {
            t.compute(1_us);
            t.sync();
          }
          ends.push_back(t.now());
        },
        i);
  m.run();
  EXPECT_NE(ends[0], ends[1]) << "each core has its own";
}

}  // namespace
}  // namespace cpu
