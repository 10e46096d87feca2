// SPDX-License-Identifier: Apache-2.0
// What the IOMMU shares with the kernel that programs it: the format of its page tables in host memory and its register
// interface. Four levels of 512 eight-byte entries as in x86 second-level paging (Intel VT-d specification, chapter 9).
#pragma once

#include <cstdint>
#include <systemc>

#include "memory/address.h"
#include "sim/units.h"

namespace iommu {

inline constexpr unsigned kLevels = 4;
inline constexpr unsigned kIndexBits = 9;
inline constexpr std::uint64_t kPteRead = 1, kPteWrite = 2, kPteLarge = 1ULL << 7;
inline constexpr std::uint64_t kPteAddress = 0x000F'FFFF'FFFF'F000ULL;
/// Index of `at` in the table of `level` (3 = root, 0 = leaf).
constexpr unsigned table_index(memory::Iova at, unsigned level) {
  return static_cast<unsigned>(at.v >> (memory::kPageShift + kIndexBits * level) & ((1U << kIndexBits) - 1));
}

/// The registers that the kernel programs.
struct IommuControl : virtual sc_core::sc_interface {
  /// Page-table root of a device; translation of that device starts.
  virtual void set_root(std::uint16_t requester, memory::Phys root) = 0;
  /// Drops cached translations of [at, at + pages*4096). Returns when the invalidation has completed (absolute time).
  virtual sim::Picos invalidate(std::uint16_t requester, memory::Iova at, std::uint64_t pages) = 0;
  /// Addresses are used untranslated (D = P): the kernel must not build page tables.
  virtual bool passthrough() const = 0;
};

}  // namespace iommu
