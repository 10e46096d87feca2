// SPDX-License-Identifier: Apache-2.0
// Which 4 KiB pages the last-level cache holds: a set-associative directory with LRU replacement.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace memory {

class PageCache {
 public:
  /// Capacity `size` in pages of 4 KiB, at least one, split into sets of `ways`.
  PageCache(sim::Bytes size, std::uint32_t ways);

  /// Where a page was last placed. Kept by the page's owner so that a hit needs no search; 0 = never.
  using Hint = std::uint32_t;

  bool holds(std::uint32_t page, Hint hint) const { return hint != 0 && tag_[hint - 1] == page + 1; }
  /// Marks the page as most recently used; false if it is not held.
  bool touch(std::uint32_t page, Hint hint) {
    if (hint == latest_ && hint != 0 && latest_page_ == page) return true;
    if (!holds(page, hint)) return false;
    used_[hint - 1] = ++clock_;
    latest_ = hint;
    latest_page_ = page;
    return true;
  }
  /// Brings the page in, in place of the least recently used page of its set, and returns its new hint.
  Hint insert(std::uint32_t page);
  void drop(std::uint32_t page, Hint hint) {
    if (!holds(page, hint)) return;
    tag_[hint - 1] = 0;
    used_[hint - 1] = 0;
    if (latest_ == hint) latest_ = 0;
  }
  std::uint32_t sets() const { return sets_; }
  std::uint32_t ways() const { return ways_; }

 private:
  std::uint32_t ways_, sets_;
  std::vector<std::uint32_t> tag_;   // page + 1, 0 = empty
  std::vector<std::uint64_t> used_;  // time of last use on clock_
  std::uint64_t clock_ = 0;
  Hint latest_ = 0;  // the most recent place, and the page in it
  std::uint32_t latest_page_ = 0;
};

}  // namespace memory
