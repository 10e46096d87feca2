// SPDX-License-Identifier: Apache-2.0
#include "pcie/tlp_header.h"

namespace pcie {
namespace {

using Header = std::array<std::byte, kMaxTlpHeader>;

constexpr unsigned kWithData = 2U << 5, kFourWords = 1U << 5;  // of the format field
constexpr unsigned kMemory = 0b00000, kCompletion = 0b01010, kMessageToRoot = 0b10000;

void put16(Header& h, std::size_t at, unsigned v) {
  h[at] = static_cast<std::byte>(v >> 8);
  h[at + 1] = static_cast<std::byte>(v);
}
void put32(Header& h, std::size_t at, std::uint64_t v) {
  put16(h, at, static_cast<unsigned>(v >> 16 & 0xFFFF));
  put16(h, at + 2, static_cast<unsigned>(v & 0xFFFF));
}

// Format, type, the upper tag bits, relaxed ordering, length in double words (1024 is written as 0).
void first_word(Header& h, const Tlp& tlp, unsigned format_and_type, std::uint32_t words) {
  h[0] = static_cast<std::byte>(format_and_type);
  h[1] = static_cast<std::byte>((tlp.tag >> 9 & 1) << 7 | (tlp.tag >> 8 & 1) << 3);
  const unsigned relaxed = tlp.relaxed_ordering ? 1U << 13 : 0U;
  put16(h, 2, relaxed | (words & 0x3FF));
}

// Byte enables of the first and the last double word of [address, address + length).
unsigned byte_enables(const Tlp& tlp, std::uint32_t words) {
  const unsigned lead = tlp.address & 3;
  const unsigned tail = static_cast<unsigned>((tlp.address + tlp.length) & 3);
  const unsigned last = tail == 0 ? 0xFU : 0xFU >> (4 - tail);
  const unsigned first = 0xFU << lead & 0xFU;
  return words == 1 ? (first & last) : last << 4 | first;
}

void memory_request(Header& h, const Tlp& tlp) {
  const std::uint32_t words = (static_cast<std::uint32_t>(tlp.address & 3) + tlp.length + 3) / 4;
  const bool wide = tlp.address >> 32 != 0;
  first_word(h, tlp, kMemory | (tlp.type == TlpType::MWr ? kWithData : 0U) | (wide ? kFourWords : 0U), words);
  put16(h, 4, tlp.requester);
  h[6] = static_cast<std::byte>(tlp.tag);
  h[7] = static_cast<std::byte>(byte_enables(tlp, words));
  if (wide) put32(h, 8, tlp.address >> 32);
  put32(h, wide ? 12 : 8, tlp.address & 0xFFFF'FFFC);
}

void completion(Header& h, const Tlp& tlp) {
  first_word(h, tlp, kCompletion | (tlp.type == TlpType::CplD ? kWithData : 0U), padded_payload(tlp) / 4);
  put16(h, 6, static_cast<unsigned>(tlp.status) << 13 | (tlp.byte_count & 0xFFF));
  put16(h, 8, tlp.requester);
  h[10] = static_cast<std::byte>(tlp.tag);
  h[11] = static_cast<std::byte>(tlp.address & 0x7F);
}

}  // namespace

Header encode_header(const Tlp& tlp) {
  Header h{};
  switch (tlp.type) {
    case TlpType::MRd:
    case TlpType::MWr:
      memory_request(h, tlp);
      break;
    case TlpType::Cpl:
    case TlpType::CplD:
      completion(h, tlp);
      break;
    case TlpType::Msg:
      first_word(h, tlp, kFourWords | kMessageToRoot, 0);
      put16(h, 4, tlp.requester);
      break;
  }
  return h;
}

}  // namespace pcie
