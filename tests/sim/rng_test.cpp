// SPDX-License-Identifier: Apache-2.0
// Random streams. The golden numbers come from an independent implementation of PCG32 and FNV-1a, which reproduces the
// published demonstration output of PCG32 (a15c02b7 7b47f409 ba1d3330 …).
#include "sim/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace sim {
namespace {

using Five = std::array<std::uint32_t, 5>;
Five first_five(std::uint64_t seed, std::string_view name) {
  Rng rng(seed, name);
  Five out{};
  for (auto& v : out) v = rng.next();
  return out;
}

TEST(Rng, GivesTheNumbersOfPcg32) {
  EXPECT_EQ(first_five(1, "host0.hca"), (Five{0x300b9324, 0x8d53a86f, 0xe462dbc3, 0xbcad4b1a, 0xc8b5b96c}));
  EXPECT_EQ(first_five(1, "host1.hca"), (Five{0x2b1b414e, 0x8b1f93ef, 0x6589557b, 0xb4b2e5cc, 0xee1755c7}));
  EXPECT_EQ(first_five(2, "host0.hca"), (Five{0x710b20d4, 0x8f885d74, 0x513c2021, 0x345e71b5, 0xee407cb8}));
  EXPECT_EQ(first_five(0, ""), (Five{0x18620110, 0xc4dad47b, 0x3127ec41, 0x85f97ac1, 0xa5c336de}));
}

TEST(Rng, BelowIsUnbiased) {
  Rng rng(5, "below");
  std::array<int, 6> count{};
  constexpr int kDraws = 600'000;
  for (int i = 0; i < kDraws; ++i) ++count.at(rng.below(6));
  for (const int c : count) EXPECT_NEAR(c, kDraws / 6, 5 * std::sqrt(kDraws / 6.0));
  EXPECT_EQ(rng.below(1), 0U);
  // 3 * 2^30 rejects a quarter of the draws; a plain modulo would give the low third twice as often.
  int low = 0;
  for (int i = 0; i < kDraws; ++i) low += rng.below(3U << 30) < (1U << 30) ? 1 : 0;
  EXPECT_NEAR(low, kDraws / 3, 5 * std::sqrt(kDraws / 3.0));
}

TEST(Rng, ChanceKeepsItsProbabilityAndItsEnds) {
  Rng rng(5, "chance");
  int hits = 0;
  for (int i = 0; i < 1'000'000; ++i) hits += rng.chance(0.01) ? 1 : 0;
  EXPECT_NEAR(hits, 10'000, 500);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(rng.chance(0.0));
    EXPECT_TRUE(rng.chance(1.0));
  }
}

}  // namespace
}  // namespace sim
