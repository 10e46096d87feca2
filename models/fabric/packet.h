// SPDX-License-Identifier: Apache-2.0
// One frame on the fabric: real header bytes (Ethernet to the last transport header), payload in a shared buffer, pad and
// ICRC. Whoever receives it parses the bytes; the metadata serves traces only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <systemc>

#include "sim/buffer.h"
#include "sim/pool.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace fabric {

inline constexpr std::size_t kMaxHeader = 160;

struct Packet {
  Packet() {}  // user-provided, so that making a packet does not clear 160 bytes of header

  std::uint16_t header_length = 0;   ///< bytes in `header`
  std::uint32_t payload_length = 0;  ///< without pad
  std::uint8_t pad = 0;              ///< 0..3 zero bytes after the payload
  bool has_icrc = false;             ///< 4 bytes after the pad
  std::uint32_t icrc = 0;            ///< CRC value; on the wire least significant byte first
  std::array<std::byte, kMaxHeader> header;
  sim::BufferRef payload;
  std::uint32_t payload_offset = 0;

  sim::trace::Cause cause;
  std::uint32_t serial = 0;  ///< per-sender count, for traces

  std::span<std::byte> header_bytes() { return {header.data(), header_length}; }
  std::span<const std::byte> header_bytes() const { return {header.data(), header_length}; }
  std::span<const std::byte> payload_bytes() const {
    return payload_length == 0 ? std::span<const std::byte>{}
                               : std::span<const std::byte>{payload.data() + payload_offset, payload_length};
  }
  /// Length from the Ethernet header to the ICRC, without FCS, preamble and gap.
  std::uint32_t frame_length() const { return header_length + payload_length + pad + (has_icrc ? 4U : 0U); }
  /// Writes the whole frame to `out`, which must hold frame_length() bytes.
  void write_to(std::span<std::byte> out) const;
};
using PacketPtr = sim::Ptr<Packet>;

/// Whoever takes packets from a link. `receive` is called when the last bit has arrived.
struct PacketSink : virtual sc_core::sc_interface {
  virtual void receive(PacketPtr packet) = 0;
  /// The link has lost its signal, or has it again.
  virtual void link_state(bool /*up*/) {}
};

/// The sending side of a port.
struct PacketPort : virtual sc_core::sc_interface {
  /// Queues a packet for transmission; packets leave in order at line rate.
  virtual void send(PacketPtr packet) = 0;
  virtual PacketPtr make_packet() = 0;
  /// Bytes queued but not yet on the wire.
  virtual std::uint64_t queued_bytes() const = 0;
  /// Time at which a packet handed over now would start to leave.
  virtual sim::Picos ready_at() const = 0;
};

}  // namespace fabric
