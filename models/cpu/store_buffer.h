// SPDX-License-Identifier: Apache-2.0
// The store buffer of a core: stores that have executed and become visible to others at a known later time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/core_config.h"
#include "memory/host_memory.h"
#include "sim/context.h"

namespace cpu {

/// x86-64 (TSO): stores become visible in program order. arm64: stores to different lines become visible in any order
/// unless a barrier stands between; stores to one line keep their order.
///
/// A store makes no event. Its entry knows its drain time, and memory asks for what has drained before each access. Only
/// for a page that somebody watches does an event make the store visible on time.
class StoreBuffer final : public memory::PendingStores {
 public:
  StoreBuffer(sim::Context& context, const CoreConfig& config, memory::HostMemory& memory, std::int32_t host,
              memory::CoreIndex core, sim::trace::Source& trace);
  ~StoreBuffer() override;
  StoreBuffer(const StoreBuffer&) = delete;
  StoreBuffer& operator=(const StoreBuffer&) = delete;

  /// A store of n <= 64 bytes inside one 64-byte line executes at t. Returns when it is in the buffer: t, or later if the
  /// buffer is full.
  sim::Picos push(memory::Phys at, const void* src, std::size_t n, sim::trace::Cause cause, sim::Picos t);
  /// Replaces those bytes of `dst`, a copy of memory at [at, at+n), that pending stores have written.
  void forward(memory::Phys at, void* dst, std::size_t n) const {
    if ((lines_ & line_bits(at, n)) != 0 && head_ != tail_) overlay(at, dst, n);
  }
  /// Counts stores of polls that were skipped because they would have changed nothing.
  void count_skipped(std::uint64_t n) { stores_.add(n); }
  /// When every store so far is visible.
  sim::Picos drained() const { return drained_; }
  /// Later stores become visible no earlier than all stores so far (a store barrier), and not before t.
  void order_after(sim::Picos t = sim::Picos{0}) { floor_ = sim::max(floor_, sim::max(t, drained_)); }
  /// Time before which no store may become visible.
  sim::Picos floor() const { return floor_; }
  /// Stores that are not visible at t; t must not go backwards.
  std::uint32_t occupancy(sim::Picos t);

  void commit_until(sim::Picos t) override;
  sim::Picos next_drain() const override { return head_ == tail_ ? sim::kNever : entry(head_).drain; }
  void page_watched(memory::Phys page) override;
  void settle(memory::Phys at, std::uint64_t n) override;

 private:
  struct Entry {
    sim::Picos drain{};
    memory::Phys at{};
    sim::trace::Cause cause;
    std::uint8_t n = 0;  // 0 = made visible early
    bool has_event = false;
    std::uint64_t older = 0;  // position + 1 of the store before it in the same bucket, TSO only
    std::byte bytes[64];
  };
  static constexpr std::size_t kBuckets = 64;
  static std::size_t bucket(memory::Phys at) { return at.v >> 6 & (kBuckets - 1); }
  Entry& entry(std::uint64_t i) { return ring_[i & (ring_.size() - 1)]; }
  const Entry& entry(std::uint64_t i) const { return ring_[i & (ring_.size() - 1)]; }
  static std::uint64_t line_bits(memory::Phys at, std::size_t n) {
    return 1ULL << (at.v >> 6 & 63) | 1ULL << ((at.v + n - 1) >> 6 & 63);
  }
  void overlay(memory::Phys at, void* dst, std::size_t n) const;
  void overlay_line(memory::Phys at, std::byte* dst, std::size_t n) const;
  sim::Picos weak_drain(memory::Phys at, sim::Picos earliest);
  std::uint64_t insert_position(sim::Picos drain);
  void make_room();
  void schedule(Entry& e);
  void on_drain();

  sim::Context& context_;
  memory::HostMemory& memory_;
  sim::trace::Source& trace_;
  const bool weak_;
  const std::uint32_t entries_;
  const sim::Picos visible_after_, interval_, spread_;
  const memory::CoreIndex core_;
  sim::Rng rng_;
  sim::Counter& stores_;
  sim::Counter& stalls_;

  // Ordered by drain time. [head_, tail_) are not committed to memory; of these, [undrained_, tail_) are not visible at
  // the latest time that the core has reached, and occupy the hardware's entries.
  std::vector<Entry> ring_;
  std::uint64_t head_ = 0, undrained_ = 0, tail_ = 0;
  std::uint64_t lines_ = 0;                       // filter for forward()
  std::array<std::uint64_t, kBuckets> newest_{};  // position + 1 of the latest store of each bucket of lines, TSO only
  sim::Picos in_order_;                           // drain time of the last store before any random spread
  sim::Picos drained_{0}, floor_{0};
};

}  // namespace cpu
