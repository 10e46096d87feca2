// SPDX-License-Identifier: Apache-2.0
// Root complex of one host: CPU stores to device windows become MWr TLPs; DMA reads and writes from the device go through
// the address translator to host memory; writes to the interrupt window become interrupts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <systemc>
#include <vector>

#include "memory/address.h"
#include "memory/host_memory.h"
#include "pcie/pcie_config.h"
#include "pcie/slots.h"
#include "pcie/tlp.h"
#include "sim/config.h"
#include "sim/context.h"

namespace pcie {

/// What the CPU side of the root complex offers to cores.
struct MmioPort : virtual sc_core::sc_interface {
  /// A store leaves the core now (engine time). Posted. 1..64 bytes inside one aligned 64-byte line.
  virtual void mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause cause) = 0;
  /// A load of up to 8 bytes; fn(ctx, value) runs when the completion is back at the core.
  virtual void mmio_read(memory::Phys bus, unsigned size, void (*fn)(void* ctx, std::uint64_t value), void* ctx) = 0;
};

/// Result of translating a DMA address. `ready` is when the translation is known (>= now).
struct DmaTranslation {
  std::optional<memory::Phys> phys;  ///< empty = fault
  sim::Picos ready{0};
};
/// The IOMMU as the root complex sees it. The range lies inside one 4 KiB page.
struct AddressTranslator : virtual sc_core::sc_interface {
  virtual DmaTranslation translate(std::uint16_t requester, memory::Iova at, std::uint32_t length, bool write,
                                   sim::trace::Cause cause) = 0;
};

/// Receives message-signalled interrupts: a write of `data` to the interrupt window.
struct InterruptSink : virtual sc_core::sc_interface {
  virtual void interrupt(std::uint64_t address, std::uint32_t data, sim::trace::Cause cause) = 0;
};
inline constexpr std::uint64_t kInterruptWindow = 0xFEE00000;  ///< 1 MiB, never translated (x86)
inline constexpr std::uint64_t kInterruptWindowSize = 1ULL << 20;

/// Whoever invalidates translations asks this to find out when their last user is done.
struct DmaDrain : virtual sc_core::sc_interface {
  /// Absolute time at which every DMA access of `requester` that has arrived so far has touched memory.
  virtual sim::Picos drained(std::uint16_t requester) const = 0;
};

struct RootComplexConfig {
  sim::Picos mmio_latency{40'000};
  sim::Picos mmio_return_latency{40'000};
  sim::Picos dma_write_latency{40'000};
  sim::Picos dma_read_latency{100'000};
  sim::Picos interrupt_latency{40'000};
  std::uint32_t max_reads = 64;
  bool split_completions_at_rcb = false;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("mmio_latency", c.mmio_latency, "a store or load leaves the core until its TLP is handed to the link",
      sim::assumed("one way of 125 to 140 ns in all, less link and serialisation"));
    v("mmio_return_latency", c.mmio_return_latency,
      "completion of a load at the root port until the core has the value", sim::assumed("same as mmio_latency"));
    v("dma_write_latency", c.dma_write_latency, "translated DMA write until it reaches the memory system",
      sim::assumed("root port and mesh"));
    v("dma_read_latency", c.dma_read_latency,
      "root port and mesh on the way to memory and back, without the memory access",
      sim::assumed("64 B DMA read of 540 ns on Xeon E5 and NFP-6000, less links, device and cache"));
    v("interrupt_latency", c.interrupt_latency,
      "MSI-X write at the root port until the core's interrupt controller has it",
      sim::assumed("same as dma_write_latency"));
    v("max_reads", c.max_reads, "DMA reads that access memory at the same time", sim::assumed("server root port"),
      sim::Range{1, 4096});
    v("split_completions_at_rcb", c.split_completions_at_rcb, "completions carry one RCB each rather than up to MPS",
      sim::spec("PCI Express Base Specification permits both; seen on older chipsets"));
  }
};

/// Splits the data of a read into completions. Each but the last ends at a multiple of RCB; the longest that fits is
/// taken, or one RCB when `at_rcb`. Returns the length of the piece that starts at `at` with `remaining` bytes to go.
constexpr std::uint32_t completion_piece(std::uint64_t at, std::uint32_t remaining, std::uint32_t mps,
                                         std::uint32_t rcb, bool at_rcb) {
  const std::uint32_t longest = (at_rcb ? rcb : mps) - static_cast<std::uint32_t>(at % rcb);
  return remaining < longest ? remaining : longest;
}

/// Ports: `translator`, `interrupts`, and one `down` per connect(), in that order. TLPs from devices come in through
/// receive(). Not built: peer-to-peer between devices (such a write is refused as unsupported).
class RootComplex final : public sc_core::sc_module, public MmioPort, public TlpSink, public DmaDrain {
 public:
  sc_core::sc_port<AddressTranslator> translator;
  sc_core::sc_port<InterruptSink> interrupts;
  sc_core::sc_port<TlpSink, 0> down;

  /// `path` is that of the host's PCIe, e.g. "host0.pcie".
  RootComplex(sc_core::sc_module_name name, sim::Context& context, const RootComplexConfig& config,
              memory::HostMemory& memory, std::int32_t host, const std::string& path);

  /// Declares the device of a slot: its identity, limits and window [bar0, bar0 + size). Bind its link to `down` in the
  /// same order.
  void connect(const PcieConfig& slot, memory::Phys bar0, sim::Bytes size);

  void mmio_write(memory::Phys bus, std::span<const std::byte> bytes, sim::trace::Cause cause) override;
  void mmio_read(memory::Phys bus, unsigned size, void (*fn)(void* ctx, std::uint64_t value), void* ctx) override;
  void receive(TlpPtr tlp) override;
  sim::Picos drained(std::uint16_t requester) const override;
  const RootComplexConfig& config() const { return config_; }

 private:
  struct Device {
    std::uint16_t bdf;
    std::uint32_t mps, mrrs, rcb;
    std::uint64_t window, window_size;
    sim::Picos last_write{0};  // when the last of its posted writes so far becomes visible
    sim::Picos last_read{0};
  };
  struct Write {  // a posted write or interrupt message on its way to memory
    sim::Picos visible{0};
    TlpPtr tlp;
    memory::Phys phys{};
    bool interrupt = false;
  };
  struct Read {
    TlpPtr tlp;
    memory::Phys phys{};
    Device* device = nullptr;
    CplStatus status = CplStatus::SC;
  };
  struct Mmio {  // a store or load request on its way to the link
    sim::Picos at{0};
    TlpPtr tlp;
    int device = 0;
  };
  struct Load {
    void (*fn)(void*, std::uint64_t) = nullptr;
    void* ctx = nullptr;
    std::uint64_t value = 0;
    std::uint32_t device = 0;
    bool answered = false;
  };

  Device* device_of(std::uint16_t requester);
  int device_at(std::uint64_t bus) const;  // -1: nobody

  void send_mmio(TlpPtr tlp, int device);
  void forward_mmio();
  void return_load(TlpPtr tlp);
  void finish_load(std::uint64_t index);

  void dma_write(Device& device, TlpPtr tlp);
  void interrupt(Device& device, TlpPtr tlp);
  void post(Write w);
  void arm_commit();
  void on_commit();
  void commit_due();
  void drop(const Tlp& tlp);

  void dma_read(Device& device, TlpPtr tlp);
  sim::Picos take_read_slot(sim::Picos from);
  void finish_read(std::uint64_t index);
  void complete(const Device& device, TlpPtr request);
  void refuse(Device& device, TlpPtr request, CplStatus status, sim::Picos at);
  void send_refusal(Read r);
  TlpSink& link_of(const Device& device);

  sim::Context& context_;
  const RootComplexConfig config_;
  const std::int32_t host_;
  memory::HostMemory& memory_;
  sim::Pool<Tlp>& tlps_;
  std::vector<Device> devices_;

  sim::Ring<Mmio> mmio_;
  Slots<Load> loads_;
  sim::Ring<Write> writes_;             // by time of visibility, then arrival
  sim::Picos commit_at_ = sim::kNever;  // earliest pending on_commit()
  Slots<Read> reads_;
  std::vector<sim::Picos> read_ends_;  // min-heap of the reads that occupy a slot

  sim::trace::Source trace_;
  sim::BusyTime& read_busy_;
  sim::Counter& malformed_;
  sim::Counter& unexpected_;
  sim::Counter& unclaimed_;
  sim::Counter& refused_reads_;
  sim::Counter& dropped_writes_;
  sim::Counter& interrupts_count_;
};

}  // namespace pcie
