// SPDX-License-Identifier: Apache-2.0
// Finds the BTH behind Ethernet (one VLAN tag at most), IPv4 without options or IPv6, and UDP port 4791.
#include "fabric/frame_id.h"

namespace fabric {
namespace {

std::uint32_t big_endian(const std::byte* p, unsigned n) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < n; ++i) v = v << 8 | std::to_integer<std::uint32_t>(p[i]);
  return v;
}

}  // namespace

FrameId identify(const Packet& packet) {
  constexpr std::uint32_t kVlan = 0x8100, kIpv4 = 0x0800, kIpv6 = 0x86DD, kRocePort = 4791, kBthSize = 12;
  const std::byte* h = packet.header.data();
  const std::size_t length = packet.header_length;
  if (length < 18) return {};
  std::size_t at = 14;
  std::uint32_t type = big_endian(h + 12, 2);
  if (type == kVlan) {
    type = big_endian(h + 16, 2);
    at = 18;
  }
  if (type != kIpv4 && type != kIpv6) return {};
  at += (type == kIpv4 ? 20 : 40) + 8;
  if (length < at + kBthSize || big_endian(h + at - 6, 2) != kRocePort) return {};
  return {true, static_cast<std::uint16_t>(at), std::to_integer<std::uint8_t>(h[at]), big_endian(h + at + 5, 3),
          big_endian(h + at + 9, 3)};
}

}  // namespace fabric
