// SPDX-License-Identifier: Apache-2.0
// Sustained DMA throughput against the pcie-bench model: a write of sz bytes takes ceil(sz/MPS)*24 + sz bytes upstream, a
// read ceil(sz/MRRS)*24 upstream and ceil(sz/MPS)*20 + sz downstream (Neugebauer et al., SIGCOMM 2018).
#include <algorithm>
#include <ostream>

#include "machine.h"

namespace {

using namespace pcie_test;

struct Case {
  std::uint32_t generation, width, mps, mrrs, size;
};
std::string name_of(const Case& c) {
  return "gen" + std::to_string(c.generation) + "x" + std::to_string(c.width) + "_mps" + std::to_string(c.mps) +
         "_size" + std::to_string(c.size);
}
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << name_of(c); }
std::vector<Case> cases() {
  std::vector<Case> v;
  for (const std::uint32_t size : {64U, 128U, 192U, 256U, 320U, 512U, 1024U, 1500U, 2048U, 4096U}) {
    v.push_back({3, 16, 256, 512, size});
    v.push_back({3, 8, 256, 512, size});
    v.push_back({4, 16, 512, 1024, size});
    v.push_back({2, 4, 128, 4096, size});
  }
  return v;
}
MachineConfig config_of(const Case& c) {
  MachineConfig m;
  m.slot.link.generation = c.generation;
  m.slot.link.width = c.width;
  m.slot.max_payload_size = c.mps;
  m.slot.max_read_request_size = c.mrrs;
  return m;
}

constexpr std::uint64_t kTransfers = 400, kSettled = 100;
class Throughput : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(PcieBench, Throughput, testing::ValuesIn(cases()),
                         [](const auto& param) { return name_of(param.param); });

// Time from the last byte of transfer kSettled to that of the last one, in exact bits at the TLP rate.
void expect_rate(Machine& m, Picos elapsed, std::uint64_t bytes_per_transfer) {
  const double rate = static_cast<double>(m.slot.up.rate().bps);
  const double bits = static_cast<double>((kTransfers - kSettled) * bytes_per_transfer) * 8;
  EXPECT_NEAR(bits / elapsed.s() / rate, 1.0, 1e-6);
}

TEST_P(Throughput, OfWritesIsThatOfTheFormula) {
  const Case& c = GetParam();
  Machine m(config_of(c));
  m.watch(m.base, 4096);
  for (std::uint64_t i = 0; i < kTransfers; ++i)
    for (std::uint32_t done = 0; done < c.size; done += c.mps)
      m.device.write(m.base + done, std::min(c.mps, c.size - done), 1);
  m.run();
  const std::uint64_t tlps = (c.size + c.mps - 1) / c.mps;
  ASSERT_EQ(m.written.size(), kTransfers * tlps);
  expect_rate(m, m.written.back().first - m.written[kSettled * tlps - 1].first, tlps * 24 + c.size);
}

TEST_P(Throughput, OfReadsIsThatOfTheFormula) {
  const Case& c = GetParam();
  Machine m(config_of(c));
  m.device.keep_bytes = false;
  m.warm(m.base);
  for (std::uint64_t i = 0; i < kTransfers; ++i)
    for (std::uint32_t done = 0; done < c.size; done += c.mrrs)
      m.device.read(m.base + done, std::min(c.mrrs, c.size - done), static_cast<std::uint16_t>(i));
  m.run();
  std::vector<Picos> ends;
  std::uint32_t bytes = 0;
  for (const auto& p : m.device.pieces) {
    bytes += p.length;
    if (bytes % c.size == 0) ends.push_back(p.t);
  }
  ASSERT_EQ(ends.size(), kTransfers);
  const std::uint64_t down = (c.size + c.mps - 1) / c.mps * 20 + c.size;
  const std::uint64_t up = (c.size + c.mrrs - 1) / c.mrrs * 24;
  expect_rate(m, ends.back() - ends[kSettled - 1], std::max(up, down));
  EXPECT_EQ(m.count("up.wire_bytes"), kTransfers * up);
  EXPECT_EQ(m.count("down.wire_bytes"), kTransfers * down);
}

}  // namespace
