// SPDX-License-Identifier: Apache-2.0
// Golden vectors of S-ICRC-4: captures and recomputed packets, from the IP header on.
#include "hca/transport/icrc.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "hca/transport/wire.h"

namespace hca::wire {
namespace {

std::vector<std::byte> bytes(const std::string& hex) {
  std::vector<std::byte> out;
  std::string digits;
  for (const char c : hex)
    if (c != ' ') digits += c;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  return out;
}

struct Vector {
  const char* name;
  const char* packet;
  const char* icrc;
};
const Vector kVectors[] = {
    {"V1 UC SEND_ONLY",
     "45010040 04784000 4011b4d5 c0a80007 c0a80007 c00012b7 002caca2 2460ffff 000000d3 00cf1710 4630818b e28935d9 "
     "0e9a9550 "
     "5401be88 5e500000",
     "78f353f3"},
    {"V2 CNP",
     "45c2003c 718c4000 40119161 0a001101 0a001201 000012b7 00280000 8100ffff 40000118 00000000 "
     "00000000 00000000 00000000 00000000",
     "82fd002a"},
    {"V3 RC WRITE_ONLY",
     "45000044 00004000 401126a7 0a000001 0a000002 c00112b7 00300000 0a40ffff 00000102 80000010 00007f00 00001000 "
     "00001a01 "
     "00000008 00010203 04050607",
     "c9bf92cd"},
    {"V4 RC ACK", "45000030 00004000 401126bb 0a000002 0a000001 c00112b7 001c0000 1140ffff 00000101 00000010 1f000001",
     "ccfed1d2"},
    {"V5 IPv6 RC SEND_ONLY",
     "60000000 001c1140 fe800000 00000000 00000000 00000001 fe800000 00000000 00000000 00000002 c00112b7 001c0000 "
     "0440ffff "
     "00000102 80000010 41424344",
     "6e1aacdc"},
};

std::vector<std::byte> wire_order(std::uint32_t crc) {
  std::vector<std::byte> out;
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(crc >> 8 * i & 0xFF));
  return out;
}

// The frame of a vector, with an Ethernet header in front.
std::vector<std::byte> frame_of(const Vector& v) {
  std::vector<std::byte> f =
      bytes(v.packet[0] == '6' ? "020000000002 020000000001 86dd" : "020000000002 020000000001 0800");
  for (const std::byte b : bytes(v.packet)) f.push_back(b);
  for (const std::byte b : bytes(v.icrc)) f.push_back(b);
  return f;
}

TEST(Icrc, golden_vectors_over_contiguous_bytes) {
  for (const Vector& v : kVectors) EXPECT_EQ(wire_order(icrc(bytes(v.packet))), bytes(v.icrc)) << v.name;
}

TEST(Icrc, golden_vectors_over_header_and_payload_slices) {
  sim::BufferPool buffers;
  for (const Vector& v : kVectors) {
    fabric::Packet p;
    ASSERT_EQ(load_frame(frame_of(v), p, buffers), ParseError::none) << v.name;
    EXPECT_EQ(wire_order(icrc(p, 14)), bytes(v.icrc)) << v.name;
    EXPECT_EQ(icrc(p, 14), p.icrc) << v.name;
    Parsed parsed;
    EXPECT_EQ(parse(p, parsed), ParseError::none) << v.name;
  }
}

TEST(Icrc, the_builder_reproduces_the_vectors_byte_for_byte) {
  sim::BufferPool buffers;
  for (const Vector& v : kVectors) {
    const auto frame = frame_of(v);
    fabric::Packet p;
    ASSERT_EQ(load_frame(frame, p, buffers), ParseError::none);
    Parsed parsed;
    ASSERT_EQ(parse(p, parsed), ParseError::none);
    if (parsed.op->kind == MessageKind::cnp || parsed.op->name == std::string("SEND_ONLY")) {
      if (parsed.ipv4) continue;  // V1 and V2 carry an identification and a checksum of their own
    }
    Path path;
    const Ethernet ethernet = Ethernet::decode(frame.data());
    path.destination_mac = ethernet.destination;
    path.source_mac = ethernet.source;
    path.source = source_gid(p, parsed);
    path.destination = destination_gid(p, parsed);
    path.udp_source_port = parsed.udp_source_port;
    fabric::Packet built;
    built.payload = p.payload;
    built.payload_length = p.payload_length;
    FrameTemplate(path).build(built, parsed.headers);
    std::vector<std::byte> out(built.frame_length());
    built.write_to(out);
    EXPECT_EQ(out, frame) << v.name;
  }
}

// what routers and congestion marking change is masked, everything else is covered.
TEST(Icrc, covers_every_bit_but_the_mutable_fields) {
  for (const Vector& v : {kVectors[2], kVectors[4]}) {
    const auto packet = bytes(v.packet);
    const bool v4 = v.packet[0] == '4';
    const std::uint32_t good = icrc(packet);
    const std::size_t l3 = v4 ? 20 : 40;
    for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
      const std::size_t byte = bit / 8;
      const bool in_version = byte == 0 && bit % 8 >= 4;
      if (in_version) continue;  // the version decides what the bytes mean
      auto changed = packet;
      changed[byte] ^= static_cast<std::byte>(1U << bit % 8);
      const bool masked_ip = v4 ? byte == 1 || byte == 8 || byte == 10 || byte == 11 : byte < 4 || byte == 7;
      const bool masked = masked_ip || byte == l3 + 6 || byte == l3 + 7 || byte == l3 + 8 + 4;
      EXPECT_EQ(icrc(changed) == good, masked) << v.name << " byte " << byte << " bit " << bit % 8;
    }
  }
}

}  // namespace
}  // namespace hca::wire
