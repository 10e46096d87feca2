// SPDX-License-Identifier: Apache-2.0
// Rate of a link. Generations 1 and 2 use 8b/10b, 3 to 5 use 128b/130b; generation 6 is approximated by the 242/256
// payload share of its flits with the TLP overhead of the older generations. Acks, UpdateFC and SKP are not sent one by
// one: they lower the rate that TLPs see, as in the pcie-bench model (Neugebauer et al., SIGCOMM 2018).
// The Ack interval is the formula behind the tables of PCI Express Base Specification 5.0, 3.6.3.1.
#include <array>

#include "pcie/pcie_config.h"
#include "sim/check.h"

namespace pcie {
namespace {

struct Generation {
  std::uint64_t transfers;        // per second and lane
  std::uint64_t payload, symbol;  // bits of data per bits on the lane
  std::uint32_t internal_delay;   // symbol times
};
constexpr std::array<Generation, 6> kGenerations{{
    {2'500'000'000, 8, 10, 19},
    {5'000'000'000, 8, 10, 70},
    {8'000'000'000, 128, 130, 115},
    {16'000'000'000, 128, 130, 115},
    {32'000'000'000, 128, 130, 115},
    {64'000'000'000, 242, 256, 115},
}};
constexpr std::uint32_t kDllpBytes = 8, kSkpLength = 4, kSkpInterval = 1538;

const Generation& generation(const LinkConfig& link) {
  SIM_CHECK(link.generation >= 1 && link.generation <= kGenerations.size(), "PCIe generation out of range");
  return kGenerations[link.generation - 1];
}

// Ten times the AckFactor of the specification's tables.
std::uint32_t ack_factor(std::uint32_t width, std::uint32_t mps) {
  if (mps <= 256) return width >= 16 ? 30 : width >= 8 ? 25 : 14;
  return width >= 16 ? 20 : 10;
}

}  // namespace

sim::BitRate raw_rate(const LinkConfig& link) {
  const Generation& g = generation(link);
  return {g.transfers * link.width * g.payload / g.symbol};
}

std::uint32_t ack_limit(const LinkConfig& link, std::uint32_t mps) {
  constexpr std::uint32_t kTlpOverhead = 28;
  return (mps + kTlpOverhead) * ack_factor(link.width, mps) / (10 * link.width) + generation(link).internal_delay;
}

sim::BitRate tlp_rate(const LinkConfig& link, std::uint32_t mps) {
  const std::uint64_t raw = raw_rate(link).bps;
  const std::uint64_t dllp = raw * kDllpBytes / ack_limit(link, mps);
  return {raw - 2 * dllp - raw * kSkpLength / kSkpInterval};
}

sim::Picos serialisation(const LinkConfig& link, std::uint32_t mps, sim::Bytes n) {
  return sim::RateMeter(tlp_rate(link, mps)).take(n);
}

}  // namespace pcie
