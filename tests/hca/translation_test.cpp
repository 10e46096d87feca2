// SPDX-License-Identifier: Apache-2.0
// Which ranges a key opens, and to which bus addresses they lead.
#include "hca/dma/translation.h"

#include "tests/hca/scripted_endpoint.h"

namespace hca::test {
namespace {

using namespace sim::literals;

constexpr std::uint64_t kStart = 0x7000'0000'0123, kLength = 3 * 4096;  // touches four pages
constexpr std::uint32_t kPd = 5, kQpn = 0x101;

struct TranslationTest : testing::Test {
  TranslationTest() {
    bench.endpoint.answer = true;
    icm.give({0x100000});
    icm.give({0x101000});
    Mkey* m = mkeys.create(index);
    m->allocated = true;
    m->variant = 0x42;
    m->pd = kPd;
    m->lr = m->lw = m->rw = true;
    m->start = kStart;
    m->length = kLength;
    EXPECT_TRUE(icm.reserve(IcmTable::mpt, index));
    EXPECT_TRUE(translation.add_translations(*m, {{0xA000}, {0xB000}, {0x5000}, {0xD000}}));
    translation.mpt().install(index);
    key = index << 8 | 0x42;
  }
  sim::Context& context() { return bench.context; }
  sim::Flow run_check(Fault& f, std::uint32_t k, std::uint64_t va, std::uint64_t n, MkeyAccess a, std::uint32_t pd) {
    sim::trace::Cause cause;
    f = co_await translation.check(k, va, n, a, pd, kQpn, cause);
  }
  sim::Flow run_translate(Fault& f, std::uint64_t va, std::uint32_t n, Extents& out) {
    sim::trace::Cause cause;
    f = co_await translation.translate(key, va, n, MkeyAccess::local_read, kPd, kQpn, cause, out);
  }
  Fault check(std::uint64_t va, std::uint64_t n, MkeyAccess a = MkeyAccess::local_read, std::uint32_t pd = kPd) {
    return check_key(key, va, n, a, pd);
  }
  Fault check_key(std::uint32_t k, std::uint64_t va, std::uint64_t n, MkeyAccess a = MkeyAccess::local_read,
                  std::uint32_t pd = kPd) {
    Fault f = Fault::dma;
    run_check(f, k, va, n, a, pd);
    bench.run();
    return f;
  }
  DmaBench bench;
  const ContextConfig config;
  Icm icm;
  ObjectTable<Mkey> mkeys{0x10, 100};
  Translation translation{bench.context, config, bench.dma, icm, mkeys, 0, "translation"};
  std::uint32_t index = 0, key = 0;
};

TEST_F(TranslationTest, BoundsHoldToTheByteAtBothEnds) {
  EXPECT_EQ(check(kStart, kLength), Fault::none);
  EXPECT_EQ(check(kStart, 1), Fault::none);
  EXPECT_EQ(check(kStart - 1, 1), Fault::bounds);
  EXPECT_EQ(check(kStart - 1, kLength), Fault::bounds);
  EXPECT_EQ(check(kStart + kLength - 1, 1), Fault::none);
  EXPECT_EQ(check(kStart + kLength, 1), Fault::bounds);
  EXPECT_EQ(check(kStart + 1, kLength), Fault::bounds);
  EXPECT_EQ(check(kStart, ~0ULL), Fault::bounds);
  EXPECT_EQ(check(kStart + 8, ~0ULL - 4), Fault::bounds) << "a sum that wraps";
}

TEST_F(TranslationTest, KeyRightsAndDomain) {
  EXPECT_EQ(check_key(key + 1, kStart, 8), Fault::key) << "variant";
  EXPECT_EQ(check_key(key + 0x100, kStart, 8), Fault::key) << "index";
  EXPECT_EQ(check(kStart, 8, MkeyAccess::local_read, kPd + 1), Fault::pd);
  EXPECT_EQ(check(kStart, 8, MkeyAccess::local_write), Fault::none);
  EXPECT_EQ(check(kStart, 8, MkeyAccess::remote_write), Fault::none);
  EXPECT_EQ(check(kStart, 8, MkeyAccess::remote_read), Fault::access);
  EXPECT_EQ(check(kStart, 8, MkeyAccess::remote_atomic), Fault::access);
  mkeys.find(index)->qpn = kQpn + 1;
  EXPECT_EQ(check(kStart, 8), Fault::key) << "bound to another QP";
  mkeys.find(index)->qpn = kQpn;
  EXPECT_EQ(check(kStart, 8), Fault::none);
  mkeys.find(index)->free = true;
  EXPECT_EQ(check(kStart, 8), Fault::key);
  EXPECT_EQ(bench.context.stats.counter("translation.faults").value, 7u);
}

TEST_F(TranslationTest, PagesBecomeExtentsAndNeighboursMerge) {
  Fault f = Fault::dma;
  Extents out;
  run_translate(f, kStart + 0x100, 3 * 4096 - 0x200, out);
  bench.run();
  EXPECT_EQ(f, Fault::none);
  ASSERT_EQ(out.count, 3u);  // 0xA223…0xBFFF, 0x5000…0x5FFF, 0xD000…
  EXPECT_EQ(out.item[0].at.v, 0xA223u);
  EXPECT_EQ(out.item[0].length, 0xC000u - 0xA223u);
  EXPECT_EQ(out.item[1].at.v, 0x5000u);
  EXPECT_EQ(out.item[1].length, 4096u);
  EXPECT_EQ(out.item[2].at.v, 0xD000u);
  EXPECT_EQ(out.item[0].length + out.item[1].length + out.item[2].length, 3u * 4096 - 0x200);
  EXPECT_EQ(bench.context.now(), config.mpt_hit + config.mtt_hit);
}

TEST_F(TranslationTest, RelaxedOrderingIsThatOfTheRegion_S_MR_33) {
  for (const bool relaxed : {false, true}) {
    mkeys.find(index)->relaxed_read = relaxed;
    Fault f = Fault::dma;
    Extents out;
    run_translate(f, kStart, 8, out);
    bench.run();
    ASSERT_EQ(out.count, 1u);
    EXPECT_EQ(out.item[0].relaxed, relaxed);
  }
}

TEST_F(TranslationTest, AMissReadsTheEntryOnceThenHits) {
  translation.mpt().invalidate(index);
  EXPECT_EQ(check(kStart, 8), Fault::none);
  EXPECT_EQ(check(kStart, 8), Fault::none);
  ASSERT_EQ(bench.endpoint.reads.size(), 1u);
  EXPECT_EQ(bench.endpoint.reads[0].length, 64u);
}

TEST_F(TranslationTest, FreedTranslationsAreUsedAgain) {
  Mkey* m = mkeys.find(index);
  const std::uint32_t first = m->mtt_first;
  translation.remove_translations(*m);
  std::uint32_t n = 0;
  Mkey* other = mkeys.create(n);
  ASSERT_TRUE(translation.add_translations(*other, {{0x1000}}));
  EXPECT_EQ(other->mtt_first, first);
}

}  // namespace
}  // namespace hca::test
