// SPDX-License-Identifier: Apache-2.0
// Cache of upper page-table levels: which table serves an address, so that a walk starts below the root.
#pragma once

#include <cstdint>
#include <vector>

#include "iommu/iommu_prm.h"
#include "memory/address.h"

namespace iommu {

/// Fully associative with LRU replacement. An entry of level n names the table of that level (0 = leaf table).
class PageWalkCache {
 public:
  struct Table {
    unsigned level = 0;
    memory::Phys base{};
    std::uint64_t permissions = 0;  ///< read and write bits of all levels above, anded
  };

  /// 0 entries = no cache.
  explicit PageWalkCache(std::uint32_t entries) : entries_(entries) {}

  /// The lowest cached table on the way to `at`, or `root` as a table of the top level.
  Table find(std::uint16_t requester, memory::Iova at, memory::Phys root) {
    Entry* best = nullptr;
    for (Entry& e : entries_) {
      if (e.stamp == 0 || e.requester != requester || e.prefix != prefix(at, e.table.level)) continue;
      if (best == nullptr || e.table.level < best->table.level) best = &e;
    }
    if (best == nullptr) return {kLevels - 1, root, kPteRead | kPteWrite};
    best->stamp = ++clock_;
    return best->table;
  }
  void insert(std::uint16_t requester, memory::Iova at, const Table& table) {
    if (entries_.empty()) return;
    Entry* victim = &entries_.front();
    for (Entry& e : entries_)
      if (e.stamp < victim->stamp) victim = &e;
    *victim = {prefix(at, table.level), ++clock_, table, requester};
  }
  void invalidate_all(std::uint16_t requester) {
    for (Entry& e : entries_)
      if (e.requester == requester) e = {};
  }

 private:
  struct Entry {
    std::uint64_t prefix = 0;
    std::uint64_t stamp = 0;  // last use; 0 = free
    Table table;
    std::uint16_t requester = 0;
  };
  // The address bits that select the table.
  static std::uint64_t prefix(memory::Iova at, unsigned level) {
    return at.v >> (memory::kPageShift + kIndexBits * (level + 1));
  }
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace iommu
