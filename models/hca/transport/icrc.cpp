// SPDX-License-Identifier: Apache-2.0
// CRC-32 of Ethernet over eight bytes of ones (in place of an LRH), the IP header and all that follows, up to the ICRC itself.
// Header and payload are hashed where they lie; only the few header bytes that carry mutable fields are copied to be
// masked. Source: InfiniBand Architecture annex A17 (RoCEv2), rules S-ICRC-1..4. The VCRC of InfiniBand is not here.
#include "hca/transport/icrc.h"

#include <libdeflate.h>

#include <array>
#include <cstring>

#include "hca/transport/wire.h"
#include "sim/check.h"

namespace hca::wire {
namespace {

// CRC value after the eight bytes of ones: complement of the register 0xDEBB20E3.
constexpr std::uint32_t kSeed = ~0xDEBB20E3U;

// Copies the IP, UDP and first five BTH bytes with their mutable fields masked; returns the number of bytes done.
std::size_t mask(const std::byte* ip, std::byte* out) {
  constexpr std::byte kOnes{0xFF};
  const bool v4 = (ip[0] & std::byte{0xF0}) == std::byte{0x40};
  const std::size_t l3 = v4 ? kIpv4Size : kIpv6Size;
  const std::size_t n = l3 + kUdpSize + 5;
  if (v4) {
    std::memcpy(out, ip, kIpv4Size + kUdpSize + 5);
    out[1] = kOnes;
    out[8] = kOnes;
    out[10] = out[11] = kOnes;
  } else {
    std::memcpy(out, ip, kIpv6Size + kUdpSize + 5);
    out[0] |= std::byte{0x0F};
    out[1] = out[2] = out[3] = kOnes;
    out[7] = kOnes;
  }
  out[l3 + 6] = out[l3 + 7] = kOnes;
  out[n - 1] = kOnes;
  return n;
}

constexpr std::size_t kMaskedMax = kIpv6Size + kUdpSize + 5;
std::size_t needed(const std::byte* ip) {
  return ((ip[0] & std::byte{0xF0}) == std::byte{0x40} ? kIpv4Size : kIpv6Size) + kUdpSize + kBthSize;
}

}  // namespace

std::uint32_t icrc(const fabric::Packet& packet, std::size_t l3_offset) {
  const std::byte* ip = packet.header.data() + l3_offset;
  const std::size_t length = packet.header_length - l3_offset;
  SIM_CHECK(packet.header_length > l3_offset && length >= needed(ip), "ICRC of a header without BTH");
  // One buffer with the whole masked header: a single call is faster than one for the masked and one for the plain part.
  std::array<std::byte, fabric::kMaxHeader> masked;
  std::memcpy(masked.data(), ip, length);
  mask(ip, masked.data());
  std::uint32_t crc = libdeflate_crc32(kSeed, masked.data(), length);
  if (packet.payload_length != 0)
    crc = libdeflate_crc32(crc, packet.payload.data() + packet.payload_offset, packet.payload_length);
  if (packet.pad != 0) {
    constexpr std::array<std::byte, 4> kZeros{};
    crc = libdeflate_crc32(crc, kZeros.data(), packet.pad);
  }
  return crc;
}

std::uint32_t icrc(std::span<const std::byte> ip_to_pad) {
  SIM_CHECK(!ip_to_pad.empty() && ip_to_pad.size() >= needed(ip_to_pad.data()), "ICRC of a frame without BTH");
  std::array<std::byte, kMaskedMax> masked;
  const std::size_t n = mask(ip_to_pad.data(), masked.data());
  const std::uint32_t crc = libdeflate_crc32(kSeed, masked.data(), n);
  return libdeflate_crc32(crc, ip_to_pad.data() + n, ip_to_pad.size() - n);
}

}  // namespace hca::wire
