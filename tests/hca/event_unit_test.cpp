// SPDX-License-Identifier: Apache-2.0
// Event queues that are full, and event queues whose interrupts are moderated.
#include "hca/completion/event_unit.h"

#include <vector>

#include "tests/hca/scripted_endpoint.h"

namespace hca::test {
namespace {

using namespace sim::literals;
using sim::Picos;

constexpr std::uint64_t kCompRing = 0x300000, kAsyncRing = 0x310000;
constexpr std::uint16_t kCompVector = 3, kAsyncVector = 1;

struct Events : testing::Test {
  explicit Events(const CompletionConfig& c = {}, unsigned log_size = 2) : config(c) {
    comp = queue(kCompRing, kCompVector, 1ULL << prm::kEventComp, log_size);
    async = queue(kAsyncRing, kAsyncVector, 1ULL << prm::kEventCqError | 1ULL << prm::kEventInternalError, 2);
  }
  Eq* queue(std::uint64_t ring, std::uint16_t vector, std::uint64_t mask, unsigned log_size) {
    std::uint32_t n = 0;
    Eq* eq = eqs.create(n);
    eq->eqn = n;
    eq->buffer.pages = {{ring}};
    eq->log_size = log_size;
    eq->vector = vector;
    eq->event_mask = mask;
    return eq;
  }
  void complete(unsigned times) {
    for (unsigned i = 0; i < times; ++i) unit.completion(comp->eqn, 0x40, {});
    bench.run();
  }
  /// Types of the entries written to a ring, in order.
  std::vector<int> types(std::uint64_t ring) const {
    std::vector<int> found;
    for (const auto& w : bench.endpoint.writes)
      if (w.address >= ring && w.address < ring + 0x1000) found.push_back(static_cast<int>(w.bytes[1]));
    return found;
  }
  std::uint64_t overruns() { return bench.context.stats.counter("events.eq_overruns").value; }

  const CompletionConfig config;
  DmaBench bench;
  ObjectTable<Eq> eqs{1, 100};
  EventUnit unit{bench.context, config, bench.dma, eqs, 0, "events"};
  Eq* comp = nullptr;
  Eq* async = nullptr;
};

TEST_F(Events, AnOverflowIsFatalOnceAndTheQueueIsDead_S_EQE_8) {
  complete(4);
  EXPECT_EQ(types(kAsyncRing), (std::vector<int>{}));
  complete(2);
  EXPECT_EQ(types(kCompRing), (std::vector<int>(4, prm::kEventComp)));
  EXPECT_EQ(types(kAsyncRing), (std::vector<int>{prm::kEventInternalError}));
  unit.doorbell(comp->eqn << 24 | 4, true);
  complete(1);
  EXPECT_EQ(types(kCompRing).size(), 4u) << "room does not revive it";
  EXPECT_EQ(types(kAsyncRing).size(), 1u);
  EXPECT_EQ(overruns(), 3u);
  EXPECT_TRUE(bench.endpoint.interrupts.empty()) << "nobody was armed while it still took events";
}

TEST_F(Events, TheOverflowOfTheAsyncQueueTakesItsLastEntry_S_EQE_8) {
  for (unsigned i = 0; i < 5; ++i) unit.async(prm::kEventCqError, 0x40, prm::kCqErrorOverrun);
  bench.run();
  EXPECT_EQ(types(kAsyncRing),
            (std::vector<int>{prm::kEventCqError, prm::kEventCqError, prm::kEventCqError, prm::kEventInternalError}));
}

struct Dropping : Events {
  static CompletionConfig drop() {
    CompletionConfig c;
    c.eq_overflow = EqOverflow::drop;
    return c;
  }
  Dropping() : Events(drop()) {}
};
TEST_F(Dropping, OverflowLosesTheEventAndCountsIt) {
  complete(6);
  EXPECT_EQ(types(kCompRing).size(), 4u);
  EXPECT_EQ(overruns(), 2u);
  unit.doorbell(comp->eqn << 24 | 4, false);
  complete(1);
  EXPECT_EQ(types(kCompRing).size(), 5u);
  EXPECT_EQ(types(kAsyncRing), (std::vector<int>{}));
}

// An event every microsecond for 30 us; the driver takes what is there and arms every half microsecond.
struct Moderated : Events {
  explicit Moderated(std::uint32_t count, Picos period = 10_us) : Events(moderation(period, count), 6) {
    unit.doorbell(comp->eqn << 24, true);
    for (int i = 0; i < 30; ++i)
      bench.context.scheduler.at(
          1_us * i,
          [](void* self, std::uint64_t) {
            auto* const t = static_cast<Moderated*>(self);
            t->unit.completion(t->comp->eqn, 0x40, {});
          },
          this);
    for (int i = 0; i < 100; ++i)
      bench.context.scheduler.at(
          500_ns * i + 250_ns,
          [](void* self, std::uint64_t) {
            auto* const t = static_cast<Moderated*>(self);
            if (t->comp->armed) return;  // no interrupt has come
            t->unit.doorbell(t->comp->eqn << 24 | t->comp->announced, true);
          },
          this);
    bench.run();
  }
  static CompletionConfig moderation(Picos period, std::uint32_t count) {
    CompletionConfig c;
    c.eq_moderation_period = period;
    c.eq_moderation_count = count;
    return c;
  }
  std::vector<std::int64_t> interrupts() const {
    std::vector<std::int64_t> at;
    for (const auto& [t, vector] : bench.endpoint.interrupts) at.push_back(t.n / 1'000'000);
    return at;
  }
};
struct Unmoderated : Moderated {
  Unmoderated() : Moderated(0, 0_us) {}
};
TEST_F(Unmoderated, EachEventInterrupts) { EXPECT_EQ(interrupts().size(), 30u); }
struct ByPeriod : Moderated {
  ByPeriod() : Moderated(0) {}
};
TEST_F(ByPeriod, OneInterruptPerPeriodAnnouncesAllThatCame) {
  EXPECT_EQ(interrupts(), (std::vector<std::int64_t>{0, 10, 20, 30}));
  EXPECT_EQ(bench.endpoint.interrupts[2].first - bench.endpoint.interrupts[1].first, 10_us);
  EXPECT_EQ(types(kCompRing).size(), 30u);
  EXPECT_EQ(comp->announced, 30u);
}
struct ByCount : Moderated {
  ByCount() : Moderated(4) {}
};
TEST_F(ByCount, FourEventsEndThePeriod) {
  EXPECT_EQ(interrupts(), (std::vector<std::int64_t>{0, 4, 8, 12, 16, 20, 24, 28, 38}));
  EXPECT_EQ(comp->announced, 30u);
}

TEST_F(ByPeriod, AQueueThatRestsInterruptsAtOnce) {
  unit.doorbell(comp->eqn << 24 | 30, true);
  const Picos before = bench.context.now();
  complete(1);
  EXPECT_EQ(bench.endpoint.interrupts.back().first - before, config.eqe_build + DmaConfig{}.issue_interval);
}

// Commands and errors are not to wait for anything.
TEST_F(ByPeriod, OnlyCompletionQueuesAreModerated) {
  const std::size_t so_far = bench.endpoint.interrupts.size();
  for (std::uint32_t i = 0; i < 2; ++i) {
    unit.doorbell(async->eqn << 24 | i, true);
    unit.async(prm::kEventCqError, 0x40, prm::kCqErrorOverrun);
    bench.run();
  }
  EXPECT_EQ(bench.endpoint.interrupts.size(), so_far + 2);
}

}  // namespace
}  // namespace hca::test
