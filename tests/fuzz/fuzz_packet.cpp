// SPDX-License-Identifier: Apache-2.0
// Any bytes as a frame: taking it apart stays inside it, a frame that is accepted can be written and read back unchanged,
// and a packet whose header ends anywhere is refused or accepted without harm.
#include <algorithm>
#include <cstring>
#include <vector>

#include "fabric/frame_id.h"
#include "hca/transport/icrc.h"
#include "hca/transport/wire.h"
#include "sim/check.h"

namespace {

namespace wire = hca::wire;

sim::BufferPool& pool() {
  static sim::BufferPool p;
  return p;
}

// A frame with a right ICRC passes the check behind which most of the parser lies.
void whole_frame(std::span<const std::byte> frame) {
  fabric::Packet packet;
  if (wire::load_frame(frame, packet, pool()) != wire::ParseError::none) return;
  wire::Parsed parsed;
  wire::ParseError error = wire::parse(packet, parsed);
  if (error == wire::ParseError::icrc) {
    const auto at = static_cast<std::size_t>(fabric::identify(packet).bth_offset);
    std::vector<std::byte> bytes(packet.frame_length());
    packet.write_to(bytes);
    const std::size_t ip = wire::kEthernetSize + (bytes[12] == std::byte{0x81} ? wire::kVlanSize : 0);
    if (at == 0 || ip + wire::kIcrcSize > bytes.size()) return;
    packet.icrc = wire::icrc(std::span<const std::byte>(bytes).subspan(ip, bytes.size() - ip - wire::kIcrcSize));
    error = wire::parse(packet, parsed);
    SIM_CHECK(error != wire::ParseError::icrc, "the parser does not accept the ICRC that it computes");
  }
  (void)fabric::identify(packet);
  if (error != wire::ParseError::none) return;
  SIM_CHECK(parsed.op != nullptr && parsed.op->valid(), "accepted without a valid opcode");
  (void)wire::source_gid(packet, parsed);
  (void)wire::destination_gid(packet, parsed);
  std::vector<std::byte> copy(packet.frame_length());
  packet.write_to(copy);
  fabric::Packet again;
  SIM_CHECK(wire::load_frame(copy, again, pool()) == wire::ParseError::none,
            "a frame that was accepted is not loaded again");
  SIM_CHECK(again.header_length == packet.header_length && again.payload_length == packet.payload_length &&
                again.pad == packet.pad && again.icrc == packet.icrc,
            "a frame is not what it was after writing and loading");
}

// The bytes as everything behind a UDP header that is right, with a right ICRC at the end.
void transport_part(std::span<const std::byte> bytes, bool vlan) {
  const std::size_t ip = 14 + (vlan ? 4U : 0U), udp = ip + 20, size = udp + 8 + bytes.size() + 4;
  std::vector<std::byte> f(size);
  const auto put16 = [&](std::size_t at, std::size_t v) {
    f[at] = static_cast<std::byte>(v >> 8);
    f[at + 1] = static_cast<std::byte>(v);
  };
  if (vlan) put16(12, 0x8100);
  put16(ip - 2, 0x0800);
  f[ip] = std::byte{0x45};
  put16(ip + 2, size - ip);
  put16(ip + 6, 0x4000);
  put16(ip + 8, 0x4011);
  put16(ip + 12, 0x0A00);
  std::size_t sum = 0;
  for (std::size_t i = ip; i < udp; i += 2)
    sum += static_cast<std::size_t>(f[i]) << 8 | static_cast<std::size_t>(f[i + 1]);
  put16(ip + 10, ~(sum % 0xFFFF) & 0xFFFF);
  put16(udp + 2, 4791);
  put16(udp + 4, size - udp);
  std::copy(bytes.begin(), bytes.end(), f.begin() + static_cast<std::ptrdiff_t>(udp) + 8);
  whole_frame(f);
}

// The same bytes cut into header and payload wherever the first two bytes say.
void arbitrary_packet(std::span<const std::byte> bytes) {
  if (bytes.size() < 3) return;
  fabric::Packet packet;
  const auto at = static_cast<std::size_t>(bytes[0]);
  const auto flags = static_cast<unsigned>(bytes[1]);
  bytes = bytes.subspan(2);
  const std::size_t head = std::min({at, bytes.size(), packet.header.size()});
  packet.header_length = static_cast<std::uint16_t>(head);
  std::memcpy(packet.header.data(), bytes.data(), head);
  packet.payload_length = static_cast<std::uint32_t>(bytes.size() - head);
  if (packet.payload_length > 0) {
    packet.payload = pool().make(packet.payload_length);
    std::memcpy(packet.payload.data(), bytes.data() + head, packet.payload_length);
  }
  packet.pad = static_cast<std::uint8_t>(flags & 3);
  packet.has_icrc = (flags & 4) != 0;
  (void)fabric::identify(packet);
  wire::Parsed parsed;
  (void)wire::parse(packet, parsed);
}

}  // namespace

// The first byte says what the others are.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 5000) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  if (bytes.empty()) return 0;
  const auto mode = static_cast<unsigned>(bytes[0]) % 4;
  if (mode == 0) whole_frame(bytes.subspan(1));
  else if (mode == 1) arbitrary_packet(bytes.subspan(1));
  else transport_part(bytes.subspan(1), mode == 3);
  return 0;
}
