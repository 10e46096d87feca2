// SPDX-License-Identifier: Apache-2.0
// Replacement and invalidation of the IOTLB. Both page sizes share the sets; each indexes with its own page number.
#include "iommu/iotlb.h"

namespace iommu {

void Iotlb::insert(Entry e) {
  Entry* const set = set_of(e.page);
  Entry* victim = set;
  for (Entry* s = set; s != set + ways_; ++s) {
    if (s->stamp != 0 && s->page == e.page && s->requester == e.requester && s->large == e.large) {
      victim = s;
      break;
    }
    if (s->stamp < victim->stamp) victim = s;
  }
  drop(*victim);
  ++used_;
  if (e.large) ++large_entries_;
  e.stamp = ++clock_;
  *victim = e;
}

void Iotlb::invalidate(std::uint16_t requester, memory::Iova at, std::uint64_t pages) {
  const std::uint64_t first = at.v >> memory::kPageShift;
  for (Entry& e : entries_) {
    if (e.stamp == 0 || e.requester != requester) continue;
    constexpr unsigned kShift = kLargePageShift - memory::kPageShift;
    const std::uint64_t begin = e.large ? e.page << kShift : e.page;
    const std::uint64_t count = e.large ? 1ULL << kShift : 1;
    if (begin < first + pages && first < begin + count) drop(e);
  }
}

void Iotlb::invalidate_all(std::uint16_t requester) {
  for (Entry& e : entries_)
    if (e.stamp != 0 && e.requester == requester) drop(e);
}

}  // namespace iommu
