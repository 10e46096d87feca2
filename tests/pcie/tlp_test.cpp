// SPDX-License-Identifier: Apache-2.0
#include "pcie/tlp.h"

#include <gtest/gtest.h>

#include "pcie/msix.h"
#include "pcie/pcie_config.h"
#include "pcie/root_complex.h"
#include "sim/config_read.h"

namespace {

using pcie::Tlp;
using pcie::TlpType;

Tlp tlp(TlpType type, std::uint64_t address, std::uint32_t length) {
  Tlp t;
  t.type = type;
  t.address = address;
  t.length = length;
  return t;
}

TEST(TlpSize, AddsFramingSequenceNumberLcrcAndHeader) {
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MWr, 1ULL << 32, 64), false), 24U + 64);
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MWr, 0xFEE00000, 4), false), 20U + 4)
      << "below 4 GiB the short header is mandatory";
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MRd, 1ULL << 32, 512), false), 24U) << "a read request carries no data";
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MRd, 0x1000, 512), false), 20U);
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::CplD, 1ULL << 32, 256), false), 20U + 256);
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::Cpl, 1ULL << 32, 0), false), 20U);
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::Msg, 0, 0), false), 24U);
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MWr, 1ULL << 32, 64), true), 28U + 64) << "ECRC";
}

TEST(TlpSize, PayloadTravelsInWholeDwords) {
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MWr, 1ULL << 32, 1), false), 24U + 4);
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MWr, (1ULL << 32) + 3, 2), false), 24U + 8)
      << "two bytes across a dword boundary";
  EXPECT_EQ(pcie::wire_bytes(tlp(TlpType::MWr, (1ULL << 32) + 1, 256), false), 24U + 260);
}

TEST(TlpSize, DataCreditsAreUnitsOf16Bytes) {
  EXPECT_EQ(pcie::data_credits(tlp(TlpType::MWr, 0, 1)), 1U);
  EXPECT_EQ(pcie::data_credits(tlp(TlpType::MWr, 0, 16)), 1U);
  EXPECT_EQ(pcie::data_credits(tlp(TlpType::CplD, 0, 17)), 2U);
  EXPECT_EQ(pcie::data_credits(tlp(TlpType::MWr, 0, 256)), 16U);
  EXPECT_EQ(pcie::data_credits(tlp(TlpType::MRd, 0, 4096)), 0U);
}

TEST(LinkRate, RawRatePerLaneIsThatOfTheGeneration) {
  const auto lane = [](std::uint32_t g) {
    pcie::LinkConfig c;
    c.generation = g;
    c.width = 1;
    return pcie::raw_rate(c).bps;
  };
  EXPECT_EQ(lane(1), 2'000'000'000U);
  EXPECT_EQ(lane(2), 4'000'000'000U);
  EXPECT_EQ(lane(3), 7'876'923'076U);
  EXPECT_EQ(lane(4), 15'753'846'153U);
  EXPECT_EQ(lane(5), 31'507'692'307U);
  EXPECT_EQ(lane(6), 60'500'000'000U);
}

TEST(LinkRate, AckLimitsAreThoseOfTheSpecificationTables) {
  const auto limit = [](std::uint32_t g, std::uint32_t width, std::uint32_t mps) {
    pcie::LinkConfig c;
    c.generation = g;
    c.width = width;
    return pcie::ack_limit(c, mps);
  };
  EXPECT_EQ(limit(3, 16, 128), 144U);
  EXPECT_EQ(limit(3, 16, 256), 168U);
  EXPECT_EQ(limit(4, 16, 512), 182U);
  EXPECT_EQ(limit(5, 16, 1024), 246U);
  EXPECT_EQ(limit(3, 8, 128), 163U);
  EXPECT_EQ(limit(3, 8, 256), 203U);
  EXPECT_EQ(limit(3, 8, 512), 182U);
  EXPECT_EQ(limit(1, 1, 128), 237U);
  EXPECT_EQ(limit(1, 4, 4096), 1050U);
  EXPECT_EQ(limit(2, 2, 256), 268U);
}

TEST(LinkRate, Gen3x8With256ByteMpsLeavesThePublished57Point9Gbps) {
  pcie::LinkConfig c;
  c.width = 8;
  EXPECT_NEAR(static_cast<double>(pcie::tlp_rate(c, 256).bps), 57.885e9, 0.005e9);
}

TEST(CompletionSplit, EndsAtReadCompletionBoundaries) {
  const auto split = [](std::uint64_t at, std::uint32_t n, std::uint32_t mps, std::uint32_t rcb, bool at_rcb) {
    std::vector<std::uint32_t> out;
    while (n > 0) {
      out.push_back(pcie::completion_piece(at, n, mps, rcb, at_rcb));
      at += out.back();
      n -= out.back();
    }
    return out;
  };
  using V = std::vector<std::uint32_t>;
  EXPECT_EQ(split(0x1000, 512, 256, 64, false), (V{256, 256}));
  EXPECT_EQ(split(0x100A, 512, 256, 64, false), (V{246, 256, 10}));
  EXPECT_EQ(split(0x107F, 300, 128, 64, false), (V{65, 128, 107}));
  EXPECT_EQ(split(0x107F, 300, 128, 128, false), (V{1, 128, 128, 43}));
  EXPECT_EQ(split(0x103E, 130, 256, 64, true), (V{2, 64, 64}));
  EXPECT_EQ(split(0x1000, 64, 256, 64, true), (V{64}));
  EXPECT_EQ(split(0x1001, 1, 256, 64, false), (V{1}));
}

TEST(MsixTableRegisters, StartMaskedAndFireOnUnmaskWhenPending) {
  pcie::MsixTable table(4);
  EXPECT_EQ(table.control(), 3U) << "disabled, of four entries";
  table.set_control(pcie::kMsixEnable);
  EXPECT_EQ(table.read(2 * 16 + 12, 4), 1U);
  EXPECT_FALSE(table.raise(2));
  EXPECT_TRUE(table.pending(2));
  EXPECT_EQ(table.read_pending(0, 8), 4U);
  EXPECT_FALSE(table.take_unmasked_pending());
  const std::uint32_t entry[4] = {0xFEE01000, 0, 0x4042, 0};
  table.write(2 * 16, std::as_bytes(std::span(entry)));
  EXPECT_EQ(table.take_unmasked_pending(), 2);
  EXPECT_FALSE(table.take_unmasked_pending());
  const auto message = table.raise(2);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->address, 0xFEE01000U);
  EXPECT_EQ(message->data, 0x4042U);
  EXPECT_EQ(table.read(2 * 16, 8), 0xFEE01000U);
  EXPECT_EQ(table.read(2 * 16 + 8, 4), 0x4042U);
}

TEST(MsixTableRegisters, AddressUsesBothDwords) {
  pcie::MsixTable table(1);
  table.set_control(pcie::kMsixEnable);
  const std::uint32_t entry[4] = {0x1003, 0x7, 5, 0};
  table.write(0, std::as_bytes(std::span(entry)));
  EXPECT_EQ(table.raise(0)->address, 0x7'0000'1000U) << "the two low address bits are zero";
}

TEST(PcieConfig, ContradictionsAreReported) {
  pcie::PcieConfig c;
  std::vector<std::string> bad;
  const auto fail = [&](std::string_view field, const std::string&) { bad.emplace_back(field); };
  c.check(fail);
  EXPECT_TRUE(bad.empty());
  c.max_payload_size = 384;
  c.max_read_request_size = 64;
  c.read_completion_boundary = 96;
  c.bdf = 0;
  c.root_port_credits.posted_data = 16;
  c.check(fail);
  EXPECT_EQ(bad, (std::vector<std::string>{"max_payload_size", "max_read_request_size", "read_completion_boundary",
                                           "bdf", "root_port_credits"}));
  bad.clear();
  c.link.width = 12;
  c.link.check(fail);
  EXPECT_EQ(bad, (std::vector<std::string>{"width"}));
}

}  // namespace
