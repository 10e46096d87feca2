// SPDX-License-Identifier: Apache-2.0
// Ranks that share a receive queue (S25): the latency has a step where the queue is less deep than the messages in flight.
#include "tests/experiment/child_result.h"

namespace experiment {
namespace {

const std::filesystem::path kFile =
    std::filesystem::path(RDMASIM_SOURCE_DIR) / "scenarios" / "events" / "ranks_empty_their_srq.json";
constexpr int kInFlight = 320;

struct Depth {
  double worst_ns = 0, rnr_naks = 0;
};

/// The queue holds `depth` receives at first; the others come with the slow refill.
Depth with(int depth) {
  const sim::Json j = result_of(kFile, {"programs.server.steps.0.times=" + std::to_string(depth),
                                        "programs.server.steps.4.times=" + std::to_string(kInFlight - depth + 1)});
  EXPECT_EQ(*j.at("/verdict"), sim::Json("ok"));
  return {j.at("/programs/client/latency_ns/max")->number(),
          j.at("/counters/host1.hca.responder.rnr_naks_sent")->number()};
}

TEST(Ranks, LatencyStepsWhereTheSrqIsLessDeepThanTheMessagesInFlight_S25) {
  const Depth enough = with(kInFlight), one_less = with(kInFlight - 1), half = with(kInFlight / 2);
  EXPECT_EQ(enough.rnr_naks, 0);
  EXPECT_LT(enough.worst_ns, 300'000);
  EXPECT_EQ(one_less.rnr_naks, 1);
  EXPECT_GT(one_less.worst_ns, 640'000) << "the RNR timer";
  EXPECT_GE(half.rnr_naks, kInFlight / 2 - 1) << "everybody that comes behind";
}

}  // namespace
}  // namespace experiment
