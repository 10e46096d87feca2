// SPDX-License-Identifier: Apache-2.0
// The IOTLB: a set-associative cache of translations with LRU replacement, for 4 KiB and 2 MiB pages.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/address.h"
#include "sim/units.h"

namespace iommu {

inline constexpr unsigned kLargePageShift = 21;
inline constexpr std::uint64_t kLargePageSize = 1ULL << kLargePageShift;

class Iotlb {
 public:
  struct Entry {
    std::uint64_t page = 0;   // IOVA >> page shift
    std::uint64_t stamp = 0;  // last use; 0 = free
    memory::Phys base{};      // of the page
    sim::Picos ready{0};      // the walk that brought it ends then
    std::uint16_t requester = 0;
    bool large = false, read = false, write = false;
    memory::Phys at(memory::Iova iova) const {
      return base + (iova.v & ((large ? kLargePageSize : memory::kPageSize) - 1));
    }
  };

  /// `ways` divides `entries`.
  Iotlb(std::uint32_t entries, std::uint32_t ways) : sets_(entries / ways), ways_(ways), entries_(entries) {}

  /// The entry that translates `at`, made the most recently used of its set; nullptr on a miss. Valid until the next
  /// insert().
  const Entry* find(std::uint16_t requester, memory::Iova at) {
    if (Entry* e = probe(requester, at.v >> memory::kPageShift, false)) return e;
    return large_entries_ == 0 ? nullptr : probe(requester, at.v >> kLargePageShift, true);
  }
  /// Replaces an entry of the same page, a free one, or the least recently used one of the set.
  void insert(Entry e);
  /// Drops every entry that overlaps [at, at + pages * 4 KiB).
  void invalidate(std::uint16_t requester, memory::Iova at, std::uint64_t pages);
  void invalidate_all(std::uint16_t requester);
  /// Entries in use.
  std::uint32_t size() const { return used_; }

 private:
  Entry* set_of(std::uint64_t page) { return entries_.data() + page % sets_ * ways_; }
  Entry* probe(std::uint16_t requester, std::uint64_t page, bool large) {
    Entry* set = set_of(page);
    for (Entry* e = set; e != set + ways_; ++e) {
      if (e->page != page || e->stamp == 0 || e->requester != requester || e->large != large) continue;
      e->stamp = ++clock_;
      return e;
    }
    return nullptr;
  }
  void drop(Entry& e) {
    if (e.stamp != 0) --used_;
    if (e.large) --large_entries_;
    e = {};
  }

  std::uint32_t sets_, ways_;
  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
  std::uint32_t used_ = 0, large_entries_ = 0;
};

}  // namespace iommu
