// SPDX-License-Identifier: Apache-2.0
// The opcode table and the small code tables of the AETH (S-PKT-5, 6, 9..11). Opcodes 1C and 1D (FLUSH, ATOMIC WRITE) of newer
// specifications are reserved here, as is the whole RD transport.
#include "hca/transport/wire.h"
#include "sim/check.h"

namespace hca::wire {
namespace {

struct Row {
  Operation operation;
  MessageKind kind;
  Position position;
  PayloadRule payload;
  std::uint16_t headers;
  bool takes, ends;
  const char* name;
};

using K = MessageKind;
using P = Position;
using R = PayloadRule;
constexpr Row kRows[] = {
    {kSendFirst, K::send, P::first, R::full, 0, true, false, "SEND_FIRST"},
    {kSendMiddle, K::send, P::middle, R::full, 0, false, false, "SEND_MIDDLE"},
    {kSendLast, K::send, P::last, R::some, 0, false, true, "SEND_LAST"},
    {kSendLastImm, K::send, P::last, R::some, kHasImmDt, false, true, "SEND_LAST_WITH_IMM"},
    {kSendOnly, K::send, P::only, R::any, 0, true, true, "SEND_ONLY"},
    {kSendOnlyImm, K::send, P::only, R::any, kHasImmDt, true, true, "SEND_ONLY_WITH_IMM"},
    {kWriteFirst, K::write, P::first, R::full, kHasReth, false, false, "WRITE_FIRST"},
    {kWriteMiddle, K::write, P::middle, R::full, 0, false, false, "WRITE_MIDDLE"},
    {kWriteLast, K::write, P::last, R::some, 0, false, false, "WRITE_LAST"},
    {kWriteLastImm, K::write, P::last, R::some, kHasImmDt, true, true, "WRITE_LAST_WITH_IMM"},
    {kWriteOnly, K::write, P::only, R::any, kHasReth, false, false, "WRITE_ONLY"},
    {kWriteOnlyImm, K::write, P::only, R::any, kHasReth | kHasImmDt, true, true, "WRITE_ONLY_WITH_IMM"},
    {kReadRequest, K::read_request, P::only, R::none, kHasReth, false, false, "READ_REQUEST"},
    {kReadResponseFirst, K::read_response, P::first, R::full, kHasAeth, false, false, "READ_RESPONSE_FIRST"},
    {kReadResponseMiddle, K::read_response, P::middle, R::full, 0, false, false, "READ_RESPONSE_MIDDLE"},
    {kReadResponseLast, K::read_response, P::last, R::some, kHasAeth, false, false, "READ_RESPONSE_LAST"},
    {kReadResponseOnly, K::read_response, P::only, R::any, kHasAeth, false, false, "READ_RESPONSE_ONLY"},
    {kAcknowledge, K::ack, P::only, R::none, kHasAeth, false, false, "ACKNOWLEDGE"},
    {kAtomicAcknowledge, K::atomic_ack, P::only, R::none, kHasAeth | kHasAtomicAckEth, false, false,
     "ATOMIC_ACKNOWLEDGE"},
    {kCompareSwap, K::atomic, P::only, R::none, kHasAtomicEth, false, false, "CMP_SWAP"},
    {kFetchAdd, K::atomic, P::only, R::none, kHasAtomicEth, false, false, "FETCH_ADD"},
    {kSendLastInvalidate, K::send, P::last, R::some, kHasIeth, false, true, "SEND_LAST_WITH_INV"},
    {kSendOnlyInvalidate, K::send, P::only, R::any, kHasIeth, true, true, "SEND_ONLY_WITH_INV"},
};

constexpr std::uint8_t size_of(std::uint16_t headers) {
  constexpr std::size_t sizes[] = {kXrcEthSize,       kDethSize,  kRethSize, kAtomicEthSize,  kAethSize,
                                   kAtomicAckEthSize, kImmDtSize, kIethSize, kCnpReservedSize};
  std::size_t n = 0;
  for (unsigned i = 0; i < std::size(sizes); ++i)
    if ((headers >> i & 1) != 0) n += sizes[i];
  return static_cast<std::uint8_t>(n);
}

constexpr bool allowed(Transport t, const Row& r) {
  switch (t) {
    case kRc:
    case kXrc:
      return true;
    case kUc:
      return (r.kind == K::send || r.kind == K::write) && (r.headers & kHasIeth) == 0;
    case kUd:
      return r.operation == kSendOnly || r.operation == kSendOnlyImm;
    default:
      return false;
  }
}

constexpr std::array<OpcodeInfo, 256> make_table() {
  std::array<OpcodeInfo, 256> table{};
  for (const Transport t : {kRc, kUc, kUd, kXrc})
    for (const Row& r : kRows) {
      if (!allowed(t, r)) continue;
      OpcodeInfo o{r.kind, r.position, r.payload, r.headers, 0, r.takes, r.ends, r.name};
      if (t == kUd) o.headers |= kHasDeth;
      if (t == kXrc && o.is_request()) o.headers |= kHasXrcEth;
      o.headers_size = size_of(o.headers);
      table[make_opcode(t, r.operation)] = o;
    }
  table[kCnp] = {K::cnp, P::only, R::none, kHasCnpReserved, kCnpReservedSize, false, false, "CNP"};
  return table;
}
constexpr std::array<OpcodeInfo, 256> kTable = make_table();

constexpr std::array<std::uint32_t, 32> kRnrMicroseconds{
    655'360, 10,     20,     30,     40,     60,      80,      120,     160,     240,    320,
    480,     640,    960,    1'280,  1'920,  2'560,   3'840,   5'120,   7'680,   10'240, 15'360,
    20'480,  30'720, 40'960, 61'440, 81'920, 122'880, 163'840, 245'760, 327'680, 491'520};
constexpr std::array<std::uint32_t, 31> kCredits{0,    1,    2,    3,    4,    6,     8,     12,    16,   24,   32,
                                                 48,   64,   96,   128,  192,  256,   384,   512,   768,  1024, 1536,
                                                 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

}  // namespace

const OpcodeInfo& opcode_info(std::uint8_t opcode) { return kTable[opcode]; }

bool payload_fits(const OpcodeInfo& op, std::uint32_t length, std::uint32_t pmtu) {
  switch (op.payload) {
    case PayloadRule::none:
      return length == 0;
    case PayloadRule::full:
      return length == pmtu;
    case PayloadRule::some:
      return length >= 1 && length <= pmtu;
    case PayloadRule::any:
      return length <= pmtu;
  }
  return false;
}

sim::Picos rnr_delay(std::uint8_t code) {
  return {static_cast<std::int64_t>(kRnrMicroseconds[code & 0x1F]) * 1'000'000};
}

std::uint32_t credits_of(std::uint8_t code) {
  SIM_CHECK(code < kCredits.size(), "credit code without a count");
  return kCredits[code];
}

std::uint8_t credit_code(std::uint32_t credits) {
  std::uint8_t code = 0;
  while (code + 1U < kCredits.size() && kCredits[code + 1U] <= credits) ++code;
  return code;
}

std::string_view name_of(ParseError e) {
  static constexpr std::array<std::string_view, 15> kNames{
      "none",     "truncated",  "ether_type", "ip_version",  "ip_checksum", "ip_fragment", "ip_protocol", "ip_length",
      "udp_port", "udp_length", "icrc",       "bth_version", "opcode",      "length",      "pad"};
  return kNames[static_cast<std::size_t>(e)];
}

}  // namespace hca::wire
