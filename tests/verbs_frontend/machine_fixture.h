// SPDX-License-Identifier: Apache-2.0
// One simulated core with memory, an address space and a program thread; stores to devices go nowhere.
#pragma once

#include <functional>
#include <memory>
#include <systemc>
#include <utility>
#include <vector>

#include "cpu/core.h"
#include "cpu/thread.h"
#include "memory/address_space.h"
#include "memory/host_memory.h"
#include "sim/context.h"
#include "sim/engine.h"
#include "verbs_frontend/process_state.h"

namespace verbs::test {

struct MmioSink : sc_core::sc_module, pcie::MmioPort {
  explicit MmioSink(sc_core::sc_module_name name) : sc_module(name) {}
  void mmio_write(memory::Phys, std::span<const std::byte> bytes, sim::trace::Cause cause) override {
    writes.push_back({bytes.size(), cause});
  }
  void mmio_read(memory::Phys, unsigned, void (*)(void*, std::uint64_t), void*) override {}
  struct Write {
    std::size_t bytes;
    sim::trace::Cause cause;
  };
  std::vector<Write> writes;
};

class Machine {
 public:
  explicit Machine(const cpu::CoreConfig& core_config = {})
      : engine_("engine", context.scheduler, sim::EngineMode::run_ahead),
        memory("memory", context, memory::MemoryConfig{}, 0),
        sink("sink"),
        core("core", context, core_config, memory, 0, 0),
        space(memory, 0x20'0000'0000ULL, 8ULL << 30) {
    core.mmio.bind(sink);
  }
  /// Adds a program; they start at time 0 in the order of adding.
  void program(std::function<void()> body) { program_on(core, state, std::move(body)); }
  /// The same on another core and as another process.
  void program_on(cpu::Core& on, ProcessState& process, std::function<void()> body) {
    auto t = std::make_unique<cpu::Thread>(on, engine_, space, "program" + std::to_string(threads_.size()),
                                           static_cast<std::uint32_t>(threads_.size()), std::move(body));
    t->process = &process;
    threads_.push_back(std::move(t));
  }
  cpu::Thread& thread(std::size_t i) { return *threads_[i]; }
  void run() {
    for (auto& t : threads_) t->start(sim::Picos{0});
    engine_.run();
  }

  sim::Context context;

 private:
  sim::Engine engine_;

 public:
  memory::HostMemory memory;
  MmioSink sink;
  cpu::Core core;
  memory::AddressSpace space;
  VerbsConfig config;
  ProcessState state;

 private:
  std::vector<std::unique_ptr<cpu::Thread>> threads_;
};

}  // namespace verbs::test
