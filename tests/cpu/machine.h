// SPDX-License-Identifier: Apache-2.0
// One host with a few cores and a device that records what arrives.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/core.h"
#include "cpu/thread.h"

namespace cpu::test {
using namespace sim::literals;

/// Records MMIO writes with their times; answers a read after `latency` with `answer`.
class Device : public sc_core::sc_module, public pcie::MmioPort {
 public:
  struct Write {
    sim::Picos t;
    std::uint64_t bus;
    std::vector<std::byte> bytes;
    sim::trace::Cause cause;
  };
  Device(sc_core::sc_module_name name, sim::Context& context) : sc_module(name), context_(context) {}
  void mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause cause) override {
    writes.push_back({context_.now(), bus.v, {bytes.begin(), bytes.end()}, cause});
    if (on_write) on_write();
  }
  void mmio_read(memory::Phys bus, unsigned size, void (*fn)(void*, std::uint64_t), void* ctx) override {
    reads.push_back({context_.now(), bus.v, std::vector<std::byte>(size), {}});
    fn_ = fn;
    ctx_ = ctx;
    context_.scheduler.after<&Device::reply>(latency, this);
  }
  void reply() { fn_(ctx_, answer); }

  std::vector<Write> writes, reads;
  std::function<void()> on_write;
  sim::Picos latency{500'000};
  std::uint64_t answer = 0;

 private:
  sim::Context& context_;
  void (*fn_)(void*, std::uint64_t) = nullptr;
  void* ctx_ = nullptr;
};

/// Round costs, so that expected times can be read off.
inline CoreConfig plain_costs(Arch arch = Arch::x86_64) {
  CoreConfig c;
  c.arch = arch;
  c.store_cost = 1_ns;
  c.load_cost = 1_ns;
  c.copy_line_cost = 4_ns;
  c.lock_cost = 6_ns;
  c.store_visible_after = 10_ns;
  c.store_drain_interval = 2_ns;
  c.weak_drain_spread = 50_ns;
  c.store_buffer_entries = 56;
  c.wc_buffers = 4;
  c.wc_flush_latency = 40_ns;
  c.wc_line_interval = 8_ns;
  c.wc_timeout = 1_us;
  c.mmio_store_cost = 1_ns;
  c.uc_store_cost = 5_ns;
  c.uc_store_latency = 30_ns;
  c.mmio_load_overhead = 20_ns;
  c.sfence_cost = 2_ns;
  c.lfence_cost = 3_ns;
  c.dmb_cost = 17_ns;
  c.dsb_cost = 21_ns;
  return c;
}

constexpr std::uint64_t kArena = 0x2000'0000'0000;
constexpr std::uint64_t kWindow = 0xE000'0000;

class Machine {
 public:
  explicit Machine(const CoreConfig& config = plain_costs(), unsigned cores = 2, std::uint64_t seed = 1)
      : context(seed), engine("engine", context.scheduler, sim::EngineMode::run_ahead), host("memory", context, {}, 0) {
    for (unsigned i = 0; i < cores; ++i) add_core(config);
  }
  Core& add_core(const CoreConfig& config) {
    const auto i = static_cast<std::uint32_t>(core.size());
    core.push_back(std::make_unique<Core>(("core" + std::to_string(i)).c_str(), context, config, host, 0, i));
    core.back()->mmio(device);
    return *core.back();
  }
  /// A program on that core, started at time 0; numbered in the order of creation.
  Thread& program(std::function<void(Thread&)> body, unsigned on_core = 0) {
    const std::size_t n = threads.size();
    threads.push_back(std::make_unique<Thread>(*core[on_core], engine, space, "t" + std::to_string(n),
                                               static_cast<std::uint32_t>(n + 1),
                                               [this, n, body] { body(*threads[n]); }));
    threads.back()->start(0_ps);
    return *threads.back();
  }
  sim::Outcome run(sim::Picos until = sim::kNever) { return engine.run(until); }
  /// Runs fn at time t, before any program of that instant.
  void at(sim::Picos t, std::function<void()> fn) {
    events.push_back(std::make_unique<std::function<void()>>(std::move(fn)));
    context.scheduler.at(
        t, [](void* f, std::uint64_t) { (*static_cast<std::function<void()>*>(f))(); }, events.back().get());
  }
  memory::Phys phys(const void* p) { return space.phys_of(memory::va_of(p)); }
  /// What a device would read there now.
  template <class T>
  T device_view(const T* p) {
    T v;
    host.read(phys(p), std::as_writable_bytes(std::span(&v, 1)));
    return v;
  }
  template <class T>
  void device_write(T* p, T v, sim::trace::Cause cause = {}) {
    host.write(phys(p), std::as_bytes(std::span(&v, 1)), cause);
  }
  std::uint64_t counter(const std::string& name) { return context.stats.counter("host0." + name).value; }

  sim::Context context;
  sim::Engine engine;
  memory::HostMemory host;
  memory::AddressSpace space{host, kArena};
  Device device{"device", context};
  std::vector<std::unique_ptr<Core>> core;
  std::vector<std::unique_ptr<std::function<void()>>> events;
  std::vector<std::unique_ptr<Thread>> threads;
};

}  // namespace cpu::test
