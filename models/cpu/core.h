// SPDX-License-Identifier: Apache-2.0
// A CPU core: costs of instructions, the store buffer, the write-combining buffers, and time stolen by interrupts.
#pragma once

#include <cstdint>
#include <systemc>

#include "cpu/barriers.h"
#include "memory/host_memory.h"
#include "pcie/root_complex.h"
#include "sim/config.h"
#include "sim/context.h"

namespace cpu {

enum class PollMode : std::uint8_t { fast_forward, spin };

/// Costs and sizes of a core. The implementer adds the fields of issue scope (store buffer entries and drain time, WC
/// buffers, fence costs, MMIO costs, load and store cost, lock cost), each with provenance.
struct CoreConfig;

class Core : public sc_core::sc_module {
 public:
  /// Outgoing MMIO; bound to the root complex.
  sc_core::sc_port<pcie::MmioPort> mmio;

  // For the kernel model: interrupt and softirq work on this core.
  /// Runs kernel work of length d at the first time >= at when the core is free of other kernel work; the thread that
  /// runs here is delayed by d. Returns when the work starts; it ends d later.
  sim::Picos steal(sim::Picos at, sim::Picos d);
};

}  // namespace cpu

template <>
struct sim::EnumNames<cpu::PollMode> {
  static constexpr std::array<std::pair<cpu::PollMode, std::string_view>, 2> values{
      {{cpu::PollMode::fast_forward, "fast_forward"}, {cpu::PollMode::spin, "spin"}}};
};
