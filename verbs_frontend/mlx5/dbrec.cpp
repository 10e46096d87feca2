// SPDX-License-Identifier: Apache-2.0
// Doorbell records: pages of the process' memory cut into one record per cache line (S-DBR-1). Records are handed out
// in ascending order within a page.
#include <algorithm>

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {

Dbr* DbrPool::alloc(memory::AddressSpace& space, std::size_t line) {
  if (free_.empty()) {
    auto* page = static_cast<std::byte*>(space.alloc(memory::kPageSize, memory::kPageSize));
    if (page == nullptr) return nullptr;
    pages_.push_back(page);
    for (std::size_t at = memory::kPageSize; at >= line; at -= line)
      free_.push_back(reinterpret_cast<Dbr*>(page + at - line));
  }
  Dbr* record = free_.back();
  free_.pop_back();
  record[0] = record[1] = 0;
  return record;
}

void DbrPool::free(Dbr* record) { free_.push_back(record); }

void DbrPool::release(memory::AddressSpace& space) {
  for (std::byte* page : pages_) space.free(page);
  pages_.clear();
  free_.clear();
}

}  // namespace verbs::mlx5
