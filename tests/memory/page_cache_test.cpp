// SPDX-License-Identifier: Apache-2.0
#include "memory/page_cache.h"

#include <gtest/gtest.h>

namespace memory {
namespace {

TEST(PageCache, EvictsTheLeastRecentlyUsedPageOfTheSet) {
  PageCache cache(sim::Bytes{4 * 4096}, 2);  // two sets of two ways; even pages share set 0
  ASSERT_EQ(cache.sets(), 2U);
  const auto a = cache.insert(0), b = cache.insert(2), odd = cache.insert(1);
  EXPECT_TRUE(cache.touch(0, a));  // now page 2 is the oldest of set 0
  const auto c = cache.insert(4);
  EXPECT_TRUE(cache.holds(0, a));
  EXPECT_FALSE(cache.holds(2, b));
  EXPECT_TRUE(cache.holds(4, c));
  EXPECT_TRUE(cache.holds(1, odd));
}

TEST(PageCache, DroppedPageIsReplacedFirst) {
  PageCache cache(sim::Bytes{2 * 4096}, 2);
  const auto a = cache.insert(7), b = cache.insert(8);
  cache.drop(8, b);
  EXPECT_FALSE(cache.holds(8, b));
  cache.insert(9);
  EXPECT_TRUE(cache.holds(7, a));
}

TEST(PageCache, IsAtLeastOnePageAndNeverLargerThanItsCapacity) {
  EXPECT_EQ(PageCache(sim::Bytes{100}, 16).ways(), 1U);
  PageCache three(sim::Bytes{3 * 4096}, 16);
  EXPECT_EQ(three.ways() * three.sets(), 3U);
}

}  // namespace
}  // namespace memory
