// SPDX-License-Identifier: Apache-2.0
// Header bytes of TLPs, worked out by hand from PCI Express Base Specification 4.0, figures 2-13 … 2-26.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pcie/tlp_header.h"

namespace pcie {
namespace {

std::string hex(const Tlp& tlp) {
  std::string out;
  const auto header = encode_header(tlp);
  for (std::size_t i = 0; i < header_bytes(tlp); ++i) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", std::to_integer<unsigned>(header[i]));
    out += text;
  }
  return out;
}

Tlp tlp(TlpType type, std::uint64_t address, std::uint32_t length) {
  Tlp t;
  t.type = type;
  t.requester = 0x0100;
  t.tag = 0x2a;
  t.address = address;
  t.length = length;
  return t;
}

TEST(TlpHeader, MemoryReadBelowFourGigabytesHasThreeDoubleWords) {
  EXPECT_EQ(hex(tlp(TlpType::MRd, 0x1000'0000, 64)), "0000001001002aff10000000");
}

TEST(TlpHeader, MemoryWriteAboveHasFour) {
  EXPECT_EQ(hex(tlp(TlpType::MWr, 0x12'3456'7800, 256)), "6000004001002aff0000001234567800");
}

TEST(TlpHeader, ByteEnablesOfAPieceThatIsNotAligned) {
  EXPECT_EQ(hex(tlp(TlpType::MWr, 0x1001, 2)), "4000000101002a0600001000") << "bytes 1 and 2 of one double word";
  EXPECT_EQ(hex(tlp(TlpType::MWr, 0x1003, 6)), "4000000301002a1800001000") << "byte 3 of the first, byte 0 of the last";
}

TEST(TlpHeader, LengthOf1024DoubleWordsIsZeroAndTagsHaveTenBits) {
  Tlp t = tlp(TlpType::MRd, 0x1000, 4096);
  t.tag = 0x3ff;
  t.relaxed_ordering = true;
  EXPECT_EQ(hex(t), "008820000100ffff00001000");
}

TEST(TlpHeader, CompletionWithDataTellsWhatIsStillToCome) {
  Tlp t = tlp(TlpType::CplD, 0x1000'0040, 64);
  t.byte_count = 192;
  EXPECT_EQ(hex(t), "4a000010000000c001002a40");
}

TEST(TlpHeader, RefusedReadIsACompletionWithoutData) {
  Tlp t = tlp(TlpType::Cpl, 0x1000, 0);
  t.status = CplStatus::UR;
  EXPECT_EQ(hex(t), "0a0000000000200001002a00");
}

}  // namespace
}  // namespace pcie
