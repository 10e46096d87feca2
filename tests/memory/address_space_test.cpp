// SPDX-License-Identifier: Apache-2.0
#include "memory/address_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace memory {
namespace {
using namespace sim::literals;
constexpr std::uint64_t kBase = 0x2000'0000'0000, kStep = 64ULL << 30;
constexpr std::uint64_t kMiB = 1 << 20;

class AddressSpaceTest : public testing::Test {
 protected:
  sim::Context context;
  HostMemory host{"memory", context, {}, 0};
};

TEST_F(AddressSpaceTest, PointerIsTheVirtualAddressAndFramesDiffer) {
  AddressSpace space(host, kBase);
  auto* p = static_cast<char*>(space.alloc(3 * kPageSize));
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(p), kBase);
  std::strcpy(p + kPageSize, "PING");
  const auto t = space.translate(va_of(p + kPageSize));
  ASSERT_TRUE(t);
  EXPECT_FALSE(t->mmio);
  EXPECT_NE(t->phys.v, va_of(p + kPageSize).v);
  EXPECT_EQ(t->phys, space.phys_of(va_of(p + kPageSize)));
  std::array<std::byte, 4> seen{};
  host.read(t->phys, seen);
  EXPECT_EQ(std::memcmp(seen.data(), "PING", 4), 0);
  host.write(t->phys + 1, std::as_bytes(std::span("O", 1)));
  EXPECT_STREQ(p + kPageSize, "PONG");
}

TEST_F(AddressSpaceTest, AddressesAreTheSameInEverySpace) {
  AddressSpace a(host, kBase), b(host, kBase + kStep);
  for (const std::size_t n : {8U, 100U, 4096U, 10'000U, 8U, 2048U, 1U}) {
    const auto x = reinterpret_cast<std::uint64_t>(a.alloc(n)), y = reinterpret_cast<std::uint64_t>(b.alloc(n));
    EXPECT_EQ(x - kBase, y - kBase - kStep);
  }
  EXPECT_THROW(AddressSpace(host, kBase), std::runtime_error);
}

TEST_F(AddressSpaceTest, AllocationsAreAlignedZeroedAndApart) {
  AddressSpace space(host, kBase);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const std::size_t align : {16U, 64U, 256U, 2048U, 4096U, 65536U}) {
    for (const std::size_t n : {1U, 24U, 64U, 65U, 2000U, 2049U, 4096U, 9000U}) {
      auto* p = static_cast<unsigned char*>(space.alloc(n, align));
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uint64_t>(p) % align, 0U);
      if (n >= kPageSize) {
        EXPECT_EQ(reinterpret_cast<std::uint64_t>(p) % kPageSize, 0U);
      }
      EXPECT_EQ(space.size_of(p), n);
      EXPECT_EQ(std::count(p, p + n, 0), static_cast<std::ptrdiff_t>(n));
      std::memset(p, 0xAB, n);
      ranges.emplace_back(reinterpret_cast<std::uint64_t>(p), reinterpret_cast<std::uint64_t>(p) + n);
    }
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) EXPECT_LE(ranges[i - 1].second, ranges[i].first);
}

TEST_F(AddressSpaceTest, FreedMemoryComesBackZeroed) {
  AddressSpace space(host, kBase);
  for (const std::size_t n : {48U, 3 * 4096U}) {
    auto* p = static_cast<unsigned char*>(space.alloc(n));
    std::memset(p, 0xAB, n);
    space.free(p);
    EXPECT_EQ(space.size_of(p), 0U);
    auto* q = static_cast<unsigned char*>(space.alloc(n));
    EXPECT_EQ(q, p);
    EXPECT_EQ(std::count(q, q + n, 0), static_cast<std::ptrdiff_t>(n));
  }
}

TEST_F(AddressSpaceTest, WrongFreeIsReported) {
  AddressSpace space(host, kBase);
  auto* p = static_cast<std::byte*>(space.alloc(100));
  auto* big = static_cast<std::byte*>(space.alloc(10'000));
  int local = 0;
  space.free(nullptr);
  EXPECT_THROW(space.free(&local), std::invalid_argument);
  EXPECT_THROW(space.free(p + 1), std::invalid_argument);
  EXPECT_THROW(space.free(big + 4096), std::invalid_argument);
  space.free(p);
  EXPECT_THROW(space.free(p), std::invalid_argument);
  space.free(big);
  EXPECT_THROW(space.free(big), std::invalid_argument);
  EXPECT_EQ(space.size_of(&local), 0U);
}

TEST_F(AddressSpaceTest, ExhaustionGivesNullAndLosesNothing) {
  AddressSpace space(host, kBase, kMiB * 2);
  EXPECT_EQ(space.alloc(kMiB * 3), nullptr);
  void* const all = space.alloc(kMiB * 2);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(space.alloc(16), nullptr);
  space.free(all);
  EXPECT_NE(space.alloc(kMiB * 2), nullptr);
}

TEST_F(AddressSpaceTest, FullHostMemoryGivesNull) {
  MemoryConfig small;
  small.size = 1_MiB;
  HostMemory tight("tight", context, small, 1);
  AddressSpace space(tight, kBase);
  EXPECT_EQ(space.alloc(kMiB * 2), nullptr);
  EXPECT_NE(space.alloc(kMiB), nullptr);
  EXPECT_EQ(space.alloc(1), nullptr);
}

TEST_F(AddressSpaceTest, FreedNeighboursMerge) {
  AddressSpace space(host, kBase, kMiB * 2);
  void* part[4];
  for (void*& p : part) p = space.alloc(512 << 10);
  space.free(part[1]);
  space.free(part[3]);
  EXPECT_EQ(space.alloc(1 << 20), nullptr);
  space.free(part[2]);
  EXPECT_EQ(space.alloc(1536 << 10), part[1]);
}

TEST_F(AddressSpaceTest, PinsNestAndListFramesInOrder) {
  AddressSpace space(host, kBase);
  auto* p = static_cast<std::byte*>(space.alloc(4 * kPageSize));
  const auto all = space.pin(va_of(p), 4 * kPageSize);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ((*all)[i], space.phys_of(va_of(p + i * kPageSize)));
  const auto middle = space.pin(va_of(p + kPageSize + 100), kPageSize);  // straddles pages 1 and 2
  ASSERT_TRUE(middle);
  EXPECT_EQ(*middle, (std::vector<Phys>{(*all)[1], (*all)[2]}));
  EXPECT_EQ(space.pinned_pages(), 4U);
  space.unpin(va_of(p), 4 * kPageSize);
  EXPECT_EQ(space.pinned_pages(), 2U);
  space.unpin(va_of(p + kPageSize + 100), kPageSize);
  EXPECT_EQ(space.pinned_pages(), 0U);
  EXPECT_THROW(space.unpin(va_of(p), 1), sim::SimulatorBug);
}

TEST_F(AddressSpaceTest, PinOfUnmappedOrDeviceMemoryFailsWithoutEffect) {
  AddressSpace space(host, kBase);
  auto* p = static_cast<std::byte*>(space.alloc(2 * kPageSize));
  EXPECT_FALSE(space.pin(va_of(p), 3 * kPageSize));
  EXPECT_FALSE(space.pin({0x1000}, 8));
  EXPECT_FALSE(space.pin(va_of(p), ~0ULL));
  EXPECT_FALSE(space.pin(space.map_mmio({0xE000'0000}, 4096, MemoryType::uncached), 8));
  EXPECT_EQ(space.pinned_pages(), 0U);
  EXPECT_TRUE(space.pin(va_of(p), 0)->empty());
}

TEST_F(AddressSpaceTest, MemoryFreedWhilePinnedKeepsItsFramesUntilTheLastUnpin) {
  AddressSpace space(host, kBase);
  void* const p = space.alloc(2 * kPageSize);
  const auto frames = space.pin(va_of(p), 2 * kPageSize);
  space.free(p);
  EXPECT_TRUE(host.contains((*frames)[0], kPageSize));
  EXPECT_NE(space.alloc(2 * kPageSize), p);
  EXPECT_FALSE(space.pin(va_of(p), 8));
  space.unpin(va_of(p), 2 * kPageSize);
  EXPECT_FALSE(host.contains((*frames)[0], 1));
  EXPECT_EQ(space.alloc(2 * kPageSize), p);
}

TEST_F(AddressSpaceTest, OneDeviceWindowMayBeMappedTwice) {
  AddressSpace space(host, kBase);
  const Va wc = space.map_mmio({0xE000'1000}, 2 * kPageSize, MemoryType::write_combining);
  const Va uc = space.map_mmio({0xE000'1000}, kPageSize, MemoryType::uncached);
  EXPECT_NE(wc, uc);
  const auto a = space.translate(wc + 0x1808), b = space.translate(uc + 0x808);
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(a->mmio && b->mmio);
  EXPECT_EQ(a->phys.v, 0xE000'2808U);
  EXPECT_EQ(b->phys.v, 0xE000'1808U);
  EXPECT_EQ(a->type, MemoryType::write_combining);
  EXPECT_EQ(b->type, MemoryType::uncached);
  space.unmap_mmio(wc);
  EXPECT_FALSE(space.translate(wc));
  EXPECT_TRUE(space.translate(uc));
  EXPECT_EQ(space.map_mmio({0xD000'0000}, kPageSize, MemoryType::uncached), wc);
  EXPECT_THROW(space.unmap_mmio(wc + kPageSize), sim::SimulatorBug);
}

TEST_F(AddressSpaceTest, PlainAccessToADeviceWindowFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  AddressSpace space(host, kBase);
  const Va at = space.map_mmio({0xE000'0000}, kPageSize, MemoryType::uncached);
  EXPECT_DEATH(*reinterpret_cast<volatile int*>(at.v) = 1, "");
}

TEST_F(AddressSpaceTest, DestructorReleasesEverything) {
  {
    AddressSpace space(host, kBase);
    space.alloc(100);
    void* const p = space.alloc(5 * kPageSize);
    space.pin(va_of(p), 5 * kPageSize);
    space.free(p);
    EXPECT_EQ(host.frames_in_use(), 9U);  // a block of slots and the pinned pages
  }
  EXPECT_EQ(host.frames_in_use(), 0U);
  AddressSpace again(host, kBase);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(again.alloc(1)), kBase);
}

}  // namespace
}  // namespace memory
