// SPDX-License-Identifier: Apache-2.0
// Shared byte buffers: size classes, sharing, return to the pool.
#include "sim/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace sim {
namespace {

TEST(BufferPool, ABufferIsSharedUntilItsLastOwnerLetsGo) {
  BufferPool pool;
  BufferRef a = pool.make(100);
  std::memset(a.data(), 0x5a, 100);
  {
    const BufferRef b = a;  // NOLINT(performance-unnecessary-copy-initialization): the copy is the test
    EXPECT_EQ(b.data(), a.data());
    a = BufferRef{};
    EXPECT_EQ(pool.live(), 1U);
    EXPECT_EQ(b.data()[99], std::byte{0x5a});
  }
  EXPECT_EQ(pool.live(), 0U);
}

TEST(BufferPool, SelfAssignmentAndMoveKeepTheBuffer) {
  BufferPool pool;
  BufferRef a = pool.make(64);
  const std::byte* where = a.data();
  BufferRef& alias = a;
  a = alias;
  EXPECT_EQ(a.data(), where);
  BufferRef b = std::move(a);
  EXPECT_EQ(b.data(), where);
  EXPECT_EQ(pool.live(), 1U);
}

TEST(BufferPool, EveryByteOfEverySizeClassIsUsableAndBuffersDoNotOverlap) {
  BufferPool pool;
  for (const std::size_t size : {1UL, 64UL, 65UL, 256UL, 1024UL, 4096UL, 4097UL, 16384UL, 65536UL}) {
    std::vector<BufferRef> held;
    for (unsigned i = 0; i < 40; ++i) {
      held.push_back(pool.make(size));
      std::memset(held.back().data(), static_cast<int>(i), size);
    }
    for (unsigned i = 0; i < 40; ++i) {
      ASSERT_EQ(held[i].data()[0], std::byte(i));
      ASSERT_EQ(held[i].data()[size - 1], std::byte(i));
    }
  }
  EXPECT_EQ(pool.live(), 0U);
  EXPECT_THROW(pool.make(65537), SimulatorBug);
}

TEST(BufferPool, RecyclesInsteadOfGrowing) {
  BufferPool pool;
  std::set<const std::byte*> places;
  for (int i = 0; i < 10'000; ++i) places.insert(pool.make(4096).data());
  EXPECT_EQ(places.size(), 1U);
}

}  // namespace
}  // namespace sim
