// SPDX-License-Identifier: Apache-2.0
// The barrier macros of rdma-core (util/udma_barrier.h) and of the kernel, and the instructions they expand to on each
// architecture.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/config.h"

namespace cpu {

enum class Arch : std::uint8_t { x86_64, arm64 };

enum class Barrier : std::uint8_t {
  udma_to_device,     ///< udma_to_device_barrier
  udma_from_device,   ///< udma_from_device_barrier
  mmio_flush_writes,  ///< mmio_flush_writes
  mmio_wc_start,      ///< mmio_wc_start, the same instruction as mmio_flush_writes
  mmio_wc_spinlock,   ///< what mmio_wc_spinlock adds to the lock itself; part of Thread::lock(l, true)
  dma_rmb,            ///< kernel dma_rmb
  wmb,                ///< kernel wmb
  rmb,                ///< kernel rmb
};
inline constexpr std::size_t kBarriers = 8;
std::string_view name_of(Barrier b);

enum class Instruction : std::uint8_t {
  none,  ///< compiler barrier only
  lfence,
  sfence,
  dmb_oshst,
  dmb_oshld,
  dsb_st,
  dsb_ld,
};
std::string_view name_of(Instruction i);

/// The instruction of a barrier on an architecture.
Instruction expand(Arch arch, Barrier b);
/// The next weaker instruction, for fault injection: dsb_st -> dmb_oshst, dsb_ld -> dmb_oshld, all others -> none.
Instruction weaken(Instruction i);

}  // namespace cpu

template <>
struct sim::EnumNames<cpu::Arch> {
  static constexpr std::array<std::pair<cpu::Arch, std::string_view>, 2> values{
      {{cpu::Arch::x86_64, "x86_64"}, {cpu::Arch::arm64, "arm64"}}};
};

template <>
struct sim::EnumNames<cpu::Barrier> {
  static constexpr std::array<std::pair<cpu::Barrier, std::string_view>, cpu::kBarriers> values{
      {{cpu::Barrier::udma_to_device, "udma_to_device"},
       {cpu::Barrier::udma_from_device, "udma_from_device"},
       {cpu::Barrier::mmio_flush_writes, "mmio_flush_writes"},
       {cpu::Barrier::mmio_wc_start, "mmio_wc_start"},
       {cpu::Barrier::mmio_wc_spinlock, "mmio_wc_spinlock"},
       {cpu::Barrier::dma_rmb, "dma_rmb"},
       {cpu::Barrier::wmb, "wmb"},
       {cpu::Barrier::rmb, "rmb"}}};
};
