// SPDX-License-Identifier: Apache-2.0
#include "tests/hca/scripted_endpoint.h"

namespace hca::test {
namespace {

using namespace sim::literals;
using sim::Picos;

struct Outcome {
  int calls = 0;
  DmaStatus status = DmaStatus::failed;
  Picos t{0};
  sim::Context* context = nullptr;
  static void done(void* self, std::uint64_t arg, DmaStatus s) {
    auto* o = static_cast<Outcome*>(self);
    EXPECT_EQ(arg, 77u);
    ++o->calls;
    o->status = s;
    o->t = o->context->now();
  }
};

struct DmaEngineTest : testing::Test {
  explicit DmaEngineTest(const DmaConfig& c = {}) : bench(c) { outcome.context = &bench.context; }
  void read(std::uint64_t at, std::uint32_t n) {
    buffer = bench.context.buffers.make(n + 8);
    bench.dma.read({at}, n, buffer, 8, {}, &Outcome::done, &outcome, 77);
  }
  DmaBench bench;
  Outcome outcome;
  sim::BufferRef buffer;
};

TEST_F(DmaEngineTest, ReadsSplitAtMrrsAndPages) {
  read(0x10F00, 1500);  // 256 to the page end, then 512, 512, 220
  bench.run();
  ASSERT_EQ(bench.endpoint.reads.size(), 4u);
  const std::uint64_t at[] = {0x10F00, 0x11000, 0x11200, 0x11400};
  const std::uint32_t n[] = {256, 512, 512, 220};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(bench.endpoint.reads[i].address, at[i]);
    EXPECT_EQ(bench.endpoint.reads[i].length, n[i]);
    EXPECT_EQ(bench.endpoint.reads[i].t, 20_ns + Picos{2'000} * static_cast<std::int64_t>(i))
        << "set-up, then one per issue interval";
  }
  EXPECT_EQ(bench.dma.reads_in_flight(), 4u);
  EXPECT_EQ(outcome.calls, 0);
}

TEST_F(DmaEngineTest, NullAddressesReadAsZerosAndTakeNoTlp_S_OBJ_64) {
  read(kNullIova, 100);
  std::fill_n(buffer.data(), 108, std::byte{0xEE});
  bench.dma.read({kNullIova}, 100, buffer, 8, {}, &Outcome::done, &outcome, 77);
  bench.dma.write({kNullIova + 50}, 100, buffer, 0, {});
  bench.run();
  EXPECT_EQ(outcome.calls, 2);
  EXPECT_EQ(outcome.status, DmaStatus::ok);
  EXPECT_TRUE(bench.endpoint.reads.empty());
  EXPECT_EQ(buffer.data()[7], std::byte{0xEE});
  for (std::size_t i = 8; i < 108; ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
}

TEST_F(DmaEngineTest, DrainWaitsForTheReadsBeforeItAndForNoOther_S_MR_20) {
  struct Drain {
    sim::Context& context() { return bench.context; }
    sim::Flow run() {
      co_await bench.dma.drain();
      done = true;
    }
    DmaBench& bench;
    bool done = false;
  } drain{bench};
  read(0x1000, 256);
  bench.run();
  drain.run();
  read(0x3000, 256);
  bench.run();
  EXPECT_FALSE(drain.done);
  bench.endpoint.complete(0, 0, 256);
  EXPECT_TRUE(drain.done) << "the second read is still out";
  bench.endpoint.complete(1, 0, 256);
}

TEST_F(DmaEngineTest, CompletionsMayComeInPiecesAndOutOfOrder) {
  for (std::uint64_t i = 0; i < 1024; ++i) bench.endpoint.memory[0x1000 + i] = static_cast<std::byte>(i * 3);
  read(0x1000, 1024);
  bench.run();
  bench.endpoint.complete(1, 0, 64);
  bench.endpoint.complete(0, 256, 256);
  bench.endpoint.complete(1, 64, 448);
  EXPECT_EQ(outcome.calls, 0);
  bench.endpoint.complete(0, 0, 256);
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.status, DmaStatus::ok);
  EXPECT_EQ(bench.dma.reads_in_flight(), 0u);
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(buffer.data()[8 + i], static_cast<std::byte>(i * 3));
}

TEST_F(DmaEngineTest, OneFailedPieceFailsTheReadAfterAllHaveEnded) {
  read(0x1000, 1024);
  bench.run();
  bench.endpoint.complete(0, 0, ~0U, pcie::CplStatus::UR);
  EXPECT_EQ(outcome.calls, 0);
  bench.endpoint.complete(1);
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.status, DmaStatus::failed);
  EXPECT_EQ(bench.context.stats.counter("dma.failed_reads").value, 1u);
}

TEST_F(DmaEngineTest, WritesSplitAtMpsAndPagesAndPassReads) {
  const sim::BufferRef source = bench.context.buffers.make(700);
  for (std::size_t i = 0; i < 700; ++i) source.data()[i] = static_cast<std::byte>(i);
  read(0x1000, 64);
  bench.dma.write({0x2FC0}, 600, source, 100, {}, true);
  bench.dma.raise_msix(5, {});
  bench.run();
  EXPECT_EQ(bench.endpoint.order, "wwwwir");
  const std::uint64_t at[] = {0x2FC0, 0x3000, 0x3100, 0x3200};
  const std::size_t n[] = {64, 256, 256, 24};
  std::size_t done = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& w = bench.endpoint.writes[i];
    EXPECT_EQ(w.address, at[i]);
    ASSERT_EQ(w.bytes.size(), n[i]);
    EXPECT_TRUE(w.relaxed);
    for (std::size_t b = 0; b < n[i]; ++b) ASSERT_EQ(w.bytes[b], static_cast<std::byte>(100 + done + b));
    done += n[i];
  }
  EXPECT_EQ(bench.endpoint.writes[3].t - bench.endpoint.writes[0].t, 6_ns);
  EXPECT_EQ(bench.endpoint.interrupts[0].second, 5);
}

struct FewTags : DmaEngineTest {
  FewTags() : DmaEngineTest({2_ns, 20_ns, 2}) {}
};
TEST_F(FewTags, AReadWithoutATagWaitsForACompletionAndAWriteDoesNot) {
  read(0x1000, 2048);
  bench.run();
  EXPECT_EQ(bench.endpoint.reads.size(), 2u);
  bench.dma.write_inline({0x9000}, std::array<std::byte, 8>{}, {});
  bench.run();
  EXPECT_EQ(bench.endpoint.writes.size(), 1u);
  bench.endpoint.complete(1);
  bench.run();
  ASSERT_EQ(bench.endpoint.reads.size(), 3u);
  EXPECT_EQ(bench.endpoint.reads[2].tag, bench.endpoint.reads[1].tag);
  bench.endpoint.complete(0);
  bench.endpoint.complete(2);
  bench.run();
  bench.endpoint.complete(3);
  EXPECT_EQ(outcome.calls, 1);
}

// Context cache: two sets would need 16 entries; two entries are one set of two ways.
struct CacheTest : testing::Test {
  CacheTest() {
    bench.endpoint.answer = true;
    icm.give({0x100000});
    EXPECT_TRUE(icm.reserve(IcmTable::cqc, 0));
  }
  static void encode(void*, std::uint32_t index, std::byte* out) {
    std::memset(out, static_cast<int>(0xA0 + index), 64);
  }
  sim::Flow look_up(std::uint32_t index) {
    if (!cache.hit(index)) co_await cache.fill(index, {});
  }
  sim::Context& context() { return bench.context; }
  DmaBench bench;
  Icm icm;
  ContextCache cache{bench.context, bench.dma, icm, IcmTable::cqc, 2, 1, &encode, nullptr, 0, "cache"};
};

TEST_F(CacheTest, AMissIsOneReadOfTheEntryAndTheLeastRecentlyUsedGoes) {
  for (const std::uint32_t i : {1u, 2u, 1u, 3u, 1u, 2u}) {  // 3 replaces 2, 2 replaces 3
    look_up(i);
    bench.run();
  }
  std::vector<std::uint64_t> at;
  for (const auto& r : bench.endpoint.reads) {
    at.push_back(r.address);
    EXPECT_EQ(r.length, 64u);
  }
  EXPECT_EQ(at, (std::vector<std::uint64_t>{0x100040, 0x100080, 0x1000C0, 0x100080}));
  EXPECT_TRUE(bench.endpoint.writes.empty()) << "clean entries are not written back";
  EXPECT_EQ(bench.context.stats.counter("cache.misses").value, 4u);
  EXPECT_EQ(bench.context.stats.counter("cache.hits").value, 2u);
}

TEST_F(CacheTest, ADirtyVictimIsWrittenBackWithItsBytes) {
  cache.install(5);
  look_up(6);
  bench.run();
  look_up(7);
  bench.run();
  ASSERT_EQ(bench.endpoint.writes.size(), 1u);
  EXPECT_EQ(bench.endpoint.writes[0].address, 0x100000u + 5 * 64);
  EXPECT_EQ(bench.endpoint.writes[0].bytes, std::vector<std::byte>(64, std::byte{0xA5}));
  cache.invalidate(6);
  cache.dirty(6);
  EXPECT_FALSE(cache.hit(6));
}

}  // namespace
}  // namespace hca::test
