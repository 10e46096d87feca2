// SPDX-License-Identifier: Apache-2.0
// Translation with real page tables in host memory: exact times of hits, misses and walks, and what faults.
#include "iommu/iommu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/engine.h"

namespace {

using namespace sim::literals;
using iommu::FaultReason;
using iommu::kPteLarge;
using iommu::kPteRead;
using iommu::kPteWrite;
using memory::Iova;
using memory::Phys;
using sim::Picos;

constexpr std::uint16_t kDevice = 0x3b00;
constexpr std::uint64_t kRw = kPteRead | kPteWrite;

struct Drain final : pcie::DmaDrain {
  sim::Picos drained(std::uint16_t) const override { return at; }
  sim::Picos at{0};
};

struct Bench {
  explicit Bench(iommu::IommuConfig c = {}, bool with_drain = false, memory::MemoryConfig m = {})
      : config(c),
        engine("engine", context.scheduler, sim::EngineMode::run_ahead),
        memory("memory", context, m, 0),
        dut("iommu", context, config, memory, 0, "host0.iommu") {
    if (with_drain) dut.drain.bind(drain);
    ram = static_cast<std::byte*>(std::aligned_alloc(4096, kPages * 4096));
    base = memory.map_frames(ram, kPages, true).front();
    root = new_table();
    if (config.mode == iommu::Mode::translated) dut.set_root(kDevice, root);
    engine.run();
  }
  ~Bench() { std::free(ram); }

  /// Table frames stay out of the last-level cache, so that each access costs dram_latency.
  Phys new_table() { return base + 4096 * next_frame++; }
  std::uint64_t entry(Phys table, Iova at, unsigned level) {
    std::uint64_t v = 0;
    std::memcpy(&v, memory.raw(table + 8ULL * iommu::table_index(at, level)), 8);
    return v;
  }
  void set_entry(Phys table, Iova at, unsigned level, std::uint64_t v) {
    std::memcpy(memory.raw(table + 8ULL * iommu::table_index(at, level)), &v, 8);
  }
  /// Maps one page by an entry of `leaf_level` (0: 4 KiB, 1: 2 MiB), with tables on the way.
  void map(Iova at, Phys to, std::uint64_t permissions = kRw, unsigned leaf_level = 0, std::uint64_t upper = kRw) {
    Phys table = root;
    for (unsigned level = iommu::kLevels - 1; level > leaf_level; --level) {
      std::uint64_t e = entry(table, at, level);
      if (e == 0) set_entry(table, at, level, e = new_table().v | upper);
      table = {e & iommu::kPteAddress};
    }
    set_entry(table, at, leaf_level, to.v | permissions | (leaf_level == 1 ? kPteLarge : 0));
  }
  pcie::DmaTranslation ask(Iova at, bool write = false) { return dut.translate(kDevice, at, 1, write, {}); }
  void pass(Picos d) { context.scheduler.advance_to(context.now() + d); }
  Picos walk(int accesses) const { return accesses * (config.walk_access_latency + memory.config().dram_latency); }
  std::uint64_t count(const std::string& name) { return context.stats.counter("host0.iommu." + name).value; }

  static constexpr std::size_t kPages = 512;
  const iommu::IommuConfig config;
  sim::Context context;
  sim::Engine engine;
  memory::HostMemory memory;
  iommu::Iommu dut;
  Drain drain;
  std::byte* ram = nullptr;
  Phys base{}, root{};
  std::uint64_t next_frame = 0;
};

iommu::IommuConfig without_walk_cache() {
  iommu::IommuConfig c;
  c.walk_cache_entries = 0;
  return c;
}

TEST(Iommu, OffIsFree) {
  iommu::IommuConfig c;
  c.mode = iommu::Mode::off;
  {
    Bench b(c);
    EXPECT_TRUE(b.dut.passthrough());
    const auto t = b.ask({0x1234'5678});
    EXPECT_EQ(t.phys, Phys{0x1234'5678});
    EXPECT_EQ(t.ready, b.context.now());
  }
}

TEST(Iommu, PassthroughCostsItsLatency) {
  iommu::IommuConfig c;
  c.mode = iommu::Mode::passthrough;
  Bench b(c);
  EXPECT_TRUE(b.dut.passthrough());
  const auto t = b.ask({0x1234'5678});
  EXPECT_EQ(t.phys, Phys{0x1234'5678});
  EXPECT_EQ(t.ready, b.context.now() + c.passthrough_latency);
}

TEST(Iommu, MissWalksFourLevelsAndHitCostsTheLookUp) {
  Bench b(without_walk_cache());
  EXPECT_FALSE(b.dut.passthrough());
  const Iova at{0x0000'7654'3210'F000};
  b.map(at, b.base + 0x5000);
  const auto miss = b.ask(at + 0x123);
  EXPECT_EQ(miss.phys, b.base + 0x5123);
  EXPECT_EQ(miss.ready, b.config.hit_latency + b.walk(4));
  b.pass(10_us);
  const auto hit = b.ask(at + 0x456);
  EXPECT_EQ(hit.phys, b.base + 0x5456);
  EXPECT_EQ(hit.ready - b.context.now(), b.config.hit_latency);
  EXPECT_EQ(b.count("iotlb_misses"), 1U);
  EXPECT_EQ(b.count("iotlb_hits"), 1U);
  EXPECT_EQ(b.count("walk_accesses"), 4U);
  EXPECT_EQ(b.context.stats.busy("host0.iommu.walkers", 6).busy, b.walk(4));
}

TEST(Iommu, WalkCacheLeavesOneAccessToANeighbourPage) {
  Bench b;
  b.map({0x10'0000'0000}, b.base);
  b.map({0x10'0000'1000}, b.base + 0x1000);
  b.map({0x10'0020'0000}, b.base + 0x2000);  // next leaf table
  EXPECT_EQ(b.ask({0x10'0000'0000}).ready, b.config.hit_latency + b.walk(4));
  b.pass(10_us);
  EXPECT_EQ(b.ask({0x10'0000'1000}).ready - b.context.now(), b.config.hit_latency + b.walk(1));
  b.pass(10_us);
  EXPECT_EQ(b.ask({0x10'0020'0000}).ready - b.context.now(), b.config.hit_latency + b.walk(2));
}

TEST(Iommu, MissesToOnePageShareAWalk) {
  Bench b;
  b.map({0x1000}, b.base);
  const auto first = b.ask({0x1000});
  b.pass(100_ns);
  const auto second = b.ask({0x1800});
  EXPECT_EQ(second.ready, first.ready);
  EXPECT_EQ(b.count("walks_shared"), 1U);
  EXPECT_EQ(b.count("iotlb_misses"), 1U);
  b.pass(first.ready - b.context.now() - 1_ns);
  EXPECT_EQ(b.ask({0x1800}).ready, first.ready - 1_ns + b.config.hit_latency)
      << "1 ns before the end the look-up is the longer";
}

TEST(Iommu, LaterMissesWaitForAFreeWalker) {
  auto c = without_walk_cache();
  c.walks_in_flight = 2;
  Bench b(c);
  for (std::uint64_t i = 0; i < 5; ++i) b.map({0x1000 * i}, b.base + 0x1000 * i);
  const Picos start = b.config.hit_latency;
  for (std::uint64_t i = 0; i < 5; ++i)
    EXPECT_EQ(b.ask({0x1000 * i}).ready, start + static_cast<std::int64_t>(i / 2 + 1) * b.walk(4)) << i;
}

TEST(Iommu, LeastRecentlyUsedTranslationOfASetIsReplaced) {
  iommu::IommuConfig c;
  c.iotlb_entries = 8;
  c.iotlb_ways = 2;  // 4 sets: pages 0, 4, 8 share one
  Bench b(c);
  for (std::uint64_t p : {0U, 1U, 4U, 8U}) b.map({0x1000 * p}, b.base + 0x1000 * p);
  const auto misses_of = [&](std::uint64_t p) {
    const auto before = b.count("iotlb_misses");
    b.pass(10_us);
    b.ask({0x1000 * p});
    return b.count("iotlb_misses") - before;
  };
  EXPECT_EQ(misses_of(0), 1U);
  EXPECT_EQ(misses_of(4), 1U);
  EXPECT_EQ(misses_of(1), 1U) << "another set";
  EXPECT_EQ(misses_of(0), 0U);
  EXPECT_EQ(misses_of(8), 1U) << "replaces 4";
  EXPECT_EQ(misses_of(0), 0U);
  EXPECT_EQ(misses_of(1), 0U);
  EXPECT_EQ(misses_of(4), 1U);
}

TEST(Iommu, WorkingSetBeyondTheEntriesMissesEveryTime) {
  iommu::IommuConfig c;
  Bench b(c);
  for (std::uint64_t p = 0; p < 80; ++p) b.map({0x1000 * p}, b.base + 0x1000 * p);
  const auto misses = [&](std::uint64_t pages) {
    for (int warm = 0; warm < 2; ++warm)
      for (std::uint64_t p = 0; p < pages; ++p) b.ask({0x1000 * p});
    const auto before = b.count("iotlb_misses");
    for (std::uint64_t p = 0; p < pages; ++p) b.ask({0x1000 * p});
    return b.count("iotlb_misses") - before;
  };
  EXPECT_EQ(misses(64), 0U);
  EXPECT_EQ(misses(80), 80U);
}

struct LevelLog : sim::trace::Sink {
  explicit LevelLog(std::map<std::string, std::vector<std::int64_t>>& out) : levels(out) {}
  using sim::trace::Sink::on;
  void on(const sim::trace::Level& l) override { levels[l.point->name].push_back(l.value); }
  void close(Picos) override {}
  std::map<std::string, std::vector<std::int64_t>>& levels;
};

TEST(Iommu, RecordsMissesAndEntries) {
  Bench b;
  std::map<std::string, std::vector<std::int64_t>> levels;
  b.context.tracer.add_sink(std::make_unique<LevelLog>(levels));
  b.context.tracer.open({});
  for (const std::uint64_t page : {0x10'0000ULL, 0x20'0000ULL}) b.map({page}, b.base);
  for (const std::uint64_t at : {0x10'0000ULL, 0x10'0008ULL, 0x20'0000ULL}) b.ask({at});
  b.dut.invalidate(kDevice, {0x10'0000}, 1);
  b.ask({0x30'0000});
  EXPECT_EQ(levels["iommu.iotlb_misses"], (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(levels["iommu.iotlb_entries"], (std::vector<std::int64_t>{1, 2, 1})) << "a fault is not kept";
}

TEST(Iommu, LargePageIsOneTranslationForTwoMebibytes) {
  Bench b(without_walk_cache());
  const Iova at{0x4000'0000};
  b.map(at, {0x2'0020'0000}, kRw, 1);
  const auto first = b.ask(at + 0x12345);
  EXPECT_EQ(first.phys, Phys{0x2'0021'2345});
  EXPECT_EQ(first.ready, b.config.hit_latency + b.walk(3)) << "one level less";
  b.pass(10_us);
  const auto other = b.ask(at + 0x1F'FFFF);
  EXPECT_EQ(other.phys, Phys{0x2'003F'FFFF});
  EXPECT_EQ(b.count("iotlb_misses"), 1U);
  b.dut.invalidate(kDevice, at + 0x7000, 1);
  b.ask(at);
  EXPECT_EQ(b.count("iotlb_misses"), 2U) << "invalidating a part drops the large page";
}

TEST(Iommu, LargePageFaultsWhereItIsNotSupported) {
  iommu::IommuConfig c;
  c.large_pages = false;
  Bench b(c);
  b.map({0x4000'0000}, {0x2'0000'0000}, kRw, 1);
  EXPECT_FALSE(b.ask({0x4000'0000}).phys);
  EXPECT_EQ(b.dut.take_fault()->reason, FaultReason::large_page);
}

TEST(Iommu, FaultsAreRecordedWithTimeAndReason) {
  Bench b(without_walk_cache());
  b.map({0x1000}, b.base, kPteRead);
  b.map({0x2000}, b.base, kPteWrite);
  b.set_entry(b.root, {1ULL << 39}, 3, 0x7000'0000'0000 | kRw);  // a table outside memory

  const auto absent = b.ask({0x3000}, true);
  EXPECT_FALSE(absent.phys);
  EXPECT_EQ(absent.ready, b.config.hit_latency + b.walk(4));
  EXPECT_FALSE(b.ask({0x1000}, true).phys);
  EXPECT_FALSE(b.ask({0x2000}, false).phys);
  EXPECT_FALSE(b.ask({1ULL << 39}).phys);
  EXPECT_FALSE(b.ask({1ULL << 48}).phys);
  EXPECT_FALSE(b.dut.translate(0x1234, {0x1000}, 1, false, {}).phys);
  const auto next = [&] { return b.dut.take_fault().value(); };
  const auto f = next();
  EXPECT_EQ(f.reason, FaultReason::not_present);
  EXPECT_EQ(f.at, Iova{0x3000});
  EXPECT_TRUE(f.write);
  EXPECT_EQ(f.requester, kDevice);
  EXPECT_EQ(f.t, absent.ready);
  EXPECT_EQ(next().reason, FaultReason::write_denied);
  EXPECT_EQ(next().reason, FaultReason::read_denied);
  EXPECT_EQ(next().reason, FaultReason::bad_table);
  EXPECT_EQ(next().reason, FaultReason::address_width);
  EXPECT_EQ(next().reason, FaultReason::no_root);
  EXPECT_FALSE(b.dut.take_fault());
  EXPECT_EQ(b.count("faults"), 6U);
}

TEST(Iommu, PermissionsOfAllLevelsCount) {
  Bench b;
  b.map({0x1000}, b.base, kRw, 0, kPteRead);
  EXPECT_TRUE(b.ask({0x1000}, false).phys);
  EXPECT_FALSE(b.ask({0x1000}, true).phys);
  b.pass(10_us);
  EXPECT_FALSE(b.ask({0x1000}, true).phys) << "the walk cache remembers it too";
}

TEST(Iommu, FaultRecordsAreLimitedAndTheRestIsCounted) {
  iommu::IommuConfig c;
  c.fault_records = 2;
  Bench b(c);
  for (std::uint64_t p = 1; p <= 5; ++p) b.ask({p << 12});
  EXPECT_EQ(b.count("faults"), 5U);
  EXPECT_EQ(b.count("fault_records_lost"), 3U);
  EXPECT_EQ(b.dut.take_fault()->at, Iova{0x1000});
  EXPECT_EQ(b.dut.take_fault()->at, Iova{0x2000});
  EXPECT_FALSE(b.dut.take_fault());
}

TEST(Iommu, FaultsAreNotCachedSoALaterMappingWorks) {
  Bench b;
  EXPECT_FALSE(b.ask({0x1000}).phys);
  b.map({0x1000}, b.base + 0x7000);
  EXPECT_EQ(b.ask({0x1000}).phys, b.base + 0x7000);
}

TEST(Iommu, AddedPermissionNeedsNoInvalidation) {
  Bench b;
  b.map({0x1000}, b.base, kPteRead);
  EXPECT_TRUE(b.ask({0x1000}).phys);
  b.map({0x1000}, b.base, kRw);
  EXPECT_TRUE(b.ask({0x1000}, true).phys);
}

TEST(Iommu, StaleTranslationLastsUntilInvalidated) {
  Bench b;
  b.map({0x1000}, b.base);
  b.ask({0x1000});
  b.pass(10_us);
  b.map({0x1000}, b.base + 0x3000);
  EXPECT_EQ(b.ask({0x1000}).phys, b.base) << "as on hardware";
  b.pass(1_us);
  EXPECT_EQ(b.dut.invalidate(kDevice, {0x1000}, 1), b.context.now() + b.config.invalidation_latency);
  EXPECT_EQ(b.ask({0x1000}).phys, b.base + 0x3000);
  EXPECT_EQ(b.count("invalidations"), 1U);
}

TEST(Iommu, InvalidationCoversItsRangeAndDeviceOnly) {
  Bench b;
  b.dut.set_root(0x4000, b.root);
  for (std::uint64_t p = 0; p < 4; ++p) {
    b.map({0x1000 * p}, b.base + 0x1000 * p);
    b.ask({0x1000 * p});
  }
  b.dut.translate(0x4000, {0x1000}, 1, false, {});
  const auto before = b.count("iotlb_misses");
  b.dut.invalidate(kDevice, {0x1000}, 2);
  b.ask({0x0000});
  b.ask({0x3000});
  b.dut.translate(0x4000, {0x1000}, 1, false, {});
  EXPECT_EQ(b.count("iotlb_misses"), before);
  b.ask({0x1000});
  b.ask({0x2000});
  EXPECT_EQ(b.count("iotlb_misses"), before + 2);
}

TEST(Iommu, InvalidationDropsCachedTables) {
  Bench b;
  b.map({0x1000}, b.base);
  b.ask({0x1000});
  b.pass(10_us);
  // The kernel frees the leaf table and puts another in its place.
  const Phys old_l3{b.entry(b.root, {0}, 3) & iommu::kPteAddress};
  const Phys old_l2{b.entry(old_l3, {0}, 2) & iommu::kPteAddress};
  const Phys fresh = b.new_table();
  b.set_entry(old_l2, {0x1000}, 1, fresh.v | kRw);
  b.set_entry(fresh, {0x1000}, 0, (b.base + 0x9000).v | kRw);
  b.dut.invalidate(kDevice, {0x1000}, 1);
  EXPECT_EQ(b.ask({0x1000}).phys, b.base + 0x9000);
}

TEST(Iommu, InvalidationCompletesAfterTheUsersOfTheOldTranslation) {
  auto c = without_walk_cache();
  c.invalidation_latency = 1_ns;
  {
    Bench b(c, true);
    b.map({0x1000}, b.base);
    const auto t = b.ask({0x1000});
    EXPECT_EQ(b.dut.invalidate(kDevice, {0x1000}, 1), t.ready) << "the walk is still under way";
    b.drain.at = t.ready + 300_ns;
    EXPECT_EQ(b.dut.invalidate(kDevice, {0x1000}, 1), t.ready + 300_ns) << "the write has not reached memory";
  }
}

TEST(Iommu, NewRootDropsEverythingOfTheDevice) {
  Bench b;
  b.map({0x1000}, b.base);
  b.ask({0x1000});
  b.root = b.new_table();
  b.map({0x1000}, b.base + 0x4000);
  b.dut.set_root(kDevice, b.root);
  EXPECT_EQ(b.ask({0x1000}).phys, b.base + 0x4000);
}

TEST(Iommu, WalkAccessesUseTheLastLevelCache) {
  Bench b(without_walk_cache());
  b.map({0x1000}, b.base + 0x100000);
  for (std::uint64_t f = 0; f < 4; ++f) b.memory.cpu_load_latency(b.base + f * 4096, 8);
  EXPECT_EQ(b.ask({0x1000}).ready,
            b.config.hit_latency + 4 * (b.config.walk_access_latency + b.memory.config().llc_latency));
}

TEST(IommuConfig, WaysDivideEntries) {
  iommu::IommuConfig c;
  c.iotlb_ways = 3;
  int errors = 0;
  c.check([&](std::string_view field, const std::string&) {
    EXPECT_EQ(field, "iotlb_ways");
    ++errors;
  });
  EXPECT_EQ(errors, 1);
}

}  // namespace
