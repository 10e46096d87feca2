// SPDX-License-Identifier: Apache-2.0
// Expansion table after rdma-core's util/udma_barrier.h and util/mmio.h and the kernel's asm/barrier.h.
#include "cpu/barriers.h"

namespace cpu {

std::string_view name_of(Barrier b) { return sim::enum_name(b); }

std::string_view name_of(Instruction i) {
  static constexpr std::array<std::string_view, 7> kNames{"none",      "lfence", "sfence", "dmb oshst",
                                                          "dmb oshld", "dsb st", "dsb ld"};
  return kNames[static_cast<std::size_t>(i)];
}

Instruction expand(Arch arch, Barrier b) {
  const bool x86 = arch == Arch::x86_64;
  switch (b) {
    case Barrier::udma_to_device:
      return x86 ? Instruction::none : Instruction::dmb_oshst;
    case Barrier::udma_from_device:
      return x86 ? Instruction::lfence : Instruction::dmb_oshld;
    case Barrier::mmio_flush_writes:
    case Barrier::mmio_wc_start:
    case Barrier::wmb:
      return x86 ? Instruction::sfence : Instruction::dsb_st;
    case Barrier::mmio_wc_spinlock:
      return x86 ? Instruction::none : Instruction::dsb_st;
    case Barrier::dma_rmb:
      return x86 ? Instruction::none : Instruction::dmb_oshld;
    case Barrier::rmb:
      return x86 ? Instruction::lfence : Instruction::dsb_ld;
  }
  return Instruction::none;
}

Instruction weaken(Instruction i) {
  if (i == Instruction::dsb_st) return Instruction::dmb_oshst;
  if (i == Instruction::dsb_ld) return Instruction::dmb_oshld;
  return Instruction::none;
}

}  // namespace cpu
