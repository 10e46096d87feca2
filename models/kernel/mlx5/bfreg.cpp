// SPDX-License-Identifier: Apache-2.0
// Assignment of doorbell registers as mlx5_ib does without dynamic UARs: dedicated registers first, then the least used of
// the shared ones, else register 0. Source: mlx5_ib (alloc_bfreg and calc_total_bfregs).
#include "kernel/mlx5/bfreg.h"

#include <algorithm>
#include <cerrno>

namespace kernel {

namespace {
constexpr std::uint32_t kPerPage = 2, kMost = 512;
}

int BfregPool::init(std::uint32_t total, std::uint32_t low_latency, bool dedicated_first) {
  if (total == 0) return -EINVAL;
  if (total > kMost) return -ENOMEM;
  total = (total + kPerPage - 1) / kPerPage * kPerPage;
  if (low_latency > total - 1) return -EINVAL;
  count_.assign(total, 0);
  low_latency_ = low_latency;
  dedicated_first_ = dedicated_first;
  return 0;
}

std::uint32_t BfregPool::first_dedicated() const { return total() - low_latency_; }

std::uint32_t BfregPool::take() {
  std::uint32_t reg = 0;
  if (dedicated_first_) {
    const auto begin = count_.begin();
    const auto dedicated = begin + first_dedicated();
    if (const auto unused = std::find(dedicated, count_.end(), 0U); unused != count_.end())
      reg = static_cast<std::uint32_t>(unused - begin);
    else if (dedicated - begin > 1) reg = static_cast<std::uint32_t>(std::min_element(begin + 1, dedicated) - begin);
  }
  ++count_[reg];
  return reg;
}

}  // namespace kernel
