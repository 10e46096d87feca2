// SPDX-License-Identifier: Apache-2.0
// The physical memory of one host: bytes in 4 KiB frames, access latency (LLC with DDIO, DRAM), watchpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <systemc>
#include <vector>

#include "memory/address.h"
#include "sim/config.h"
#include "sim/context.h"

namespace memory {

struct MemoryConfig {
  sim::Picos llc_latency{20'000};
  sim::Picos dram_latency{85'000};
  sim::Bytes llc_size{32ULL << 20};
  std::uint32_t llc_ways = 16;
  bool ddio = true;
  sim::Bytes size{16ULL << 30};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("llc_latency", c.llc_latency, "access that hits the last-level cache", sim::measured("typical Xeon, 40 to 70 cycles"));
    v("dram_latency", c.dram_latency, "access that goes to DRAM", sim::measured("typical Xeon, load to use"));
    v("llc_size", c.llc_size, "capacity of the last-level cache, tracked by 4 KiB page", sim::assumed("mid-size server part"), sim::Range{4096, 1e12});
    v("llc_ways", c.llc_ways, "associativity of the last-level cache", sim::assumed("common"), sim::Range{1, 64});
    v("ddio", c.ddio, "device writes allocate in the last-level cache", sim::spec("Intel Data Direct I/O"));
    v("size", c.size, "installed memory", sim::assumed("enough for every scenario shipped"), sim::Range{1 << 20, 1e13});
  }
};

/// Stores that a CPU has executed but that other observers do not see yet; see cpu/store_buffer.h.
struct PendingStores {
  virtual ~PendingStores() = default;
  /// Makes visible every store that drains at or before `t`.
  virtual void commit_until(sim::Picos t) = 0;
};

/// Called when watched bytes are written. `cause` is that of the write.
using WatchFn = void (*)(void* ctx, std::uint64_t arg, sim::trace::Cause cause);
using WatchId = std::uint32_t;

class HostMemory : public sc_core::sc_module {
 public:
  HostMemory(sc_core::sc_module_name name, sim::Context& context, const MemoryConfig& config, std::int32_t host);
  ~HostMemory() override;

  /// Takes free frames and backs them by the bytes at `backing` (page aligned, owned by the caller, zero-filled by this
  /// call). Frames of one call are physically contiguous only if `contiguous`. Throws std::bad_alloc when memory is full.
  std::vector<Phys> map_frames(std::byte* backing, std::size_t pages, bool contiguous = false);
  void unmap_frames(std::span<const Phys> frames);

  /// Bytes as every observer but the storing CPU sees them now. A range may cross frames only where they are
  /// physically contiguous. Reading or writing an address without a frame throws sim::SimulatorBug: the IOMMU and the
  /// kernel are there to prevent it. Use contains() to ask first.
  void read(Phys at, std::span<std::byte> out);
  /// Device or drained CPU write at the current time; fires watchpoints.
  void write(Phys at, std::span<const std::byte> in, sim::trace::Cause cause = {});
  bool contains(Phys at, std::size_t n) const;
  /// Host pointer to the byte at `at`, valid to the end of its frame. Does not commit pending stores.
  std::byte* raw(Phys at);

  /// Latency of an access now, and its effect on the LLC. `n` <= 4096, inside one page.
  sim::Picos device_read_latency(Phys at, std::size_t n);
  sim::Picos device_write_latency(Phys at, std::size_t n);
  sim::Picos cpu_load_latency(Phys at, std::size_t n);

  /// Calls fn on each write that touches [at, at+n), inside one page, until unwatch().
  WatchId watch(Phys at, std::size_t n, WatchFn fn, void* ctx, std::uint64_t arg = 0);
  void unwatch(WatchId id);

  void add_pending_stores(PendingStores* p) { pending_.push_back(p); }
  std::size_t frames_in_use() const;
  const MemoryConfig& config() const { return config_; }

 private:
  std::vector<PendingStores*> pending_;
  const MemoryConfig config_;
  // … the rest is the implementer's
};

}  // namespace memory
