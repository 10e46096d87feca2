// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "sim/rng.h"
#include "sim/trace/sorting_window.h"

namespace sim::trace {
namespace {

using testing::ElementsAre;

struct Out {
  std::vector<int> values;
  void operator()(int v) { values.push_back(v); }
};

TEST(SortingWindow, TheEarliestLeaveFirstAndOneTimeByOrder) {
  SortingWindow<int> window(100);
  Out out;
  window.add(7_ps, 2, 72, out);
  window.add(9_ps, 1, 91, out);
  window.add(7_ps, 1, 71, out);
  window.add(3_ps, 9, 39, out);
  EXPECT_THAT(out.values, ElementsAre()) << "held back";
  window.drain(out);
  EXPECT_THAT(out.values, ElementsAre(39, 71, 72, 91));
  window.drain(out);
  EXPECT_EQ(out.values.size(), 4u);
}

TEST(SortingWindow, SortsWhatComesAtMostItsSizeTooLate) {
  constexpr int kSize = 64, kRecords = 10'000;
  SortingWindow<int> window(kSize);
  Rng rng(1, "window");
  Out out;
  for (int i = 0; i < kRecords; ++i) {
    // Every record stands at most kSize places behind where it belongs.
    const int t = i - static_cast<int>(rng.below(kSize));
    window.add(Picos{t + kSize}, static_cast<std::uint64_t>(i), t, out);
    EXPECT_LE(i + 1 - static_cast<int>(out.values.size()), 2 * kSize) << "memory is bounded";
  }
  EXPECT_GT(out.values.size(), static_cast<std::size_t>(kRecords - 2 * kSize));
  window.drain(out);
  EXPECT_EQ(out.values.size(), static_cast<std::size_t>(kRecords));
  EXPECT_TRUE(std::ranges::is_sorted(out.values));
}

TEST(SortingWindow, WhatComesLaterThanThatLeavesOutOfOrder) {
  SortingWindow<int> window(2);
  Out out;
  for (const int t : {10, 20, 30, 40}) window.add(Picos{t}, static_cast<std::uint64_t>(t), t, out);
  EXPECT_THAT(out.values, ElementsAre(10, 20));
  window.add(5_ps, 50, 5, out);
  window.drain(out);
  EXPECT_THAT(out.values, ElementsAre(10, 20, 5, 30, 40));
}

}  // namespace
}  // namespace sim::trace
