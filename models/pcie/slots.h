// SPDX-License-Identifier: Apache-2.0
// Numbered places for objects that an event or a tag refers to; numbers are recycled.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace pcie {

template <class T>
class Slots {
 public:
  /// Stores v and returns its number.
  std::uint32_t put(T v) {
    if (free_.empty()) {
      items_.push_back(std::move(v));
      free_.reserve(items_.capacity());
      used_.push_back(true);
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t i = free_.back();
    free_.pop_back();
    items_[i] = std::move(v);
    used_[i] = true;
    return i;
  }
  /// Whether number i is taken.
  bool holds(std::uint64_t i) const { return i < used_.size() && used_[i]; }
  T& operator[](std::uint64_t i) { return items_[i]; }
  /// Removes and returns what has number i.
  T take(std::uint64_t i) {
    used_[i] = false;
    free_.push_back(static_cast<std::uint32_t>(i));
    return std::exchange(items_[i], T{});
  }
  std::size_t size() const { return items_.size() - free_.size(); }

 private:
  std::vector<T> items_;
  std::vector<bool> used_;
  std::vector<std::uint32_t> free_;
};

}  // namespace pcie
