// SPDX-License-Identifier: Apache-2.0
// Store buffer with total store order (Intel SDM volume 3, 9.2.3) or the weaker order of Arm (Arm ARM, B2.3).
// Not modelled: merging of entries, and the time to fetch the line of a store that misses the private caches, unless the
// configuration puts it into store_visible_after.
#include "cpu/store_buffer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "cpu/trace_points.h"

namespace cpu {
namespace {
std::string path(std::int32_t host, memory::CoreIndex core, const char* what) {
  return "host" + std::to_string(host) + ".cpu" + std::to_string(core) + "." + what;
}
}  // namespace

StoreBuffer::StoreBuffer(sim::Context& context, const CoreConfig& config, memory::HostMemory& memory, std::int32_t host,
                         memory::CoreIndex core, sim::trace::Source& trace)
    : context_(context),
      memory_(memory),
      trace_(trace),
      weak_(config.arch == Arch::arm64),
      entries_(config.store_buffer_entries),
      visible_after_(config.store_visible_after),
      interval_(config.store_drain_interval),
      spread_(config.weak_drain_spread),
      core_(core),
      rng_(context.rng(path(host, core, "store_buffer"))),
      stores_(context.stats.counter(path(host, core, "stores"))),
      stalls_(context.stats.counter(path(host, core, "store_stalls"))),
      ring_(64),
      in_order_(sim::Picos{0} - config.store_drain_interval) {
  memory_.add_pending_stores(this, core);
}

StoreBuffer::~StoreBuffer() { memory_.remove_pending_stores(this); }

std::uint32_t StoreBuffer::occupancy(sim::Picos t) {
  const std::uint64_t before = undrained_;
  while (undrained_ != tail_ && entry(undrained_).drain <= t) ++undrained_;
  if (trace_.on(points::store_buffer)) [[unlikely]] {
    for (std::uint64_t i = before; i != undrained_; ++i)
      trace_.level(points::store_buffer, entry(i).drain, static_cast<std::int64_t>(tail_ - i - 1));
  }
  return static_cast<std::uint32_t>(tail_ - undrained_);
}

sim::Picos StoreBuffer::push(memory::Phys at, const void* src, std::size_t n, sim::trace::Cause cause, sim::Picos t) {
  stores_.add();
  if (occupancy(t) >= entries_) [[unlikely]] {
    const sim::Picos freed = entry(tail_ - entries_).drain;
    stalls_.add();
    trace_.span(points::store_stall, cause, t, t, freed);
    t = freed;
    occupancy(t);
  }
  in_order_ = sim::max(sim::max(t + visible_after_, in_order_ + interval_), floor_);
  const sim::Picos drain = weak_ ? weak_drain(at, in_order_) : in_order_;
  drained_ = sim::max(drained_, drain);
  if (tail_ - head_ == ring_.size()) [[unlikely]]
    make_room();
  if (head_ == tail_) lines_ = 0;
  const std::uint64_t i = weak_ ? insert_position(drain) : tail_++;
  Entry& e = entry(i);
  e.drain = drain;
  e.at = at;
  e.cause = cause;
  e.n = static_cast<std::uint8_t>(n);
  e.has_event = false;
  if (!weak_) {
    e.older = newest_[bucket(at)];
    newest_[bucket(at)] = i + 1;
  }
  memory::copy_line(e.bytes, src, n);
  lines_ |= line_bits(at, n);
  memory_.note_pending(drain);
  if (memory_.watched(at)) [[unlikely]]
    schedule(e);
  trace_.level(points::store_buffer, t, static_cast<std::int64_t>(tail_ - undrained_));
  return t;
}

// A store may drain later than its turn, but never before an earlier store to the same line.
sim::Picos StoreBuffer::weak_drain(memory::Phys at, sim::Picos earliest) {
  sim::Picos drain = earliest + sim::Picos{rng_.below(static_cast<std::uint32_t>(spread_.n) + 1)};
  if ((lines_ & line_bits(at, 1)) != 0) {
    for (std::uint64_t i = tail_; i-- != head_;) {
      if (entry(i).at.v >> 6 != at.v >> 6) continue;
      drain = sim::max(drain, entry(i).drain);
      break;
    }
  }
  return drain;
}

// Opens a gap for an entry with that drain time, behind entries with the same time, and returns its position.
std::uint64_t StoreBuffer::insert_position(sim::Picos drain) {
  std::uint64_t i = tail_++;
  for (; i != head_ && entry(i - 1).drain > drain; --i) entry(i) = entry(i - 1);
  if (i < undrained_) ++undrained_;  // another thread of this core has run ahead
  return i;
}

void StoreBuffer::make_room() {
  commit_until(context_.now());
  if (tail_ - head_ < ring_.size()) return;
  std::vector<Entry> bigger(ring_.size() * 2);
  for (std::uint64_t i = head_; i != tail_; ++i) bigger[i & (bigger.size() - 1)] = entry(i);
  ring_ = std::move(bigger);
}

void StoreBuffer::overlay(memory::Phys at, void* dst, std::size_t n) const {
  if (!weak_) {
    const std::size_t in_line = std::min<std::size_t>(n, 64 - at.v % 64);
    overlay_line(at, static_cast<std::byte*>(dst), in_line);
    if (in_line < n) overlay_line(at + in_line, static_cast<std::byte*>(dst) + in_line, n - in_line);
    return;
  }
  for (std::uint64_t i = head_; i != tail_; ++i) {
    const Entry& e = entry(i);
    if (e.n == 0 || e.at.v >= at.v + n || at.v >= e.at.v + e.n) continue;
    const std::uint64_t from = std::max(e.at.v, at.v), to = std::min(e.at.v + e.n, at.v + n);
    std::memcpy(static_cast<std::byte*>(dst) + (from - at.v), e.bytes + (from - e.at.v), to - from);
  }
}

// Walks the stores of one line from the latest back, until every byte is covered or none is left.
void StoreBuffer::overlay_line(memory::Phys at, std::byte* dst, std::size_t n) const {
  std::uint64_t missing = n == 64 ? ~0ULL : (1ULL << n) - 1;
  for (std::uint64_t link = newest_[bucket(at)]; link > head_ && missing != 0; link = entry(link - 1).older) {
    const Entry& e = entry(link - 1);
    if (e.n == 0 || e.at.v >= at.v + n || at.v >= e.at.v + e.n) continue;
    const std::uint64_t from = std::max(e.at.v, at.v), to = std::min(e.at.v + e.n, at.v + n);
    for (std::uint64_t b = from; b < to; ++b) {
      const std::uint64_t bit = 1ULL << (b - at.v);
      if ((missing & bit) == 0) continue;
      dst[b - at.v] = e.bytes[b - e.at.v];
      missing &= ~bit;
    }
  }
}

void StoreBuffer::commit_until(sim::Picos t) {
  while (head_ != tail_ && entry(head_).drain <= t) {
    const Entry& e = entry(head_++);  // first, because a watchpoint may come back here
    if (undrained_ < head_) undrained_ = head_;
    if (e.n != 0) memory_.commit_store(e.at, {e.bytes, e.n}, e.cause, core_);
  }
}

void StoreBuffer::page_watched(memory::Phys page) {
  for (std::uint64_t i = head_; i != tail_; ++i)
    if (entry(i).n != 0 && entry(i).at.page() == page) schedule(entry(i));
}

void StoreBuffer::settle(memory::Phys at, std::uint64_t n) {
  for (std::uint64_t i = head_; i != tail_; ++i) {
    Entry& e = entry(i);
    if (e.n == 0 || e.at.v >= at.v + n || at.v >= e.at.v + e.n) continue;
    memory_.commit_store(e.at, {e.bytes, e.n}, e.cause, core_);
    e.n = 0;
  }
}

void StoreBuffer::schedule(Entry& e) {
  if (e.has_event) return;
  e.has_event = true;
  context_.scheduler.at<&StoreBuffer::on_drain>(sim::max(e.drain, context_.now()), this);
}

void StoreBuffer::on_drain() { memory_.commit_pending(); }

}  // namespace cpu
