// SPDX-License-Identifier: Apache-2.0
// Object pools and rings: recycling, leak counts, ownership, FIFO order.
#include "sim/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <set>
#include <string>

#include "sim/rng.h"

namespace sim {
namespace {

struct Counted {
  explicit Counted(int* alive, int v = 0) : alive_count(alive), value(v) { ++*alive_count; }
  Counted(const Counted&) = delete;
  ~Counted() { --*alive_count; }
  int* alive_count;
  int value;
};

TEST(Pool, CountsObjectsThatAreOut) {
  int alive = 0;
  Pool<Counted> pool("thing");
  EXPECT_STREQ(pool.what(), "thing");
  {
    auto a = pool.make(&alive, 1);
    auto b = pool.make(&alive, 2);
    EXPECT_EQ(pool.live(), 2U);
    EXPECT_EQ(alive, 2);
    a = std::move(b);  // the object of a goes back
    EXPECT_EQ(pool.live(), 1U);
    EXPECT_EQ(a->value, 2);
    EXPECT_FALSE(b);
  }
  EXPECT_EQ(pool.live(), 0U);
  EXPECT_EQ(alive, 0);
}

TEST(Pool, ReusesMemoryInsteadOfGrowing) {
  int alive = 0;
  Pool<Counted> pool;
  std::set<const Counted*> places;
  for (int round = 0; round < 1000; ++round) {
    std::vector<Ptr<Counted>> out;
    for (int i = 0; i < 50; ++i) {
      out.push_back(pool.make(&alive, i));
      places.insert(out.back().get());
    }
    for (int i = 0; i < 50; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)]->value, i);
  }
  EXPECT_LE(places.size(), 64U);
}

TEST(Pool, KeepsTheAlignmentOfItsType) {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  Pool<Line> pool;
  std::vector<Ptr<Line>> out;
  for (int i = 0; i < 100; ++i) {
    out.push_back(pool.make());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(out.back().get()) % 64, 0U);
  }
}

TEST(Pools, GivesOnePoolPerTypeAndListsThem) {
  Pools pools;
  auto& ints = pools.of<int>("int");
  auto& texts = pools.of<std::string>("text");
  EXPECT_EQ(&ints, &pools.of<int>("other name"));
  auto leaked = texts.make("leak");
  std::vector<std::pair<std::string, std::size_t>> seen;
  pools.for_each([&](const PoolBase& p) { seen.emplace_back(p.what(), p.live()); });
  EXPECT_EQ(seen, (std::vector<std::pair<std::string, std::size_t>>{{"int", 0}, {"text", 1}}));
}

TEST(Ring, IsAFifoThroughGrowthAndWrapAround) {
  Ring<std::uint64_t> ring;
  std::deque<std::uint64_t> reference;
  Rng rng(11, "ring");
  std::uint64_t next = 0;
  for (int i = 0; i < 100'000; ++i) {
    if (rng.below(100) < (i % 20'000 < 10'000 ? 55U : 45U)) {
      ring.push_back(next);
      reference.push_back(next++);
    } else if (!reference.empty()) {
      ASSERT_EQ(ring.front(), reference.front());
      ASSERT_EQ(ring.pop_front(), reference.front());
      reference.pop_front();
    }
    ASSERT_EQ(ring.size(), reference.size());
    if (!reference.empty()) {
      ASSERT_EQ(ring.back(), reference.back());
      ASSERT_EQ(ring[reference.size() / 2], reference[reference.size() / 2]);
    }
  }
}

TEST(Ring, RefusesToPopWhenEmptyAndReleasesWhatItHeld) {
  int alive = 0;
  Pool<Counted> pool;
  Ring<Ptr<Counted>> ring;
  EXPECT_THROW(ring.pop_front(), SimulatorBug);
  for (int i = 0; i < 20; ++i) ring.push_back(pool.make(&alive, i));
  EXPECT_EQ(ring.pop_front()->value, 0);
  EXPECT_EQ(pool.live(), 19U);
  ring.clear();
  EXPECT_EQ(pool.live(), 0U);
}

}  // namespace
}  // namespace sim
