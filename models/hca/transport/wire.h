// SPDX-License-Identifier: Apache-2.0
// RoCEv2 frames as bytes: header codecs, the opcode table, a builder that patches a per-QP template, and a parser that
// refuses every malformed frame with a reason. All multi-byte fields are big endian on the wire and host order here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "fabric/packet.h"
#include "hca/transport/psn.h"
#include "sim/buffer.h"
#include "sim/units.h"

namespace hca::wire {

inline constexpr std::size_t kEthernetSize = 14, kVlanSize = 4, kIpv4Size = 20, kIpv6Size = 40, kUdpSize = 8,
                             kBthSize = 12, kRethSize = 16, kAtomicEthSize = 28, kAethSize = 4, kAtomicAckEthSize = 8,
                             kImmDtSize = 4, kIethSize = 4, kDethSize = 8, kXrcEthSize = 4, kCnpReservedSize = 16,
                             kIcrcSize = 4;
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800, kEtherTypeIpv6 = 0x86DD, kEtherTypeVlan = 0x8100;
inline constexpr std::uint8_t kIpProtocolUdp = 17;
inline constexpr std::uint16_t kRocePort = 4791;
inline constexpr std::uint16_t kNoVlan = 0xFFFF;

using Mac = std::array<std::uint8_t, 6>;
using Gid = std::array<std::uint8_t, 16>;
/// ::ffff:a.b.c.d, which travels as IPv4 (S-ROCE-3).
bool is_ipv4(const Gid& gid);
Gid ipv4_gid(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d);

// Headers --------------------------------------------------------------------------------------------------------------
// encode() writes and decode() reads exactly k…Size bytes.

struct Ethernet {
  Mac destination{}, source{};
  std::uint16_t type = kEtherTypeIpv4;
  void encode(std::byte* to) const;
  static Ethernet decode(const std::byte* from);
};

struct Ipv4 {
  std::uint8_t tos = 0, ttl = 64, protocol = kIpProtocolUdp;
  std::uint16_t total_length = 0, id = 0;
  bool dont_fragment = true;
  std::array<std::uint8_t, 4> source{}, destination{};
  /// Computes the header checksum.
  void encode(std::byte* to) const;
  /// Reads a header whose version is 4 and whose header length is 20.
  static Ipv4 decode(const std::byte* from);
};

struct Ipv6 {
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  std::uint16_t payload_length = 0;
  std::uint8_t next_header = kIpProtocolUdp, hop_limit = 64;
  Gid source{}, destination{};
  void encode(std::byte* to) const;
  static Ipv6 decode(const std::byte* from);
};

struct Udp {
  std::uint16_t source = 0, destination = kRocePort, length = 0, checksum = 0;
  void encode(std::byte* to) const;
  static Udp decode(const std::byte* from);
};

struct Bth {
  std::uint8_t opcode = 0;
  bool solicited = false, mig_req = true;
  std::uint8_t pad = 0;      ///< 0..3
  std::uint8_t version = 0;  ///< TVer
  std::uint16_t pkey = 0xFFFF;
  bool fecn = false, becn = false;
  std::uint32_t dest_qpn = 0;
  bool ack_req = false;
  Psn psn{};
  void encode(std::byte* to) const;
  static Bth decode(const std::byte* from);
};

struct Reth {
  std::uint64_t va = 0;
  std::uint32_t rkey = 0, length = 0;
  void encode(std::byte* to) const;
  static Reth decode(const std::byte* from);
};

struct AtomicEth {
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0, compare = 0;
  void encode(std::byte* to) const;
  static AtomicEth decode(const std::byte* from);
};

struct Aeth {
  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;  ///< 24 bits
  void encode(std::byte* to) const;
  static Aeth decode(const std::byte* from);
};

struct Deth {
  std::uint32_t qkey = 0, source_qpn = 0;
  void encode(std::byte* to) const;
  static Deth decode(const std::byte* from);
};

// Opcodes (S-PKT-5) ----------------------------------------------------------------------------------------------------

enum Transport : std::uint8_t { kRc = 0, kUc = 1, kRd = 2, kUd = 3, kCnpClass = 4, kXrc = 5 };

/// Operation, the low five bits of the opcode.
enum Operation : std::uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImm = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImm = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImm = 0x09,
  kWriteOnly = 0x0A,
  kWriteOnlyImm = 0x0B,
  kReadRequest = 0x0C,
  kReadResponseFirst = 0x0D,
  kReadResponseMiddle = 0x0E,
  kReadResponseLast = 0x0F,
  kReadResponseOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastInvalidate = 0x16,
  kSendOnlyInvalidate = 0x17,
};
constexpr std::uint8_t make_opcode(Transport t, std::uint8_t operation) {
  return static_cast<std::uint8_t>(t << 5 | operation);
}
inline constexpr std::uint8_t kCnp = 0x81;

/// Headers after the BTH, as bits of OpcodeInfo::headers, in wire order.
enum HeaderBit : std::uint16_t {
  kHasXrcEth = 1,
  kHasDeth = 2,
  kHasReth = 4,
  kHasAtomicEth = 8,
  kHasAeth = 16,
  kHasAtomicAckEth = 32,
  kHasImmDt = 64,
  kHasIeth = 128,
  kHasCnpReserved = 256,
};
enum class MessageKind : std::uint8_t {
  invalid,
  send,
  write,
  read_request,
  read_response,
  ack,
  atomic_ack,
  atomic,
  cnp
};
enum class Position : std::uint8_t { first, middle, last, only };
/// Payload that an opcode allows (S-PKT-6).
enum class PayloadRule : std::uint8_t { none, full, some, any };

struct OpcodeInfo {
  MessageKind kind = MessageKind::invalid;
  Position position = Position::only;
  PayloadRule payload = PayloadRule::none;
  std::uint16_t headers = 0;
  std::uint8_t headers_size = 0;   ///< bytes of `headers`
  bool takes_receive_wqe = false;  ///< this packet needs a receive WQE of its own (SEND: first or only)
  bool ends_receive_wqe = false;   ///< its execution completes a receive WQE
  const char* name = "invalid";
  constexpr bool valid() const { return kind != MessageKind::invalid; }
  constexpr bool has(HeaderBit h) const { return (headers & h) != 0; }
  constexpr bool is_request() const {
    return kind == MessageKind::send || kind == MessageKind::write || kind == MessageKind::read_request ||
           kind == MessageKind::atomic;
  }
  constexpr bool is_response() const {
    return kind == MessageKind::read_response || kind == MessageKind::ack || kind == MessageKind::atomic_ack;
  }
  constexpr bool starts() const { return position == Position::first || position == Position::only; }
  constexpr bool ends() const { return position == Position::last || position == Position::only; }
};
/// Entry of the opcode table; valid() is false for reserved opcodes.
const OpcodeInfo& opcode_info(std::uint8_t opcode);
constexpr Transport transport_of(std::uint8_t opcode) { return static_cast<Transport>(opcode >> 5); }
constexpr std::uint8_t operation_of(std::uint8_t opcode) { return opcode & 0x1F; }

/// Whether `length` payload bytes suit the opcode at this path MTU (S-PKT-6). READ responses follow the same rule.
bool payload_fits(const OpcodeInfo& op, std::uint32_t length, std::uint32_t pmtu);
/// Packets of a message of `length` bytes: max(1, ceil(length / pmtu)) (S-PKT-8).
constexpr std::uint32_t packet_count(std::uint64_t length, std::uint32_t pmtu) {
  return length == 0 ? 1U : static_cast<std::uint32_t>((length + pmtu - 1) / pmtu);
}
/// Same partition, and at least one side a full member (S-PKT-12).
constexpr bool pkeys_match(std::uint16_t a, std::uint16_t b) {
  return ((a ^ b) & 0x7FFF) == 0 && ((a | b) & 0x8000) != 0;
}

// AETH syndromes (S-PKT-9..11) -----------------------------------------------------------------------------------------

enum class AethKind : std::uint8_t { ack, rnr_nak, nak, reserved };
enum Nak : std::uint8_t {
  kNakPsnSequence = 0x60,
  kNakInvalidRequest = 0x61,
  kNakRemoteAccess = 0x62,
  kNakRemoteOperational = 0x63,
  kNakInvalidRd = 0x64,
};
/// Credit code that switches end-to-end flow control off.
inline constexpr std::uint8_t kNoCredits = 31;
constexpr AethKind aeth_kind(std::uint8_t syndrome) {
  constexpr AethKind kinds[8] = {AethKind::ack,      AethKind::rnr_nak,  AethKind::reserved, AethKind::nak,
                                 AethKind::reserved, AethKind::reserved, AethKind::reserved, AethKind::reserved};
  return kinds[syndrome >> 5];
}
constexpr std::uint8_t ack_syndrome(std::uint8_t credit_code = kNoCredits) { return credit_code & 0x1F; }
constexpr std::uint8_t rnr_syndrome(std::uint8_t timer_code) {
  return static_cast<std::uint8_t>(0x20 | (timer_code & 0x1F));
}
/// The low five bits: credit code, RNR timer code or NAK code.
constexpr std::uint8_t aeth_value(std::uint8_t syndrome) { return syndrome & 0x1F; }
/// Wait that a 5-bit RNR timer code asks for.
sim::Picos rnr_delay(std::uint8_t code);
/// Receive WQEs that credit code 0..30 announces.
std::uint32_t credits_of(std::uint8_t code);
/// Largest credit code that announces at most `credits`.
std::uint8_t credit_code(std::uint32_t credits);

// Paths and frames -----------------------------------------------------------------------------------------------------

/// UDP source port of a 20-bit flow label (S-ROCE-1).
constexpr std::uint16_t udp_source_port(std::uint32_t flow_label) {
  return static_cast<std::uint16_t>(((flow_label & 0x3FFF) ^ (flow_label >> 14 & 0x3F)) | 0xC000);
}
/// Flow label of a connected QP whose address vector has none; the same seen from both ends (S-ROCE-2).
constexpr std::uint32_t default_flow_label(std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  std::uint64_t v = static_cast<std::uint64_t>(local_qpn) * remote_qpn;
  v ^= v >> 20;
  v ^= v >> 40;
  return static_cast<std::uint32_t>(v & 0xFFFFF);
}

/// Where a QP's (or address handle's) packets go.
struct Path {
  Mac source_mac{}, destination_mac{};
  Gid source{}, destination{};     ///< both IPv4-mapped, or neither
  std::uint8_t traffic_class = 0;  ///< TOS on IPv4; the low two bits are ECN
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;  ///< IPv6 header only
  std::uint16_t udp_source_port = 0xC000;
  std::uint16_t vlan = kNoVlan;  ///< 802.1Q tag control information
};

/// Everything from the BTH on. Only the headers that the opcode names are encoded, and only those are valid after parsing.
struct Headers {
  Bth bth;
  std::uint32_t xrc_srqn = 0;
  Deth deth;
  Reth reth;
  AtomicEth atomic;
  Aeth aeth;
  std::uint64_t atomic_ack = 0;
  std::uint32_t immediate = 0;  ///< the four bytes as they lie on the wire and in the CQE (network order)
  std::uint32_t invalidate_rkey = 0;
};

/// Ethernet, IP and UDP headers of one path, ready to copy; a packet needs only its lengths, IPv4 id and checksum patched.
class FrameTemplate {
 public:
  FrameTemplate() = default;
  explicit FrameTemplate(const Path& path);
  /// Bytes in front of the BTH.
  std::size_t size() const { return size_; }
  bool ipv4() const { return ipv4_; }
  /// Writes headers, pad and ICRC for a packet whose payload fields are set already; `h.bth.pad` is computed here.
  /// h.bth.opcode must be valid. Each packet takes the next IPv4 identification.
  void build(fabric::Packet& packet, const Headers& h);

 private:
  static constexpr std::size_t kMaxSize = kEthernetSize + kVlanSize + kIpv6Size + kUdpSize;
  std::array<std::byte, kMaxSize> bytes_{};
  std::uint8_t size_ = 0, l3_ = 0;
  bool ipv4_ = true;
  std::uint16_t next_ip_id_ = 0;
  std::uint32_t checksum_base_ = 0;  ///< sum of the IPv4 header's words with length, id and checksum zero
};

/// Why a frame is refused, in the order of the checks.
enum class ParseError : std::uint8_t {
  none,
  truncated,   ///< shorter than its headers
  ether_type,  ///< neither IPv4 nor IPv6, after at most one VLAN tag
  ip_version,  ///< version nibble disagrees with the EtherType, or IPv4 options
  ip_checksum,
  ip_fragment,
  ip_protocol,  ///< not UDP
  ip_length,    ///< disagrees with the bytes that are there
  udp_port,     ///< destination is not 4791
  udp_length,
  icrc,
  bth_version,  ///< TVer is not 0
  opcode,       ///< reserved
  length,       ///< no room for the opcode's headers, or payload where none is allowed or one is needed
  pad,          ///< payload and pad are no multiple of four, or pad bytes are not zero
};
std::string_view name_of(ParseError e);

/// A frame that parse() accepts.
struct Parsed {
  Headers headers;
  const OpcodeInfo* op = nullptr;
  bool ipv4 = true;
  bool ecn_ce = false;         ///< congestion experienced (IP ECN field 11)
  std::uint8_t l3_offset = 0;  ///< of the IP header in Packet::header
  std::uint8_t bth_offset = 0;
  std::uint16_t udp_source_port = 0;
};

/// Checks every byte of the frame and decodes its headers. The payload stays in the packet. Never reads out of bounds,
/// whatever the bytes are. With ParseError::opcode the BTH and the addresses are valid. UDP checksums are not looked at (S-ROCE-5).
ParseError parse(const fabric::Packet& packet, Parsed& out);
/// Puts the bytes of a foreign frame (from the Ethernet header to the ICRC, Ethernet padding allowed) into `packet` with the
/// boundary between header and payload where parse() expects it. The ICRC is carried over, not checked.
ParseError load_frame(std::span<const std::byte> frame, fabric::Packet& packet, sim::BufferPool& buffers);

/// Addresses of a parsed packet.
Gid source_gid(const fabric::Packet& packet, const Parsed& parsed);
Gid destination_gid(const fabric::Packet& packet, const Parsed& parsed);

}  // namespace hca::wire
