// SPDX-License-Identifier: Apache-2.0
#include "cpu/store_buffer.h"

#include <gtest/gtest.h>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

TEST(StoreBuffer, StoreBecomesVisibleExactlyAtItsDrainTime) {
  Machine m;
  auto* p = static_cast<std::uint32_t*>(m.space.alloc(64));
  m.program([&](Thread& t) {
    t.compute(100_ns);
    t.store(p, 7U);  // executes at 101 ns
    EXPECT_EQ(t.now(), 101_ns);
  });
  std::vector<std::uint32_t> seen;
  for (const sim::Picos t : {101_ns, 111_ns - 1_ps, 111_ns}) m.at(t, [&] { seen.push_back(m.device_view(p)); });
  m.run();
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 0, 7}));
}

TEST(StoreBuffer, StoresOfTsoBecomeVisibleInProgramOrderOnePerInterval) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  m.program([&](Thread& t) {
    for (std::uint64_t i = 0; i < 16; ++i) t.store(p + 8 * i, i + 1);  // a line each, executed at 1, 2, … ns
  });
  for (std::uint64_t i = 0; i < 16; ++i) {
    const sim::Picos drain = 11_ns + 2_ns * static_cast<std::int64_t>(i);
    m.at(drain - 1_ps, [&, i] { EXPECT_EQ(m.device_view(p + 8 * i), 0U) << i; });
    m.at(drain, [&, i] {
      for (std::uint64_t k = 0; k < 16; ++k) EXPECT_EQ(m.device_view(p + 8 * k), k <= i ? k + 1 : 0) << i << " " << k;
    });
  }
  m.run();
}

TEST(StoreBuffer, FullBufferStallsUntilTheOldestStoreDrains) {
  auto config = plain_costs();
  config.store_buffer_entries = 4;
  config.store_drain_interval = 100_ns;
  Machine m(config);
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  std::vector<sim::Picos> done;
  m.program([&](Thread& t) {
    for (std::uint64_t i = 0; i < 7; ++i) {
      t.store(p + i, i);
      done.push_back(t.now());
    }
  });
  m.run();
  // Drains at 11, 111, 211, …; the fifth store waits for the first drain, the sixth for the second.
  EXPECT_EQ(done, (std::vector<sim::Picos>{1_ns, 2_ns, 3_ns, 4_ns, 11_ns, 111_ns, 211_ns}));
  EXPECT_EQ(m.counter("cpu0.store_stalls"), 3U);
  EXPECT_EQ(m.counter("cpu0.stores"), 7U);
}

TEST(StoreBuffer, ThreadSeesItsOwnPendingStoresOthersDoNot) {
  Machine m;
  auto* p = static_cast<unsigned char*>(m.space.alloc(4096));
  std::memset(p, 0x11, 128);
  m.program([&](Thread& t) {
    const std::uint64_t word = 0xAABBCCDDEEFF0102;
    t.store(p + 60, &word, 8);  // across two lines
    t.store(p + 62, 0x55);
    std::uint8_t got[16];
    t.load(p + 56, got, 16);
    const std::uint8_t want[16] = {0x11, 0x11, 0x11, 0x11, 0x02, 0x01, 0x55, 0xEE,
                                   0xDD, 0xCC, 0xBB, 0xAA, 0x11, 0x11, 0x11, 0x11};
    EXPECT_EQ(std::memcmp(got, want, 16), 0);
    EXPECT_EQ(p[62], 0x11);
  });
  m.program([&](Thread& t) { EXPECT_EQ(t.load(p + 62), 0x11); }, 1);
  m.at(1_us, [&] { EXPECT_EQ(m.device_view(p + 62), 0x55); });
  m.run();
}

TEST(StoreBuffer, StoreAcrossAPageBorderReachesBothFrames) {
  Machine m;
  auto* p = static_cast<unsigned char*>(m.space.alloc(2 * memory::kPageSize));
  m.program([&](Thread& t) {
    std::uint8_t v[64];
    for (unsigned i = 0; i < 64; ++i) v[i] = static_cast<std::uint8_t>(i + 1);
    t.store(p + 4096 - 10, v, 64);
    std::uint8_t back[64];
    t.load(p + 4096 - 10, back, 64);
    EXPECT_EQ(std::memcmp(v, back, 64), 0);
    t.sleep(1_us);
    EXPECT_EQ(p[4095], 10);
    EXPECT_EQ(p[4096], 11);
  });
  m.run();
}

TEST(StoreBuffer, LaterOfTwoCoresStoresWinsWhateverTheOrderOfCommit) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  m.program(
      [&](Thread& t) {
        t.compute(100_ns);
        t.store(p, std::uint64_t{1});
      },
      0);
  m.program(
      [&](Thread& t) {
        t.compute(50_ns);
        t.store(p, std::uint64_t{2});
      },
      1);
  std::uint64_t last = 0;
  m.at(1_us, [&] { last = m.device_view(p); });
  m.run();
  EXPECT_EQ(last, 1U);
}

TEST(StoreBuffer, DeviceWriteComesAfterStoresThatHaveDrained) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  m.program([&](Thread& t) { t.store(p, std::uint64_t{1}); });
  std::uint64_t before = 0, after = 0;
  m.at(50_ns, [&] { m.device_write(p, std::uint64_t{9}); });
  m.at(60_ns, [&] { before = m.device_view(p); });
  m.run();
  after = m.device_view(p);
  EXPECT_EQ(before, 9U);
  EXPECT_EQ(after, 9U);
}

TEST(StoreBuffer, WatchedPageSeesStoresOnTimeEvenIfTheWatchCameLater) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  std::vector<sim::Picos> fired;
  struct Ctx {
    std::vector<sim::Picos>* fired;
    sim::Context* context;
  } ctx{&fired, &m.context};
  const auto on = [](void* c, std::uint64_t, sim::trace::Cause) {
    static_cast<Ctx*>(c)->fired->push_back(static_cast<Ctx*>(c)->context->now());
  };
  m.program([&](Thread& t) {
    t.store(p, std::uint64_t{1});  // visible at 11 ns
    t.compute(500_ns);
    t.store(p, std::uint64_t{2});  // visible at 512 ns
  });
  m.at(5_ns, [&] { m.host.watch(m.phys(p), 8, on, &ctx); });
  m.run();
  EXPECT_EQ(fired, (std::vector<sim::Picos>{11_ns, 512_ns}));
}

TEST(StoreBuffer, FreeingMemoryKeepsPendingStoresAwayFromItsNextUser) {
  Machine m;
  m.program([&](Thread& t) {
    auto* small = static_cast<std::uint64_t*>(t.space().alloc(64));
    t.store(small, ~0ULL);
    t.space().free(small);
    auto* again = static_cast<std::uint64_t*>(t.space().alloc(64));
    EXPECT_EQ(again, small);
    auto* big = static_cast<std::uint64_t*>(t.space().alloc(8192));
    t.store(big, ~0ULL);
    t.space().free(big);
    t.sleep(1_us);
    EXPECT_EQ(*again, 0U);
  });
  m.run();
}

/// Data, then flag, to two lines; counts the runs in which a device sees the flag first.
unsigned overtakings(Machine& m, bool with_barrier, unsigned tries) {
  unsigned count = 0;
  auto* data = static_cast<std::uint64_t*>(m.space.alloc(4096));
  auto* flag = static_cast<std::uint64_t*>(m.space.alloc(4096));
  struct Ctx {
    Machine* m;
    std::uint64_t *data, *flag;
    unsigned* count;
  } ctx{&m, data, flag, &count};
  m.host.watch(
      m.phys(flag), 8,
      [](void* c, std::uint64_t, sim::trace::Cause) {
        auto* x = static_cast<Ctx*>(c);
        if (x->m->device_view(x->data) != x->m->device_view(x->flag)) ++*x->count;
      },
      &ctx);
  m.program([&, with_barrier, tries](Thread& t) {
    for (std::uint64_t i = 1; i <= tries; ++i) {
      t.store(data, i);
      if (with_barrier) t.barrier(Barrier::udma_to_device);
      t.store(flag, i);
      t.sleep(1_us);
    }
  });
  m.run();
  return count;
}

TEST(StoreBuffer, Arm64MayReorderStoresToDifferentLines_S_BAR_7) {
  Machine m(plain_costs(Arch::arm64));
  const unsigned n = overtakings(m, false, 200);
  EXPECT_GT(n, 20U);
  EXPECT_LT(n, 180U);
}

TEST(StoreBuffer, DmbPreventsReordering) {
  Machine m(plain_costs(Arch::arm64));
  EXPECT_EQ(overtakings(m, true, 200), 0U);
}

TEST(StoreBuffer, OmittedDmbReordersAgain) {
  auto config = plain_costs(Arch::arm64);
  config.omit_barriers = {Barrier::udma_to_device};
  Machine m(config);
  EXPECT_GT(overtakings(m, true, 200), 20U);
}

TEST(StoreBuffer, X86NeedsNoBarrierBetweenStores) {
  Machine m(plain_costs(Arch::x86_64));
  EXPECT_EQ(overtakings(m, false, 200), 0U);
}

TEST(StoreBuffer, Arm64KeepsTheOrderOfStoresToOneLine) {
  Machine m(plain_costs(Arch::arm64));
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64, 64));
  m.program([&](Thread& t) {
    for (std::uint64_t i = 1; i <= 300; ++i) {
      t.store(p, i);
      t.store(p + 1, i);
      if (i % 7 == 0) t.compute(sim::Picos{static_cast<std::int64_t>(i) * 100});
      EXPECT_EQ(t.load(p), i);
    }
  });
  std::uint64_t last = 0;
  for (int i = 0; i < 4000; ++i) {
    m.at(250_ps * i, [&] {
      const std::uint64_t second = m.device_view(p + 1), first = m.device_view(p);
      EXPECT_GE(first, second);
      EXPECT_GE(first, last);
      last = first;
    });
  }
  m.at(100_us, [&] { EXPECT_EQ(m.device_view(p), 300U); });
  m.run();
}

TEST(StoreBuffer, SameSeedGivesTheSameWeakOrderAndAnotherSeedAnother) {
  const auto trail = [](std::uint64_t seed) {
    const sim::Context c(seed);
    sim::Rng r = c.rng("host0.cpu0.store_buffer");
    return std::vector<std::uint32_t>{r.below(50'001), r.below(50'001), r.below(50'001)};
  };
  EXPECT_EQ(trail(1), trail(1));
  EXPECT_NE(trail(1), trail(2));
}

}  // namespace
}  // namespace cpu
