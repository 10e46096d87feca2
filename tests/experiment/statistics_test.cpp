// SPDX-License-Identifier: Apache-2.0
// Percentiles, exact breakdown, and the sample beyond the capacity.
#include "experiment/statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace {

using experiment::LatencyRecorder;
using sim::Picos;

sim::Journey journey(sim::MsgId id, Picos start, std::initializer_list<std::int64_t> stages, std::uint32_t flow = 0,
                     std::uint32_t bytes = 8) {
  sim::Journey j;
  j.id = id;
  j.flow = flow;
  j.bytes = bytes;
  j.start = j.last = start;
  std::size_t i = 0;
  for (const std::int64_t s : stages) {
    j.stage[i++] = Picos{s};
    j.last += Picos{s};
  }
  return j;
}

TEST(Statistics, PercentilesAreByNearestRank) {
  std::vector<Picos> v;
  for (int i = 1000; i >= 1; --i) v.push_back(Picos{i});
  const auto s = experiment::statistics_of(v);
  EXPECT_EQ(s->min.n, 1);
  EXPECT_EQ(s->p50.n, 500);
  EXPECT_EQ(s->p99.n, 990);
  EXPECT_EQ(s->p999.n, 999);
  EXPECT_EQ(s->max.n, 1000);
  EXPECT_DOUBLE_EQ(s->mean_ps, 500.5);
}

TEST(Statistics, OfFewValues) {
  EXPECT_FALSE(experiment::statistics_of({}));
  std::vector<Picos> one{Picos{7}};
  EXPECT_EQ(experiment::statistics_of(one)->p999.n, 7);
  std::vector<Picos> four{Picos{4}, Picos{3}, Picos{2}, Picos{1}};
  EXPECT_EQ(experiment::statistics_of(four)->p50.n, 2);
  EXPECT_EQ(experiment::statistics_of(four)->p99.n, 4);
}

TEST(LatencyRecorder, KeepsFlowsApartAndCountsTheirBytesAndSpan) {
  LatencyRecorder r(3, 1);
  r.finished(journey(1, Picos{100}, {10, 20}, 0, 8));
  r.finished(journey(2, Picos{50}, {100}, 1, 4096));
  r.finished(journey(3, Picos{200}, {11, 20}, 0, 8));
  EXPECT_EQ(r.count(0), 2u);
  EXPECT_EQ(r.bytes(0), 16u);
  EXPECT_EQ(r.first_post(0).n, 100);
  EXPECT_EQ(r.last_done(0).n, 231);
  EXPECT_EQ(r.latency(0)->min.n, 30);
  EXPECT_EQ(r.latency(0)->max.n, 31);
  EXPECT_EQ(r.latency(1)->p50.n, 100);
  EXPECT_EQ(r.count(2), 0u);
  EXPECT_FALSE(r.latency(2));
  EXPECT_FALSE(r.breakdown(2));
  EXPECT_EQ(r.first_post(2).n, 0);
  EXPECT_EQ(r.total(), 3u);
}

TEST(LatencyRecorder, TheMedianMessageIsTheEarliestWithTheMedianLatencyAndItsStagesSumToIt) {
  LatencyRecorder r(1, 1);
  r.finished(journey(5, Picos{0}, {20, 20}));
  r.finished(journey(2, Picos{0}, {39, 1}));
  r.finished(journey(3, Picos{0}, {5, 5}));
  r.finished(journey(4, Picos{0}, {100, 1}));
  r.finished(journey(6, Picos{0}, {30, 10}));
  const auto b = r.breakdown(0);
  EXPECT_EQ(b->median_id, 2u);
  EXPECT_EQ(b->median[0].n, 39);
  EXPECT_EQ(b->median[1].n, 1);
  EXPECT_EQ(b->median_total, r.latency(0)->p50);
  EXPECT_DOUBLE_EQ(b->mean_ps[0], (20 + 39 + 5 + 100 + 30) / 5.0);
  EXPECT_DOUBLE_EQ(std::accumulate(b->mean_ps.begin(), b->mean_ps.end(), 0.0), r.latency(0)->mean_ps);
}

TEST(LatencyRecorder, TheSlowestMessageIsTheEarliestOfTheSlowest) {
  LatencyRecorder r(2, 1, 2);
  EXPECT_FALSE(r.slowest(0));
  r.finished(journey(1, Picos{0}, {5}));
  r.finished(journey(2, Picos{10}, {4, 5}));
  r.finished(journey(3, Picos{20}, {9}));
  r.finished(journey(4, Picos{30}, {1}));
  ASSERT_TRUE(r.slowest(0));
  EXPECT_EQ(r.slowest(0)->id, 2U) << "also beyond the capacity of the sample";
  EXPECT_EQ(r.slowest(0)->start.n, 10);
  EXPECT_EQ(r.slowest(0)->total(), r.latency(0)->max);
  EXPECT_FALSE(r.slowest(1));
}

TEST(LatencyRecorder, StagesLongerThanFourMillisecondsStayExact) {
  LatencyRecorder r(1, 1);
  r.finished(journey(1, Picos{0}, {5'000'000'000'123, 7}));
  const auto b = r.breakdown(0);
  EXPECT_EQ(b->median[0].n, 5'000'000'000'123);
  EXPECT_EQ(b->median[1].n, 7);
  EXPECT_EQ(b->median_total.n, 5'000'000'000'130);
}

TEST(LatencyRecorder, ManyBlocksAreExactUpToTheCapacity) {
  LatencyRecorder r(1, 1, 20'000);
  for (int i = 1; i <= 20'000; ++i) r.finished(journey(static_cast<sim::MsgId>(i), Picos{0}, {(i * 7919) % 20'001}));
  EXPECT_TRUE(r.exact(0));
  EXPECT_EQ(r.latency(0)->p50.n, 10'000);
  EXPECT_EQ(r.latency(0)->p99.n, 19'800);
  EXPECT_EQ(r.latency(0)->p999.n, 19'980);
}

TEST(LatencyRecorder, BeyondTheCapacityASampleThatDependsOnTheSeedAlone) {
  const auto fill = [](std::uint64_t seed) {
    LatencyRecorder r(1, seed, 1000);
    for (int i = 1; i <= 100'000; ++i) r.finished(journey(static_cast<sim::MsgId>(i), Picos{0}, {i}));
    return r;
  };
  const LatencyRecorder r = fill(1);
  EXPECT_FALSE(r.exact(0));
  const auto s = r.latency(0);
  EXPECT_EQ(s->count, 100'000u);
  EXPECT_EQ(s->min.n, 1);
  EXPECT_EQ(s->max.n, 100'000);
  EXPECT_DOUBLE_EQ(s->mean_ps, 50'000.5);
  EXPECT_NEAR(static_cast<double>(s->p50.n), 50'000, 6'000);  // four standard errors of a sample of 1000
  EXPECT_EQ(s->p50, fill(1).latency(0)->p50);
  EXPECT_NE(s->p50, fill(2).latency(0)->p50);
  EXPECT_EQ(r.breakdown(0)->median_total, s->p50);
}

}  // namespace
