// SPDX-License-Identifier: Apache-2.0
// The engine under SystemC: program threads, run-ahead against tick mode, limits, stops, exceptions, foreign models.
#include "sim/engine.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/check.h"
#include "sim/context.h"

namespace sim {
namespace {

class EngineTest : public testing::TestWithParam<EngineMode> {
 protected:
  Context ctx;
  Engine engine{"engine", ctx.scheduler, GetParam()};
  std::vector<std::string> log;
  void note(const std::string& what, Picos t) { log.push_back(std::to_string(t.n) + " " + what); }
};
using Lines = std::vector<std::string>;

struct Tick {
  std::vector<std::string>* log;
  Scheduler* s;
  void at(std::uint64_t id) { log->push_back(std::to_string(s->now().n) + " e" + std::to_string(id)); }
};

TEST_P(EngineTest, SyncLetsEverythingUpToTheLocalTimeHappenFirst) {
  Tick tick{&log, &ctx.scheduler};
  for (std::uint64_t i = 1; i <= 3; ++i)
    ctx.scheduler.at<&Tick::at>(Picos{static_cast<std::int64_t>(i) * 10}, &tick, i);
  ProgramThread* t = nullptr;
  t = &engine.spawn("p", 0, [&] {
    note("start", t->now());
    t->charge(20_ps);
    EXPECT_EQ(ctx.now(), 0_ps);
    t->sync();
    note("synced", t->now());
    EXPECT_EQ(ctx.now(), 20_ps);
    t->charge(100_ps);
    t->sync();
    note("end", t->now());
  });
  t->start(0_ps);
  EXPECT_EQ(engine.run(), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"0 start", "10 e1", "20 e2", "20 synced", "30 e3", "120 end"}));
  EXPECT_TRUE(t->finished());
}

TEST_P(EngineTest, ThreadsThatResumeTogetherRunInTheOrderOfTheirNumbers) {
  std::vector<ProgramThread*> threads;
  for (const std::uint32_t number : {3U, 1U, 2U}) {
    threads.push_back(&engine.spawn("p" + std::to_string(number), number, [this, &threads, n = threads.size(), number] {
      for (int i = 0; i < 2; ++i) {
        threads[n]->charge(10_ps);
        threads[n]->sync();
        note("p" + std::to_string(number), threads[n]->now());
      }
    }));
  }
  for (auto* t : threads) t->start(5_ps);
  engine.run();
  EXPECT_EQ(log, (Lines{"15 p1", "15 p2", "15 p3", "25 p1", "25 p2", "25 p3"}));
}

TEST_P(EngineTest, ParkWaitsForUnparkAndTheTokenIsNotLost) {
  ProgramThread* sleeper = nullptr;
  sleeper = &engine.spawn("sleeper", 0, [&] {
    sleeper->park();
    note("woken", sleeper->now());
    sleeper->charge(100_ps);  // the second unpark arrives now
    sleeper->sync();
    sleeper->park();
    note("token", sleeper->now());
    sleeper->park();
    note("never", sleeper->now());
  });
  struct Waker {
    ProgramThread* t;
    Scheduler* s;
    void wake(std::uint64_t delay) { t->unpark(s->now() + Picos{static_cast<std::int64_t>(delay)}); }
  } waker{sleeper, &ctx.scheduler};
  sleeper->start(0_ps);
  ctx.scheduler.at<&Waker::wake>(50_ps, &waker, 7);
  ctx.scheduler.at<&Waker::wake>(90_ps, &waker, 400);  // tokens do not add up; the earliest wake-up counts
  ctx.scheduler.at<&Waker::wake>(91_ps, &waker, 109);
  EXPECT_EQ(engine.run(), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"57 woken", "200 token"}));
  EXPECT_TRUE(sleeper->parked());
  EXPECT_FALSE(sleeper->finished());
}

TEST_P(EngineTest, UnparkNeverWakesAThreadBeforeItsLocalTime) {
  ProgramThread* t = nullptr;
  t = &engine.spawn("p", 0, [&] {
    t->charge(500_ps);
    t->park();
    note("woken", t->now());
  });
  struct Waker {
    ProgramThread* t;
    void wake() { t->unpark(10_ps); }
  } waker{t};
  t->start(0_ps);
  ctx.scheduler.at<&Waker::wake>(10_ps, &waker);
  engine.run();
  EXPECT_EQ(log, (Lines{"500 woken"}));
}

TEST_P(EngineTest, StopsAtTheLimitAndContinues) {
  Tick tick{&log, &ctx.scheduler};
  ctx.scheduler.at<&Tick::at>(10_ns, &tick, 1);
  ctx.scheduler.at<&Tick::at>(30_ns, &tick, 2);
  ProgramThread* t = nullptr;
  t = &engine.spawn("p", 0, [&] {
    for (int i = 0; i < 4; ++i) {
      t->charge(7_ns);
      t->sync();
      note("p", t->now());
    }
  });
  t->start(0_ps);
  EXPECT_EQ(engine.run(20_ns), Outcome::time_limit);
  EXPECT_EQ(log, (Lines{"7000 p", "10000 e1", "14000 p"}));
  EXPECT_LE(ctx.now(), 20_ns);
  EXPECT_EQ(engine.run(), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"7000 p", "10000 e1", "14000 p", "21000 p", "28000 p", "30000 e2"}));
}

TEST_P(EngineTest, AnExceptionOfAModelLeavesRun) {
  struct Bad {
    void fire() { throw std::runtime_error("model"); }
  } bad;
  ctx.scheduler.at<&Bad::fire>(5_ps, &bad);
  try {
    engine.run();
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "model");
  }
}

TEST_P(EngineTest, AnExceptionOfAProgramLeavesRunAndNothingRunsAfterIt) {
  Tick tick{&log, &ctx.scheduler};
  ctx.scheduler.at<&Tick::at>(10_ps, &tick, 1);
  ctx.scheduler.at<&Tick::at>(30_ps, &tick, 2);
  ProgramThread* t = nullptr;
  t = &engine.spawn("p", 0, [&] {
    t->charge(20_ps);
    t->sync();
    SIM_CHECK(1 + 1 == 3, "arithmetic");
  });
  t->start(0_ps);
  EXPECT_THROW(engine.run(), SimulatorBug);
  EXPECT_EQ(log, (Lines{"10 e1"}));
  EXPECT_TRUE(t->finished());
}

TEST_P(EngineTest, StopEndsTheRunEvenOfAProgramThatNeverBlocks) {
  ProgramThread* t = nullptr;
  std::uint64_t rounds = 0;
  t = &engine.spawn("spinner", 0, [&] {
    for (;;) {
      t->charge(1_ns);
      t->sync();
      if (++rounds == 1000) engine.stop();
    }
  });
  t->start(0_ps);
  EXPECT_EQ(engine.run(), Outcome::stopped);
  EXPECT_EQ(rounds, 1000U);
}

TEST_P(EngineTest, AStopBeforeTheRunIsNotForgotten) {
  Tick tick{&log, &ctx.scheduler};
  ctx.scheduler.at<&Tick::at>(10_ps, &tick, 1);
  engine.stop();
  EXPECT_EQ(engine.run(), Outcome::stopped);
  EXPECT_TRUE(log.empty());
  EXPECT_EQ(engine.run(), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"10 e1"}));
}

TEST_P(EngineTest, ProgressIsReportedFromTheRunAtTheRequest) {
  int reports = 0;
  engine.on_progress([&] { ++reports; });
  Tick tick{&log, &ctx.scheduler};
  struct Asker {
    Engine* e;
    void ask() { e->request_progress(); }
  } asker{&engine};
  ctx.scheduler.at<&Asker::ask>(10_ps, &asker);
  ctx.scheduler.at<&Tick::at>(20_ps, &tick, 1);
  engine.run();
  EXPECT_EQ(reports, 1);
}

TEST_P(EngineTest, AThreadMayBeSpawnedDuringTheRun) {
  ProgramThread *parent = nullptr, *child = nullptr;
  parent = &engine.spawn("parent", 0, [&] {
    parent->charge(10_ps);
    parent->sync();
    child = &engine.spawn("child", 1, [&] {
      child->charge(5_ps);
      child->sync();
      note("child", child->now());
    });
    child->start(parent->now() + 1_ps);
    parent->charge(20_ps);
    parent->sync();
    note("parent", parent->now());
  });
  parent->start(0_ps);
  EXPECT_EQ(engine.run(), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"16 child", "30 parent"}));
}

/// Another SystemC model beside ours: every 100 ns it looks at the clock and schedules an event 3 ns later.
struct Foreign : sc_core::sc_module {
  SC_HAS_PROCESS(Foreign);
  Foreign(sc_core::sc_module_name name, Context& c, std::vector<std::string>& l, int rounds)
      : sc_module(name), ctx(c), log(l), left(rounds) {
    SC_THREAD(work);
  }
  void work() {
    while (left-- > 0) {
      sc_core::wait(100, sc_core::SC_NS);
      const Picos t{static_cast<std::int64_t>(sc_core::sc_time_stamp().value())};
      early = early || ctx.now() > t;
      ctx.scheduler.at<&Foreign::answer>(t + 3_ns, this);
    }
  }
  void answer() { log.push_back(std::to_string(ctx.now().n) + " answer"); }
  Context& ctx;
  std::vector<std::string>& log;
  int left;
  bool early = false;
};

TEST_P(EngineTest, NeverRunsAheadOfAForeignModelAndSeesWhatItSchedules) {
  Foreign foreign("foreign", ctx, log, 3);
  Tick tick{&log, &ctx.scheduler};
  ctx.scheduler.at<&Tick::at>(250_ns, &tick, 1);
  ProgramThread* t = nullptr;
  t = &engine.spawn("p", 0, [&] {
    for (int i = 0; i < 5; ++i) {
      t->charge(40_ns);
      t->sync();
    }
    note("p", t->now());
  });
  t->start(0_ps);
  EXPECT_EQ(engine.run(), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"103000 answer", "200000 p", "203000 answer", "250000 e1", "303000 answer"}));
  EXPECT_FALSE(foreign.early);
}

TEST_P(EngineTest, ALimitEndsARunBesideAFreeRunningClock) {
  sc_core::sc_clock clock("clock", 10, sc_core::SC_NS);
  Tick tick{&log, &ctx.scheduler};
  ctx.scheduler.at<&Tick::at>(55_ns, &tick, 1);
  ctx.scheduler.at<&Tick::at>(155_ns, &tick, 2);
  EXPECT_EQ(engine.run(100_ns), Outcome::time_limit);
  EXPECT_EQ(log, (Lines{"55000 e1"}));
  EXPECT_EQ(engine.run(200_ns), Outcome::quiescent);
  EXPECT_EQ(log, (Lines{"55000 e1", "155000 e2"}));
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineTest, testing::Values(EngineMode::run_ahead, EngineMode::tick),
                         [](const auto& p) { return p.param == EngineMode::tick ? "tick" : "run_ahead"; });

/// A small machine: programs that compute, wait for answers and race with timers; everything from one random stream.
class Machine {
 public:
  /// `looks`: background work looks at the answers whenever something has happened.
  explicit Machine(EngineMode mode, bool looks = false) : engine_("engine", ctx_.scheduler, mode) {
    if (looks) look();
    for (std::uint32_t n = 0; n < 4; ++n) {
      threads_.push_back(&engine_.spawn("p" + std::to_string(n), n, [this, n] { program(n); }));
      threads_.back()->start(Picos{n});
    }
  }
  std::uint64_t run() {
    engine_.run();
    EXPECT_EQ(answers_, 4U * 2000U);
    return ctx_.scheduler.order_checksum();
  }

 private:
  void program(std::uint32_t n) {
    ProgramThread& t = *threads_[n];
    Rng rng = ctx_.rng("p" + std::to_string(n));
    for (int i = 0; i < 2000; ++i) {
      for (std::uint32_t k = rng.below(4); k > 0; --k) {
        t.charge(Picos{rng.below(50'000)});
        t.sync();
      }
      ctx_.scheduler.at<&Machine::answer>(t.now() + Picos{1 + rng.below(100'000)}, this, n);
      t.park();
    }
  }
  void look() {
    const std::uint64_t seen = ctx_.scheduler.work();
    if (answers_ / 100 != reported_) {
      ctx_.scheduler.promote();
      reported_ = answers_ / 100;
    }
    ctx_.scheduler.after(
        3_ns, [](void*, std::uint64_t) {}, nullptr);
    ctx_.scheduler.after_work(
        seen, 7_ns, [](void* self, std::uint64_t) { static_cast<Machine*>(self)->look(); }, this);
  }
  void answer(std::uint64_t n) {
    ++answers_;
    threads_[n]->unpark(ctx_.now() + Picos{500});
  }
  Context ctx_{9};
  Engine engine_;
  std::vector<ProgramThread*> threads_;
  std::uint64_t answers_ = 0, reported_ = 0;
};

// One SystemC kernel per process: the two modes meet in a golden number that both must give.
constexpr std::uint64_t kMachineChecksum = 15973517630808197280ULL;
TEST(EngineModes, RunAheadExecutesTheGoldenOrder) { EXPECT_EQ(Machine(EngineMode::run_ahead).run(), kMachineChecksum); }
TEST(EngineModes, TickExecutesTheGoldenOrder) { EXPECT_EQ(Machine(EngineMode::tick).run(), kMachineChecksum); }

constexpr std::uint64_t kLookingChecksum = 14005401995962600540ULL;
TEST(EngineModes, RunAheadExecutesTheGoldenOrderWithBackgroundWork) {
  EXPECT_EQ(Machine(EngineMode::run_ahead, true).run(), kLookingChecksum);
}
TEST(EngineModes, TickExecutesTheGoldenOrderWithBackgroundWork) {
  EXPECT_EQ(Machine(EngineMode::tick, true).run(), kLookingChecksum);
}

}  // namespace
}  // namespace sim
