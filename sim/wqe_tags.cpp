// SPDX-License-Identifier: Apache-2.0
// Rings of message ids, one per queue.
#include "sim/wqe_tags.h"

#include <algorithm>
#include <bit>

namespace sim {

void Tags::reserve(std::uint32_t entries) {
  const std::uint32_t n = std::bit_ceil(entries);
  if (n <= ids_.size()) return;
  ids_.assign(n, 0);
  mask_ = n - 1;
}

void Tags::clear() { std::ranges::fill(ids_, 0); }

Tags& TagTable::of(std::int32_t host, std::uint32_t number) {
  std::unique_ptr<Tags>& ring = rings_[{host, number}];
  if (!ring) ring = std::make_unique<Tags>();
  return *ring;
}

}  // namespace sim
