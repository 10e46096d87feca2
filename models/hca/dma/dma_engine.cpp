// SPDX-License-Identifier: Apache-2.0
// One TLP leaves per issue interval: posted ones first, then reads that have passed their set-up time and find a tag.
// Completions may come in any order; a read is done when all its bytes are there.
#include "hca/dma/dma_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hca/trace_points.h"

namespace hca {

DmaEngine::DmaEngine(sim::Context& context, const DmaConfig& config, std::int32_t host, const std::string& path)
    : context_(context),
      config_(config),
      tag_read_(config.tags),
      tag_bytes_(config.tags),
      trace_(context, host, path),
      tags_trace_(context, host, path + ".tags", sim::trace::TrackKind::counter),
      reads_count_(context.stats.counter(path + ".reads")),
      read_bytes_(context.stats.counter(path + ".read_bytes")),
      write_bytes_(context.stats.counter(path + ".write_bytes")),
      failures_(context.stats.counter(path + ".failed_reads")),
      busy_(context.stats.busy(path + ".issue")) {
  for (std::uint32_t t = config.tags; t-- > 0;) free_tags_.push_back(static_cast<std::uint16_t>(t));
}

std::uint32_t DmaEngine::take_read() {
  if (free_read_ == ~0U) {
    reads_.emplace_back();
    return static_cast<std::uint32_t>(reads_.size() - 1);
  }
  const std::uint32_t r = free_read_;
  free_read_ = reads_[r].next_free;
  return r;
}

std::uint64_t DmaEngine::read(memory::Iova at, std::uint32_t n, sim::BufferRef dst, std::uint32_t offset,
                              sim::trace::Cause cause, DoneFn fn, void* ctx, std::uint64_t arg, bool relaxed_ordering) {
  SIM_CHECK(n > 0, "empty DMA read");
  const std::uint32_t r = take_read();
  const std::uint64_t span = trace_.begin_span(points::dma_read);
  reads_[r] = {fn, ctx, arg, n, false, cause, span, context_.now(), 0, epoch_};
  if (span != 0) cause.parent = span;
  ++epoch_reads_[epoch_];
  if (at.v >= kNullIova) [[unlikely]] {
    std::memset(dst.data() + offset, 0, n);
    context_.scheduler.after(
        config_.read_setup, [](void* self, std::uint64_t read) { static_cast<DmaEngine*>(self)->null_read_done(read); },
        this, r);
    return cause.parent;
  }
  reads_count_.add();
  read_bytes_.add(n);
  const std::uint32_t mrrs = port_->max_read_request_size();
  const sim::Picos ready = context_.now() + config_.read_setup;
  for (std::uint32_t done = 0; done < n;) {
    const std::uint64_t a = at.v + done;
    const auto to_page_end = static_cast<std::uint32_t>(memory::kPageSize - a % memory::kPageSize);
    const std::uint32_t piece = std::min({n - done, mrrs, to_page_end});
    pcie::TlpPtr tlp = port_->make_tlp();
    tlp->type = pcie::TlpType::MRd;
    tlp->address = a;
    tlp->length = piece;
    tlp->requester = port_->requester_id();
    tlp->relaxed_ordering = relaxed_ordering;
    tlp->buffer = dst;
    tlp->buffer_offset = offset + done;
    tlp->cause = cause;
    reads_waiting_.push_back({std::move(tlp), r, ready, 0, {}});
    done += piece;
  }
  pump();
  return cause.parent;
}

void DmaEngine::write(memory::Iova at, std::uint32_t n, const sim::BufferRef& src, std::uint32_t offset,
                      sim::trace::Cause cause, bool relaxed_ordering) {
  if (at.v >= kNullIova) [[unlikely]]
    return;
  write_bytes_.add(n);
  const std::uint32_t mps = port_->max_payload_size();
  for (std::uint32_t done = 0; done < n;) {
    const std::uint64_t a = at.v + done;
    const auto to_page_end = static_cast<std::uint32_t>(memory::kPageSize - a % memory::kPageSize);
    const std::uint32_t piece = std::min({n - done, mps, to_page_end});
    pcie::TlpPtr tlp = port_->make_tlp();
    tlp->type = pcie::TlpType::MWr;
    tlp->address = a;
    tlp->length = piece;
    tlp->requester = port_->requester_id();
    tlp->relaxed_ordering = relaxed_ordering;
    tlp->buffer = src;
    tlp->buffer_offset = offset + done;
    tlp->cause = cause;
    ++posted_count_;
    posted_.push_back({std::move(tlp), 0, sim::Picos{0}, 0, {}});
    done += piece;
  }
  pump();
}

void DmaEngine::write_inline(memory::Iova at, std::span<const std::byte> bytes, sim::trace::Cause cause) {
  write_bytes_.add(bytes.size());
  pcie::TlpPtr tlp = port_->make_tlp();
  tlp->type = pcie::TlpType::MWr;
  tlp->address = at.v;
  tlp->requester = port_->requester_id();
  tlp->set_inline(bytes);
  tlp->cause = cause;
  ++posted_count_;
  posted_.push_back({std::move(tlp), 0, sim::Picos{0}, 0, {}});
  pump();
}

void DmaEngine::raise_msix(std::uint16_t vector, sim::trace::Cause cause) {
  ++posted_count_;
  posted_.push_back({nullptr, 0, sim::Picos{0}, vector, cause});
  pump();
}

// Issues what is due now and schedules itself for the next slot.
void DmaEngine::pump() {
  const sim::Picos now = context_.now();
  if (pump_at_ <= now) pump_at_ = sim::kNever;
  for (;;) {
    const bool posted = !posted_.empty();
    if (!posted && (reads_waiting_.empty() || free_tags_.empty())) return;  // a completion pumps again
    sim::Ring<Job>& queue = posted ? posted_ : reads_waiting_;
    const sim::Picos when = sim::max(next_issue_, queue.front().not_before);
    if (when > now) {
      if (when < pump_at_) {
        pump_at_ = when;
        context_.scheduler.at<&DmaEngine::pump>(when, this);
      }
      return;
    }
    next_issue_ = now + config_.issue_interval;
    busy_.add(config_.issue_interval);
    Job job = queue.pop_front();
    issue(job);
  }
}

void DmaEngine::issue(Job& job) {
  if (!job.tlp) {
    port_->raise_msix(job.vector, job.cause);
    return;
  }
  if (job.tlp->type == pcie::TlpType::MRd) {
    const std::uint16_t tag = free_tags_.back();
    free_tags_.pop_back();
    job.tlp->tag = tag;
    tag_read_[tag] = job.read;
    tag_bytes_[tag] = job.tlp->length;
    ++in_flight_;
    tags_trace_.level(points::dma_tags, context_.now(), in_flight_);
  }
  port_->send(std::move(job.tlp));
}

void DmaEngine::completion(pcie::TlpPtr tlp) {
  const std::uint16_t tag = tlp->tag;
  SIM_CHECK(tag < tag_bytes_.size() && tag_bytes_[tag] > 0, "completion for a free tag");
  const std::uint32_t r = tag_read_[tag];
  const bool error = tlp->status != pcie::CplStatus::SC;
  const std::uint32_t bytes = error ? tag_bytes_[tag] : tlp->length;
  SIM_CHECK(bytes <= tag_bytes_[tag], "completion longer than its request");
  tag_bytes_[tag] -= bytes;
  if (tag_bytes_[tag] == 0) {
    free_tags_.push_back(tag);
    --in_flight_;
    tags_trace_.level(points::dma_tags, context_.now(), in_flight_);
    if (!reads_waiting_.empty()) pump();
  }
  Read& read = reads_[r];
  read.failed |= error;
  read.remaining -= bytes;
  if (read.remaining > 0) return;
  if (read.failed) failures_.add();
  finish(r);
}

void DmaEngine::null_read_done(std::uint64_t r) { finish(static_cast<std::uint32_t>(r)); }

void DmaEngine::finish(std::uint32_t r) {
  Read& read = reads_[r];
  const Read finished = read;
  read.next_free = free_read_;
  free_read_ = r;
  trace_.end_span(finished.span, points::dma_read, finished.cause, finished.start, finished.start + config_.read_setup,
                  context_.now(), finished.failed ? 1 : 0);
  if (--epoch_reads_[finished.epoch] == 0) epoch_over_.notify();
  finished.fn(finished.ctx, finished.arg, finished.failed ? DmaStatus::failed : DmaStatus::ok);
}

sim::Task<void> DmaEngine::drain() {
  co_await draining_.acquire();
  const std::uint8_t ended = epoch_;
  epoch_ ^= 1;
  while (epoch_reads_[ended] != 0) co_await epoch_over_.wait();
  draining_.release();
}

}  // namespace hca
