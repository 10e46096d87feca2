// SPDX-License-Identifier: Apache-2.0
// The state machine alone: what is measured, how measurements are compared, and where the next step leads.
#include "kernel/core/dim.h"

#include <gtest/gtest.h>

namespace kernel {
namespace {

using Tune = Dim::Tune;
constexpr sim::Picos us(std::int64_t n) { return {n * 1'000'000}; }

/// `events` events, `apart` from each other, with `completions` each. True if the last asked for another profile.
bool feed(Dim& dim, sim::Picos& now, std::uint64_t events, sim::Picos apart, std::uint64_t completions) {
  bool asked = false;
  for (std::uint64_t i = 0; i < events; ++i) {
    now += apart;
    asked = dim.event(now, completions);
  }
  return asked;
}

TEST(Dim, ProfilesAreThoseOfLinux) {
  Dim dim;
  EXPECT_EQ(dim.index(), 0u);
  EXPECT_EQ(dim.profile().usec, 1);
  EXPECT_EQ(dim.profile().comps, 1);
  EXPECT_EQ(kDimProfiles[5].usec, 16);
  EXPECT_EQ(kDimProfiles[5].comps, 8);
  EXPECT_EQ(kDimProfiles.back().usec, 32);
  EXPECT_EQ(kDimProfiles.back().comps, 32);
}

TEST(Dim, AMeasurementIsSixtyFourEvents) {
  Dim dim;
  sim::Picos now{0};
  feed(dim, now, 1, us(10), 1);  // begins
  feed(dim, now, 63, us(10), 3);
  EXPECT_EQ(dim.last().cpms, 0);
  feed(dim, now, 1, us(10), 3);
  EXPECT_EQ(dim.last().cpms, 300);  // 192 completions in 640 us
  EXPECT_EQ(dim.last().cpe_ratio, 300);
}

TEST(Dim, RatesAreRoundedAsInLinux) {
  Dim dim;
  sim::Picos now{0};
  feed(dim, now, 65, us(7), 1);
  // 448 us: 64000 / 448 = 142.86 completions and as many events per ms.
  EXPECT_EQ(dim.last().cpms, 143);
  EXPECT_EQ(dim.last().cpe_ratio, 100);
}

TEST(Dim, ASteadyRateChangesNothing) {
  Dim dim;
  sim::Picos now{0};
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(feed(dim, now, 64, us(10), 2));
  EXPECT_EQ(dim.index(), 0u);
}

TEST(Dim, AHigherRateIsFollowedAndNothingIsMeasuredUntilItIsApplied) {
  Dim dim;
  sim::Picos now{0};
  feed(dim, now, 65, us(10), 1);
  EXPECT_TRUE(feed(dim, now, 64, us(5), 1));
  EXPECT_EQ(dim.index(), 1u);
  EXPECT_EQ(dim.state(), Dim::State::apply_new_profile);
  EXPECT_FALSE(feed(dim, now, 200, us(1), 1));
  EXPECT_EQ(dim.index(), 1u);
  dim.applied();
  EXPECT_EQ(dim.state(), Dim::State::start_measure);
  EXPECT_TRUE(feed(dim, now, 65, us(1), 1));
  EXPECT_EQ(dim.index(), 2u);
}

TEST(Dim, ATenthIsNoDifference) {
  Dim dim;
  dim.decide({1000, 100});
  EXPECT_FALSE(dim.decide({1109, 100}));  // 10.9 %, of which the integer part counts
  EXPECT_FALSE(dim.decide({1000, 110}));
  EXPECT_TRUE(dim.decide({1110, 110}));
  EXPECT_EQ(dim.index(), 1u);
}

TEST(Dim, WithTheSameRateMoreCompletionsPerEventAreBetter) {
  Dim dim;
  dim.decide({1000, 100});
  EXPECT_TRUE(dim.decide({1000, 150}));
  EXPECT_TRUE(dim.decide({1000, 200}));
  EXPECT_EQ(dim.index(), 2u);
  EXPECT_TRUE(dim.decide({1000, 150}));  // worse: turns round and goes left
  EXPECT_EQ(dim.index(), 1u);
  EXPECT_EQ(dim.tune(), Tune::going_left);
}

TEST(Dim, AtTheEndsItTurnsRound) {
  Dim dim;
  std::int64_t rate = 1000;
  dim.decide({rate, 100});
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(dim.decide({rate *= 2, 100}));
  EXPECT_EQ(dim.index(), 8u);
  EXPECT_FALSE(dim.decide({rate *= 2, 100}));
  EXPECT_EQ(dim.index(), 8u);
  EXPECT_EQ(dim.tune(), Tune::going_left);
  EXPECT_TRUE(dim.decide({rate *= 2, 100}));
  EXPECT_EQ(dim.index(), 7u);
}

TEST(Dim, UnchangedRatesWithFewCompletionsPerEventGoBackToTheShallowestProfile) {
  Dim dim;
  dim.decide({1000, 100});
  dim.decide({2000, 100});
  dim.decide({4000, 100});
  EXPECT_EQ(dim.index(), 2u);
  EXPECT_TRUE(dim.decide({4000, 100}));  // 100 <= 50 * 2
  EXPECT_EQ(dim.index(), 0u);
  dim.decide({8000, 101});
  EXPECT_EQ(dim.index(), 1u);
  EXPECT_FALSE(dim.decide({8000, 101}));  // 101 > 50
  EXPECT_EQ(dim.index(), 1u);
}

}  // namespace
}  // namespace kernel
