// SPDX-License-Identifier: Apache-2.0
// The four address spaces of the RDMA data path. They do not convert into each other except by the block that owns the
// translation: Va -> Phys by the CPU's page table, MrAddr -> Iova by the HCA's memory keys, Iova -> Phys by the IOMMU.
#pragma once

#include <compare>
#include <cstdint>

namespace memory {

inline constexpr std::uint64_t kPageSize = 4096;
inline constexpr unsigned kPageShift = 12;

namespace detail {
/// An address of one space; arithmetic stays inside the space.
template <class Tag>
struct Address {
  std::uint64_t v = 0;
  constexpr auto operator<=>(const Address&) const = default;
  friend constexpr Address operator+(Address a, std::uint64_t n) { return {a.v + n}; }
  friend constexpr std::uint64_t operator-(Address a, Address b) { return a.v - b.v; }
  constexpr Address page() const { return {v & ~(kPageSize - 1)}; }
  constexpr std::uint64_t offset() const { return v & (kPageSize - 1); }
};
}  // namespace detail

using Va = detail::Address<struct VaTag>;      ///< process virtual address (A)
using MrAddr = detail::Address<struct MrTag>;  ///< address inside a memory region, as SGE and RETH carry it (B)
using Iova = detail::Address<struct IovaTag>;  ///< DMA address, as TLPs carry it (D)
using Phys = detail::Address<struct PhysTag>;  ///< host physical address (P); also addresses of MMIO windows

}  // namespace memory
