// SPDX-License-Identifier: Apache-2.0
#include "hca/transport/wire.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "hca/transport/icrc.h"

namespace hca::wire {
namespace {

using namespace sim::literals;

Path path_v4() {
  Path p;
  p.source_mac = {2, 0, 0, 0, 0, 1};
  p.destination_mac = {2, 0, 0, 0, 0, 2};
  p.source = ipv4_gid(10, 0, 0, 1);
  p.destination = ipv4_gid(10, 0, 0, 2);
  return p;
}
Path path_v6() {
  Path p = path_v4();
  p.source = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  p.destination = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  p.flow_label = 0xABCDE;
  p.traffic_class = 0xB2;
  return p;
}

Headers sample(std::uint8_t opcode) {
  Headers h;
  h.bth.opcode = opcode;
  h.bth.solicited = true;
  h.bth.ack_req = true;
  h.bth.mig_req = false;
  h.bth.pkey = 0x8123;
  h.bth.dest_qpn = 0x123456;
  h.bth.psn = Psn(0xFEDCBA);
  h.xrc_srqn = 0x00BEEF;
  h.deth = {0x11223344, 0x556677};
  h.reth = {0x0102030405060708, 0xA1A2A3A4, 0x40000000};
  h.atomic = {0x1112131415161718, 0xB1B2B3B4, 0x2122232425262728, 0x3132333435363738};
  h.aeth = {0x1F, 0xABCDEF};
  h.atomic_ack = 0x4142434445464748;
  h.immediate = 0xDDCCBBAA;  // bytes AA BB CC DD in memory
  h.invalidate_rkey = 0x51525354;
  return h;
}

std::uint32_t payload_for(const OpcodeInfo& op) {
  return op.payload == PayloadRule::none ? 0 : op.payload == PayloadRule::full ? 256 : 61;
}

struct Bench {
  fabric::Packet build(FrameTemplate t, const Headers& h, std::uint32_t length) {
    fabric::Packet p;
    p.payload_length = length;
    if (length != 0) {
      p.payload = buffers.make(length + 5);
      p.payload_offset = 5;
      for (std::uint32_t i = 0; i < length; ++i) p.payload.data()[5 + i] = static_cast<std::byte>(i * 7 + 1);
    }
    t.build(p, h);
    return p;
  }
  sim::BufferPool buffers;
};

std::vector<std::byte> frame_of(const fabric::Packet& p) {
  std::vector<std::byte> f(p.frame_length());
  p.write_to(f);
  return f;
}
std::string hex(std::span<const std::byte> b) {
  std::string s;
  for (const std::byte x : b) {
    constexpr char digits[] = "0123456789abcdef";
    s += digits[std::to_integer<unsigned>(x) >> 4];
    s += digits[std::to_integer<unsigned>(x) & 15];
  }
  return s;
}

// S-RC-1, A-46
TEST(Psn, wraps_and_compares_modulo_2_to_24) {
  Psn p(0xFFFFFE);
  EXPECT_EQ((p + 1).value(), 0xFFFFFFU);
  EXPECT_EQ((p + 2).value(), 0U);
  EXPECT_EQ((p + 3).value(), 1U);
  EXPECT_EQ(Psn(1) - Psn(0xFFFFFE), 3);
  EXPECT_EQ(Psn(0xFFFFFE) - Psn(1), -3);
  EXPECT_TRUE(Psn(0).ahead_of(Psn(0xFFFFFF)));
  EXPECT_TRUE(Psn(0xFFFFFF).behind(Psn(0)));
  EXPECT_FALSE(Psn(5).ahead_of(Psn(5)) || Psn(5).behind(Psn(5)));
  EXPECT_EQ(Psn(0x7FFFFF) - Psn(0), 0x7FFFFF);
  EXPECT_EQ(Psn(0x800000) - Psn(0), -0x800000);
  EXPECT_EQ((Psn(0) - 1).value(), 0xFFFFFFU);
}

// S-PKT-4
TEST(Wire, header_sizes_and_offsets) {
  std::array<std::byte, 28> b{};
  sample(0).bth.encode(b.data());
  EXPECT_EQ(hex({b.data(), 12}),
            "0080812300123456"
            "80fedcba");
  Bth bth;
  bth.opcode = 0x65;
  bth.pad = 3;
  bth.fecn = true;
  bth.becn = true;
  bth.encode(b.data());
  EXPECT_EQ(hex({b.data(), 12}),
            "6570ffffc0000000"
            "00000000");
  sample(0).reth.encode(b.data());
  EXPECT_EQ(hex({b.data(), 16}), "0102030405060708a1a2a3a440000000");
  sample(0).atomic.encode(b.data());
  EXPECT_EQ(hex(b), "1112131415161718b1b2b3b421222324252627283132333435363738");
  sample(0).aeth.encode(b.data());
  EXPECT_EQ(hex({b.data(), 4}), "1fabcdef");
  sample(0).deth.encode(b.data());
  EXPECT_EQ(hex({b.data(), 8}), "1122334400556677");
}

// S-PKT-5
TEST(Wire, opcode_table) {
  struct Row {
    unsigned opcode;
    unsigned size;
    PayloadRule payload;
    bool takes, ends;
  };
  using R = PayloadRule;
  const Row rows[] = {
      {0x00, 0, R::full, true, false},   {0x01, 0, R::full, false, false},  {0x02, 0, R::some, false, true},
      {0x03, 4, R::some, false, true},   {0x04, 0, R::any, true, true},     {0x05, 4, R::any, true, true},
      {0x06, 16, R::full, false, false}, {0x07, 0, R::full, false, false},  {0x08, 0, R::some, false, false},
      {0x09, 4, R::some, true, true},    {0x0A, 16, R::any, false, false},  {0x0B, 20, R::any, true, true},
      {0x0C, 16, R::none, false, false}, {0x0D, 4, R::full, false, false},  {0x0E, 0, R::full, false, false},
      {0x0F, 4, R::some, false, false},  {0x10, 4, R::any, false, false},   {0x11, 4, R::none, false, false},
      {0x12, 12, R::none, false, false}, {0x13, 28, R::none, false, false}, {0x14, 28, R::none, false, false},
      {0x16, 4, R::some, false, true},   {0x17, 4, R::any, true, true},     {0x2B, 20, R::any, true, true},
      {0x64, 8, R::any, true, true},     {0x65, 12, R::any, true, true},    {0xA4, 4, R::any, true, true},
      {0xAC, 20, R::none, false, false}, {0xB1, 4, R::none, false, false},  {0x81, 16, R::none, false, false},
  };
  for (const Row& r : rows) {
    const OpcodeInfo& o = opcode_info(static_cast<std::uint8_t>(r.opcode));
    EXPECT_TRUE(o.valid()) << std::hex << r.opcode;
    EXPECT_EQ(o.headers_size, r.size) << std::hex << r.opcode;
    EXPECT_EQ(o.payload, r.payload) << std::hex << r.opcode;
    EXPECT_EQ(o.takes_receive_wqe, r.takes) << std::hex << r.opcode;
    EXPECT_EQ(o.ends_receive_wqe, r.ends) << std::hex << r.opcode;
  }
  unsigned valid = 0;
  for (unsigned i = 0; i < 256; ++i) valid += opcode_info(static_cast<std::uint8_t>(i)).valid() ? 1 : 0;
  EXPECT_EQ(valid, 23U + 12 + 2 + 23 + 1);  // RC, UC, UD, XRC, CNP
  for (const unsigned i : {0x15U, 0x1CU, 0x1DU, 0x2CU, 0x36U, 0x40U, 0x60U, 0x66U, 0xFFU})
    EXPECT_FALSE(opcode_info(static_cast<std::uint8_t>(i)).valid()) << i;
}

// S-PKT-6, 8, A-45
TEST(Wire, segmentation_rules) {
  EXPECT_EQ(packet_count(0, 1024), 1U);
  EXPECT_EQ(packet_count(1, 1024), 1U);
  EXPECT_EQ(packet_count(1024, 1024), 1U);
  EXPECT_EQ(packet_count(1025, 1024), 2U);
  EXPECT_EQ(packet_count(1ULL << 31, 4096), 1U << 19);
  EXPECT_TRUE(payload_fits(opcode_info(kSendFirst), 1024, 1024));
  EXPECT_FALSE(payload_fits(opcode_info(kSendFirst), 1023, 1024));
  EXPECT_FALSE(payload_fits(opcode_info(kWriteLast), 0, 1024));
  EXPECT_TRUE(payload_fits(opcode_info(kWriteLast), 1, 1024));
  EXPECT_TRUE(payload_fits(opcode_info(kSendOnly), 0, 1024));
  EXPECT_FALSE(payload_fits(opcode_info(kSendOnly), 1025, 1024));
  EXPECT_FALSE(payload_fits(opcode_info(kReadRequest), 4, 1024));
}

// S-PKT-9..11
TEST(Wire, aeth_codes) {
  EXPECT_EQ(ack_syndrome(), 0x1F);
  EXPECT_EQ(rnr_syndrome(14), 0x2E);
  EXPECT_EQ(aeth_kind(0x1F), AethKind::ack);
  EXPECT_EQ(aeth_kind(0x2E), AethKind::rnr_nak);
  EXPECT_EQ(aeth_kind(kNakRemoteAccess), AethKind::nak);
  EXPECT_EQ(aeth_kind(0x40), AethKind::reserved);
  EXPECT_EQ(aeth_kind(0x80), AethKind::reserved);
  EXPECT_EQ(aeth_value(0x62), 2);
  EXPECT_EQ(rnr_delay(0), 655'360_us);
  EXPECT_EQ(rnr_delay(1), 10_us);
  EXPECT_EQ(rnr_delay(14), 1'280_us);
  EXPECT_EQ(rnr_delay(31), 491'520_us);
  for (std::uint8_t i = 2; i < 32; ++i) EXPECT_GT(rnr_delay(i), rnr_delay(static_cast<std::uint8_t>(i - 1)));
  EXPECT_EQ(credits_of(5), 6U);
  EXPECT_EQ(credits_of(30), 32768U);
  EXPECT_EQ(credit_code(0), 0);
  EXPECT_EQ(credit_code(5), 4);
  EXPECT_EQ(credit_code(6), 5);
  EXPECT_EQ(credit_code(1'000'000), 30);
}

// S-ROCE-1, 2
TEST(Wire, udp_source_port_of_flow_label) {
  EXPECT_EQ(default_flow_label(0x101, 0x102), 0x10302U);
  EXPECT_EQ(default_flow_label(0x102, 0x101), 0x10302U);
  EXPECT_EQ(udp_source_port(0x10302), 0xC306);
  EXPECT_EQ(udp_source_port(0x12345), 0xE341);
  for (std::uint32_t fl = 0; fl < 1U << 20; fl += 97) ASSERT_GE(udp_source_port(fl), 0xC000);
}

TEST(Wire, pkeys) {
  EXPECT_TRUE(pkeys_match(0xFFFF, 0xFFFF));
  EXPECT_TRUE(pkeys_match(0xFFFF, 0x7FFF));
  EXPECT_FALSE(pkeys_match(0x7FFF, 0x7FFF));
  EXPECT_FALSE(pkeys_match(0x8001, 0x8002));
}

void expect_equal(const Headers& a, const Headers& b, const OpcodeInfo& op) {
  EXPECT_EQ(a.bth.opcode, b.bth.opcode);
  EXPECT_EQ(a.bth.solicited, b.bth.solicited);
  EXPECT_EQ(a.bth.ack_req, b.bth.ack_req);
  EXPECT_EQ(a.bth.mig_req, b.bth.mig_req);
  EXPECT_EQ(a.bth.pkey, b.bth.pkey);
  EXPECT_EQ(a.bth.dest_qpn, b.bth.dest_qpn);
  EXPECT_EQ(a.bth.psn, b.bth.psn);
  if (op.has(kHasXrcEth)) {
    EXPECT_EQ(a.xrc_srqn, b.xrc_srqn);
  }
  if (op.has(kHasDeth)) {
    EXPECT_TRUE(a.deth.qkey == b.deth.qkey && a.deth.source_qpn == b.deth.source_qpn);
  }
  if (op.has(kHasReth)) {
    EXPECT_TRUE(a.reth.va == b.reth.va && a.reth.rkey == b.reth.rkey && a.reth.length == b.reth.length);
  }
  if (op.has(kHasAtomicEth)) {
    EXPECT_TRUE(a.atomic.va == b.atomic.va && a.atomic.rkey == b.atomic.rkey &&
                a.atomic.swap_add == b.atomic.swap_add && a.atomic.compare == b.atomic.compare);
  }
  if (op.has(kHasAeth)) {
    EXPECT_TRUE(a.aeth.syndrome == b.aeth.syndrome && a.aeth.msn == b.aeth.msn);
  }
  if (op.has(kHasAtomicAckEth)) {
    EXPECT_EQ(a.atomic_ack, b.atomic_ack);
  }
  if (op.has(kHasImmDt)) {
    EXPECT_EQ(a.immediate, b.immediate);
  }
  if (op.has(kHasIeth)) {
    EXPECT_EQ(a.invalidate_rkey, b.invalidate_rkey);
  }
}

TEST(Frame, every_opcode_survives_build_parse_and_load_on_every_path) {
  Bench b;
  for (const bool v4 : {true, false})
    for (const std::uint16_t vlan : {kNoVlan, std::uint16_t{0x6005}})
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const OpcodeInfo& op = opcode_info(static_cast<std::uint8_t>(opcode));
        if (!op.valid()) continue;
        Path path = v4 ? path_v4() : path_v6();
        path.vlan = vlan;
        const Headers h = sample(static_cast<std::uint8_t>(opcode));
        fabric::Packet p = b.build(FrameTemplate(path), h, payload_for(op));
        EXPECT_EQ((p.payload_length + p.pad) % 4, 0U);
        Parsed out;
        ASSERT_EQ(parse(p, out), ParseError::none) << std::hex << opcode;
        expect_equal(out.headers, h, op);
        EXPECT_EQ(out.ipv4, v4);
        EXPECT_EQ(source_gid(p, out), path.source);
        EXPECT_EQ(destination_gid(p, out), path.destination);
        const auto frame = frame_of(p);
        fabric::Packet loaded;
        ASSERT_EQ(load_frame(frame, loaded, b.buffers), ParseError::none);
        EXPECT_EQ(frame_of(loaded), frame);
        EXPECT_EQ(parse(loaded, out), ParseError::none);
      }
}

// S-PKT-4: XRCETH, then RETH, then ImmDt.
TEST(Frame, extended_headers_lie_in_wire_order) {
  Bench b;
  const fabric::Packet p = b.build(FrameTemplate(path_v4()), sample(make_opcode(kXrc, kWriteOnlyImm)), 0);
  EXPECT_EQ(hex(p.header_bytes().subspan(14 + 20 + 8 + 12)),
            "0000beef"
            "0102030405060708a1a2a3a440000000"
            "aabbccdd");
}

// S-ROCE-5
TEST(Frame, ipv4_header_is_exact_and_its_id_counts) {
  Bench b;
  FrameTemplate t(path_v4());
  for (unsigned i = 0; i < 3; ++i) {
    fabric::Packet p;
    p.payload = b.buffers.make(8);
    std::memset(p.payload.data(), 0, 8);
    p.payload_length = 8;
    Headers h;
    h.bth.opcode = kSendOnly;
    t.build(p, h);
    const Ipv4 ip = Ipv4::decode(p.header.data() + 14);
    EXPECT_EQ(ip.id, i);
    EXPECT_EQ(ip.total_length, 20 + 8 + 12 + 8 + 4);
    EXPECT_TRUE(ip.dont_fragment);
    EXPECT_EQ(ip.ttl, 64);
    std::array<std::byte, 20> again;
    ip.encode(again.data());  // recomputes the checksum from scratch
    EXPECT_EQ(hex(again), hex({p.header.data() + 14, 20}));
    EXPECT_EQ(Udp::decode(p.header.data() + 34).checksum, 0);
    EXPECT_EQ(Udp::decode(p.header.data() + 34).length, 8 + 12 + 8 + 4);
  }
}

TEST(Frame, ipv4_checksum_holds_for_all_ids_and_lengths) {
  Bench b;
  Path path = path_v4();
  path.source = ipv4_gid(255, 255, 255, 254);
  path.destination = ipv4_gid(255, 255, 255, 255);
  FrameTemplate t(path);
  Headers h;
  h.bth.opcode = kAcknowledge;
  for (unsigned i = 0; i <= 0x10000; ++i) {
    fabric::Packet p;
    t.build(p, h);
    Parsed out;
    ASSERT_EQ(parse(p, out), ParseError::none) << i;
  }
}

//
TEST(Frame, congestion_marks_do_not_invalidate_a_frame) {
  Bench b;
  for (const Path& path : {path_v4(), path_v6()}) {
    auto frame = frame_of(b.build(FrameTemplate(path), sample(kSendOnly), 16));
    if (is_ipv4(path.source)) {
      Ipv4 ip = Ipv4::decode(frame.data() + 14);
      ip.tos |= 3;
      ip.ttl--;
      ip.encode(frame.data() + 14);
    } else {
      Ipv6 ip = Ipv6::decode(frame.data() + 14);
      ip.traffic_class |= 3;
      ip.hop_limit--;
      ip.encode(frame.data() + 14);
    }
    fabric::Packet p;
    ASSERT_EQ(load_frame(frame, p, b.buffers), ParseError::none);
    Parsed out;
    EXPECT_EQ(parse(p, out), ParseError::none);
    EXPECT_TRUE(out.ecn_ce);
  }
}

// Applies `change` to a good frame, makes the IPv4 checksum and the ICRC right again, and parses.
template <class F>
ParseError judge(Bench& b, F&& change, std::uint8_t opcode = kSendOnly, std::uint32_t length = 61) {
  auto frame = frame_of(b.build(FrameTemplate(path_v4()), sample(opcode), length));
  change(frame);
  if (frame.size() >= 58 && frame[12] == std::byte{8}) {
    frame[24] = frame[25] = std::byte{0};
    std::uint32_t sum = 0;
    for (std::size_t i = 14; i < 34; i += 2)
      sum += std::to_integer<std::uint32_t>(frame[i]) << 8 | std::to_integer<std::uint32_t>(frame[i + 1]);
    while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    frame[24] = static_cast<std::byte>(~sum >> 8 & 0xFF);
    frame[25] = static_cast<std::byte>(~sum & 0xFF);
    const std::uint32_t crc = icrc(std::span<const std::byte>(frame).subspan(14, frame.size() - 18));
    for (unsigned i = 0; i < 4; ++i) frame[frame.size() - 4 + i] = static_cast<std::byte>(crc >> 8 * i & 0xFF);
  }
  fabric::Packet p;
  const ParseError e = load_frame(frame, p, b.buffers);
  Parsed out;
  return e != ParseError::none ? e : parse(p, out);
}

TEST(Frame, each_defect_has_its_reason) {
  Bench b;
  using F = std::vector<std::byte>;
  const auto set = [](std::size_t at, unsigned v) { return [at, v](F& f) { f[at] = static_cast<std::byte>(v); }; };
  EXPECT_EQ(judge(b, [](F&) {}), ParseError::none);
  EXPECT_EQ(judge(b, [](F& f) { f.resize(17); }), ParseError::truncated);
  EXPECT_EQ(judge(b, [](F& f) { f.resize(53); }), ParseError::truncated);
  EXPECT_EQ(judge(b, set(12, 0x42)), ParseError::ether_type);
  EXPECT_EQ(judge(b, set(14, 0x65)), ParseError::ip_version);
  EXPECT_EQ(judge(b, set(14, 0x46)), ParseError::ip_version);
  EXPECT_EQ(judge(b, set(20, 0x20)), ParseError::ip_fragment);
  EXPECT_EQ(judge(b, set(21, 0x01)), ParseError::ip_fragment);
  EXPECT_EQ(judge(b, set(23, 6)), ParseError::ip_protocol);
  EXPECT_EQ(judge(b, set(16, 0xFF)), ParseError::ip_length);
  EXPECT_EQ(judge(b, [](F& f) { f[16] = std::byte{0}, f[17] = std::byte{43}; }), ParseError::ip_length);
  EXPECT_EQ(judge(b, set(37, 0)), ParseError::udp_port);
  EXPECT_EQ(judge(b, set(39, 0)), ParseError::udp_length);
  EXPECT_EQ(judge(b, [](F& f) { f[43] |= std::byte{1}; }), ParseError::bth_version);
  EXPECT_EQ(judge(b, set(42, 0x15)), ParseError::opcode);
  EXPECT_EQ(judge(b, set(42, kReadRequest)), ParseError::length);              // payload where none is allowed
  EXPECT_EQ(judge(b, set(42, kSendFirst), kSendOnly, 0), ParseError::length);  // no payload where one is needed
  EXPECT_EQ(judge(b, set(42, kFetchAdd), kSendOnly, 0), ParseError::length);   // headers do not fit
  EXPECT_EQ(judge(
                b, [](F& f) { f[43] &= std::byte{0xCF}; }, kSendOnly, 60),
            ParseError::none);
  EXPECT_EQ(judge(
                b, [](F& f) { f[43] |= std::byte{0x10}; }, kSendOnly, 60),
            ParseError::pad);  // last payload byte is not a zero
  EXPECT_EQ(judge(b, [](F& f) { f[f.size() - 5] = std::byte{1}; }), ParseError::pad);
}

TEST(Frame, a_flipped_bit_is_refused_unless_it_is_masked) {
  Bench b;
  const auto good = frame_of(b.build(FrameTemplate(path_v4()), sample(kWriteOnly), 33));
  std::set<ParseError> seen;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto frame = good;
    frame[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    fabric::Packet p;
    Parsed out;
    ParseError e = load_frame(frame, p, b.buffers);
    if (e == ParseError::none) e = parse(p, out);
    const std::size_t byte = bit / 8;
    // MAC addresses are not covered by the ICRC, nor are the UDP checksum and FECN, BECN.
    const bool allowed = byte < 12 || byte == 40 || byte == 41 || byte == 46;
    EXPECT_EQ(e == ParseError::none, allowed) << "byte " << byte;
    seen.insert(e);
  }
  EXPECT_TRUE(seen.count(ParseError::icrc) == 1 && seen.count(ParseError::ip_checksum) == 1);
}

TEST(Frame, packets_whose_parts_disagree_are_refused) {
  Bench b;
  Parsed out;
  const auto good = [&] { return b.build(FrameTemplate(path_v4()), sample(kSendOnly), 61); };
  fabric::Packet p = good();
  p.has_icrc = false;
  EXPECT_EQ(parse(p, out), ParseError::ip_length);
  p = good();
  p.pad = 2;
  p.payload_length = 62;
  p.payload.data()[5 + 61] = std::byte{1};
  EXPECT_EQ(parse(p, out), ParseError::icrc);
  p.payload.data()[5 + 61] = std::byte{0};
  EXPECT_EQ(parse(p, out), ParseError::pad);
  p = good();
  p.header_length = fabric::kMaxHeader + 1;
  EXPECT_EQ(parse(p, out), ParseError::truncated);
  p = good();
  p.header_length = 0;
  EXPECT_EQ(parse(p, out), ParseError::truncated);
}

TEST(Frame, ethernet_padding_behind_the_frame_is_dropped) {
  Bench b;
  auto frame = frame_of(b.build(FrameTemplate(path_v4()), sample(kAcknowledge), 0));
  const auto exact = frame;
  frame.resize(frame.size() + 30);
  fabric::Packet p;
  ASSERT_EQ(load_frame(frame, p, b.buffers), ParseError::none);
  EXPECT_EQ(frame_of(p), exact);
}

TEST(Frame, random_bytes_never_crash_the_parser) {
  Bench b;
  std::mt19937 random(7);
  const auto good = frame_of(b.build(FrameTemplate(path_v6()), sample(make_opcode(kXrc, kCompareSwap)), 0));
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::byte> frame(good.begin(),
                                 good.begin() + static_cast<std::ptrdiff_t>(random() % (good.size() + 1)));
    for (unsigned k = random() % 4; k-- > 0 && !frame.empty();)
      frame[random() % frame.size()] = static_cast<std::byte>(random());
    fabric::Packet p;
    Parsed out;
    if (load_frame(frame, p, b.buffers) == ParseError::none) (void)parse(p, out);
  }
  EXPECT_EQ(b.buffers.live(), 0U);
}

}  // namespace
}  // namespace hca::wire
