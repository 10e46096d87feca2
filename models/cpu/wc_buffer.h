// SPDX-License-Identifier: Apache-2.0
// The write-combining buffers of a core, and the way out for all its stores to devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <systemc>
#include <vector>

#include "cpu/core_config.h"
#include "memory/address.h"
#include "pcie/root_complex.h"
#include "sim/context.h"

namespace cpu {

enum class FlushReason : std::uint8_t { full, fence, eviction, timeout };

/// Times are those of the storing thread and may be ahead of the engine's clock; what leaves the core does so in an event
/// at its absolute time.
class WcBuffers {
 public:
  WcBuffers(sim::Context& context, const CoreConfig& config, sc_core::sc_port<pcie::MmioPort>& port, std::int32_t host,
            memory::CoreIndex core);
  WcBuffers(const WcBuffers&) = delete;
  WcBuffers& operator=(const WcBuffers&) = delete;

  /// A store to write-combining memory, inside one aligned 8-byte word, executes at t. Its line does not leave before
  /// `not_before`. Returns when a buffer has taken it: t, or later if all buffers were busy.
  sim::Picos store(memory::Phys at, std::span<const std::byte> bytes, sim::trace::Cause cause, sim::Picos t,
                   sim::Picos not_before);
  /// A store to uncached memory leaves as it is, after everything that left before, at `not_before` or later. Returns
  /// when it leaves.
  sim::Picos send_uncached(memory::Phys at, std::span<const std::byte> bytes, sim::trace::Cause cause, sim::Picos t,
                           sim::Picos not_before);
  /// Flushes every open line at t. Returns when everything has left, t if nothing was on its way.
  sim::Picos flush(sim::Picos t);
  /// Lines that collect stores at this moment.
  unsigned open_lines() const { return open_; }

 private:
  struct Line {
    enum State : std::uint8_t { free, open, leaving } state = free;
    memory::Phys at{};        // of byte 0
    std::uint64_t valid = 0;  // one bit per byte
    sim::Picos opened{}, last_store{}, not_before{}, leaves{};
    sim::trace::Cause cause;
    std::byte bytes[64];
  };
  /// What is on its way out; kept apart from the line, whose buffer may be in use again before the engine gets here.
  struct Departure {
    memory::Phys at{};
    std::uint64_t valid = 0;
    sim::trace::Cause cause;
    std::uint32_t next_free = 0;
    std::byte bytes[64];
  };
  static constexpr std::uint32_t kNil = ~0U;

  Line& line_for(memory::Phys at, sim::Picos& t);
  void flush_line(Line& line, sim::Picos t, FlushReason why);
  void expire(sim::Picos t);
  Line* next_to_expire();
  void arm_timer();
  void on_timer();
  void depart_at(sim::Picos t, memory::Phys at, const std::byte* bytes, std::uint64_t valid, sim::trace::Cause cause);
  void on_departure(std::uint64_t index);

  sim::Context& context_;
  const sim::Picos flush_latency_, line_interval_, timeout_, uc_latency_;
  sc_core::sc_port<pcie::MmioPort>& port_;
  sim::trace::Source trace_;
  std::vector<Line> lines_;
  unsigned open_ = 0;
  sim::Picos last_left_;  // departure of the latest line or uncached store
  bool timer_armed_ = false;
  std::vector<Departure> departures_;
  std::uint32_t free_departure_ = kNil;
  sim::Counter* flushes_[4];
  sim::Counter& partial_;
};

}  // namespace cpu
