// SPDX-License-Identifier: Apache-2.0
// RoCE addressing. Source: InfiniBand Architecture Annexes A16 and A17 (RoCE), Linux ib_core GID cache.
#include "kernel/core/gid_table.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace kernel {

std::optional<Gid> gid_of_ipv4(std::string_view dotted) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  const char* p = dotted.data();
  const char* const end = p + dotted.size();
  for (std::size_t i = 12; i < 16; ++i) {
    if (i > 12 && (p == end || *p++ != '.')) return std::nullopt;
    unsigned v = 256;
    const auto [next, error] = std::from_chars(p, end, v);
    if (error != std::errc{} || v > 255) return std::nullopt;
    gid[i] = static_cast<std::uint8_t>(v);
    p = next;
  }
  return p == end ? std::optional(gid) : std::nullopt;
}

Gid link_local_gid(Mac mac) {
  const auto octet = [mac](unsigned i) { return static_cast<std::uint8_t>(mac >> (8 * (5 - i))); };
  Gid g{0xfe, 0x80};
  g[8] = octet(0) ^ 2;
  g[9] = octet(1);
  g[10] = octet(2);
  g[11] = 0xff;
  g[12] = 0xfe;
  g[13] = octet(3);
  g[14] = octet(4);
  g[15] = octet(5);
  return g;
}

bool is_zero(const Gid& gid) {
  return std::all_of(gid.begin(), gid.end(), [](std::uint8_t b) { return b == 0; });
}

bool is_ipv4(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t b) { return b == 0; }) && gid[10] == 0xff &&
         gid[11] == 0xff;
}

std::optional<Mac> multicast_mac(const Gid& gid) {
  const std::uint64_t low =
      std::uint64_t{gid[12]} << 24 | std::uint64_t{gid[13]} << 16 | std::uint64_t{gid[14]} << 8 | gid[15];
  if (is_ipv4(gid)) return gid[12] >> 4 == 0xe ? std::optional(Mac{0x01005e000000 | (low & 0x7fffff)}) : std::nullopt;
  return gid[0] == 0xff ? std::optional(Mac{0x333300000000 | low}) : std::nullopt;
}

std::string to_string(const Gid& gid) {
  std::string s;
  for (std::size_t i = 0; i < 16; i += 2) {
    char group[6];
    std::snprintf(group, sizeof group, "%s%02x%02x", i == 0 ? "" : ":", gid[i], gid[i + 1]);
    s += group;
  }
  return s;
}

void GidTable::fill(Mac mac, const std::optional<Gid>& ipv4) {
  add(link_local_gid(mac));
  if (ipv4) add(*ipv4);
}

std::vector<std::uint32_t> GidTable::add(const Gid& gid) {
  std::vector<std::uint32_t> taken;
  std::uint32_t next = 0;
  for (const GidType type : {GidType::roce_v1, GidType::roce_v2}) {
    while (next < entries_.size() && entries_[next].valid) ++next;
    if (next == entries_.size()) break;
    entries_[next] = {gid, type, true};
    taken.push_back(next);
  }
  return taken;
}

std::vector<std::uint32_t> GidTable::remove(const Gid& gid) {
  std::vector<std::uint32_t> emptied;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].valid || entries_[i].gid != gid) continue;
    entries_[i] = {};
    emptied.push_back(i);
  }
  return emptied;
}

std::uint8_t rdma_mtu(std::uint64_t netdev_mtu) {
  // GRH or IPv6, UDP, BTH, XRCETH, AtomicETH and ICRC: what Linux reserves.
  constexpr std::uint64_t kHeaders = 40 + 8 + 12 + 4 + 28 + 4;
  std::uint8_t best = 0;
  for (std::uint8_t code = 1; code <= 5; ++code)
    if ((std::uint64_t{128} << code) + kHeaders <= netdev_mtu) best = code;
  return best;
}

std::uint16_t udp_source_port(std::uint32_t flow_label, std::uint32_t local_qpn, std::uint32_t remote_qpn) {
  std::uint32_t fl = flow_label & 0xfffff;
  if (fl == 0) {
    std::uint64_t v = std::uint64_t{local_qpn} * remote_qpn;
    v ^= v >> 20;
    v ^= v >> 40;
    fl = static_cast<std::uint32_t>(v & 0xfffff);
  }
  return static_cast<std::uint16_t>(((fl & 0x3fff) ^ (fl >> 14)) | 0xc000);
}

}  // namespace kernel
