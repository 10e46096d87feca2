// SPDX-License-Identifier: Apache-2.0
// The unit that executes atomic operations on host memory for all QPs of the device. A read-modify-write is a DMA read and
// a DMA write, so the unit lets one operation at a time work on an address (S-ATM-4). It cannot hold off the CPU.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "hca/device.h"
#include "hca/dma/dma_engine.h"

namespace hca {

struct AtomicOperation {
  bool compare_swap = false;  ///< otherwise fetch and add
  std::uint64_t swap_add = 0, compare = 0;
};

class AtomicUnit {
 public:
  AtomicUnit(Device& device, DmaEngine& dma, const std::string& path);
  sim::Context& context() { return device_.context; }

  /// Executes the operation on the eight bytes at `at`, a multiple of eight. The value before it; empty when memory could
  /// not be read.
  sim::Task<std::optional<std::uint64_t>> execute(memory::Iova at, AtomicOperation operation, sim::trace::Cause& cause);

 private:
  // Two keys, or two bus addresses, may name the same memory; the offset in its page is the same by all of them. So the
  // offset selects the lock.
  static constexpr std::size_t kLocks = memory::kPageSize / 8;

  Device& device_;
  DmaEngine& dma_;
  std::deque<sim::Semaphore> locks_;
  sim::trace::Source trace_;
  sim::Counter& operations_;
  sim::Counter& conflicts_;
};

}  // namespace hca
