// SPDX-License-Identifier: Apache-2.0
#include "sim/jitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sim {
namespace {

std::vector<std::int64_t> draws(Jitter& j, JitterPlace p, std::int64_t lane, int n) {
  std::vector<std::int64_t> out;
  for (int i = 0; i < n; ++i) out.push_back(j.draw(p, lane).n);
  return out;
}

Jitter jitter(std::uint64_t seed, std::int64_t most) {
  Jitter j(seed);
  JitterConfig c;
  c.step = c.mmio = Picos{most};
  j.configure(c);
  return j;
}

TEST(Jitter, IsZeroUnlessAskedFor) {
  Jitter off(1), some = jitter(1, 1000);
  EXPECT_EQ(off.draw(JitterPlace::step, 0), Picos{0});
  EXPECT_EQ(some.draw(JitterPlace::wake_up, 0), Picos{0});
}

TEST(Jitter, CoversItsBounds) {
  Jitter j = jitter(1, 3);
  std::vector<std::int64_t> seen = draws(j, JitterPlace::step, 0, 1000);
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(Jitter, FollowsTheSeedAndNothingElse) {
  Jitter a = jitter(7, 1'000'000), b = jitter(7, 1'000'000), c = jitter(8, 1'000'000);
  draws(b, JitterPlace::mmio, 0, 5);
  draws(b, JitterPlace::step, 1, 5);
  const auto of_a = draws(a, JitterPlace::step, 0, 20);
  EXPECT_EQ(of_a, draws(b, JitterPlace::step, 0, 20)) << "other places and lanes have their own streams";
  EXPECT_NE(of_a, draws(c, JitterPlace::step, 0, 20));
  EXPECT_NE(of_a, draws(a, JitterPlace::step, 1, 20));
}

}  // namespace
}  // namespace sim
