// SPDX-License-Identifier: Apache-2.0
// Frames are handed out in a scattered order, so that code which confuses virtual with physical contiguity fails at once.
// Bytes are held by whoever maps the frames. CPU stores that have drained reach them lazily, before the next access.
// Not modelled: memory channels and their bandwidth, NUMA distance, capacity of the private caches, the limited share of
// the last-level cache that DDIO may fill.
#include "memory/host_memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

namespace memory {
namespace {
constexpr std::uint32_t kBlock = 512;    // frames per 2 MiB block
constexpr std::uint32_t kScatter = 167;  // odd, so that i * kScatter mod kBlock visits the whole block
std::string path(std::int32_t host, const char* what) { return "host" + std::to_string(host) + ".memory." + what; }
}  // namespace

HostMemory::HostMemory(sc_core::sc_module_name name, sim::Context& context, const MemoryConfig& config,
                       std::int32_t host)
    : sc_module(name),
      context_(context),
      config_(config),
      frame_limit_(config.size.n / kPageSize),
      watches_(1),
      llc_(config.llc_size, config.llc_ways),
      llc_hits_(context.stats.counter(path(host, "llc_hits"))),
      llc_misses_(context.stats.counter(path(host, "llc_misses"))) {}

HostMemory::~HostMemory() = default;

std::uint32_t HostMemory::take_frame() {
  if (!free_frames_.empty()) {
    const std::uint32_t f = free_frames_.back();
    free_frames_.pop_back();
    return f;
  }
  if (block_next_ == block_end_) {
    if (frames_.size() + kBlock > frame_limit_) {
      // The last, incomplete block, and what contiguous requests have left over.
      if (contiguous_next_ < contiguous_end_) return contiguous_next_++;
      if (frames_.size() >= frame_limit_) throw std::bad_alloc();
      frames_.emplace_back();
      return static_cast<std::uint32_t>(frames_.size() - 1);
    }
    block_next_ = static_cast<std::uint32_t>(frames_.size());
    block_end_ = block_next_ + kBlock;
    frames_.resize(block_end_);
  }
  const std::uint32_t i = block_next_++ % kBlock;
  return block_end_ - kBlock + i * kScatter % kBlock;
}

std::uint32_t HostMemory::take_contiguous(std::size_t pages) {
  if (contiguous_end_ - contiguous_next_ < pages) {
    const std::uint64_t want = (pages + kBlock - 1) / kBlock * kBlock;
    if (frames_.size() + want > frame_limit_) throw std::bad_alloc();
    for (; contiguous_next_ < contiguous_end_; ++contiguous_next_) free_frames_.push_back(contiguous_next_);
    contiguous_next_ = static_cast<std::uint32_t>(frames_.size());
    contiguous_end_ = static_cast<std::uint32_t>(contiguous_next_ + want);
    frames_.resize(contiguous_end_);
  }
  const std::uint32_t first = contiguous_next_;
  contiguous_next_ += static_cast<std::uint32_t>(pages);
  return first;
}

std::vector<Phys> HostMemory::map_frames(std::byte* backing, std::size_t pages, bool contiguous, bool zeroed) {
  SIM_CHECK(reinterpret_cast<std::uintptr_t>(backing) % kPageSize == 0, "frames need page-aligned bytes");
  if (pages > frame_limit_ - used_) throw std::bad_alloc();
  std::vector<Phys> out;
  out.reserve(pages);
  std::uint32_t next = contiguous ? take_contiguous(pages) : 0;
  if (!zeroed) std::memset(backing, 0, pages * kPageSize);
  for (std::size_t i = 0; i < pages; ++i) {
    const std::uint32_t f = contiguous ? next++ : take_frame();
    frames_[f].bytes = backing + i * kPageSize;
    frames_[f].owner.fill(kNoCore);
    out.push_back({kFrameBase + (std::uint64_t{f} << kPageShift)});
  }
  used_ += pages;
  return out;
}

void HostMemory::unmap_frames(std::span<const Phys> frames) {
  for (const Phys at : frames) {
    settle(at, kPageSize);
    const std::uint32_t f = index_of(at);
    Frame& frame = frames_[f];
    for (WatchId id = frame.watch; id != 0; id = watches_[id].next)
      if (watches_[id].state == Watch::armed) watches_[id].state = Watch::detached;
    SIM_CHECK(firing_ == 0, "frames freed from a watchpoint");
    frame.watch = 0;
    llc_.drop(f, frame.llc);
    frame.bytes = nullptr;
    free_frames_.push_back(f);
    --used_;
  }
}

void HostMemory::read(Phys at, std::span<std::byte> out) {
  commit_pending();
  while (!out.empty()) {
    const std::size_t n = std::min<std::size_t>(out.size(), kPageSize - at.offset());
    std::memcpy(out.data(), frames_[index_of(at)].bytes + at.offset(), n);
    at = at + n;
    out = out.subspan(n);
  }
}

void HostMemory::write(Phys at, std::span<const std::byte> in, sim::trace::Cause cause) {
  commit_pending();
  while (!in.empty()) {
    const std::size_t n = std::min<std::size_t>(in.size(), kPageSize - at.offset());
    const std::uint32_t f = index_of(at);
    Frame& frame = frames_[f];
    std::memcpy(frame.bytes + at.offset(), in.data(), n);
    const auto first = at.offset() / kLine, last = (at.offset() + n - 1) / kLine;
    std::memset(frame.owner.data() + first, kNoCore, last - first + 1);
    if (frame.watch != 0) [[unlikely]]
      fire(f, at, n, cause);
    at = at + n;
    in = in.subspan(n);
  }
}

bool HostMemory::contains(Phys at, std::size_t n) const {
  if (n == 0) return true;
  if (at.v < kFrameBase || at.v + (n - 1) < at.v) return false;
  const std::uint64_t last = (at.v + n - 1 - kFrameBase) >> kPageShift;
  if (last >= frames_.size()) return false;
  for (std::uint64_t f = (at.v - kFrameBase) >> kPageShift; f <= last; ++f)
    if (frames_[f].bytes == nullptr) return false;
  return true;
}

std::byte* HostMemory::raw(Phys at) { return frames_[index_of(at)].bytes + at.offset(); }

std::size_t HostMemory::frames_in_use() const { return used_; }

// Whether the page is in the last-level cache; brings it in on request.
bool HostMemory::in_llc(std::uint32_t f, bool allocate) {
  Frame& frame = frames_[f];
  const bool hit = llc_.touch(f, frame.llc);
  (hit ? llc_hits_ : llc_misses_).add();
  if (!hit && allocate) frame.llc = llc_.insert(f);
  return hit;
}

sim::Picos HostMemory::device_read_latency(Phys at, std::size_t n) {
  SIM_CHECK(n <= kPageSize - at.offset(), "device read crosses a page");
  return in_llc(index_of(at), false) ? config_.llc_latency : config_.dram_latency;
}

sim::Picos HostMemory::device_write_latency(Phys at, std::size_t n) {
  SIM_CHECK(n <= kPageSize - at.offset(), "device write crosses a page");
  const std::uint32_t f = index_of(at);
  if (config_.ddio) {
    in_llc(f, true);
    return config_.llc_latency;
  }
  llc_.drop(f, frames_[f].llc);
  return config_.dram_latency;
}

sim::Picos HostMemory::cpu_load_latency(Phys at, std::size_t n) {
  SIM_CHECK(n <= kPageSize - at.offset(), "load crosses a page");
  return in_llc(index_of(at), true) ? config_.llc_latency : config_.dram_latency;
}

bool HostMemory::cpu_cached(CoreIndex core, Phys at, std::size_t n) {
  SIM_CHECK(n <= kPageSize - at.offset(), "load crosses a page");
  Frame& frame = frames_[index_of(at)];
  bool all = true;
  for (std::uint64_t line = at.offset() / kLine; line * kLine < at.offset() + n; ++line) {
    all = all && frame.owner[line] == core;
    frame.owner[line] = core;
  }
  return all;
}

void HostMemory::add_pending_stores(PendingStores* p, std::uint32_t order) {
  const auto at = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& q) { return q.order > order; });
  pending_.insert(at, {p, order});
}

void HostMemory::remove_pending_stores(PendingStores* p) {
  std::erase_if(pending_, [p](const Pending& q) { return q.stores == p; });
}

// Several store buffers commit in the order of time, so that the last of two stores to one place wins.
void HostMemory::commit_due() {
  const sim::Picos now = context_.now();
  for (;;) {
    Pending* first = nullptr;
    sim::Picos earliest = sim::kNever, second = sim::kNever;
    for (Pending& p : pending_) {
      const sim::Picos t = p.stores->next_drain();
      if (t < earliest) {
        second = earliest;
        earliest = t;
        first = &p;
      } else {
        second = sim::min(second, t);
      }
    }
    next_drain_ = earliest;
    if (earliest > now || first == nullptr) return;
    first->stores->commit_until(sim::min(now, second));
  }
}

void HostMemory::settle(Phys at, std::uint64_t n) {
  if (next_drain_ == sim::kNever) return;
  commit_pending();
  for (Pending& p : pending_) p.stores->settle(at, n);
}

WatchId HostMemory::watch(Phys at, std::size_t n, WatchFn fn, void* ctx, std::uint64_t arg) {
  SIM_CHECK(n > 0 && n <= kPageSize - at.offset(), "a watchpoint lies inside one page");
  commit_pending();
  const std::uint32_t f = index_of(at);
  if (frames_[f].watch == 0 && next_drain_ != sim::kNever)
    for (Pending& p : pending_) p.stores->page_watched(at.page());
  WatchId id = free_watch_;
  if (id != 0) {
    free_watch_ = watches_[id].next;
  } else {
    id = static_cast<WatchId>(watches_.size());
    watches_.emplace_back();
  }
  watches_[id] = {at, n, fn, ctx, arg, ++watch_clock_, 0, f, Watch::armed};
  WatchId* tail = &frames_[f].watch;
  while (*tail != 0) tail = &watches_[*tail].next;
  *tail = id;
  return id;
}

void HostMemory::unwatch(WatchId id) {
  SIM_CHECK(id < watches_.size() && (watches_[id].state == Watch::armed || watches_[id].state == Watch::detached),
            "unwatch of a watchpoint that is not set");
  const bool linked = watches_[id].state == Watch::armed;
  watches_[id].state = Watch::dead;
  if (firing_ != 0) {
    dead_watches_.push_back(id);
    return;
  }
  if (linked) unlink(id);
  watches_[id].state = Watch::free;
  watches_[id].next = free_watch_;
  free_watch_ = id;
}

void HostMemory::unlink(WatchId id) {
  WatchId* p = &frames_[watches_[id].frame].watch;
  while (*p != id && *p != 0) p = &watches_[*p].next;
  if (*p == id) *p = watches_[id].next;
}

// Callbacks may set and remove watchpoints; a list changes its links only when no firing is under way.
void HostMemory::fire(std::uint32_t f, Phys at, std::size_t n, sim::trace::Cause cause) {
  const std::uint64_t clock = watch_clock_;
  ++firing_;
  for (WatchId id = frames_[f].watch; id != 0; id = watches_[id].next) {
    const Watch& w = watches_[id];
    if (w.state == Watch::armed && w.born <= clock && w.at < at + n && at < w.at + w.n) {
      const WatchFn fn = w.fn;
      fn(w.ctx, w.arg, cause);
    }
  }
  if (--firing_ != 0) return;
  while (!dead_watches_.empty()) {
    const WatchId id = dead_watches_.back();
    dead_watches_.pop_back();
    unlink(id);
    watches_[id].state = Watch::free;
    watches_[id].next = free_watch_;
    free_watch_ = id;
  }
}

}  // namespace memory
