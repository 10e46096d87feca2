// SPDX-License-Identifier: Apache-2.0
#include "memory/host_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "sim/check.h"

namespace memory {
namespace {
using namespace sim::literals;

struct Backing {
  explicit Backing(std::size_t pages)
      : p(static_cast<std::byte*>(std::aligned_alloc(kPageSize, pages * kPageSize)), &std::free) {
    std::fill_n(p.get(), pages * kPageSize, std::byte{0xEE});
  }
  std::unique_ptr<std::byte, decltype(&std::free)> p;
};

class HostMemoryTest : public testing::Test {
 protected:
  std::vector<std::byte> bytes(std::initializer_list<int> v) {
    std::vector<std::byte> out;
    for (const int b : v) out.push_back(static_cast<std::byte>(b));
    return out;
  }
  std::vector<std::byte> read(HostMemory& m, Phys at, std::size_t n) {
    std::vector<std::byte> out(n);
    m.read(at, out);
    return out;
  }
  sim::Context context;
};

struct Log {
  std::vector<std::uint64_t> fired;
  static void on(void* ctx, std::uint64_t arg, sim::trace::Cause) { static_cast<Log*>(ctx)->fired.push_back(arg); }
};

TEST_F(HostMemoryTest, FramesAreZeroedDistinctAndScattered) {
  HostMemory m("memory", context, {}, 0);
  Backing b(600);
  const auto frames = m.map_frames(b.p.get(), 600);
  ASSERT_EQ(frames.size(), 600U);
  EXPECT_EQ(m.frames_in_use(), 600U);
  std::size_t neighbours = 0;
  auto sorted = frames;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
  for (std::size_t i = 1; i < frames.size(); ++i) neighbours += frames[i] == frames[i - 1] + kPageSize;
  EXPECT_EQ(neighbours, 0U);
  EXPECT_EQ(read(m, frames[5], 4), bytes({0, 0, 0, 0}));
  for (const Phys f : frames) EXPECT_GE(f.v, 0x1'0000'0000U);
}

TEST_F(HostMemoryTest, ContiguousFramesMayBeReadAcrossTheirBorder) {
  HostMemory m("memory", context, {}, 0);
  Backing b(3);
  const auto frames = m.map_frames(b.p.get(), 3, true);
  EXPECT_EQ(frames[1], frames[0] + kPageSize);
  EXPECT_EQ(frames[2], frames[0] + 2 * kPageSize);
  m.write(frames[0] + (kPageSize - 2), bytes({1, 2, 3, 4}));
  EXPECT_EQ(read(m, frames[0] + (kPageSize - 2), 4), bytes({1, 2, 3, 4}));
  EXPECT_EQ(b.p.get()[kPageSize], std::byte{3});
  EXPECT_EQ(m.raw(frames[1]), b.p.get() + kPageSize);
}

TEST_F(HostMemoryTest, FreedFramesAreUnknownUntilHandedOutAgain) {
  HostMemory m("memory", context, {}, 0);
  Backing b(2);
  const auto frames = m.map_frames(b.p.get(), 2);
  EXPECT_TRUE(m.contains(frames[1], kPageSize));
  m.unmap_frames({&frames[1], 1});
  EXPECT_FALSE(m.contains(frames[1], 1));
  EXPECT_TRUE(m.contains(frames[0], 1));
  EXPECT_FALSE(m.contains({0x10}, 1));
  EXPECT_FALSE(m.contains({~0ULL}, 8));
  EXPECT_THROW(m.write(frames[1], bytes({1})), sim::SimulatorBug);
  EXPECT_THROW(read(m, frames[1], 1), sim::SimulatorBug);
  EXPECT_THROW(read(m, {0x1000}, 1), sim::SimulatorBug);
  EXPECT_EQ(m.map_frames(b.p.get(), 1)[0], frames[1]);
}

TEST_F(HostMemoryTest, InstalledMemoryIsALimitThatCanBeUsedToTheLastFrame) {
  MemoryConfig config;
  config.size = 3_MiB;  // 768 frames
  HostMemory m("memory", context, config, 0);
  Backing b(768);
  const auto contiguous = m.map_frames(b.p.get(), 5, true);
  const auto rest = m.map_frames(b.p.get(), 763);
  EXPECT_EQ(rest.size(), 763U);
  EXPECT_THROW(m.map_frames(b.p.get(), 1), std::bad_alloc);
  m.unmap_frames(contiguous);
  EXPECT_EQ(m.map_frames(b.p.get(), 5).size(), 5U);
}

TEST_F(HostMemoryTest, WatchpointFiresOnOverlapOnlyAndAfterTheBytesAreThere) {
  HostMemory m("memory", context, {}, 0);
  Backing b(1);
  const Phys at = m.map_frames(b.p.get(), 1)[0];
  struct Seen {
    HostMemory* m;
    Phys at;
    std::vector<std::byte> bytes;
    sim::trace::Cause cause;
  } seen{&m, at + 8, std::vector<std::byte>(2), {}};
  m.watch(
      at + 8, 2,
      [](void* ctx, std::uint64_t, sim::trace::Cause cause) {
        auto* s = static_cast<Seen*>(ctx);
        s->m->read(s->at, s->bytes);
        s->cause = cause;
      },
      &seen);
  Log log;
  const WatchId id = m.watch(at + 8, 2, &Log::on, &log, 7);
  EXPECT_TRUE(m.watched(at));
  m.write(at + 6, bytes({1, 1}));
  m.write(at + 10, bytes({1}));
  EXPECT_TRUE(log.fired.empty());
  m.write(at + 7, bytes({4, 5, 6, 7}), {42, 0});
  EXPECT_EQ(log.fired, std::vector<std::uint64_t>{7});
  EXPECT_EQ(seen.bytes, bytes({5, 6}));
  EXPECT_EQ(seen.cause.msg, 42U);
  m.unwatch(id);
  m.write(at + 8, bytes({1}));
  EXPECT_EQ(log.fired.size(), 1U);
  EXPECT_THROW(m.unwatch(id), sim::SimulatorBug);
}

TEST_F(HostMemoryTest, WatchpointsMayBeSetAndRemovedWhileOneFires) {
  HostMemory m("memory", context, {}, 0);
  Backing b(1);
  const Phys at = m.map_frames(b.p.get(), 1)[0];
  struct State {
    HostMemory* m;
    Phys at;
    WatchId self = 0, other = 0;
    Log log;
  } s{&m, at, 0, 0, {}};
  s.self = m.watch(
      at, 1,
      [](void* ctx, std::uint64_t, sim::trace::Cause) {
        auto* st = static_cast<State*>(ctx);
        st->log.fired.push_back(1);
        st->m->unwatch(st->self);
        st->m->unwatch(st->other);
        st->m->watch(st->at, 1, &Log::on, &st->log, 3);
      },
      &s);
  s.other = m.watch(at, 1, &Log::on, &s.log, 2);
  m.write(at, bytes({1}));
  EXPECT_EQ(s.log.fired, (std::vector<std::uint64_t>{1}));  // the removed and the new one did not see this write
  m.write(at, bytes({2}));
  EXPECT_EQ(s.log.fired, (std::vector<std::uint64_t>{1, 3}));
}

TEST_F(HostMemoryTest, UnwatchAfterTheFrameWentIsHarmless) {
  HostMemory m("memory", context, {}, 0);
  Backing b(1);
  auto frames = m.map_frames(b.p.get(), 1);
  Log log;
  const WatchId id = m.watch(frames[0], 8, &Log::on, &log, 1);
  m.unmap_frames(frames);
  frames = m.map_frames(b.p.get(), 1);
  m.write(frames[0], bytes({1}));
  EXPECT_TRUE(log.fired.empty());
  m.unwatch(id);
}

TEST_F(HostMemoryTest, LastLevelCacheSeparatesHitsFromMisses) {
  MemoryConfig config;
  config.llc_latency = 20_ns;
  config.dram_latency = 85_ns;
  config.llc_size = 8_KiB;
  config.llc_ways = 2;
  HostMemory m("memory", context, config, 0);
  Backing b(3);
  const auto f = m.map_frames(b.p.get(), 3);
  EXPECT_EQ(m.device_read_latency(f[0], 64), 85_ns);
  EXPECT_EQ(m.device_read_latency(f[0], 64), 85_ns);  // a device read does not allocate
  EXPECT_EQ(m.cpu_load_latency(f[0], 64), 85_ns);
  EXPECT_EQ(m.cpu_load_latency(f[0], 64), 20_ns);
  EXPECT_EQ(m.device_read_latency(f[0], 64), 20_ns);
  EXPECT_EQ(m.device_write_latency(f[1], 64), 20_ns);  // DDIO allocates
  EXPECT_EQ(m.cpu_load_latency(f[1], 64), 20_ns);
  EXPECT_EQ(m.cpu_load_latency(f[2], 64), 85_ns);  // evicts page 0, the least recently used
  EXPECT_EQ(m.device_read_latency(f[0], 64), 85_ns);
  EXPECT_EQ(m.device_read_latency(f[1], 64), 20_ns);
  EXPECT_EQ(context.stats.counter("host0.memory.llc_hits").value, 4U);
  EXPECT_EQ(context.stats.counter("host0.memory.llc_misses").value, 6U);
}

TEST_F(HostMemoryTest, WithoutDdioADeviceWriteGoesToDramAndInvalidates) {
  MemoryConfig config;
  config.ddio = false;
  HostMemory m("memory", context, config, 0);
  Backing b(1);
  const Phys at = m.map_frames(b.p.get(), 1)[0];
  m.cpu_load_latency(at, 8);
  EXPECT_EQ(m.cpu_load_latency(at, 8), config.llc_latency);
  EXPECT_EQ(m.device_write_latency(at, 8), config.dram_latency);
  EXPECT_EQ(m.cpu_load_latency(at, 8), config.dram_latency);
}

TEST_F(HostMemoryTest, PrivateCacheLineStaysUntilADeviceOrAnotherCoreTakesIt) {
  HostMemory m("memory", context, {}, 0);
  Backing b(1);
  const Phys at = m.map_frames(b.p.get(), 1)[0];
  EXPECT_FALSE(m.cpu_cached(0, at, 8));
  EXPECT_TRUE(m.cpu_cached(0, at + 56, 8));
  EXPECT_FALSE(m.cpu_cached(0, at + 60, 8));  // reaches into the next line
  m.write(at + 100, bytes({1}));
  EXPECT_TRUE(m.cpu_cached(0, at, 64));
  EXPECT_FALSE(m.cpu_cached(0, at + 64, 1));
  m.commit_store(at, bytes({1}), {}, 3);
  EXPECT_FALSE(m.cpu_cached(0, at, 1));
}

}  // namespace
}  // namespace memory
