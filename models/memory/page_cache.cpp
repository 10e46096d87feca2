// SPDX-License-Identifier: Apache-2.0
// Directory of the last-level cache by page. It holds no bytes, and it does not model slices, inclusion or the share of
// the ways that device writes may use.
#include "memory/page_cache.h"

#include <algorithm>

#include "memory/address.h"

namespace memory {

PageCache::PageCache(sim::Bytes size, std::uint32_t ways) {
  const std::uint64_t pages = std::max<std::uint64_t>(1, size.n / kPageSize);
  ways_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::max(1U, ways), pages));
  sets_ = static_cast<std::uint32_t>(pages / ways_);
  tag_.assign(std::size_t{sets_} * ways_, 0);
  used_.assign(tag_.size(), 0);
}

PageCache::Hint PageCache::insert(std::uint32_t page) {
  const std::size_t first = std::size_t{page % sets_} * ways_;
  std::size_t victim = first;
  for (std::size_t i = first; i < first + ways_; ++i)
    if (used_[i] < used_[victim]) victim = i;
  tag_[victim] = page + 1;
  used_[victim] = ++clock_;
  latest_ = static_cast<Hint>(victim + 1);
  latest_page_ = page;
  return latest_;
}

}  // namespace memory
