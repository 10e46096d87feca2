// SPDX-License-Identifier: Apache-2.0
// Codecs, frame builder and frame parser of RoCEv2 over IPv4 and IPv6 with an optional 802.1Q tag (S-PKT-1, 3, 4; S-ROCE-1..5).
// The builder copies a path's template and patches what differs per packet; the IPv4 checksum is completed from the
// template's partial sum. RoCEv1 and native InfiniBand framing are not here. Addresses, P_Key, QPN and the path MTU are
// the receiving QP's business, so the parser does not judge them.
#include "hca/transport/wire.h"

#include "hca/transport/icrc.h"
#include "sim/check.h"

namespace hca::wire {
namespace {

constexpr std::uint8_t kEcnMask = 3;
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr Gid kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0};

std::uint8_t load8(const std::byte* p) { return std::to_integer<std::uint8_t>(*p); }
void store8(std::byte* p, unsigned v) { *p = static_cast<std::byte>(v); }
std::uint16_t load16(const std::byte* p) {
  std::uint16_t v;
  std::memcpy(&v, p, 2);
  return __builtin_bswap16(v);
}
void store16(std::byte* p, std::uint16_t v) {
  v = __builtin_bswap16(v);
  std::memcpy(p, &v, 2);
}
std::uint32_t load32(const std::byte* p) {
  std::uint32_t v;
  std::memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
void store32(std::byte* p, std::uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, 4);
}
std::uint64_t load64(const std::byte* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}
void store64(std::byte* p, std::uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, 8);
}

std::uint32_t sum_words(const std::byte* p, std::size_t n) {
  std::uint32_t s = 0;
  for (std::size_t i = 0; i < n; i += 2) s += load16(p + i);
  return s;
}
constexpr std::uint16_t fold(std::uint32_t s) {
  s = (s & 0xFFFF) + (s >> 16);
  s = (s & 0xFFFF) + (s >> 16);
  return static_cast<std::uint16_t>(s);
}

// Writes the headers that `bits` names, in wire order.
void encode_extended(std::byte* to, std::uint16_t bits, const Headers& h) {
  if (bits == 0) return;
  if ((bits & kHasXrcEth) != 0) store32(to, h.xrc_srqn & 0xFFFFFF), to += kXrcEthSize;
  if ((bits & kHasDeth) != 0) h.deth.encode(to), to += kDethSize;
  if ((bits & kHasReth) != 0) h.reth.encode(to), to += kRethSize;
  if ((bits & kHasAtomicEth) != 0) h.atomic.encode(to), to += kAtomicEthSize;
  if ((bits & kHasAeth) != 0) h.aeth.encode(to), to += kAethSize;
  if ((bits & kHasAtomicAckEth) != 0) store64(to, h.atomic_ack), to += kAtomicAckEthSize;
  if ((bits & kHasImmDt) != 0) std::memcpy(to, &h.immediate, kImmDtSize), to += kImmDtSize;
  if ((bits & kHasIeth) != 0) store32(to, h.invalidate_rkey), to += kIethSize;
  if ((bits & kHasCnpReserved) != 0) std::memset(to, 0, kCnpReservedSize);
}

void decode_extended(const std::byte* from, std::uint16_t bits, Headers& h) {
  if (bits == 0) return;
  if ((bits & kHasXrcEth) != 0) h.xrc_srqn = load32(from) & 0xFFFFFF, from += kXrcEthSize;
  if ((bits & kHasDeth) != 0) h.deth = Deth::decode(from), from += kDethSize;
  if ((bits & kHasReth) != 0) h.reth = Reth::decode(from), from += kRethSize;
  if ((bits & kHasAtomicEth) != 0) h.atomic = AtomicEth::decode(from), from += kAtomicEthSize;
  if ((bits & kHasAeth) != 0) h.aeth = Aeth::decode(from), from += kAethSize;
  if ((bits & kHasAtomicAckEth) != 0) h.atomic_ack = load64(from), from += kAtomicAckEthSize;
  if ((bits & kHasImmDt) != 0) std::memcpy(&h.immediate, from, kImmDtSize), from += kImmDtSize;
  if ((bits & kHasIeth) != 0) h.invalidate_rkey = load32(from);
}

// Ethernet, IP and UDP of `head`; `available` counts the bytes of the frame from the Ethernet header to the ICRC.
struct Lower {
  ParseError error = ParseError::none;
  bool ipv4 = true, ecn_ce = false;
  std::uint8_t l3 = 0, bth = 0;
  std::uint16_t udp_source_port = 0;
  std::size_t frame_end = 0;  ///< one past the ICRC, by the IP length
};

Lower parse_ipv4(std::span<const std::byte> head, std::size_t available, Lower r) {
  const std::byte* ip = head.data() + r.l3;
  r.bth = static_cast<std::uint8_t>(r.l3 + kIpv4Size + kUdpSize);
  if (head.size() < r.bth + kBthSize) return r.error = ParseError::truncated, r;
  if (load8(ip) != 0x45) return r.error = ParseError::ip_version, r;
  if (fold(sum_words(ip, kIpv4Size)) != 0xFFFF) return r.error = ParseError::ip_checksum, r;
  if ((load16(ip + 6) & 0x3FFF) != 0) return r.error = ParseError::ip_fragment, r;
  if (load8(ip + 9) != kIpProtocolUdp) return r.error = ParseError::ip_protocol, r;
  r.ecn_ce = (load8(ip + 1) & kEcnMask) == kEcnMask;
  const std::size_t total = load16(ip + 2);
  r.frame_end = r.l3 + total;
  if (total < kIpv4Size + kUdpSize + kBthSize + kIcrcSize || r.frame_end > available) r.error = ParseError::ip_length;
  return r;
}

Lower parse_ipv6(std::span<const std::byte> head, std::size_t available, Lower r) {
  const std::byte* ip = head.data() + r.l3;
  r.ipv4 = false;
  r.bth = static_cast<std::uint8_t>(r.l3 + kIpv6Size + kUdpSize);
  if (head.size() < r.bth + kBthSize) return r.error = ParseError::truncated, r;
  if (load8(ip) >> 4 != 6) return r.error = ParseError::ip_version, r;
  if (load8(ip + 6) != kIpProtocolUdp) return r.error = ParseError::ip_protocol, r;
  r.ecn_ce = (load8(ip + 1) >> 4 & kEcnMask) == kEcnMask;
  const std::size_t length = load16(ip + 4);
  r.frame_end = r.l3 + kIpv6Size + length;
  if (length < kUdpSize + kBthSize + kIcrcSize || r.frame_end > available) r.error = ParseError::ip_length;
  return r;
}

Lower parse_lower(std::span<const std::byte> head, std::size_t available) {
  Lower r;
  if (head.size() < kEthernetSize + kVlanSize) return r.error = ParseError::truncated, r;
  std::uint16_t type = load16(head.data() + 12);
  r.l3 = kEthernetSize;
  if (type == kEtherTypeVlan) {
    type = load16(head.data() + 16);
    r.l3 += kVlanSize;
  }
  if (type == kEtherTypeIpv4) r = parse_ipv4(head, available, r);
  else if (type == kEtherTypeIpv6) r = parse_ipv6(head, available, r);
  else r.error = ParseError::ether_type;
  if (r.error != ParseError::none) return r;
  const std::byte* udp = head.data() + r.bth - kUdpSize;
  r.udp_source_port = load16(udp);
  if (load16(udp + 2) != kRocePort) return r.error = ParseError::udp_port, r;
  if (load16(udp + 4) != r.frame_end - r.bth + kUdpSize) r.error = ParseError::udp_length;
  return r;
}

}  // namespace

bool is_ipv4(const Gid& gid) { return std::memcmp(gid.data(), kMappedPrefix.data(), 12) == 0; }
Gid ipv4_gid(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  Gid g = kMappedPrefix;
  g[12] = a, g[13] = b, g[14] = c, g[15] = d;
  return g;
}

void Ethernet::encode(std::byte* to) const {
  std::memcpy(to, destination.data(), 6);
  std::memcpy(to + 6, source.data(), 6);
  store16(to + 12, type);
}
Ethernet Ethernet::decode(const std::byte* from) {
  Ethernet e;
  std::memcpy(e.destination.data(), from, 6);
  std::memcpy(e.source.data(), from + 6, 6);
  e.type = load16(from + 12);
  return e;
}

void Ipv4::encode(std::byte* to) const {
  store8(to, 0x45);
  store8(to + 1, tos);
  store16(to + 2, total_length);
  store16(to + 4, id);
  store16(to + 6, dont_fragment ? kDontFragment : 0);
  store8(to + 8, ttl);
  store8(to + 9, protocol);
  store16(to + 10, 0);
  std::memcpy(to + 12, source.data(), 4);
  std::memcpy(to + 16, destination.data(), 4);
  store16(to + 10, static_cast<std::uint16_t>(~fold(sum_words(to, kIpv4Size))));
}
Ipv4 Ipv4::decode(const std::byte* from) {
  Ipv4 h;
  h.tos = load8(from + 1);
  h.total_length = load16(from + 2);
  h.id = load16(from + 4);
  h.dont_fragment = (load16(from + 6) & kDontFragment) != 0;
  h.ttl = load8(from + 8);
  h.protocol = load8(from + 9);
  std::memcpy(h.source.data(), from + 12, 4);
  std::memcpy(h.destination.data(), from + 16, 4);
  return h;
}

void Ipv6::encode(std::byte* to) const {
  store32(to, 6U << 28 | static_cast<std::uint32_t>(traffic_class) << 20 | (flow_label & 0xFFFFF));
  store16(to + 4, payload_length);
  store8(to + 6, next_header);
  store8(to + 7, hop_limit);
  std::memcpy(to + 8, source.data(), 16);
  std::memcpy(to + 24, destination.data(), 16);
}
Ipv6 Ipv6::decode(const std::byte* from) {
  Ipv6 h;
  const std::uint32_t w = load32(from);
  h.traffic_class = static_cast<std::uint8_t>(w >> 20);
  h.flow_label = w & 0xFFFFF;
  h.payload_length = load16(from + 4);
  h.next_header = load8(from + 6);
  h.hop_limit = load8(from + 7);
  std::memcpy(h.source.data(), from + 8, 16);
  std::memcpy(h.destination.data(), from + 24, 16);
  return h;
}

void Udp::encode(std::byte* to) const {
  store16(to, source);
  store16(to + 2, destination);
  store16(to + 4, length);
  store16(to + 6, checksum);
}
Udp Udp::decode(const std::byte* from) { return {load16(from), load16(from + 2), load16(from + 4), load16(from + 6)}; }

void Bth::encode(std::byte* to) const {
  store8(to, opcode);
  store8(to + 1, (solicited ? 0x80U : 0U) | (mig_req ? 0x40U : 0U) | (pad & 3U) << 4 | (version & 0xFU));
  store16(to + 2, pkey);
  store32(to + 4, (fecn ? 1U << 31 : 0U) | (becn ? 1U << 30 : 0U) | (dest_qpn & 0xFFFFFF));
  store32(to + 8, (ack_req ? 1U << 31 : 0U) | psn.value());
}
Bth Bth::decode(const std::byte* from) {
  Bth b;
  b.opcode = load8(from);
  const std::uint8_t flags = load8(from + 1);
  b.solicited = (flags & 0x80) != 0;
  b.mig_req = (flags & 0x40) != 0;
  b.pad = flags >> 4 & 3;
  b.version = flags & 0xF;
  b.pkey = load16(from + 2);
  const std::uint32_t qp = load32(from + 4);
  b.fecn = (qp >> 31) != 0;
  b.becn = (qp >> 30 & 1) != 0;
  b.dest_qpn = qp & 0xFFFFFF;
  const std::uint32_t psn_word = load32(from + 8);
  b.ack_req = (psn_word >> 31) != 0;
  b.psn = Psn(psn_word);
  return b;
}

void Reth::encode(std::byte* to) const {
  store64(to, va);
  store32(to + 8, rkey);
  store32(to + 12, length);
}
Reth Reth::decode(const std::byte* from) { return {load64(from), load32(from + 8), load32(from + 12)}; }

void AtomicEth::encode(std::byte* to) const {
  store64(to, va);
  store32(to + 8, rkey);
  store64(to + 12, swap_add);
  store64(to + 20, compare);
}
AtomicEth AtomicEth::decode(const std::byte* from) {
  return {load64(from), load32(from + 8), load64(from + 12), load64(from + 20)};
}

void Aeth::encode(std::byte* to) const { store32(to, static_cast<std::uint32_t>(syndrome) << 24 | (msn & 0xFFFFFF)); }
Aeth Aeth::decode(const std::byte* from) {
  const std::uint32_t w = load32(from);
  return {static_cast<std::uint8_t>(w >> 24), w & 0xFFFFFF};
}

void Deth::encode(std::byte* to) const {
  store32(to, qkey);
  store32(to + 4, source_qpn & 0xFFFFFF);
}
Deth Deth::decode(const std::byte* from) { return {load32(from), load32(from + 4) & 0xFFFFFF}; }

FrameTemplate::FrameTemplate(const Path& path) : ipv4_(is_ipv4(path.source)) {
  SIM_CHECK(is_ipv4(path.destination) == ipv4_, "path between IPv4 and IPv6");
  const std::uint16_t type = ipv4_ ? kEtherTypeIpv4 : kEtherTypeIpv6;
  std::byte* p = bytes_.data();
  Ethernet{path.destination_mac, path.source_mac, path.vlan == kNoVlan ? type : kEtherTypeVlan}.encode(p);
  l3_ = kEthernetSize;
  if (path.vlan != kNoVlan) {
    store16(p + 14, path.vlan);
    store16(p + 16, type);
    l3_ += kVlanSize;
  }
  p += l3_;
  if (ipv4_) {
    Ipv4 ip;
    ip.tos = path.traffic_class;
    ip.ttl = path.hop_limit;
    std::memcpy(ip.source.data(), path.source.data() + 12, 4);
    std::memcpy(ip.destination.data(), path.destination.data() + 12, 4);
    ip.encode(p);
    store16(p + 10, 0);
    checksum_base_ = sum_words(p, kIpv4Size);
    p += kIpv4Size;
  } else {
    Ipv6 ip;
    ip.traffic_class = path.traffic_class;
    ip.flow_label = path.flow_label;
    ip.hop_limit = path.hop_limit;
    ip.source = path.source;
    ip.destination = path.destination;
    ip.encode(p);
    p += kIpv6Size;
  }
  Udp{path.udp_source_port, kRocePort, 0, 0}.encode(p);
  size_ = static_cast<std::uint8_t>(p + kUdpSize - bytes_.data());
}

void FrameTemplate::build(fabric::Packet& packet, const Headers& h) {
  const OpcodeInfo& op = opcode_info(h.bth.opcode);
  SIM_CHECK(op.valid() && size_ != 0, "build with a reserved opcode or an empty template");
  std::byte* to = packet.header.data();
  std::memcpy(to, bytes_.data(), kMaxSize);  // constant size: a few vector moves
  packet.header_length = static_cast<std::uint16_t>(size_ + kBthSize + op.headers_size);
  packet.pad = static_cast<std::uint8_t>(-packet.payload_length & 3);
  const auto udp_length = static_cast<std::uint16_t>(kUdpSize + kBthSize + op.headers_size + packet.payload_length +
                                                     packet.pad + kIcrcSize);
  std::byte* ip = to + l3_;
  if (ipv4_) {
    const auto total = static_cast<std::uint16_t>(udp_length + kIpv4Size);
    store16(ip + 2, total);
    store16(ip + 4, next_ip_id_);
    store16(ip + 10, static_cast<std::uint16_t>(~fold(checksum_base_ + total + next_ip_id_)));
    ++next_ip_id_;
  } else {
    store16(ip + 4, udp_length);
  }
  store16(to + size_ - 4, udp_length);
  Bth bth = h.bth;
  bth.pad = packet.pad;
  bth.encode(to + size_);
  encode_extended(to + size_ + kBthSize, op.headers, h);
  packet.icrc = icrc(packet, l3_);
  packet.has_icrc = true;
}

ParseError parse(const fabric::Packet& packet, Parsed& out) {
  if (packet.header_length > fabric::kMaxHeader) return ParseError::truncated;
  const auto head = packet.header_bytes();
  const Lower lower = parse_lower(head, packet.frame_length());
  if (lower.error != ParseError::none) return lower.error;
  if (lower.frame_end != packet.frame_length() || !packet.has_icrc) return ParseError::ip_length;
  if (icrc(packet, lower.l3) != packet.icrc) return ParseError::icrc;
  out.headers.bth = Bth::decode(head.data() + lower.bth);
  out.ipv4 = lower.ipv4;
  out.ecn_ce = lower.ecn_ce;
  out.l3_offset = lower.l3;
  out.bth_offset = lower.bth;
  out.udp_source_port = lower.udp_source_port;
  if (out.headers.bth.version != 0) return ParseError::bth_version;
  out.op = &opcode_info(out.headers.bth.opcode);
  if (!out.op->valid()) return ParseError::opcode;
  if (head.size() != lower.bth + kBthSize + out.op->headers_size) return ParseError::length;
  if (out.headers.bth.pad != packet.pad || ((packet.payload_length + packet.pad) & 3) != 0) return ParseError::pad;
  const bool empty = packet.payload_length == 0;
  if (empty ? out.op->payload == PayloadRule::full || out.op->payload == PayloadRule::some
            : out.op->payload == PayloadRule::none)
    return ParseError::length;
  decode_extended(head.data() + lower.bth + kBthSize, out.op->headers, out.headers);
  return ParseError::none;
}

ParseError load_frame(std::span<const std::byte> frame, fabric::Packet& packet, sim::BufferPool& buffers) {
  const Lower lower = parse_lower(frame, frame.size());
  if (lower.error != ParseError::none) return lower.error;
  const Bth bth = Bth::decode(frame.data() + lower.bth);
  const OpcodeInfo& op = opcode_info(bth.opcode);
  if (!op.valid()) return ParseError::opcode;
  const std::size_t head = lower.bth + kBthSize + op.headers_size;
  const std::size_t tail = lower.frame_end - kIcrcSize;
  if (head + bth.pad > tail) return ParseError::length;
  for (std::size_t i = tail - bth.pad; i < tail; ++i)
    if (frame[i] != std::byte{0}) return ParseError::pad;
  packet.header_length = static_cast<std::uint16_t>(head);
  std::memcpy(packet.header.data(), frame.data(), head);
  packet.pad = bth.pad;
  packet.payload_length = static_cast<std::uint32_t>(tail - bth.pad - head);
  packet.payload_offset = 0;
  packet.payload = {};
  if (packet.payload_length != 0) {
    packet.payload = buffers.make(packet.payload_length);
    std::memcpy(packet.payload.data(), frame.data() + head, packet.payload_length);
  }
  packet.has_icrc = true;
  packet.icrc = __builtin_bswap32(load32(frame.data() + tail));
  return ParseError::none;
}

Gid source_gid(const fabric::Packet& packet, const Parsed& parsed) {
  const std::byte* ip = packet.header.data() + parsed.l3_offset;
  Gid g = kMappedPrefix;
  if (parsed.ipv4) std::memcpy(g.data() + 12, ip + 12, 4);
  else std::memcpy(g.data(), ip + 8, 16);
  return g;
}

Gid destination_gid(const fabric::Packet& packet, const Parsed& parsed) {
  const std::byte* ip = packet.header.data() + parsed.l3_offset;
  Gid g = kMappedPrefix;
  if (parsed.ipv4) std::memcpy(g.data() + 12, ip + 16, 4);
  else std::memcpy(g.data(), ip + 24, 16);
  return g;
}

}  // namespace hca::wire
