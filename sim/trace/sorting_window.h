// SPDX-License-Identifier: Apache-2.0
// Puts records in order of time within bounded memory, for sinks whose format wants that order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace sim::trace {

/// Holds back at least `size` records, except in drain(); those that leave are the earliest of the ones held. A record that
/// comes later than `size` others of a later time leaves out of order. Works in batches of `size`, because sorting what has
/// come in one go costs a fraction of a heap of this size.
template <class R>
class SortingWindow {
 public:
  explicit SortingWindow(std::size_t size) : size_(size) {}

  /// Takes a record in; among records of one time the lowest `order` leaves first. `out` is called with those that leave.
  template <class F>
  void add(Picos t, std::uint64_t order, const R& r, F&& out) {
    std::uint32_t row = 0;
    if (free_.empty()) {
      row = static_cast<std::uint32_t>(rows_.size());
      rows_.push_back(r);
    } else {
      row = free_.back();
      free_.pop_back();
      rows_[row] = r;
    }
    keys_.push_back({t, order, row});
    if (keys_.size() == 2 * size_) release(size_, out);
  }
  template <class F>
  void drain(F&& out) {
    release(keys_.size(), out);
  }

 private:
  struct Key {
    Picos t;
    std::uint64_t order;
    std::uint32_t row;
    bool operator<(const Key& b) const { return t != b.t ? t < b.t : order < b.order; }
  };

  template <class F>
  void release(std::size_t n, F&& out) {
    const auto fresh = keys_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(fresh, keys_.end());
    merged_.resize(keys_.size());
    std::merge(keys_.begin(), fresh, fresh, keys_.end(), merged_.begin());
    const auto rest = merged_.begin() + static_cast<std::ptrdiff_t>(n);
    keys_.assign(rest, merged_.end());
    sorted_ = keys_.size();
    for (auto k = merged_.begin(); k != rest; ++k) {
      free_.push_back(k->row);
      out(rows_[k->row]);
    }
  }

  const std::size_t size_;
  std::vector<R> rows_;
  std::vector<Key> keys_, merged_;  // of those held; the first sorted_ of them are in order
  std::size_t sorted_ = 0;
  std::vector<std::uint32_t> free_;  // rows
};

}  // namespace sim::trace
