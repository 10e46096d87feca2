// SPDX-License-Identifier: Apache-2.0
// A hundred thousand schedules of the arrival of a completion around get event, ack, arm and poll, all in one run.
// The sender waits until its burst has been consumed, so a wake-up that is lost leaves everybody waiting: the run is then
// over before the last schedule, unless the sender's patience ends first.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "sim/rng.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using sim::Picos;

constexpr Picos kPatience{200'000'000};

struct Outcome {
  std::uint64_t schedules = 0, lost = 0, spurious = 0, coalesced = 0, messages = 0;
};

/// Random time on the core, 0 to 2 us, in one of two places on average: most calls follow each other closely.
void loiter(sim::Rng& rng) {
  if (rng.chance(0.5)) cpu::current().compute(Picos{rng.below(2'000'000)});
}

/// `right`: arm, poll until empty, sleep. Otherwise the poll comes before the arm.
Outcome schedules(std::uint64_t count, hca::ArmRule rule, bool read_back, bool right) {
  ScenarioConfig s;
  const auto ns = [](std::int64_t n) { return Picos{n * 1000}; };
  s.run.jitter = {ns(0), ns(300), ns(300), ns(200), ns(500), ns(500), ns(1000)};
  for (HostConfig& h : s.hosts) {
    h.hca.completion.arm_rule = rule;
    h.verbs.arm_read_back = read_back;
  }
  Pair pair(s);
  Outcome out;
  std::uint64_t consumed = 0;
  bool over = false;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  const auto prepare = [&](End& e) {
    channel = ibv_create_comp_channel(e.context);
    cq = ibv_create_cq(e.context, 63, nullptr, channel, 0);
    ibv_destroy_qp(e.qp);
    e.qp = e.make_qp(e.cq, cq);
  };
  const auto client = [&](End& e) {
    sim::Rng rng(1, "client");
    e.meet("ready");
    for (; out.schedules < count; ++out.schedules) {
      const std::uint32_t burst = 1 + rng.below(2);
      for (std::uint32_t i = 0; i < burst; ++i) {
        e.thread().compute(Picos{rng.below(12'000'000)});
        ASSERT_EQ(e.send(0, 0, 8), 0);
        ++out.messages;
      }
      e.wait(burst);
      const Picos limit = e.thread().now() + kPatience;
      while (consumed < out.messages && e.thread().now() < limit) e.thread().sleep(Picos{500'000});
      if (consumed == out.messages) continue;
      ++out.lost;  // one more message wakes the sleeper
      ASSERT_EQ(e.send(0, 0, 8), 0);
      ++out.messages;
      e.wait(1);
      while (consumed < out.messages) e.thread().sleep(Picos{500'000});
    }
    over = true;
    e.send(0, 0, 8);
    e.wait(1);
  };
  const auto server = [&](End& e) {
    sim::Rng rng(1, "server");
    for (int i = 0; i < 16; ++i) ASSERT_EQ(e.receive(0, 64, 64), 0);
    e.meet("ready");
    const auto drain = [&] {
      std::uint64_t n = 0;
      for (ibv_wc wc{}; ibv_poll_cq(cq, 1, &wc) == 1; ++n) {
        EXPECT_EQ(e.receive(0, 64, 64), 0);
        loiter(rng);
        ++consumed;
      }
      return n;
    };
    ibv_req_notify_cq(cq, 0);
    drain();
    while (!over) {
      ibv_cq* of = nullptr;
      void* cookie = nullptr;
      ASSERT_EQ(ibv_get_cq_event(channel, &of, &cookie), 0);
      loiter(rng);
      ibv_ack_cq_events(cq, 1);
      loiter(rng);
      const std::uint64_t before = consumed;
      if (!right) drain();
      loiter(rng);
      ibv_req_notify_cq(cq, 0);
      loiter(rng);
      if (right) drain();
      out.spurious += consumed == before;
      out.coalesced += consumed > before + 1;
    }
  };
  pair.run(client, server, prepare);
  return out;
}

TEST(WakeUp, TheRightLoopNeverSleepsOverACompletion_compare_ci_A_35_S_CE_20) {
  const Outcome o = schedules(100'000, hca::ArmRule::compare_ci, false, true);
  EXPECT_EQ(o.schedules, 100'000u);
  EXPECT_EQ(o.lost, 0u);
  EXPECT_GT(o.spurious, 0u) << "S-CE-22: an event that finds nothing";
  EXPECT_GT(o.coalesced, 0u) << "S-CE-22: an event that stands for several";
}

TEST(WakeUp, TheRightLoopNeverSleepsOverACompletion_next_cqe_A_35_S_CE_20) {
  const Outcome o = schedules(100'000, hca::ArmRule::next_cqe, true, true);
  EXPECT_EQ(o.schedules, 100'000u);
  EXPECT_EQ(o.lost, 0u);
}

TEST(WakeUp, ComparingForgivesTheWrongLoop_S_CE_5_S_CE_21) {
  EXPECT_EQ(schedules(10'000, hca::ArmRule::compare_ci, false, false).lost, 0u);
}

TEST(WakeUp, TheWrongLoopSleepsOverSome_S_CE_21) {
  const Outcome o = schedules(10'000, hca::ArmRule::next_cqe, true, false);
  EXPECT_EQ(o.schedules, 10'000u);
  EXPECT_GT(o.lost, 50u);
}

TEST(WakeUp, APostedArmAndACqeCrossOnTheBus_S_CE_21) {
  const Outcome o = schedules(10'000, hca::ArmRule::next_cqe, false, true);
  EXPECT_EQ(o.schedules, 10'000u);
  EXPECT_GT(o.lost, 10u) << "no order of calls helps an adapter that neither compares nor is read back";
}

}  // namespace
}  // namespace sys::test
