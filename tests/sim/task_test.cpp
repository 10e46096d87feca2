// SPDX-License-Identifier: Apache-2.0
// Flows, tasks, completions and semaphores on a bare Context (no SystemC run).
#include "sim/task.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "sim/context.h"

namespace sim {
namespace {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A block with a few flows; records what happened when.
struct Block {
  Context& context() { return ctx; }
  void run() {
    while (ctx.scheduler.run_one(kNever)) {}
  }
  void note(const std::string& what) { log.push_back(std::to_string(ctx.now().n) + " " + what); }

  Flow wait_twice(std::string name, Picos a, Picos b) {
    note(name + " begins");
    co_await ctx.delay(a);
    note(name + " middle");
    co_await ctx.delay(b);
    note(name + " ends");
  }
  Task<int> add(int a, int b) {
    co_await ctx.delay(10_ps);
    co_return a + b;
  }
  Task<> fail() {
    co_await ctx.delay(1_ps);
    throw Failure("deep");
  }
  Task<int> add_three(int a, int b, int c) { co_return co_await add(co_await add(a, b), c); }
  Flow calls() { note("sum " + std::to_string(co_await add_three(1, 2, 3))); }
  Flow catches() {
    try {
      co_await fail();
    } catch (const Failure& f) {
      note(std::string("caught ") + f.what());
    }
  }
  Flow escapes() { co_await fail(); }
  Flow escapes_at_once() {
    throw Failure("at once");
    co_return;
  }
  Flow holds(Ptr<std::string> text) {
    co_await ctx.delay(1_s);
    note(*text);
  }
  Flow awaits(Completion<int>& c) { note("got " + std::to_string(co_await c)); }
  Flow uses(Semaphore& s, std::uint64_t units, std::string name, Picos hold) {
    co_await s.acquire(units);
    note(name);
    co_await ctx.delay(hold);
    s.release(units);
  }

  Context ctx;
  std::vector<std::string> log;
};
using Lines = std::vector<std::string>;

TEST(Flow, StartsAtOnceAndZeroDelayCostsNoEvent) {
  Block b;
  b.wait_twice("a", 0_ps, 5_ps);
  EXPECT_EQ(b.log, (Lines{"0 a begins", "0 a middle"}));
  EXPECT_EQ(b.ctx.scheduler.pending(), 1U);
  EXPECT_EQ(b.ctx.frames.running(), 1U);
  b.run();
  EXPECT_EQ(b.log.back(), "5 a ends");
  EXPECT_EQ(b.ctx.scheduler.executed(), 1U);
  EXPECT_EQ(b.ctx.frames.running(), 0U);
}

TEST(Flow, FlowsInterleaveByTime) {
  Block b;
  b.wait_twice("a", 3_ps, 4_ps);
  b.wait_twice("b", 5_ps, 1_ps);
  b.run();
  EXPECT_EQ(b.log, (Lines{"0 a begins", "0 b begins", "3 a middle", "5 b middle", "6 b ends", "7 a ends"}));
}

TEST(Flow, AnExceptionLeavesThroughTheEngineAndTheFlowIsStillCleanedUp) {
  Block b;
  b.escapes();
  EXPECT_THROW(b.run(), Failure);
  EXPECT_EQ(b.ctx.scheduler.pending(), 0U);
}

TEST(Flow, AnExceptionBeforeTheFirstWaitReachesTheCaller) {
  Block b;
  EXPECT_THROW(b.escapes_at_once(), Failure);
}

TEST(Flow, FramesAreRecycled) {
  Block b;
  for (int i = 0; i < 1000; ++i) {
    b.log.clear();
    b.wait_twice("x", 1_ps, 1_ps);
    b.calls();
    b.run();
  }
  EXPECT_EQ(b.ctx.frames.running(), 0U);
}

TEST(FramePool, DestroyFlowsGivesBackWhatSuspendedFlowsHold) {
  Block b;
  auto& texts = b.ctx.pools.of<std::string>("text");
  b.holds(texts.make("one"));
  b.holds(texts.make("two"));
  EXPECT_EQ(texts.live(), 2U);
  EXPECT_EQ(b.ctx.frames.running(), 2U);
  b.ctx.frames.destroy_flows();
  EXPECT_EQ(texts.live(), 0U);
  EXPECT_EQ(b.ctx.frames.running(), 0U);
  EXPECT_TRUE(b.log.empty());
}

TEST(Task, ReturnsValuesThroughNestedAwaits) {
  Block b;
  b.calls();
  b.run();
  EXPECT_EQ(b.log, (Lines{"20 sum 6"}));
}

TEST(Task, AnExceptionReachesTheAwaitingFlow) {
  Block b;
  b.catches();
  b.run();
  EXPECT_EQ(b.log, (Lines{"1 caught deep"}));
}

TEST(Completion, MayComeBeforeOrAfterTheAwait) {
  Block b;
  Completion<int> early, late;
  early.complete(1);
  b.awaits(early);
  EXPECT_EQ(b.log, (Lines{"0 got 1"}));
  b.awaits(late);
  EXPECT_FALSE(late.done());
  late.complete(2);
  EXPECT_EQ(b.log.back(), "0 got 2");
}

TEST(Completion, RefusesASecondDeliveryAndIsReusableAfterReset) {
  Block b;
  Completion<int> c;
  c.complete(1);
  EXPECT_THROW(c.complete(2), SimulatorBug);
  c.reset();
  b.awaits(c);
  c.complete(3);
  EXPECT_EQ(b.log, (Lines{"0 got 3"}));
}

TEST(Completion, RefusesASecondWaiter) {
  Block b;
  Completion<int> c;
  b.awaits(c);
  EXPECT_THROW(b.awaits(c), SimulatorBug);
  c.complete(4);
  EXPECT_EQ(b.log, (Lines{"0 got 4"}));
}

TEST(Semaphore, ServesWaitersInOrderOfArrival) {
  Block b;
  Semaphore s(2);
  b.uses(s, 2, "a", 10_ps);
  b.uses(s, 2, "b", 10_ps);  // needs both units
  b.uses(s, 1, "c", 10_ps);  // would fit earlier, but may not overtake b
  b.uses(s, 1, "d", 10_ps);
  EXPECT_EQ(s.waiting(), 3U);
  EXPECT_FALSE(s.try_acquire(1));
  b.run();
  EXPECT_EQ(b.log, (Lines{"0 a", "10 b", "20 c", "20 d"}));
  EXPECT_EQ(s.available(), 2U);
}

TEST(Semaphore, TryAcquireDoesNotOvertakeAWaiter) {
  Block b;
  Semaphore s(3);
  EXPECT_TRUE(s.try_acquire(2));
  b.uses(s, 2, "big", 5_ps);
  EXPECT_FALSE(s.try_acquire(1));  // one unit is free, but "big" came first
  s.release(1);
  EXPECT_EQ(b.log, (Lines{"0 big"}));
  b.run();
  EXPECT_EQ(s.available(), 2U);
}

}  // namespace
}  // namespace sim
