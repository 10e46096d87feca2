// SPDX-License-Identifier: Apache-2.0
// Context memory (ICM): host pages that the driver gives to the device with MANAGE_PAGES, where QP, CQ and memory key
// contexts and translation tables live when they are not cached on chip. Pages are bound to parts of the tables on first use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory/address.h"

namespace hca {

enum class IcmTable : std::uint8_t { qpc, cqc, mpt, mtt };
inline constexpr std::size_t kIcmTables = 4;
/// Bytes of one entry; a translation entry is 8 bytes, read in lines of eight.
constexpr std::uint32_t icm_entry_size(IcmTable t) {
  constexpr std::array<std::uint32_t, kIcmTables> kSize{256, 64, 64, 8};
  return kSize[static_cast<std::size_t>(t)];
}

class Icm {
 public:
  void give(memory::Iova page) { free_.push_back(page); }
  /// Returns a page to the host, if one is unbound.
  std::optional<memory::Iova> take_back() {
    if (free_.empty()) return std::nullopt;
    const memory::Iova p = free_.back();
    free_.pop_back();
    return p;
  }
  std::size_t pages() const { return free_.size() + bound_; }
  /// Backs entry `index` with a page if it has none. False when the device has run out of pages.
  bool reserve(IcmTable t, std::uint32_t index) {
    auto& table = tables_[static_cast<std::size_t>(t)];
    const std::size_t page = page_of(t, index);
    if (page >= table.size()) table.resize(page + 1);
    if (table[page].v != 0) return true;
    if (free_.empty()) return false;
    table[page] = free_.back();
    free_.pop_back();
    ++bound_;
    return true;
  }
  /// Bus address of a reserved entry.
  memory::Iova address(IcmTable t, std::uint32_t index) const {
    const std::uint64_t byte = static_cast<std::uint64_t>(index) * icm_entry_size(t);
    return tables_[static_cast<std::size_t>(t)][page_of(t, index)] + byte % memory::kPageSize;
  }

 private:
  static std::size_t page_of(IcmTable t, std::uint32_t index) {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(index) * icm_entry_size(t) / memory::kPageSize);
  }
  std::vector<memory::Iova> free_;
  std::array<std::vector<memory::Iova>, kIcmTables> tables_;
  std::size_t bound_ = 0;
};

}  // namespace hca
