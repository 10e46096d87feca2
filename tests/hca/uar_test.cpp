// SPDX-License-Identifier: Apache-2.0
// UAR pages: doorbells, BlueFlame copies in lines and pieces, what tears them, CQ and EQ doorbells.
#include "hca/uar/uar.h"
#include "tests/hca/scripted_endpoint.h"

namespace hca::test {
namespace {

using namespace sim::literals;
using sim::Picos;

struct UarTest : testing::Test, DoorbellSink {
  explicit UarTest(const UarConfig& c = {}) : config(c) {
    uar.bind(*this);
    EXPECT_TRUE(uar.allocate(page));
  }
  void ring(const Doorbell& d) override {
    rung.push_back(d);
    times.push_back(bench.context.now());
  }
  /// A WQE with a pattern behind its control segment.
  static std::vector<std::byte> wqe(std::uint32_t qpn, std::uint16_t index, std::uint32_t ds, std::size_t bytes) {
    std::vector<std::byte> w(bytes);
    for (std::size_t i = 0; i < bytes; ++i) w[i] = static_cast<std::byte>(i + index);
    const std::uint32_t words[2] = {prm::be32(std::uint32_t{index} << 8 | MLX5_OPCODE_SEND), prm::be32(qpn << 8 | ds)};
    std::memcpy(w.data(), words, 8);
    return w;
  }
  void write(std::uint64_t offset, std::span<const std::byte> bytes, Picos sent = Picos{0}) {
    uar.write(page, offset, bytes, {}, sent);
  }
  void lines(std::uint64_t offset, const std::vector<std::byte>& w, std::size_t from, std::size_t to) {
    for (std::size_t at = from; at < to; at += 64)
      write(offset + at, {w.data() + at, 64}, Picos{static_cast<std::int64_t>(at)});
  }
  bool kept(std::uint32_t qpn, std::uint16_t index, const std::vector<std::byte>& w) {
    std::array<std::byte, prm::kBfBufSize> out{};
    return uar.blueflame().take(qpn, index, out.data()) && std::equal(w.begin(), w.end(), out.begin());
  }
  std::uint64_t counter(const char* name) {
    return bench.context.stats.counter(std::string("uar.").append(name)).value;
  }

  const UarConfig config;
  const CompletionConfig completion_config;
  const ContextConfig context_config;
  DmaBench bench;
  Icm icm;
  ObjectTable<Cq> cqs{1, 100};
  ObjectTable<Eq> eqs{1, 100};
  EventUnit events{bench.context, completion_config, bench.dma, eqs, 0, "events"};
  CompletionUnit completions{bench.context, completion_config, context_config, bench.dma, icm, cqs, events, 0,
                             "completions"};
  Uar uar{bench.context, config, completions, events, 0, "uar"};
  std::uint32_t page = 0;
  std::vector<Doorbell> rung;
  std::vector<Picos> times;
};
constexpr std::uint64_t kFirstHalf = 0x800, kSecondHalf = 0x900;

TEST_F(UarTest, EightBytesAreADoorbell) {
  const auto w = wqe(0x1abc, 7, 3, 8);
  write(kFirstHalf, w, 5_ns);
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_EQ(rung[0].qpn, 0x1abcu);
  EXPECT_EQ(rung[0].wqe_index, 7);
  EXPECT_EQ(rung[0].ds, 3);
  EXPECT_EQ(rung[0].t_sent, 5_ns);
  EXPECT_FALSE(rung[0].blueflame);
}

TEST_F(UarTest, ALineIsTheWholeOfASmallWqe) {
  const auto w = wqe(9, 1, 4, 64);
  lines(kFirstHalf, w, 0, 64);
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_TRUE(rung[0].blueflame);
  EXPECT_TRUE(kept(9, 1, w));
}

TEST_F(UarTest, LongWqesComeLineByLineUpToTheHalf) {
  const auto w = wqe(9, 2, 16, 256);
  lines(kSecondHalf, w, 0, 192);
  EXPECT_TRUE(rung.empty());
  lines(kSecondHalf, w, 192, 256);
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_EQ(rung[0].t_sent, Picos{0}) << "of the first line";
  EXPECT_TRUE(kept(9, 2, w));
  bench.run();
  EXPECT_EQ(rung.size(), 1u) << "no time-out after completion";
}

TEST_F(UarTest, AWqeLongerThanABufferIsFetchedFromTheRing_A_29) {
  const auto w = wqe(9, 2, 17, 256);
  lines(kFirstHalf, w, 0, 256);
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_FALSE(rung[0].blueflame);
  EXPECT_FALSE(kept(9, 2, w));
}

TEST_F(UarTest, BothHalvesAreAssembledApart_A_28) {
  const auto a = wqe(1, 10, 8, 128), b = wqe(2, 20, 8, 128);
  lines(kFirstHalf, a, 0, 64);
  lines(kSecondHalf, b, 0, 128);
  lines(kFirstHalf, a, 64, 128);
  ASSERT_EQ(rung.size(), 2u);
  EXPECT_EQ(rung[0].qpn, 2u);
  EXPECT_EQ(rung[1].qpn, 1u);
  EXPECT_TRUE(kept(1, 10, a));
  EXPECT_TRUE(kept(2, 20, b));
}

TEST_F(UarTest, PiecesOfALineAddUp) {
  const auto w = wqe(9, 3, 4, 64);
  write(kFirstHalf, {w.data(), 24});
  write(kFirstHalf + 24, {w.data() + 24, 40});
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_TRUE(kept(9, 3, w));
}

TEST_F(UarTest, ATornCopyIsAPlainDoorbell) {
  const auto a = wqe(9, 4, 8, 128), b = wqe(9, 6, 4, 64);
  lines(kFirstHalf, a, 0, 64);
  lines(kFirstHalf, b, 0, 64);
  ASSERT_EQ(rung.size(), 2u);
  EXPECT_EQ(rung[0].wqe_index, 4);
  EXPECT_FALSE(rung[0].blueflame);
  EXPECT_TRUE(rung[1].blueflame);
  EXPECT_FALSE(kept(9, 4, a));
  EXPECT_EQ(counter("blueflame_torn"), 1u);
}

TEST_F(UarTest, LinesOutOfOrderAreAPlainDoorbell) {
  const auto w = wqe(9, 4, 12, 192);
  lines(kFirstHalf, w, 0, 64);
  lines(kFirstHalf, w, 128, 192);
  lines(kFirstHalf, w, 64, 128);
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_FALSE(rung[0].blueflame);
  EXPECT_EQ(counter("unknown_writes"), 2u) << "the rest of a copy that was given up";
}

TEST_F(UarTest, AnIncompleteCopyBecomesADoorbellAfterTheTimeout) {
  const auto w = wqe(9, 5, 8, 128);
  lines(kFirstHalf, w, 0, 64);
  bench.run();
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_EQ(times[0], config.bf_assembly_timeout);
  EXPECT_FALSE(rung[0].blueflame);
  lines(kFirstHalf, w, 64, 128);
  EXPECT_EQ(rung.size(), 1u);
}

struct NoBuffers : UarTest {
  static UarConfig none() {
    UarConfig c;
    c.bf_buffers = 0;
    return c;
  }
  NoBuffers() : UarTest(none()) {}
};
TEST_F(NoBuffers, WithoutABufferTheRingIsRead) {
  lines(kFirstHalf, wqe(9, 1, 4, 64), 0, 64);
  ASSERT_EQ(rung.size(), 1u);
  EXPECT_FALSE(rung[0].blueflame);
}

TEST_F(UarTest, OtherPagesAndOffsetsAreCountedAndIgnored) {
  const auto w = wqe(9, 1, 1, 8);
  uar.write(page + 1, kFirstHalf, w, {}, {});
  uar.write(prm::kUarPages, kFirstHalf, w, {}, {});
  write(0x100, w);
  write(kFirstHalf, {w.data(), 4});
  EXPECT_TRUE(rung.empty());
  EXPECT_EQ(counter("unknown_writes"), 4u);
  EXPECT_TRUE(uar.release(page));
  EXPECT_FALSE(uar.release(page));
  write(kFirstHalf, w);
  EXPECT_TRUE(rung.empty());
}

TEST_F(UarTest, CqDoorbellArms) {
  std::uint32_t cqn = 0;
  Cq* cq = cqs.create(cqn);
  cq->cqn = cqn;
  cq->uar_page = page;
  std::array<std::byte, 8> b{};
  prm::set64(b.data(), 0, std::uint64_t{1U << 28 | 1U << 24 | 7} << 32 | cqn);
  cq->producer = 7;
  write(prm::kUarCqDoorbell, b);
  EXPECT_EQ(cq->arm, ArmState::armed_solicited);
  EXPECT_EQ(cq->arm_sn, 1u);
}

TEST_F(UarTest, CqDoorbellOfAnotherPageIsCountedAndIgnored) {
  std::uint32_t cqn = 0;
  Cq* cq = cqs.create(cqn);
  cq->cqn = cqn;
  cq->uar_page = page + 1;
  std::array<std::byte, 8> b{};
  prm::set64(b.data(), 0, std::uint64_t{1U << 28} << 32 | cqn);
  write(prm::kUarCqDoorbell, b);
  EXPECT_EQ(cq->arm, ArmState::fired);
  EXPECT_EQ(counter("foreign_doorbells"), 1u);
}

}  // namespace
}  // namespace hca::test
