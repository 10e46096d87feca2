// SPDX-License-Identifier: Apache-2.0
#include "cpu/wc_buffer.h"

#include <gtest/gtest.h>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

struct Arrival {
  sim::Picos t;
  std::uint64_t bus;
  std::size_t n;
  bool operator==(const Arrival&) const = default;
};
void PrintTo(const Arrival& a, std::ostream* out) {
  *out << a.t.n << "ps bus+" << (a.bus - kWindow) << " " << a.n << "B";
}

class WcBuffersTest : public testing::Test {
 protected:
  std::vector<Arrival> arrivals(Machine& m) {
    std::vector<Arrival> out;
    for (const auto& w : m.device.writes) out.push_back({w.t, w.bus, w.bytes.size()});
    return out;
  }
  static void fill(Thread& t, memory::Va at, unsigned words, std::uint64_t first = 0) {
    for (unsigned i = 0; i < words; ++i) t.mmio_store64(at + 8 * i, first + i);
  }
};

TEST_F(WcBuffersTest, FullLineLeavesAsOneWriteOf64Bytes) {
  Machine m;
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    t.set_cause({77, 0});
    fill(t, wc + 0x800, 8, 100);  // the eighth store executes at 8 ns
    EXPECT_EQ(t.now(), 8_ns);
  });
  m.run();
  ASSERT_EQ(arrivals(m), (std::vector<Arrival>{{48_ns, kWindow + 0x800, 64}}));
  std::uint64_t words[8];
  std::memcpy(words, m.device.writes[0].bytes.data(), 64);
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(words[i], 100U + i);
  EXPECT_EQ(m.device.writes[0].cause.msg, 77U);
  EXPECT_EQ(m.counter("cpu0.wc_full"), 1U);
  EXPECT_EQ(m.counter("cpu0.wc_partial"), 0U);
}

TEST_F(WcBuffersTest, LinesLeaveInOrderAtTheLineInterval) {
  auto config = plain_costs();
  config.wc_line_interval = 50_ns;
  Machine m(config);
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    fill(t, wc, 16);
    t.barrier(Barrier::mmio_flush_writes);
    EXPECT_EQ(t.now(), 98_ns);
  });
  m.run();
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{48_ns, kWindow, 64}, {98_ns, kWindow + 64, 64}}));
}

TEST_F(WcBuffersTest, FencedPartialLineLeavesInAlignedPieces) {
  Machine m;
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    for (const unsigned word : {1U, 2U, 3U, 4U, 5U, 6U}) t.mmio_store64(wc + 8 * word, word);
    t.mmio_store32(wc + 60, 9);
    t.barrier(Barrier::mmio_flush_writes);  // at 7 ns
    EXPECT_EQ(t.now(), 47_ns);
  });
  m.run();
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{47_ns, kWindow + 8, 8},
                                               {47_ns, kWindow + 16, 16},
                                               {47_ns, kWindow + 32, 16},
                                               {47_ns, kWindow + 48, 8},
                                               {47_ns, kWindow + 60, 4}}));
  EXPECT_EQ(m.counter("cpu0.wc_fenced"), 1U);
  EXPECT_EQ(m.counter("cpu0.wc_partial"), 1U);
}

TEST_F(WcBuffersTest, HalfALineLeavesAs32Bytes) {
  Machine m;
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    fill(t, wc + 32, 4);
    t.barrier(Barrier::mmio_flush_writes);
  });
  m.run();
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{44_ns, kWindow + 32, 32}}));
}

TEST_F(WcBuffersTest, PartialLineLeavesByItselfAfterTheTimeOut) {
  Machine m;
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    t.mmio_store64(wc, 1);  // at 1 ns
    t.compute(600_ns);
    t.mmio_store64(wc + 8, 2);  // at 602 ns: the time-out starts anew
  });
  EXPECT_EQ(m.run(), sim::Outcome::quiescent);
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{1642_ns, kWindow, 16}}));
  EXPECT_EQ(m.counter("cpu0.wc_timed_out"), 1U);
}

TEST_F(WcBuffersTest, TimeOutIsExactForAThreadThatRunsAhead) {
  Machine m;
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    t.mmio_store64(wc, 1);  // at 1 ns, times out at 1001 ns
    t.compute(5_us);        // the engine's clock still stands at 0
    t.mmio_store64(wc + 8, 2);
    t.barrier(Barrier::mmio_flush_writes);
  });
  m.run();
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{1041_ns, kWindow, 8}, {5042_ns, kWindow + 8, 8}}));
}

TEST_F(WcBuffersTest, LineOpenedFirstIsEvictedWhenAllBuffersAreInUse) {
  Machine m;  // four buffers
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    for (unsigned line = 0; line < 4; ++line) t.mmio_store64(wc + 64 * line, line);
    EXPECT_EQ(t.now(), 4_ns);
    t.mmio_store64(wc + 64 * 4, 4);  // executes at 5 ns, waits until line 0 has left
    EXPECT_EQ(t.now(), 45_ns);
    t.barrier(Barrier::mmio_flush_writes);
    EXPECT_EQ(t.now(), 109_ns);
  });
  m.run();
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{45_ns, kWindow, 8},
                                               {85_ns, kWindow + 64, 8},
                                               {93_ns, kWindow + 128, 8},
                                               {101_ns, kWindow + 192, 8},
                                               {109_ns, kWindow + 256, 8}}));
  EXPECT_EQ(m.counter("cpu0.wc_evicted"), 1U);
}

TEST_F(WcBuffersTest, UncachedStoresLeaveOneByOneInOrder) {
  Machine m;
  const memory::Va uc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::uncached);
  m.program([&](Thread& t) {
    t.mmio_store64(uc + 0x20, 1);  // at 5 ns
    t.mmio_store32(uc + 0x24, 2);
    t.mmio_store64(uc + 0x20, 3);
    EXPECT_EQ(t.now(), 15_ns);
  });
  m.run();
  EXPECT_EQ(arrivals(m),
            (std::vector<Arrival>{{35_ns, kWindow + 0x20, 8}, {43_ns, kWindow + 0x24, 4}, {51_ns, kWindow + 0x20, 8}}));
  EXPECT_EQ(m.device.writes[1].bytes[0], std::byte{2});
  EXPECT_EQ(m.counter("cpu0.mmio_stores"), 3U);
}

TEST_F(WcBuffersTest, X86UncachedStoreIsOrderedWithAllOtherStores) {
  auto config = plain_costs();
  config.store_visible_after = 200_ns;
  Machine m(config);
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  const memory::Va uc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::uncached);
  const memory::Va wc = m.space.map_mmio({kWindow + 4096}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    t.store(p, std::uint64_t{1});  // visible at 201 ns
    t.mmio_store64(wc, 7);         // flushed by the uncached store
    t.mmio_store64(uc, 2);
    t.store(p, std::uint64_t{3});
  });
  std::vector<std::uint64_t> seen;
  m.device.on_write = [&] { seen.push_back(m.device_view(p)); };
  m.run();
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{47_ns, kWindow + 4096, 8}, {201_ns, kWindow, 8}}));
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1}));
}

TEST_F(WcBuffersTest, LoadFromADeviceWaitsForItsRoundTripAndFlushesTheLines) {
  Machine m;
  m.device.answer = 0x1122334455667788;
  const memory::Va uc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::uncached);
  const memory::Va wc = m.space.map_mmio({kWindow + 4096}, 4096, memory::MemoryType::write_combining);
  m.program([&](Thread& t) {
    EXPECT_EQ(t.mmio_load64(uc + 8), 0x1122334455667788U);
    EXPECT_EQ(t.now(), 520_ns);
    t.mmio_store64(wc, 1);  // at 521 ns, leaves at 581 ns because the load comes at 541 ns
    EXPECT_EQ(t.mmio_load32(uc + 4), 0x55667788U);
    EXPECT_EQ(t.now(), 1081_ns);
  });
  m.run();
  ASSERT_EQ(m.device.reads.size(), 2U);
  EXPECT_EQ(m.device.reads[0].t, 20_ns);
  EXPECT_EQ(m.device.reads[0].bus, kWindow + 8);
  EXPECT_EQ(m.device.reads[1].t, 581_ns);
  EXPECT_EQ(arrivals(m), (std::vector<Arrival>{{581_ns, kWindow + 4096, 8}}));
}

TEST_F(WcBuffersTest, MmioAccessOutsideAWindowIsRefused) {
  Machine m;
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(64));
  const memory::Va uc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::uncached);
  m.program([&](Thread& t) {
    EXPECT_THROW(t.mmio_store64(memory::va_of(p), 1), sim::SimulatorBug);
    EXPECT_THROW(t.mmio_store64(uc + 4, 1), sim::SimulatorBug);
    EXPECT_THROW(t.mmio_load64(uc + 4096), sim::SimulatorBug);
    EXPECT_THROW(t.store(reinterpret_cast<int*>(uc.v), 1), sim::SimulatorBug);
  });
  m.run();
}

/// S-BAR-7, both halves: what the device sees of memory when the doorbell arrives, and whether a store after the doorbell
/// is visible before it.
struct Order {
  bool dbr_late = false;       // the doorbell came before the doorbell record
  bool doorbell_late = false;  // a store after the flush was visible before the doorbell
};
Order ring(Machine& m) {
  auto* dbr = static_cast<std::uint32_t*>(m.space.alloc(64, 64));
  auto* next = static_cast<std::uint32_t*>(m.space.alloc(64, 64));
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  Order order;
  m.device.on_write = [&m, &order, dbr, next] {
    order.dbr_late = m.device_view(dbr) == 0;
    order.doorbell_late = m.device_view(next) != 0;
  };
  m.program([&m, dbr, next, wc](Thread& t) {
    t.store(dbr, 1U);
    t.barrier(Barrier::mmio_wc_start);
    t.mmio_store64(wc, 1);
    t.barrier(Barrier::mmio_flush_writes);
    t.store(next, 1U);
  });
  m.run();
  EXPECT_EQ(m.device.writes.size(), 1U);
  return order;
}

TEST_F(WcBuffersTest, WithBothFencesTheDoorbellIsSeenInOrder) {
  auto config = plain_costs();
  config.store_visible_after = 2_us;  // a doorbell record that misses every cache
  Machine m(config);
  const Order order = ring(m);
  EXPECT_FALSE(order.dbr_late);
  EXPECT_FALSE(order.doorbell_late);
}

TEST_F(WcBuffersTest, WithoutTheFirstFenceTheDoorbellMayComeBeforeTheRecord_A_31) {
  auto config = plain_costs();
  config.store_visible_after = 2_us;
  config.omit_barriers = {Barrier::mmio_wc_start};
  Machine m(config);
  EXPECT_TRUE(ring(m).dbr_late);
}

TEST_F(WcBuffersTest, WithoutTheSecondFenceLaterStoresOvertakeTheDoorbell_S_BAR_7) {
  auto config = plain_costs();
  config.omit_barriers = {Barrier::mmio_flush_writes};
  Machine m(config);
  const Order order = ring(m);
  EXPECT_TRUE(order.doorbell_late);
  EXPECT_FALSE(order.dbr_late);
  EXPECT_EQ(m.counter("cpu0.wc_timed_out"), 1U);
}

TEST_F(WcBuffersTest, WeakenedDsbStillOrdersTheRecordBeforeTheDoorbellButDoesNotFlush) {
  auto config = plain_costs(Arch::arm64);
  config.weak_drain_spread = 0_ps;
  config.store_visible_after = 2_us;
  config.weaken_barriers = {Barrier::mmio_wc_start, Barrier::mmio_flush_writes};
  Machine m(config);
  const Order order = ring(m);
  EXPECT_FALSE(order.dbr_late);
  EXPECT_TRUE(order.doorbell_late || m.counter("cpu0.wc_timed_out") == 1U);
}

}  // namespace
}  // namespace cpu
