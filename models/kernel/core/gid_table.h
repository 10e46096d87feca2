// SPDX-License-Identifier: Apache-2.0
// RoCE addressing of a host: GID table of the port, neighbour table (GID to MAC), MTU arithmetic, UDP source port.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernel {

using Gid = std::array<std::uint8_t, 16>;
/// 48-bit MAC address in the low bits.
using Mac = std::uint64_t;

enum class GidType : std::uint8_t { roce_v1, roce_v2 };

struct GidEntry {
  Gid gid{};
  GidType type = GidType::roce_v1;
  bool valid = false;
};

/// ::ffff:a.b.c.d of a dotted address; empty if it is not one. (S-ROCE-3)
std::optional<Gid> gid_of_ipv4(std::string_view dotted);
/// fe80::/64 with the EUI-64 of the MAC address.
Gid link_local_gid(Mac mac);
bool is_zero(const Gid& gid);
bool is_ipv4(const Gid& gid);
/// Destination MAC address of a multicast GID: 33:33 and the last 32 bits, or 01:00:5e and the last 23 of an IPv4 group.
/// Empty if the GID is not multicast. (S-UD-8)
std::optional<Mac> multicast_mac(const Gid& gid);
/// "fe80:0000:…" as sysfs prints it.
std::string to_string(const Gid& gid);

/// GIDs of one port in the order in which Linux adds them: link-local v1, v2, then IPv4 v1, v2.
class GidTable {
 public:
  explicit GidTable(std::uint32_t length) : entries_(length) {}
  void fill(Mac mac, const std::optional<Gid>& ipv4);
  /// Adds the address for every GID type where there is room; the indices taken.
  std::vector<std::uint32_t> add(const Gid& gid);
  /// Empties the address's entries; their indices.
  std::vector<std::uint32_t> remove(const Gid& gid);
  std::size_t length() const { return entries_.size(); }
  const GidEntry& at(std::size_t index) const { return entries_.at(index); }
  /// Index inside the table and not empty.
  bool usable(std::uint64_t index) const { return index < entries_.size() && entries_[index].valid; }

 private:
  std::vector<GidEntry> entries_;
};

/// Who has which address, as ARP and neighbour discovery would find out. Filled by the cluster, shared by its hosts.
class NeighbourTable {
 public:
  void add(const Gid& gid, Mac mac) { macs_[gid] = mac; }
  void remove(const Gid& gid) { macs_.erase(gid); }
  std::optional<Mac> find(const Gid& gid) const {
    const auto it = macs_.find(gid);
    return it == macs_.end() ? std::nullopt : std::optional(it->second);
  }

 private:
  std::map<Gid, Mac> macs_;
};

/// Largest enum ibv_mtu (1..5) whose size and RoCE headers fit the Ethernet MTU, 0 if none does. (S-PKT-7)
std::uint8_t rdma_mtu(std::uint64_t netdev_mtu);
/// RoCEv2 UDP source port; flow label 0 is replaced by a hash of the two QP numbers. (S-ROCE-1, S-ROCE-2)
std::uint16_t udp_source_port(std::uint32_t flow_label, std::uint32_t local_qpn, std::uint32_t remote_qpn);

}  // namespace kernel
