// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fixture.h"

namespace fabric {
namespace {

TEST(Packet, write_to_gathers_header_payload_pad_and_icrc_low_byte_first) {
  sim::Context context;
  auto& pool = context.pools.of<Packet>("packet");
  PacketPtr p = pool.make();
  p->header_length = 2;
  p->header[0] = std::byte{0xA0};
  p->header[1] = std::byte{0xA1};
  p->payload = context.buffers.make(8);
  for (unsigned i = 0; i < 8; ++i) p->payload.data()[i] = static_cast<std::byte>(i);
  p->payload_offset = 3;
  p->payload_length = 3;
  p->pad = 1;
  p->has_icrc = true;
  p->icrc = 0x11223344;
  ASSERT_EQ(p->frame_length(), 10U);
  std::array<std::byte, 10> out;
  out.fill(std::byte{0xEE});
  p->write_to(out);
  const unsigned expected[] = {0xA0, 0xA1, 3, 4, 5, 0, 0x44, 0x33, 0x22, 0x11};
  for (unsigned i = 0; i < 10; ++i) EXPECT_EQ(std::to_integer<unsigned>(out[i]), expected[i]) << i;
}

TEST(Packet, identify_finds_the_bth_behind_each_kind_of_header) {
  sim::Context context;
  for (const bool v4 : {true, false})
    for (const std::uint16_t vlan : {hca::wire::kNoVlan, std::uint16_t{5}}) {
      hca::wire::Path path;
      path.vlan = vlan;
      if (v4) path.source = path.destination = hca::wire::ipv4_gid(1, 2, 3, 4);
      Packet p;
      hca::wire::Headers h;
      h.bth.opcode = hca::wire::kReadRequest;
      h.bth.dest_qpn = 0xABCDEF;
      h.bth.psn = hca::Psn(0x123456);
      hca::wire::FrameTemplate(path).build(p, h);
      const FrameId id = identify(p);
      EXPECT_TRUE(id.roce);
      EXPECT_EQ(id.opcode, hca::wire::kReadRequest);
      EXPECT_EQ(id.qpn, 0xABCDEFU);
      EXPECT_EQ(id.psn, 0x123456U);
    }
}

TEST(Packet, identify_does_not_take_other_frames_for_roce) {
  sim::Context context;
  Packet p;
  fill(p, context, 1, 0);
  p.header[36] = std::byte{0};  // UDP destination port
  EXPECT_FALSE(identify(p).roce);
  fill(p, context, 1, 0);
  p.header[12] = std::byte{0x42};  // EtherType
  EXPECT_FALSE(identify(p).roce);
  fill(p, context, 1, 0);
  p.header_length = 53;
  EXPECT_FALSE(identify(p).roce);
  p.header_length = 0;
  EXPECT_FALSE(identify(p).roce);
}

}  // namespace
}  // namespace fabric
