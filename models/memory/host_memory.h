// SPDX-License-Identifier: Apache-2.0
// The physical memory of one host: bytes in 4 KiB frames, access latency (LLC with DDIO, DRAM), watchpoints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <systemc>
#include <vector>

#include "memory/address.h"
#include "memory/page_cache.h"
#include "sim/check.h"
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
    v("llc_latency", c.llc_latency, "access that hits the last-level cache",
      sim::measured("typical Xeon, 40 to 70 cycles"));
    v("dram_latency", c.dram_latency, "access that goes to DRAM", sim::measured("typical Xeon, load to use"));
    v("llc_size", c.llc_size, "capacity of the last-level cache, tracked by 4 KiB page",
      sim::assumed("mid-size server part"), sim::Range{4096, 1e12});
    v("llc_ways", c.llc_ways, "associativity of the last-level cache", sim::assumed("common"), sim::Range{1, 64});
    v("ddio", c.ddio, "device writes allocate in the last-level cache", sim::spec("Intel Data Direct I/O"));
    v("size", c.size, "installed memory", sim::assumed("enough for every scenario shipped"), sim::Range{1 << 20, 1e13});
  }
};

/// Stores that a CPU has executed but that other observers do not see yet; see cpu/store_buffer.h.
struct PendingStores {
  virtual ~PendingStores() = default;
  /// Makes visible every store that drains at or before `t`, in the order of their drain times.
  virtual void commit_until(sim::Picos t) = 0;
  /// Drain time of the next store to become visible, kNever if none is pending. HostMemory learns of a new one by
  /// note_pending().
  virtual sim::Picos next_drain() const = 0;
  /// Somebody watches the page from now on: its pending stores must become visible exactly at their drain times.
  virtual void page_watched(Phys page) = 0;
  /// Makes the pending stores to [at, at+n) visible at once, because the memory is about to be freed.
  virtual void settle(Phys at, std::uint64_t n) = 0;
};

/// memcpy of at most a cache line, by words: the compiler's own expansion for a small unknown size is slow.
inline void copy_line(std::byte* dst, const void* src, std::size_t n) {
  const auto* from = static_cast<const std::byte*>(src);
  for (; n >= 8; n -= 8, dst += 8, from += 8) std::memcpy(dst, from, 8);
  if ((n & 4) != 0) {
    std::memcpy(dst, from, 4);
    dst += 4;
    from += 4;
  }
  for (n &= 3; n != 0; --n) *dst++ = *from++;
}

/// Number of a core on its host, for the private caches.
using CoreIndex = std::uint8_t;
inline constexpr CoreIndex kNoCore = 255;

/// Called when watched bytes are written. `cause` is that of the write.
using WatchFn = void (*)(void* ctx, std::uint64_t arg, sim::trace::Cause cause);
using WatchId = std::uint32_t;

class HostMemory : public sc_core::sc_module {
 public:
  HostMemory(sc_core::sc_module_name name, sim::Context& context, const MemoryConfig& config, std::int32_t host);
  ~HostMemory() override;

  /// Takes free frames and backs them by the bytes at `backing` (page aligned, owned by the caller, zero-filled by this
  /// call unless `zeroed` says that they are zero already). Frames of one call are physically contiguous only if
  /// `contiguous`. Throws std::bad_alloc when memory is full.
  std::vector<Phys> map_frames(std::byte* backing, std::size_t pages, bool contiguous = false, bool zeroed = false);
  void unmap_frames(std::span<const Phys> frames);

  /// Bytes as every observer but the storing CPU sees them now. A range may cross frames only where they are
  /// physically contiguous. Reading or writing an address without a frame throws sim::SimulatorBug: the IOMMU and the
  /// kernel are there to prevent it. Use contains() to ask first.
  void read(Phys at, std::span<std::byte> out);
  /// Device write at the current time; takes the lines out of the cores' private caches and fires watchpoints.
  void write(Phys at, std::span<const std::byte> in, sim::trace::Cause cause = {});
  /// A store of core `core` drains now, inside one 64-byte line; fires watchpoints.
  void commit_store(Phys at, std::span<const std::byte> in, sim::trace::Cause cause, CoreIndex core) {
    const std::uint32_t f = index_of(at);
    Frame& frame = frames_[f];
    copy_line(frame.bytes + at.offset(), in.data(), in.size());
    frame.owner[at.offset() / kLine] = core;
    if (!llc_.touch(f, frame.llc)) frame.llc = llc_.insert(f);
    if (frame.watch != 0) [[unlikely]]
      fire(f, at, in.size(), cause);
  }
  /// Makes visible what has drained from the store buffers by now.
  void commit_pending() {
    if (next_drain_ <= context_.now()) [[unlikely]]
      commit_due();
  }
  bool contains(Phys at, std::size_t n) const;
  /// Host pointer to the byte at `at`, valid to the end of its frame. Does not commit pending stores.
  std::byte* raw(Phys at);

  /// Latency of an access now, and its effect on the LLC. `n` <= 4096, inside one page.
  sim::Picos device_read_latency(Phys at, std::size_t n);
  sim::Picos device_write_latency(Phys at, std::size_t n);
  sim::Picos cpu_load_latency(Phys at, std::size_t n);
  /// Whether the private caches of `core` hold all lines of [at, at+n), inside one page; they hold them afterwards. A line
  /// stays until a device or another core writes it: the capacity of the private caches is not modelled.
  bool cpu_cached(CoreIndex core, Phys at, std::size_t n);

  /// Calls fn on each write that touches [at, at+n), inside one page, until unwatch().
  WatchId watch(Phys at, std::size_t n, WatchFn fn, void* ctx, std::uint64_t arg = 0);
  void unwatch(WatchId id);
  bool watched(Phys at) const { return frames_[index_of(at)].watch != 0; }

  /// A store buffer of this host; `order` (the core's index) decides between stores that drain at the same instant.
  void add_pending_stores(PendingStores* p, std::uint32_t order = 0);
  void remove_pending_stores(PendingStores* p);
  /// A store that drains at t has entered a store buffer.
  void note_pending(sim::Picos t) { next_drain_ = sim::min(next_drain_, t); }
  /// Makes pending stores to [at, at+n) visible at once; see PendingStores::settle.
  void settle(Phys at, std::uint64_t n);
  std::size_t frames_in_use() const;
  const MemoryConfig& config() const { return config_; }

 private:
  static constexpr std::uint64_t kFrameBase = 0x1'0000'0000;  // physical address of frame 0
  static constexpr std::uint64_t kLine = 64;
  struct Frame {
    std::byte* bytes = nullptr;  // nullptr = free
    WatchId watch = 0;           // head of the list of watchpoints, 0 = none
    PageCache::Hint llc = 0;
    std::array<CoreIndex, kPageSize / kLine> owner{};  // whose private cache holds each line
  };
  struct Watch {
    Phys at{};
    std::size_t n = 0;
    WatchFn fn = nullptr;
    void* ctx = nullptr;
    std::uint64_t arg = 0;
    std::uint64_t born = 0;  // a watch does not see the write during which it was set
    WatchId next = 0;        // in its frame's list or in the list of free ones
    std::uint32_t frame = 0;
    enum State : std::uint8_t { free, armed, dead, detached } state = free;
  };
  struct Pending {
    PendingStores* stores;
    std::uint32_t order;
  };

  std::uint32_t index_of(Phys at) const {
    const std::uint64_t f = (at.v - kFrameBase) >> kPageShift;
    SIM_CHECK(f < frames_.size() && frames_[f].bytes != nullptr, "access to a physical address without a frame");
    return static_cast<std::uint32_t>(f);
  }
  std::uint32_t take_frame();
  std::uint32_t take_contiguous(std::size_t pages);
  void commit_due();
  void fire(std::uint32_t frame, Phys at, std::size_t n, sim::trace::Cause cause);
  void unlink(WatchId id);
  bool in_llc(std::uint32_t frame, bool allocate);

  sim::Context& context_;
  const MemoryConfig config_;
  std::vector<Pending> pending_;
  sim::Picos next_drain_ = sim::kNever;  // no pending store drains before

  std::vector<Frame> frames_;
  std::vector<std::uint32_t> free_frames_;
  std::uint64_t frame_limit_;  // installed frames
  std::size_t used_ = 0;
  std::uint32_t block_next_ = 0, block_end_ = 0;            // scattered frames: position in the current block
  std::uint32_t contiguous_next_ = 0, contiguous_end_ = 0;  // contiguous frames: what is left of the last block

  std::vector<Watch> watches_;  // index 0 unused
  WatchId free_watch_ = 0;
  std::uint64_t watch_clock_ = 0;
  unsigned firing_ = 0;
  std::vector<WatchId> dead_watches_;

  PageCache llc_;
  sim::Counter& llc_hits_;
  sim::Counter& llc_misses_;
};

}  // namespace memory
