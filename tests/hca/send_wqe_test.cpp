// SPDX-License-Identifier: Apache-2.0
// WQEs as the requester and the responder read them, from bytes.
#include "hca/transport/send_wqe.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hca/uar/blueflame.h"

namespace hca::test {
namespace {

/// Bytes of a WQE, written dword by dword.
struct Wqe {
  explicit Wqe(std::uint8_t opcode, std::uint32_t ds, std::uint8_t flags = MLX5_WQE_CTRL_CQ_UPDATE,
               std::uint8_t opmod = 0)
      : buffer(pool.make(1024)) {
    std::memset(buffer.data(), 0, 1024);
    put(std::uint32_t{opmod} << 24 | 0x1234U << 8 | opcode);
    put(0x2abcU << 8 | ds);
    put(flags);
    put(0xAABBCCDD);
  }
  Wqe& put(std::uint32_t v) {
    v = prm::be32(v);
    std::memcpy(buffer.data() + at, &v, 4);
    at += 4;
    return *this;
  }
  Wqe& data(std::uint32_t n, std::uint32_t lkey, std::uint64_t va) {
    return put(n).put(lkey).put(static_cast<std::uint32_t>(va >> 32)).put(static_cast<std::uint32_t>(va));
  }
  Wqe& remote(std::uint64_t va, std::uint32_t rkey) {
    return put(static_cast<std::uint32_t>(va >> 32)).put(static_cast<std::uint32_t>(va)).put(rkey).put(0);
  }
  Wqe& in_line(const std::string& s) {
    put(prm::kInlineFlag | static_cast<std::uint32_t>(s.size()));
    std::memcpy(buffer.data() + at, s.data(), s.size());
    at = (at + s.size() + 15) / 16 * 16;
    return *this;
  }
  SendWqe parse() { return parse_send_wqe({buffer, 0}); }
  sim::BufferPool pool;
  sim::BufferRef buffer;
  std::size_t at = 0;
};

// Its owner may write a longer WQE into the ring between two reads of it.
TEST(SendWqe, LongerThanTheBytesThatWereReadIsMalformed) {
  sim::BufferPool pool;
  for (const unsigned ds : {4U, 5U, 63U}) {
    const sim::BufferRef one = pool.make(prm::kWqebb);
    std::memset(one.data(), 0, prm::kWqebb);
    one.data()[3] = std::byte{MLX5_OPCODE_SEND};
    one.data()[7] = static_cast<std::byte>(ds);
    EXPECT_EQ(parse_send_wqe({one, 0}).malformed, ds > 4) << ds;
  }
}

TEST(SendWqe, ControlSegment) {
  Wqe w(MLX5_OPCODE_SEND_IMM, 2, MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_SOLICITED | 0x80, 7);
  w.data(100, 0x77, 0x1000);
  const SendWqe s = w.parse();
  EXPECT_EQ(s.opcode, MLX5_OPCODE_SEND_IMM);
  EXPECT_EQ(s.opmod, 7);
  EXPECT_EQ(s.index, 0x1234);
  EXPECT_EQ(s.qpn, 0x2abcu);
  EXPECT_EQ(s.ds, 2);
  EXPECT_EQ(s.fence, 4);
  EXPECT_TRUE(s.signaled && s.solicited && s.has_immediate() && s.is_send());
  EXPECT_EQ(prm::be32(s.immediate_raw), 0xAABBCCDDu);
  EXPECT_EQ(s.length, 100u);
  EXPECT_FALSE(s.malformed);
}

TEST(SendWqe, RemoteAddressAndSegmentsOfAWrite) {
  Wqe w(MLX5_OPCODE_RDMA_WRITE, 5, 0);
  w.remote(0x1122334455667788, 0x99).data(10, 1, 0x100).data(0, 2, 0x200).data(30, 3, 0x300);
  const SendWqe s = w.parse();
  EXPECT_EQ(s.remote_va, 0x1122334455667788u);
  EXPECT_EQ(s.rkey, 0x99u);
  EXPECT_EQ(s.length, 40u);
  EXPECT_FALSE(s.signaled);
  GatherCursor c(s.bytes.data(), s.first_data_ds, s.ds);
  auto g = c.next(8);
  EXPECT_EQ(g->va, 0x100u);
  EXPECT_EQ(g->length, 8u);
  g = c.next(100);
  EXPECT_EQ(g->va, 0x108u);
  EXPECT_EQ(g->length, 2u);
  g = c.next(100);
  EXPECT_EQ(g->lkey, 3u) << "an empty segment is passed over";
  EXPECT_EQ(g->length, 30u);
  EXPECT_FALSE(c.next(1));
}

TEST(SendWqe, InlineDataThenAPointer) {
  Wqe w(MLX5_OPCODE_SEND, 5);
  w.in_line("twenty-two bytes, yes!").data(6, 4, 0x4000);  // 4 + 22 bytes: two units
  const SendWqe s = w.parse();
  EXPECT_FALSE(s.malformed);
  EXPECT_TRUE(s.has_inline);
  EXPECT_EQ(s.length, 28u);
  GatherCursor c(s.bytes.data(), s.first_data_ds, s.ds);
  c.skip(20);
  auto g = c.next(100);
  EXPECT_TRUE(g->inline_data);
  EXPECT_EQ(g->length, 2u);
  EXPECT_EQ(std::memcmp(s.bytes.data() + g->va, "s!", 2), 0);
  EXPECT_EQ(c.next(100)->lkey, 4u);
}

TEST(SendWqe, WhatDoesNotFitIntoDsIsMalformed) {
  EXPECT_TRUE(Wqe(MLX5_OPCODE_SEND, 0).parse().malformed);
  EXPECT_FALSE(Wqe(MLX5_OPCODE_SEND, 1).parse().malformed) << "an empty message";
  EXPECT_TRUE(Wqe(MLX5_OPCODE_RDMA_WRITE, 1).parse().malformed) << "no remote address";
  Wqe exact(MLX5_OPCODE_SEND, 2), longer(MLX5_OPCODE_SEND, 2), huge(MLX5_OPCODE_SEND, 2);
  EXPECT_FALSE(exact.in_line(std::string(12, 'x')).parse().malformed);
  EXPECT_TRUE(longer.in_line(std::string(13, 'x')).parse().malformed);
  EXPECT_TRUE(huge.put(0xFFFFFFFF).parse().malformed);
}

TEST(SendWqe, BasicBlocks) {
  EXPECT_EQ(wqe_basic_blocks(1), 1u);
  EXPECT_EQ(wqe_basic_blocks(4), 1u);
  EXPECT_EQ(wqe_basic_blocks(5), 2u);
  EXPECT_EQ(wqe_basic_blocks(63), 16u);
}

TEST(ReceiveCursor, WalksSegmentsUpToTheTerminator) {
  Wqe w(0, 0);
  w.at = 0;
  w.data(10, 1, 0x1000).data(0, 2, 0x2000).data(20, 3, 0x3000).data(0, prm::kInvalidLkey, 0).data(50, 5, 0x5000);
  ReceiveCursor c(w.buffer.data(), 5);
  c.skip(4);
  auto g = c.next(100);
  EXPECT_EQ(g->va, 0x1004u);
  EXPECT_EQ(g->length, 6u);
  g = c.next(15);
  EXPECT_EQ(g->lkey, 3u);
  EXPECT_EQ(g->length, 15u);
  g = c.next(15);
  EXPECT_EQ(g->va, 0x300fu);
  EXPECT_EQ(g->length, 5u);
  EXPECT_FALSE(c.next(1));
}

TEST(ReceiveCursor, EndsAfterTheLastSegmentOfAFullWqe) {
  Wqe w(0, 0);
  w.at = 0;
  w.data(10, 1, 0x1000).data(10, 2, 0x2000).data(10, 3, 0x3000);
  ReceiveCursor c(w.buffer.data(), 2);
  c.skip(20);
  EXPECT_FALSE(c.next(1));
  EXPECT_FALSE(ReceiveCursor(w.buffer.data(), 2).next(0));
}

TEST(BlueflameBuffers, GiveBackTheWqeOnceAndOnlyToItsQpAndIndex) {
  BlueflameBuffers b(2);
  std::array<std::byte, prm::kBfBufSize> wqe{}, out{};
  wqe[9] = std::byte{42};
  EXPECT_TRUE(b.keep(1, 5, wqe));
  EXPECT_TRUE(b.keep(2, 5, wqe));
  EXPECT_FALSE(b.keep(3, 5, wqe)) << "full";
  EXPECT_FALSE(b.take(1, 6, out.data()));
  EXPECT_TRUE(b.take(1, 5, out.data()));
  EXPECT_EQ(out, wqe);
  EXPECT_FALSE(b.take(1, 5, out.data()));
  EXPECT_TRUE(b.keep(1, 7, wqe));
  b.discard(1, 8);
  EXPECT_FALSE(b.keep(4, 1, wqe)) << "still full";
  b.discard(1, 7);
  EXPECT_FALSE(b.take(1, 7, out.data()));
  b.drop(2);
  EXPECT_FALSE(b.take(2, 5, out.data()));
  EXPECT_TRUE(b.keep(3, 1, wqe));
}

}  // namespace
}  // namespace hca::test
