// SPDX-License-Identifier: Apache-2.0
// Multicast groups of the device: which queue pairs are attached to a multicast GID (S-UD-8).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "hca/transport/wire.h"

namespace hca {

/// Limits that QUERY_HCA_CAP reports: log2 of the groups, and queue pairs per group. Those of a ConnectX-5.
inline constexpr std::uint32_t kLogMaxMulticastGroups = 21, kMaxMulticastQps = 240;

class MulticastGroups {
 public:
  /// False when a limit is reached. Attaching twice is the same as once.
  bool attach(const wire::Gid& group, std::uint32_t qpn) {
    if (groups_.size() >= 1U << kLogMaxMulticastGroups && !groups_.contains(group)) return false;
    std::vector<std::uint32_t>& members = groups_[group];
    if (std::find(members.begin(), members.end(), qpn) != members.end()) return true;
    if (members.size() >= kMaxMulticastQps) return false;
    members.push_back(qpn);
    return true;
  }
  /// False if the queue pair is not attached to the group.
  bool detach(const wire::Gid& group, std::uint32_t qpn) {
    const auto it = groups_.find(group);
    if (it == groups_.end() || std::erase(it->second, qpn) == 0) return false;
    if (it->second.empty()) groups_.erase(it);
    return true;
  }
  /// In the order of attachment.
  std::span<const std::uint32_t> members(const wire::Gid& group) const {
    const auto it = groups_.find(group);
    return it == groups_.end() ? std::span<const std::uint32_t>{} : std::span<const std::uint32_t>{it->second};
  }
  bool attached(std::uint32_t qpn) const {
    return std::any_of(groups_.begin(), groups_.end(), [qpn](const auto& g) {
      return std::find(g.second.begin(), g.second.end(), qpn) != g.second.end();
    });
  }
  bool empty() const { return groups_.empty(); }

 private:
  std::map<wire::Gid, std::vector<std::uint32_t>> groups_;
};

}  // namespace hca
