// SPDX-License-Identifier: Apache-2.0
// Journeys: the stages of a message partition its end-to-end time, whatever the blocks report.
#include "sim/journey.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "sim/rng.h"

namespace sim {
namespace {

struct Recorder : JourneySink {
  std::vector<Journey> done, lost;
  void finished(const Journey& j) override { done.push_back(j); }
  void failed(const Journey& j) override { lost.push_back(j); }
};
Picos sum_of(const Journey& j) { return std::accumulate(j.stage.begin(), j.stage.end(), Picos{0}); }

TEST(Journeys, EachMarkChargesTheTimeSinceThePreviousOne) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  const MsgId id = journeys.begin(100_ns, 3, 2, 4096);
  EXPECT_EQ(id, 1U);
  journeys.mark(id, Stage::cpu_post, 150_ns);
  journeys.mark(id, Stage::wire, 400_ns);
  journeys.mark(id, Stage::wire, 430_ns);
  EXPECT_TRUE(journeys.under_way(id));
  journeys.finish(id, Stage::poll, 500_ns);
  EXPECT_FALSE(journeys.under_way(id));
  ASSERT_EQ(sink.done.size(), 1U);
  const Journey& j = sink.done[0];
  EXPECT_EQ(j.flow, 3U);
  EXPECT_EQ(j.opcode, 2U);
  EXPECT_EQ(j.bytes, 4096U);
  EXPECT_EQ(j.stage[static_cast<std::size_t>(Stage::cpu_post)], 50_ns);
  EXPECT_EQ(j.stage[static_cast<std::size_t>(Stage::wire)], 280_ns);
  EXPECT_EQ(j.stage[static_cast<std::size_t>(Stage::poll)], 70_ns);
  EXPECT_EQ(j.total(), 400_ns);
  EXPECT_EQ(sum_of(j), j.total());
}

TEST(Journeys, MarksInThePastCountAsZeroAndKeepThePartition) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  const MsgId id = journeys.begin(100_ns, 0, 0, 1);
  journeys.mark(id, Stage::wire, 300_ns);
  journeys.mark(id, Stage::packetise, 200_ns);
  journeys.finish(id, Stage::poll, 250_ns);
  EXPECT_EQ(sink.done.at(0).total(), 200_ns);
  EXPECT_EQ(sum_of(sink.done[0]), 200_ns);
}

TEST(Journeys, LateMarksAndUnknownIdsDoNoHarm) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  const MsgId id = journeys.begin(0_ns, 0, 0, 1);
  journeys.finish(id, Stage::poll, 10_ns);
  journeys.mark(id, Stage::wire, 20_ns);
  journeys.finish(id, Stage::poll, 20_ns);
  journeys.take_back(id);
  journeys.mark(0, Stage::wire, 20_ns);
  journeys.finish(999, Stage::poll, 20_ns);
  EXPECT_EQ(sink.done.size(), 1U);
  EXPECT_EQ(journeys.count_under_way(), 0U);
}

TEST(Journeys, OneThatIsTakenBackIsNotReported) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  journeys.take_back(journeys.begin(0_ns, 0, 0, 1));
  EXPECT_TRUE(sink.done.empty());
  EXPECT_TRUE(sink.lost.empty());
  EXPECT_EQ(journeys.count_under_way(), 0U);
}

TEST(Journeys, AFailureIsReportedOnceWithItsStatusAndPoster) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  const MsgId id = journeys.begin(100_ns, 0, 0, 1, {1, 0x105, 0xffff'ffff'ffff'fff0});
  journeys.mark(id, Stage::wire, 300_ns);
  journeys.fail(id, 13, 700_ns);
  journeys.fail(id, 5, 800_ns);
  journeys.finish(id, Stage::poll, 800_ns);
  EXPECT_TRUE(sink.done.empty());
  ASSERT_EQ(sink.lost.size(), 1U);
  EXPECT_EQ(sink.lost[0].status, 13);
  EXPECT_EQ(sink.lost[0].poster.host, 1);
  EXPECT_EQ(sink.lost[0].poster.qpn, 0x105U);
  EXPECT_EQ(sink.lost[0].poster.wr_id, 0xffff'ffff'ffff'fff0);
  EXPECT_EQ(sink.lost[0].total(), 600_ns);
  EXPECT_EQ(sum_of(sink.lost[0]), 200_ns);
  EXPECT_EQ(journeys.count_under_way(), 0U);
}

TEST(Journeys, OneThatTheDeviceGaveUpCanOnlyFail) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  const MsgId id = journeys.begin(0_ns, 0, 0, 1);
  journeys.give_up(id, 5);
  journeys.finish(id, Stage::poll, 10_ns);
  EXPECT_TRUE(journeys.under_way(id));
  journeys.fail(id, 5, 20_ns);
  journeys.give_up(id, 5);
  EXPECT_TRUE(sink.done.empty());
  ASSERT_EQ(sink.lost.size(), 1U);
  EXPECT_EQ(sink.lost[0].last, 20_ns);
}

TEST(Journeys, TheEndReportsWhatIsLeftInTheOrderOfThePosts) {
  Journeys journeys;
  Recorder sink;
  const MsgId straggler = journeys.begin(0_ns, 0, 0, 1);
  for (int i = 0; i < 100'000; ++i) journeys.finish(journeys.begin(1_ns, 0, 0, 1), Stage::poll, 2_ns);
  const MsgId given_up = journeys.begin(3_ns, 0, 0, 1), other = journeys.begin(4_ns, 0, 0, 1);
  journeys.give_up(given_up, 5);
  journeys.set_sink(&sink);
  journeys.end(9_ns);
  ASSERT_EQ(sink.lost.size(), 3U);
  EXPECT_EQ(sink.lost[0].id, straggler);
  EXPECT_EQ(sink.lost[0].status, kUnfinished);
  EXPECT_EQ(sink.lost[0].total(), 9_ns);
  EXPECT_EQ(sink.lost[1].id, given_up);
  EXPECT_EQ(sink.lost[1].status, 5);
  EXPECT_EQ(sink.lost[2].id, other);
  EXPECT_EQ(sink.lost[2].status, kUnfinished);
  EXPECT_EQ(journeys.count_under_way(), 0U);
}

TEST(Journeys, ThousandsUnderWayAtOnceKeepTheirOwnTimes) {
  Journeys journeys;
  Recorder sink;
  journeys.set_sink(&sink);
  Rng rng(2, "journeys");
  std::vector<MsgId> live;
  Picos now{0};
  for (int i = 0; i < 200'000; ++i) {
    now += Picos{rng.below(1000)};
    if (live.size() < 20'000 && rng.chance(0.55)) {
      live.push_back(
          journeys.begin(now, static_cast<std::uint32_t>(live.size()), 0, static_cast<std::uint32_t>(now.n)));
    } else if (!live.empty()) {
      const std::size_t k = rng.below(static_cast<std::uint32_t>(live.size()));
      journeys.mark(live[k], Stage::wire, now - Picos{1});
      journeys.finish(live[k], Stage::poll, now);
      ASSERT_EQ(sink.done.back().id, live[k]);
      ASSERT_EQ(static_cast<std::uint32_t>(sink.done.back().start.n), sink.done.back().bytes);
      ASSERT_EQ(sink.done.back().last, now);
      ASSERT_EQ(sum_of(sink.done.back()), sink.done.back().total());
      live[k] = live.back();
      live.pop_back();
    }
    ASSERT_EQ(journeys.count_under_way(), live.size());
  }
}

TEST(Journeys, AMessageThatNobodyDeliversIsStillItselfAMillionMessagesLater) {
  Journeys journeys;
  Recorder sink;
  const MsgId stuck = journeys.begin(5_ns, 77, 0, 1234);
  for (int i = 0; i < 1'000'000; ++i) journeys.finish(journeys.begin(10_ns, 0, 0, 1), Stage::poll, 20_ns);
  EXPECT_TRUE(journeys.under_way(stuck));
  EXPECT_EQ(journeys.count_under_way(), 1U);
  journeys.set_sink(&sink);
  journeys.mark(stuck, Stage::wire, 15_ns);
  journeys.finish(stuck, Stage::poll, 20_ns);
  ASSERT_EQ(sink.done.size(), 1U);
  EXPECT_EQ(sink.done[0].flow, 77U);
  EXPECT_EQ(sink.done[0].total(), 15_ns);
  EXPECT_FALSE(journeys.under_way(stuck));
}

TEST(Journeys, StageNamesAreDistinct) {
  for (std::size_t a = 0; a < kStages; ++a)
    for (std::size_t b = 0; b < a; ++b) EXPECT_NE(name_of(static_cast<Stage>(a)), name_of(static_cast<Stage>(b)));
  EXPECT_EQ(name_of(Stage::cpu_post), "cpu_post");
  EXPECT_EQ(name_of(Stage::poll), "poll");
}

}  // namespace
}  // namespace sim
