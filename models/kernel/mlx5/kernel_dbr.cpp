// SPDX-License-Identifier: Apache-2.0
// Allocation of kernel doorbell records. Source: mlx5_core alloc.c (mlx5_db_alloc, mlx5_db_free).
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernel/mlx5/kernel_queues.h"

namespace kernel {

KernelDbr KernelDbrPool::alloc(DmaMapper& dma) {
  constexpr std::uint64_t kAll = ~0ULL;
  static_assert(kRecords == 64);
  std::size_t page = 0;
  while (page < pages_.size() && (pages_[page].memory.bytes == nullptr || pages_[page].used == kAll)) ++page;
  if (page == pages_.size()) {
    page = static_cast<std::size_t>(std::ranges::find(pages_, nullptr, [](const Page& p) { return p.memory.bytes; }) -
                                    pages_.begin());
    if (page == pages_.size()) pages_.emplace_back();
    pages_[page].memory = dma.alloc(memory::kPageSize);
  }
  Page& p = pages_[page];
  const auto n = static_cast<std::size_t>(std::countr_one(p.used));
  p.used |= 1ULL << n;
  std::memset(p.memory.bytes + n * kRecord, 0, kRecord);
  return {p.memory.bytes + n * kRecord, p.memory.at(n * kRecord), page};
}

void KernelDbrPool::free(DmaMapper& dma, KernelDbr& record) {
  if (record.bytes == nullptr) return;
  Page& p = pages_.at(record.page);
  p.used &= ~(1ULL << (static_cast<std::size_t>(record.bytes - p.memory.bytes) / kRecord));
  record = {};
  if (p.used != 0) return;
  DmaBuffer last = std::exchange(p.memory, {});  // off the table before unmapping blocks
  dma.free(last);
}

std::size_t KernelDbrPool::pages() const {
  return static_cast<std::size_t>(std::ranges::count_if(pages_, [](const Page& p) { return p.used != 0; }));
}

}  // namespace kernel
