// SPDX-License-Identifier: Apache-2.0
#include "cpu/barriers.h"

#include <gtest/gtest.h>

#include "machine.h"

namespace cpu {
namespace {
using namespace test;

TEST(Barriers, ExpandAsTheRealMacros_S_BAR_1) {
  struct Row {
    Barrier barrier;
    const char *x86, *arm;
  };
  const Row table[] = {{Barrier::udma_to_device, "none", "dmb oshst"},
                       {Barrier::udma_from_device, "lfence", "dmb oshld"},
                       {Barrier::mmio_flush_writes, "sfence", "dsb st"},
                       {Barrier::mmio_wc_start, "sfence", "dsb st"},
                       {Barrier::mmio_wc_spinlock, "none", "dsb st"},
                       {Barrier::dma_rmb, "none", "dmb oshld"},
                       {Barrier::wmb, "sfence", "dsb st"},
                       {Barrier::rmb, "lfence", "dsb ld"}};
  static_assert(std::size(table) == kBarriers);
  for (const Row& r : table) {
    EXPECT_EQ(name_of(expand(Arch::x86_64, r.barrier)), r.x86) << name_of(r.barrier);
    EXPECT_EQ(name_of(expand(Arch::arm64, r.barrier)), r.arm) << name_of(r.barrier);
  }
}

TEST(Barriers, EachCostsItsInstructionOnAnIdleCore) {
  Machine m(plain_costs(), 0);
  m.add_core(plain_costs(Arch::x86_64));
  m.add_core(plain_costs(Arch::arm64));
  CoreConfig omitting = plain_costs(Arch::arm64);
  omitting.omit_barriers = {Barrier::mmio_wc_start};
  omitting.weaken_barriers = {Barrier::mmio_flush_writes, Barrier::udma_to_device, Barrier::rmb};
  m.add_core(omitting);
  std::vector<std::vector<sim::Picos>> cost(3);
  for (unsigned c = 0; c < 3; ++c) {
    m.program(
        [&, c](Thread& t) {
          for (std::size_t b = 0; b < kBarriers; ++b) {
            const sim::Picos before = t.now();
            t.barrier(static_cast<Barrier>(b));
            cost[c].push_back(t.now() - before);
          }
        },
        c);
  }
  m.run();
  // In the order of the enumeration: to_device, from_device, flush_writes, wc_start, wc_spinlock, dma_rmb, wmb, rmb.
  EXPECT_EQ(cost[0], (std::vector<sim::Picos>{0_ns, 3_ns, 2_ns, 2_ns, 0_ns, 0_ns, 2_ns, 3_ns}));
  EXPECT_EQ(cost[1], (std::vector<sim::Picos>{17_ns, 17_ns, 21_ns, 21_ns, 21_ns, 17_ns, 21_ns, 21_ns}));
  EXPECT_EQ(cost[2], (std::vector<sim::Picos>{0_ns, 17_ns, 17_ns, 0_ns, 21_ns, 17_ns, 21_ns, 17_ns}));
  EXPECT_EQ(m.counter("cpu0.fences"), 5U);
  EXPECT_EQ(m.counter("cpu1.fences"), 8U);
}

TEST(Barriers, SfenceAndDsbWaitForTheStoreBufferAndTheLinesUnderWay) {
  Machine m(plain_costs(), 0);
  m.add_core(plain_costs(Arch::x86_64));
  auto arm = plain_costs(Arch::arm64);
  arm.weak_drain_spread = 0_ps;
  m.add_core(arm);
  auto* p = static_cast<std::uint64_t*>(m.space.alloc(4096));
  const memory::Va wc = m.space.map_mmio({kWindow}, 4096, memory::MemoryType::write_combining);
  std::vector<sim::Picos> at(4);
  for (unsigned c = 0; c < 2; ++c) {
    m.program(
        [&, c](Thread& t) {
          t.store(p + 64 * c, std::uint64_t{1});  // executes at 1 ns, visible at 11 ns
          t.barrier(Barrier::mmio_wc_start);
          at[2 * c] = t.now();
          t.mmio_store64(wc + 256 * c, 1);
          t.barrier(Barrier::mmio_flush_writes);  // flushed at once, leaves 40 ns later
          at[2 * c + 1] = t.now();
        },
        c);
  }
  m.run();
  EXPECT_EQ(at, (std::vector<sim::Picos>{11_ns, 52_ns, 22_ns, 63_ns}));
}

}  // namespace
}  // namespace cpu
