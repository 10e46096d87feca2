// SPDX-License-Identifier: Apache-2.0
// The event engine against a reference queue: order by time, class and sequence under every kind of load.
#include "sim/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "sim/check.h"
#include "sim/rng.h"

namespace sim {
namespace {

/// Drives a Scheduler and a std::multimap with the same random load and compares each executed event. Every event
/// schedules up to two more at delays drawn from `spread`.
class AgainstMultimap {
 public:
  AgainstMultimap(std::uint64_t seed, std::vector<Picos> spread) : rng_(seed, "load"), spread_(std::move(spread)) {}

  void run(std::size_t pending, std::size_t events) {
    for (std::size_t i = 0; i < pending; ++i) add();
    std::size_t executed = 0;
    while (scheduler_.run_one(kNever)) {
      ASSERT_EQ(scheduler_.pending(), reference_.size());
      if (++executed < events)
        for (std::uint32_t n = rng_.below(3); n > 0 || reference_.size() < pending; n -= n > 0 ? 1 : 0) add();
      ASSERT_EQ(mismatches_, 0U) << "event " << executed;
      ASSERT_EQ(scheduler_.next_time(), reference_.empty() ? kNever : reference_.begin()->first);
    }
    EXPECT_GE(executed, events);
    EXPECT_TRUE(reference_.empty());
    EXPECT_EQ(scheduler_.executed(), executed);
  }

 private:
  void add() {
    const Picos t =
        scheduler_.now() +
        Picos{static_cast<std::int64_t>(
            rng_.uniform() * static_cast<double>(spread_[rng_.below(static_cast<std::uint32_t>(spread_.size()))].n))};
    reference_.emplace(t, ++last_);  // equal keys keep their order of insertion
    scheduler_.at<&AgainstMultimap::on_event>(t, this, last_);
  }
  void on_event(std::uint64_t id) {
    const auto first = reference_.begin();
    if (first->second != id || first->first != scheduler_.now()) ++mismatches_;
    reference_.erase(first);
  }
  Rng rng_;
  std::vector<Picos> spread_;
  Scheduler scheduler_;
  std::multimap<Picos, std::uint64_t> reference_;
  std::uint64_t last_ = 0;
  std::size_t mismatches_ = 0;
};

TEST(Scheduler, OrderEqualsAMultimapForNearEvents) { AgainstMultimap(1, {100_ns}).run(100, 200'000); }
TEST(Scheduler, OrderEqualsAMultimapForTiesAndZeroDelays) { AgainstMultimap(2, {1_ps, 4_ps}).run(50, 200'000); }
TEST(Scheduler, OrderEqualsAMultimapForFarTimersAmongNearEvents) {
  AgainstMultimap(3, {10_ns, 10_ns, 10_ns, 500_us, 70_ms}).run(300, 200'000);
}
TEST(Scheduler, OrderEqualsAMultimapAtTheEdgeOfTheWheel) {
  AgainstMultimap(4, {Picos{4096LL * 4096}, Picos{4095LL * 4096}, Picos{4097LL * 4096}}).run(20, 100'000);
}
TEST(Scheduler, OrderEqualsAMultimapWhenTheBucketWidthIsRetuned) {
  AgainstMultimap(5, {1_ns}).run(1000, 200'000);  // gaps far below the first width
  AgainstMultimap(6, {10_ms}).run(10, 200'000);   // gaps far above it
  AgainstMultimap(7, {1_ns, 10_s}).run(500, 300'000);
}
TEST(Scheduler, OrderEqualsAMultimapForManyPending) { AgainstMultimap(8, {20_us, 1_ms}).run(20'000, 150'000); }

struct Log {
  std::vector<std::uint64_t> ids;
  void note(std::uint64_t id) { ids.push_back(id); }
};
void note_thread(void* ctx, std::uint64_t) { static_cast<Log*>(ctx)->ids.push_back(99); }

TEST(Scheduler, ThreadsResumeAfterAllOrdinaryEventsOfTheirInstantInThreadOrder) {
  Scheduler s;
  std::vector<int> order;
  struct Step {
    std::vector<int>* order;
    int id;
  };
  Step steps[5]{{&order, 0}, {&order, 1}, {&order, 2}, {&order, 3}, {&order, 4}};
  const auto fn = [](void* c, std::uint64_t) { static_cast<Step*>(c)->order->push_back(static_cast<Step*>(c)->id); };
  s.at_thread(10_ns, 7, fn, &steps[4]);
  s.at_thread(10_ns, 2, fn, &steps[3]);
  s.at(10_ns, fn, &steps[0]);
  s.at(10_ns, fn, &steps[1]);
  s.at_thread(9_ns, 9, fn, &steps[2]);
  while (s.run_one(kNever)) {}
  EXPECT_EQ(order, (std::vector<int>{2, 0, 1, 3, 4}));
}

TEST(Scheduler, AnEventScheduledByAnEventOfTheSameInstantStillRunsBeforeThreads) {
  Scheduler s;
  Log log;
  struct Chain {
    Scheduler* s;
    Log* log;
    void first() {
      log->note(1);
      s->after<&Log::note>(0_ps, log, 2);
    }
  } chain{&s, &log};
  s.at_thread(5_ns, 0, note_thread, &log);
  s.at<&Chain::first>(5_ns, &chain);
  while (s.run_one(kNever)) {}
  EXPECT_EQ(log.ids, (std::vector<std::uint64_t>{1, 2, 99}));
}

TEST(Scheduler, RunsNothingBeyondTheLimit) {
  Scheduler s;
  Log log;
  s.at<&Log::note>(10_ns, &log, 1);
  s.at<&Log::note>(11_ns, &log, 2);
  s.at<&Log::note>(900_ms, &log, 3);
  EXPECT_TRUE(s.run_one(10_ns));
  EXPECT_FALSE(s.run_one(Picos{10'999}));
  EXPECT_EQ(s.now(), 10_ns);
  EXPECT_TRUE(s.run_one(11_ns));
  EXPECT_FALSE(s.run_one(Picos{900'000'000'000 - 1}));
  EXPECT_EQ(s.next_time(), 900_ms);
  EXPECT_TRUE(s.run_one(kNever));
  EXPECT_FALSE(s.run_one(kNever));
  EXPECT_EQ(s.next_time(), kNever);
}

TEST(Scheduler, TheClockMayAdvanceUpToButNotOverTheNextEvent) {
  Scheduler s;
  Log log;
  s.at<&Log::note>(100_ns, &log, 1);
  s.advance_to(40_ns);
  EXPECT_EQ(s.now(), 40_ns);
  s.advance_to(100_ns);
  EXPECT_THROW(s.advance_to(Picos{100'001}), SimulatorBug);
  EXPECT_THROW(s.at<&Log::note>(99_ns, &log, 2), SimulatorBug);
  s.at<&Log::note>(100_ns, &log, 3);
  while (s.run_one(kNever)) {}
  EXPECT_EQ(log.ids, (std::vector<std::uint64_t>{1, 3}));
}

TEST(Scheduler, LookingAtAFarTimerDoesNotDisturbNearEvents) {
  Scheduler s;
  Log log;
  s.at<&Log::note>(67_ms, &log, 1000);
  for (std::uint64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(s.next_time(), 67_ms);
    s.advance_to(s.now() + 10_ns);
    s.after<&Log::note>(Picos{5000}, &log, 2 * i);
    s.after<&Log::note>(Picos{2000}, &log, 2 * i + 1);
    ASSERT_TRUE(s.run_one(1_ms));
    ASSERT_TRUE(s.run_one(1_ms));
    ASSERT_FALSE(s.run_one(1_ms));
    ASSERT_EQ(log.ids[2 * i], 2 * i + 1);
    ASSERT_EQ(log.ids[2 * i + 1], 2 * i);
  }
}

TEST(Scheduler, AnEventAtNeverNeverRuns) {
  Scheduler s;
  Log log;
  s.at<&Log::note>(kNever, &log, 1);
  EXPECT_EQ(s.next_time(), kNever);
  EXPECT_FALSE(s.run_one(kNever));
}

TEST(Scheduler, ChecksumDependsOnOrderAndOnThreads) {
  const auto checksum = [](Picos a, Picos b, std::uint32_t thread) {
    Scheduler s;
    Log log;
    s.at<&Log::note>(a, &log, 1);
    s.at<&Log::note>(b, &log, 2);
    s.at_thread(3_ns, thread, note_thread, &log);
    while (s.run_one(kNever)) {}
    return s.order_checksum();
  };
  EXPECT_EQ(checksum(1_ns, 2_ns, 1), checksum(1_ns, 2_ns, 1));
  EXPECT_NE(checksum(1_ns, 2_ns, 1), checksum(2_ns, 1_ns, 1));
  EXPECT_NE(checksum(1_ns, 2_ns, 1), checksum(1_ns, 2_ns, 2));
}

TEST(Scheduler, PassingAThreadCountsLikeItsResumption) {
  Scheduler suspended, passed;
  Log log;
  suspended.at_thread(3_ns, 4, note_thread, &log);
  EXPECT_TRUE(suspended.run_one(kNever));
  passed.pass_thread(3_ns, 4);
  EXPECT_EQ(suspended.order_checksum(), passed.order_checksum());
  EXPECT_EQ(passed.now(), 3_ns);
}

// A poll that looks at a value which only others change, and sleeps until something else has happened.
struct Poll {
  explicit Poll(Scheduler& scheduler) : s(scheduler) {}
  void look() {
    ++looks;
    const std::uint64_t seen = s.work();
    s.after(
        1_ns, [](void*, std::uint64_t) {}, nullptr);  // what the look itself causes is no work
    if (value != found) {
      s.promote();
      found = value;
      s.after<&Poll::react>(1_ns, this);
    }
    s.after_work(
        seen, 10_ns, [](void* p, std::uint64_t) { static_cast<Poll*>(p)->look(); }, this);
  }
  void react() { ++reactions; }
  void change() { ++value; }
  Scheduler& s;
  int looks = 0, value = 0, found = 0, reactions = 0;
};

TEST(BackgroundWork, DoesNotKeepARunAliveAndMissesNothing) {
  Scheduler s;
  Poll poll(s);
  poll.look();
  s.at<&Poll::change>(100_ns, &poll);
  s.at<&Poll::change>(1000_ns, &poll);
  while (s.run_one(kNever)) {}
  EXPECT_EQ(poll.found, 2) << "one more look follows the last change";
  EXPECT_EQ(poll.reactions, 2);
  EXPECT_EQ(s.pending(), 0U);
  EXPECT_LE(poll.looks, 9) << "a look follows work, not time";
  EXPECT_LE(s.now(), 1000_ns + 40_ns);
}

TEST(BackgroundWork, ThreadsThatItResumesAreWork) {
  Scheduler s;
  const std::uint64_t before = s.work();
  s.after_work(
      before, 1_ns,
      [](void* p, std::uint64_t) {
        auto& scheduler = *static_cast<Scheduler*>(p);
        scheduler.at_thread(
            scheduler.now(), 1, [](void*, std::uint64_t) {}, nullptr);
      },
      &s);
  EXPECT_FALSE(s.run_one(kNever)) << "nothing has happened yet";
  s.pass_thread(5_ns, 0);
  EXPECT_EQ(s.work(), before + 1);
  EXPECT_EQ(s.next_time(), 6_ns);
  while (s.run_one(kNever)) {}
  EXPECT_EQ(s.work(), before + 2);
}

}  // namespace
}  // namespace sim
