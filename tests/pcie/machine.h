// SPDX-License-Identifier: Apache-2.0
// One host's PCIe with scripted neighbours: a translator with a table of faults and delays, a device function that records
// what it gets, an interrupt sink.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "memory/host_memory.h"
#include "pcie/endpoint.h"
#include "pcie/link.h"
#include "pcie/root_complex.h"
#include "sim/engine.h"

namespace pcie_test {

using namespace sim::literals;
using sim::Picos;

struct Translator final : pcie::AddressTranslator {
  explicit Translator(sim::Context& c) : context(c) {}
  pcie::DmaTranslation translate(std::uint16_t, memory::Iova at, std::uint32_t length, bool,
                                 sim::trace::Cause) override {
    EXPECT_LE(at.offset() + length, memory::kPageSize);
    ++calls;
    const auto d = delay.find(at.page().v);
    const Picos ready = context.now() + (d == delay.end() ? latency : d->second);
    if (faults.count(at.page().v) != 0) return {std::nullopt, ready};
    return {memory::Phys{at.v + offset}, ready};
  }
  sim::Context& context;
  Picos latency{0};
  std::uint64_t offset = 0;              // phys - iova
  std::map<std::uint64_t, Picos> delay;  // by page
  std::map<std::uint64_t, bool> faults;  // by page
  int calls = 0;
};

struct Interrupts final : pcie::InterruptSink {
  struct Seen {
    Picos t;
    std::uint64_t address;
    std::uint32_t data;
  };
  explicit Interrupts(sim::Context& c) : context(c) {}
  void interrupt(std::uint64_t address, std::uint32_t data, sim::trace::Cause) override {
    seen.push_back({context.now(), address, data});
    if (on_interrupt) on_interrupt();
  }
  sim::Context& context;
  std::vector<Seen> seen;
  std::function<void()> on_interrupt;
};

struct Device final : sc_core::sc_module, pcie::DeviceFunction {
  struct Store {
    Picos t, sent;
    std::uint64_t offset;
    std::vector<std::byte> bytes;
  };
  struct Piece {
    Picos t;
    std::uint16_t tag;
    std::uint32_t offset, length;
    pcie::CplStatus status;
    bool last;
    std::vector<std::byte> bytes;
  };
  sc_core::sc_port<pcie::EndpointPort> port;

  Device(sc_core::sc_module_name name, sim::Context& c) : sc_module(name), context(c) {}
  void bar_write(std::uint64_t offset, std::span<const std::byte> bytes, sim::trace::Cause, Picos sent) override {
    stores.push_back({context.now(), sent, offset, {bytes.begin(), bytes.end()}});
  }
  std::uint64_t bar_read(std::uint64_t offset, unsigned size) override {
    return size == 8 ? 0x1122334455667700ULL + offset : 0xA0000000ULL + offset;
  }
  void completion(pcie::TlpPtr tlp) override {
    pieces.push_back({context.now(), tlp->tag, tlp->byte_offset, tlp->length, tlp->status, tlp->last_completion, {}});
    if (keep_bytes) pieces.back().bytes.assign(tlp->bytes().begin(), tlp->bytes().end());
  }

  void read(std::uint64_t iova, std::uint32_t n, std::uint16_t tag, bool into_buffer = true) {
    pcie::TlpPtr tlp = port->make_tlp();
    tlp->type = pcie::TlpType::MRd;
    tlp->address = iova;
    tlp->length = n;
    tlp->tag = tag;
    if (into_buffer) tlp->buffer = context.buffers.make(n);
    port->send(std::move(tlp));
  }
  void write(std::uint64_t iova, std::span<const std::byte> bytes, bool relaxed = false, sim::trace::Cause cause = {}) {
    pcie::TlpPtr tlp = port->make_tlp();
    tlp->type = pcie::TlpType::MWr;
    tlp->address = iova;
    tlp->relaxed_ordering = relaxed;
    tlp->cause = cause;
    tlp->length = static_cast<std::uint32_t>(bytes.size());
    tlp->buffer = context.buffers.make(bytes.size());
    std::memcpy(tlp->buffer.data(), bytes.data(), bytes.size());
    port->send(std::move(tlp));
  }
  void write(std::uint64_t iova, std::uint32_t n, std::uint8_t fill, bool relaxed = false) {
    write(iova, std::vector<std::byte>(n, std::byte{fill}), relaxed);
  }

  sim::Context& context;
  bool keep_bytes = true;
  std::vector<Store> stores;
  std::vector<Piece> pieces;
};

/// Both directions of the link and the endpoint, bound to the root complex.
struct Slot final : sc_core::sc_module {
  pcie::Link up, down;
  pcie::Endpoint endpoint;

  Slot(sc_core::sc_module_name name, sim::Context& context, const pcie::PcieConfig& config,
       const pcie::BarLayout& layout, pcie::RootComplex& root_complex, std::int32_t host, const std::string& path)
      : sc_module(name),
        up("up", context, config.link, config.root_port_credits, config.max_payload_size, pcie::Direction::up, host,
           path),
        down("down", context, config.link, config.endpoint_credits, config.max_payload_size, pcie::Direction::down,
             host, path),
        endpoint("endpoint", context, config, layout, host, path) {
    root_complex.connect(config, layout.bar0, layout.size);
    root_complex.down.bind(down);
    down.out.bind(endpoint);
    endpoint.up.bind(up);
    up.out.bind(root_complex);
  }
};

struct MachineConfig {
  pcie::PcieConfig slot;
  pcie::RootComplexConfig root_complex;
  memory::MemoryConfig memory;
};

inline constexpr std::uint64_t kBar0 = 0x20'0000'0000;

struct Machine {
  explicit Machine(const MachineConfig& config = {})
      : c(config),
        engine("engine", context.scheduler, sim::EngineMode::run_ahead),
        memory("memory", context, config.memory, 0),
        translator(context),
        interrupts(context),
        root_complex("root_complex", context, config.root_complex, memory, 0, "host0.pcie"),
        slot("slot", context, config.slot, {.bar0 = {kBar0}}, root_complex, 0, "host0.pcie"),
        device("device", context) {
    root_complex.translator.bind(translator);
    root_complex.interrupts.bind(interrupts);
    slot.endpoint.function.bind(device);
    device.port.bind(slot.endpoint);
    ram = static_cast<std::byte*>(std::aligned_alloc(4096, kPages * 4096));
    base = memory.map_frames(ram, kPages, true).front().v;
    engine.run();  // elaborates
  }
  ~Machine() { std::free(ram); }

  void run() {
    engine.run();
    EXPECT_EQ(context.pools.of<pcie::Tlp>("TLP").live(), 0U) << "TLPs leaked";
    EXPECT_EQ(context.buffers.live(), 0U) << "buffers leaked";
  }
  /// Calls f at time t of the simulation.
  void at(Picos t, std::function<void()> f) {
    script.push_back(std::make_unique<std::function<void()>>(std::move(f)));
    context.scheduler.at(
        t, [](void* p, std::uint64_t) { (*static_cast<std::function<void()>*>(p))(); }, script.back().get());
  }
  Picos ser(std::uint64_t bytes) const { return pcie::serialisation(c.slot.link, c.slot.max_payload_size, {bytes}); }
  std::uint64_t count(const std::string& path) { return context.stats.counter("host0.pcie." + path).value; }
  /// Touches a page so that it is in the last-level cache.
  void warm(std::uint64_t phys) { memory.cpu_load_latency({phys}, 1); }
  /// Remembers when [at, at+n) is written.
  void watch(std::uint64_t at_, std::size_t n) {
    memory.watch(
        {at_}, n,
        [](void* self, std::uint64_t where, sim::trace::Cause) {
          auto* m = static_cast<Machine*>(self);
          m->written.push_back({m->context.now(), where});
        },
        this, at_);
  }

  static constexpr std::size_t kPages = 64;
  const MachineConfig c;
  sim::Context context;
  sim::Engine engine;
  memory::HostMemory memory;
  Translator translator;
  Interrupts interrupts;
  pcie::RootComplex root_complex;
  Slot slot;
  Device device;
  std::byte* ram = nullptr;
  std::uint64_t base = 0;  // physical address of ram, also the IOVA while translator.offset is 0
  std::vector<std::pair<Picos, std::uint64_t>> written;
  std::vector<std::unique_ptr<std::function<void()>>> script;
};

inline std::vector<std::byte> pattern(std::size_t n, unsigned seed = 1) {
  std::vector<std::byte> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<std::byte>((i * 7 + seed * 31 + (i >> 8)) & 0xFF);
  return v;
}

}  // namespace pcie_test
