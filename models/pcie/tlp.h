// SPDX-License-Identifier: Apache-2.0
// Transaction layer packets with their true sizes, and the interface that every PCIe block offers.
// Source: PCI Express Base Specification (header formats); sizes on the link as in the pcie-bench model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <systemc>

#include "memory/address.h"
#include "sim/buffer.h"
#include "sim/check.h"
#include "sim/pool.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace pcie {

enum class TlpType : std::uint8_t { MRd, MWr, Cpl, CplD, Msg };
enum class CplStatus : std::uint8_t { SC = 0, UR = 1, CRS = 2, CA = 4 };
/// Flow-control class.
enum class FcClass : std::uint8_t { posted, non_posted, completion };

/// The receive buffer that a TLP occupies while its receiver is called; see Link. Valid during TlpSink::receive only.
struct ReceiveBuffer {
  sim::Picos consumed{0};
  /// The receiver keeps the TLP buffered until `t`; its flow-control credits return after that.
  void hold_until(sim::Picos t) { consumed = max(consumed, t); }
};

/// One TLP. Payload is either inline (up to 64 bytes: doorbells, CQEs, EQEs, MSI-X, BlueFlame lines) or a slice of a
/// shared buffer. A read request may name the buffer slice that is to receive the data: the completer writes the bytes
/// there when it reads memory, and the CplD that carries them refers to the same bytes.
struct Tlp {
  TlpType type = TlpType::MWr;
  CplStatus status = CplStatus::SC;
  bool relaxed_ordering = false;
  bool last_completion = false;   ///< CplD that ends its request
  std::uint16_t requester = 0;    ///< bus/device/function
  std::uint16_t tag = 0;          ///< MRd and its completions
  std::uint32_t length = 0;       ///< payload bytes carried (MWr, CplD) or requested (MRd)
  std::uint32_t byte_offset = 0;  ///< CplD: offset of this piece inside the request
  std::uint32_t byte_count = 0;   ///< CplD: bytes that this and the later completions of the request carry
  std::uint64_t address = 0;      ///< bus address: IOVA upstream, BAR address downstream
  sim::trace::Cause cause;
  sim::Picos t_enqueued{0};       ///< when the sender handed it to the link
  ReceiveBuffer* held = nullptr;  ///< set by the link for the duration of receive()
  sim::BufferRef buffer;          ///< external payload or read destination
  std::uint32_t buffer_offset = 0;
  std::array<std::byte, 64> inline_bytes;

  std::span<std::byte> bytes() { return {buffer ? buffer.data() + buffer_offset : inline_bytes.data(), length}; }
  std::span<const std::byte> bytes() const {
    return {buffer ? buffer.data() + buffer_offset : inline_bytes.data(), length};
  }
  void set_inline(std::span<const std::byte> b) {
    SIM_CHECK(b.size() <= inline_bytes.size(), "inline TLP payload over 64 bytes");
    std::memcpy(inline_bytes.data(), b.data(), b.size());
    length = static_cast<std::uint32_t>(b.size());
  }
  bool carries_data() const { return type == TlpType::MWr || type == TlpType::CplD; }
  FcClass fc_class() const {
    return type == TlpType::MRd                           ? FcClass::non_posted
           : type == TlpType::MWr || type == TlpType::Msg ? FcClass::posted
                                                          : FcClass::completion;
  }
};
using TlpPtr = sim::Ptr<Tlp>;

inline constexpr std::uint32_t kTlpTypes = 5;
/// Bytes of the physical and data link layers around each TLP: 2 B framing, 2 B sequence number, 4 B LCRC.
inline constexpr std::uint32_t kLinkOverhead = 8;
inline constexpr std::uint32_t kEcrcBytes = 4;
inline constexpr std::uint32_t kDataCreditBytes = 16;  ///< unit of data credits

/// Payload bytes that travel on the link: whole dwords, those that byte enables mask included.
inline std::uint32_t padded_payload(const Tlp& tlp) {
  if (!tlp.carries_data()) return 0;
  return (static_cast<std::uint32_t>(tlp.address & 3) + tlp.length + 3) & ~3U;
}
/// Header bytes: 12 for completions and for requests below 4 GiB (which must use the short form), else 16.
inline std::uint32_t header_bytes(const Tlp& tlp) {
  switch (tlp.type) {
    case TlpType::Cpl:
    case TlpType::CplD:
      return 12;
    case TlpType::Msg:
      return 16;
    case TlpType::MRd:
    case TlpType::MWr:
      break;
  }
  return tlp.address >> 32 == 0 ? 12 : 16;
}
/// All bytes of the TLP on the link.
inline std::uint32_t wire_bytes(const Tlp& tlp, bool ecrc) {
  return kLinkOverhead + header_bytes(tlp) + padded_payload(tlp) + (ecrc ? kEcrcBytes : 0U);
}
/// Data credits that the TLP consumes.
inline std::uint32_t data_credits(const Tlp& tlp) {
  return (padded_payload(tlp) + kDataCreditBytes - 1) / kDataCreditBytes;
}

/// Whoever takes TLPs from a link (or hands them to one).
struct TlpSink : virtual sc_core::sc_interface {
  virtual void receive(TlpPtr tlp) = 0;
};

}  // namespace pcie
