// SPDX-License-Identifier: Apache-2.0
// Doorbell registers of one opened device: the static UAR pages and who shares which register (S-UAR-4).
#pragma once

#include <cstdint>
#include <vector>

namespace kernel {

/// Registers are counted two per UAR page, without the two that each page keeps for the kernel. Register 0 serves those who
/// got no other and never takes BlueFlame; the last `low_latency` are for one QP each; those between are shared.
class BfregPool {
 public:
  /// 0, -EINVAL (no registers, or low_latency too large) or -ENOMEM (more than 512). `total` is rounded up to whole pages.
  int init(std::uint32_t total, std::uint32_t low_latency, bool dedicated_first);
  std::uint32_t total() const { return static_cast<std::uint32_t>(count_.size()); }
  std::uint32_t pages() const { return total() / 2; }
  std::uint32_t take();
  void give(std::uint32_t reg) { --count_.at(reg); }
  std::uint32_t users(std::uint32_t reg) const { return count_.at(reg); }
  /// UAR page (of this context) of a register, and the index that user space expects: four registers per page.
  static std::uint32_t page_of(std::uint32_t reg) { return reg / 2; }
  static std::uint32_t user_index(std::uint32_t reg) { return reg / 2 * 4 + reg % 2; }

 private:
  std::uint32_t first_dedicated() const;
  std::vector<std::uint32_t> count_;
  std::uint32_t low_latency_ = 0;
  bool dedicated_first_ = true;
};

}  // namespace kernel
