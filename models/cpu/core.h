// SPDX-License-Identifier: Apache-2.0
// A CPU core: costs of instructions, the store buffer, the write-combining buffers, and time stolen by interrupts.
#pragma once

#include <array>
#include <cstdint>
#include <systemc>
#include <vector>

#include "cpu/barriers.h"
#include "cpu/core_config.h"
#include "cpu/store_buffer.h"
#include "cpu/wc_buffer.h"
#include "memory/address_space.h"
#include "memory/host_memory.h"
#include "pcie/root_complex.h"
#include "sim/context.h"
#include "sim/rng.h"

namespace cpu {

class Thread;

/// Threads of one core share its store buffer and write-combining buffers. They are not time-sliced: each computes as if
/// it had the core for itself, and only kernel work takes time away from them.
class Core : public sc_core::sc_module {
 public:
  /// Outgoing MMIO; bound to the root complex.
  sc_core::sc_port<pcie::MmioPort> mmio;

  /// Core number `index` (below 255) of host `host`, with the memory of that host.
  Core(sc_core::sc_module_name name, sim::Context& context, const CoreConfig& config, memory::HostMemory& memory,
       std::int32_t host, std::uint32_t index);
  ~Core() override;

  // For the kernel model: interrupt and softirq work on this core.
  /// Runs kernel work of length d at the first time >= at when the core is free of other kernel work; the thread that
  /// runs here is delayed by d. Returns when the work starts; it ends d later. `worker`: the thread that is the work.
  sim::Picos steal(sim::Picos at, sim::Picos d, const Thread* worker = nullptr);
  /// Something that the core has to do comes at time `at` (now or later): when it can begin, `at` or later by the exit
  /// from the core's idle state.
  sim::Picos wake(sim::Picos at);
  /// End of the kernel work scheduled so far.
  sim::Picos kernel_busy_until() const { return kernel_until_; }

  // For Thread. Each takes the thread's time and returns the time at which the operation is over for the program.
  /// A store of n bytes inside one 64-byte line.
  sim::Picos store(memory::Phys at, const void* src, std::size_t n, sim::trace::Cause cause, sim::Picos t) {
    return stores_.push(at, src, n, cause, t);
  }
  /// A store to a device window.
  sim::Picos mmio_store(const memory::Translation& to, std::span<const std::byte> bytes, sim::trace::Cause cause,
                        sim::Picos t);
  /// Everything that has to leave the core before a load from a device window may; includes the core's own overhead.
  sim::Picos before_mmio_load(sim::Picos t);
  /// What a barrier macro does here, omitted and weakened barriers included.
  sim::Picos barrier(Barrier b, sim::trace::Cause cause, sim::Picos t);
  sim::Picos execute(Instruction i, sim::Picos t);
  /// A locked read-modify-write: on x86-64 also a full barrier.
  sim::Picos locked(sim::Picos t);
  /// The instruction that the barrier executes with this configuration.
  Instruction instruction(Barrier b) const { return instructions_[static_cast<std::size_t>(b)]; }

  StoreBuffer& store_buffer() { return stores_; }
  WcBuffers& wc_buffers() { return wc_; }
  const CoreConfig& config() const { return config_; }
  memory::HostMemory& memory() { return memory_; }
  sim::Context& context() { return context_; }
  sim::trace::Source& trace() { return trace_; }
  std::int32_t host() const { return host_; }
  memory::CoreIndex index() const { return index_; }

 private:
  friend class Thread;
  void schedule_noise(std::uint64_t seen);
  sim::Context& context_;
  const CoreConfig config_;
  memory::HostMemory& memory_;
  const std::int32_t host_;
  const memory::CoreIndex index_;
  sim::trace::Source trace_;
  StoreBuffer stores_;
  WcBuffers wc_;
  std::array<Instruction, kBarriers> instructions_{};
  sim::Picos kernel_until_{0};
  sim::Picos awake_from_{0};      // end of the last exit from the idle state
  std::vector<Thread*> threads_;  // in order of creation
  sim::Counter& fences_;
  sim::Counter& mmio_stores_;
  sim::Counter& mmio_loads_;
  sim::Counter& kernel_work_;
  sim::Counter& cstate_exits_;
  sim::Counter& noise_count_;
  sim::BusyTime& kernel_time_;
  sim::Rng noise_;
};

}  // namespace cpu
