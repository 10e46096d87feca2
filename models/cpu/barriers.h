// SPDX-License-Identifier: Apache-2.0
// The barrier macros of rdma-core (util/udma_barrier.h) and of the kernel, and the instructions they expand to on each
// architecture.
#pragma once

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
  dma_rmb,            ///< kernel dma_rmb
  wmb,                ///< kernel wmb
};
std::string_view name_of(Barrier b);

enum class Instruction : std::uint8_t {
  none,       ///< compiler barrier only
  lfence, sfence, mfence,
  dmb_oshst, dmb_oshld, dsb_st,
};
std::string_view name_of(Instruction i);

/// The instruction of a barrier on an architecture.
Instruction expand(Arch arch, Barrier b);

}  // namespace cpu

template <>
struct sim::EnumNames<cpu::Arch> {
  static constexpr std::array<std::pair<cpu::Arch, std::string_view>, 2> values{
      {{cpu::Arch::x86_64, "x86_64"}, {cpu::Arch::arm64, "arm64"}}};
};
