// SPDX-License-Identifier: Apache-2.0
// Write-combining buffers: a line collects stores until it is full, a fence comes, its buffer is needed, or it has been
// left alone for the time-out. A full line leaves as one 64-byte write, a partial one as aligned pieces of 32, 16 and 8
// bytes (smaller where a word is incomplete), in ascending order.
// Not modelled: reordering between lines on their way out. Architectures allow it; real parts leave in flush order.
// Source: Intel SDM volume 3, 12.3.1 (buffering of write combining memory locations).
#include "cpu/wc_buffer.h"

#include <bit>
#include <cstring>
#include <string>

#include "cpu/trace_points.h"
#include "memory/host_memory.h"

namespace cpu {
namespace {
std::string path(std::int32_t host, memory::CoreIndex core, const std::string& what) {
  return "host" + std::to_string(host) + ".cpu" + std::to_string(core) + "." + what;
}
constexpr std::uint64_t bits(std::uint64_t n) { return n >= 64 ? ~0ULL : (1ULL << n) - 1; }
}  // namespace

WcBuffers::WcBuffers(sim::Context& context, const CoreConfig& config, sc_core::sc_port<pcie::MmioPort>& port,
                     std::int32_t host, memory::CoreIndex core)
    : context_(context),
      flush_latency_(config.wc_flush_latency),
      line_interval_(config.wc_line_interval),
      timeout_(config.wc_timeout),
      uc_latency_(config.uc_store_latency),
      port_(port),
      trace_(context, host, path(host, core, "wc")),
      lines_(config.wc_buffers),
      last_left_(sim::Picos{0} - config.wc_line_interval),
      partial_(context.stats.counter(path(host, core, "wc_partial"))) {
  static constexpr const char* kNames[4] = {"wc_full", "wc_fenced", "wc_evicted", "wc_timed_out"};
  for (unsigned i = 0; i < 4; ++i) flushes_[i] = &context.stats.counter(path(host, core, kNames[i]));
}

sim::Picos WcBuffers::store(memory::Phys at, std::span<const std::byte> bytes, sim::trace::Cause cause, sim::Picos t,
                            sim::Picos not_before) {
  expire(t);
  Line& line = line_for({at.v & ~63ULL}, t);
  const std::uint64_t offset = at.v & 63;
  memory::copy_line(line.bytes + offset, bytes.data(), bytes.size());
  line.valid |= bits(bytes.size()) << offset;
  line.last_store = t;
  line.not_before = sim::max(line.not_before, not_before);
  line.cause = cause;
  if (line.valid == ~0ULL) flush_line(line, t, FlushReason::full);
  else if (!timer_armed_) arm_timer();
  return t;
}

// The open line at that address, or a new one. If all buffers are in use, the line that was opened first is flushed, and
// the store waits until a buffer is free: t moves.
WcBuffers::Line& WcBuffers::line_for(memory::Phys at, sim::Picos& t) {
  Line* unused = nullptr;
  Line* oldest = nullptr;
  for (Line& l : lines_) {
    if (l.state == Line::open) {
      if (l.at == at) return l;
      if (oldest == nullptr || l.opened < oldest->opened) oldest = &l;
    } else if (unused == nullptr && (l.state == Line::free || l.leaves <= t)) {
      unused = &l;
    }
  }
  if (unused == nullptr) {
    if (oldest != nullptr) flush_line(*oldest, t, FlushReason::eviction);
    for (Line& l : lines_)
      if (l.state == Line::leaving && (unused == nullptr || l.leaves < unused->leaves)) unused = &l;
    t = sim::max(t, unused->leaves);
  }
  unused->state = Line::open;
  unused->at = at;
  unused->valid = 0;
  unused->opened = t;
  unused->not_before = sim::Picos{0};
  ++open_;
  return *unused;
}

void WcBuffers::flush_line(Line& line, sim::Picos t, FlushReason why) {
  line.leaves = sim::max(sim::max(t + flush_latency_, last_left_ + line_interval_), line.not_before);
  last_left_ = line.leaves;
  line.state = Line::leaving;
  --open_;
  flushes_[static_cast<unsigned>(why)]->add();
  if (line.valid != ~0ULL) partial_.add();
  sim::trace::Cause cause = line.cause;
  const std::uint64_t span =
      trace_.span(points::wc_flush, cause, line.opened, t, line.leaves, line.at.v,
                  static_cast<std::uint64_t>(std::popcount(line.valid)), static_cast<std::uint64_t>(why));
  if (span != 0) cause.parent = span;
  depart_at(line.leaves, line.at, line.bytes, line.valid, cause);
}

sim::Picos WcBuffers::send_uncached(memory::Phys at, std::span<const std::byte> bytes, sim::trace::Cause cause,
                                    sim::Picos t, sim::Picos not_before) {
  const sim::Picos leaves = sim::max(sim::max(t + uc_latency_, last_left_ + line_interval_), not_before);
  last_left_ = leaves;
  const std::uint64_t span = trace_.span(points::uc_store, cause, t, t, leaves, at.v, bytes.size());
  if (span != 0) cause.parent = span;
  std::byte line[64];
  std::memcpy(line + (at.v & 63), bytes.data(), bytes.size());
  depart_at(leaves, {at.v & ~63ULL}, line, bits(bytes.size()) << (at.v & 63), cause);
  return leaves;
}

sim::Picos WcBuffers::flush(sim::Picos t) {
  expire(t);
  while (open_ != 0) {
    Line* first = nullptr;
    for (Line& l : lines_)
      if (l.state == Line::open && (first == nullptr || l.opened < first->opened)) first = &l;
    flush_line(*first, t, FlushReason::fence);
  }
  return sim::max(t, last_left_);
}

WcBuffers::Line* WcBuffers::next_to_expire() {
  Line* first = nullptr;
  for (Line& l : lines_)
    if (l.state == Line::open && (first == nullptr || l.last_store < first->last_store)) first = &l;
  return first;
}

// A thread may look here at a time to which the engine's timer has not come yet.
void WcBuffers::expire(sim::Picos t) {
  while (open_ != 0) {
    Line* const l = next_to_expire();
    if (l->last_store + timeout_ > t) return;
    flush_line(*l, l->last_store + timeout_, FlushReason::timeout);
  }
}

// One timer serves all lines; it fires at the earliest deadline known when it was armed and looks again.
void WcBuffers::arm_timer() {
  if (open_ == 0) return;
  timer_armed_ = true;
  context_.scheduler.at<&WcBuffers::on_timer>(next_to_expire()->last_store + timeout_, this);
}

void WcBuffers::on_timer() {
  timer_armed_ = false;
  expire(context_.now());
  arm_timer();
}

void WcBuffers::depart_at(sim::Picos t, memory::Phys at, const std::byte* bytes, std::uint64_t valid,
                          sim::trace::Cause cause) {
  std::uint32_t i = free_departure_;
  if (i != kNil) {
    free_departure_ = departures_[i].next_free;
  } else {
    i = static_cast<std::uint32_t>(departures_.size());
    departures_.emplace_back();
  }
  Departure& d = departures_[i];
  d.at = at;
  d.valid = valid;
  d.cause = cause;
  std::memcpy(d.bytes, bytes, 64);
  context_.scheduler.at<&WcBuffers::on_departure>(t, this, i);
}

void WcBuffers::on_departure(std::uint64_t index) {
  const Departure d = departures_[index];
  departures_[index].next_free = free_departure_;
  free_departure_ = static_cast<std::uint32_t>(index);
  context_.journeys.mark(d.cause.msg, sim::Stage::store_buffer_wc, context_.now());
  if (d.valid == ~0ULL) {
    port_->mmio_write(d.at, {d.bytes, 64}, d.cause);
    return;
  }
  for (std::uint64_t offset = 0; offset < 64;) {
    std::uint64_t piece = 32;
    while (piece != 0 && (offset % piece != 0 || (d.valid >> offset & bits(piece)) != bits(piece))) piece /= 2;
    if (piece != 0) port_->mmio_write(d.at + offset, {d.bytes + offset, piece}, d.cause);
    offset += piece != 0 ? piece : 1;
  }
}

}  // namespace cpu
