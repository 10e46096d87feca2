// SPDX-License-Identifier: Apache-2.0
// DMA in the root complex: translation, memory access, completions. A posted write becomes visible after every earlier
// one of its device unless it is marked relaxed ordering; a read sees all earlier posted writes of its device; completions
// of different reads return in the order in which memory answers.
// A read that faults completes as UR, a write that faults is dropped (PCI Express Base Specification, 2.3.1).
#include "pcie/root_complex.h"
#include "pcie/trace_points.h"

#include <algorithm>

namespace pcie {
namespace {

// Requests above their limit or across a 4 KiB boundary are malformed.
bool malformed(const Tlp& tlp, std::uint32_t limit) {
  return tlp.length == 0 || tlp.length > limit ||
         (tlp.address & (memory::kPageSize - 1)) + tlp.length > memory::kPageSize;
}

}  // namespace

TlpSink& RootComplex::link_of(const Device& device) { return *down[static_cast<int>(&device - devices_.data())]; }

void RootComplex::dma_write(Device& device, TlpPtr tlp) {
  if (malformed(*tlp, device.mps)) return malformed_.add();
  const sim::Picos now = context_.now();
  const DmaTranslation t = translator->translate(device.bdf, {tlp->address}, tlp->length, true, tlp->cause);
  if (!t.phys || !memory_.contains(*t.phys, tlp->length)) return drop(*tlp);
  if (tlp->held != nullptr) tlp->held->hold_until(t.ready);
  sim::Picos visible = t.ready + config_.dma_write_latency + memory_.device_write_latency(*t.phys, tlp->length) +
                       context_.jitter.draw(sim::JitterPlace::dma_write, host_);
  if (!tlp->relaxed_ordering) visible = max(visible, device.last_write);
  device.last_write = max(device.last_write, visible);
  if (trace_.on(trace_points::kDmaWrite))
    tlp->cause.parent =
        trace_.span(trace_points::kDmaWrite, tlp->cause, now, t.ready, visible, tlp->length, tlp->address, t.phys->v);
  post({visible, std::move(tlp), *t.phys, false});
}

// Never translated; delivered after all earlier posted writes of the device.
void RootComplex::interrupt(Device& device, TlpPtr tlp) {
  if (tlp->length != sizeof(std::uint32_t) || (tlp->address & 3) != 0) return malformed_.add();
  const sim::Picos at = max(context_.now() + config_.interrupt_latency, device.last_write);
  device.last_write = at;
  post({at, std::move(tlp), {}, true});
}

void RootComplex::drop(const Tlp& tlp) {
  dropped_writes_.add();
  trace_.instant(trace_points::kDmaFault, tlp.cause, context_.now(), static_cast<std::uint64_t>(tlp.type), tlp.length,
                 tlp.address, 0);
}

// A free memory access slot at or after `from`; slots are given in order of arrival.
sim::Picos RootComplex::take_read_slot(sim::Picos from) {
  if (read_ends_.size() < config_.max_reads) return from;
  std::pop_heap(read_ends_.begin(), read_ends_.end(), std::greater<>{});
  const sim::Picos free = read_ends_.back();
  read_ends_.pop_back();
  return max(from, free);
}

void RootComplex::dma_read(Device& device, TlpPtr tlp) {
  const sim::Picos now = context_.now();
  SIM_CHECK(tlp->buffer || tlp->length <= tlp->inline_bytes.size() || tlp->length > device.mrrs,
            "DMA read without a place for its data");
  if (malformed(*tlp, device.mrrs)) {
    malformed_.add();
    return refuse(device, std::move(tlp), CplStatus::UR, now);
  }
  const DmaTranslation t = translator->translate(device.bdf, {tlp->address}, tlp->length, false, tlp->cause);
  if (!t.phys || !memory_.contains(*t.phys, tlp->length)) return refuse(device, std::move(tlp), CplStatus::UR, t.ready);
  const sim::Picos start = take_read_slot(t.ready);
  const sim::Picos taken = config_.dma_read_latency + memory_.device_read_latency(*t.phys, tlp->length);
  read_ends_.push_back(start + taken);
  std::push_heap(read_ends_.begin(), read_ends_.end(), std::greater<>{});
  read_busy_.add(taken);
  if (tlp->held != nullptr) tlp->held->hold_until(start);
  const sim::Picos ready = max(start + taken, device.last_write);
  device.last_read = max(device.last_read, ready);
  if (trace_.on(trace_points::kDmaRead))
    tlp->cause.parent =
        trace_.span(trace_points::kDmaRead, tlp->cause, now, start, ready, tlp->tag, tlp->length, tlp->address, 0);
  const std::uint32_t index = reads_.put({std::move(tlp), *t.phys, &device, CplStatus::SC});
  if (ready == now) finish_read(index);
  else context_.scheduler.at<&RootComplex::finish_read>(ready, this, index);
}

void RootComplex::refuse(Device& device, TlpPtr request, CplStatus status, sim::Picos at) {
  const std::uint32_t index = reads_.put({std::move(request), {}, &device, status});
  if (at == context_.now()) finish_read(index);
  else context_.scheduler.at<&RootComplex::finish_read>(at, this, index);
}

void RootComplex::finish_read(std::uint64_t index) {
  commit_due();
  Read r = reads_.take(index);
  // Memory may have gone away since the request arrived.
  if (r.status == CplStatus::SC && !memory_.contains(r.phys, r.tlp->length)) r.status = CplStatus::UR;
  if (r.status != CplStatus::SC) return send_refusal(std::move(r));
  memory_.read(r.phys, r.tlp->bytes());
  complete(*r.device, std::move(r.tlp));
}

void RootComplex::send_refusal(Read r) {
  refused_reads_.add();
  Tlp& tlp = *r.tlp;
  trace_.instant(trace_points::kDmaFault, tlp.cause, context_.now(), static_cast<std::uint64_t>(tlp.type), tlp.length,
                 tlp.address, static_cast<std::uint64_t>(r.status));
  tlp.type = TlpType::Cpl;
  tlp.status = r.status;
  tlp.last_completion = true;
  tlp.length = 0;
  tlp.buffer = {};
  link_of(*r.device).receive(std::move(r.tlp));
}

// The request itself becomes its last completion.
void RootComplex::complete(const Device& device, TlpPtr request) {
  TlpSink& link = link_of(device);
  std::uint32_t done = 0;
  std::uint32_t remaining = request->length;
  for (;;) {
    const std::uint32_t n =
        completion_piece(request->address, remaining, device.mps, device.rcb, config_.split_completions_at_rcb);
    if (n == remaining) break;
    TlpPtr piece = tlps_.make();
    piece->type = TlpType::CplD;
    piece->relaxed_ordering = request->relaxed_ordering;
    piece->requester = request->requester;
    piece->tag = request->tag;
    piece->address = request->address;
    piece->length = n;
    piece->byte_offset = done;
    piece->byte_count = remaining;
    piece->cause = request->cause;
    if (request->buffer) {
      piece->buffer = request->buffer;
      piece->buffer_offset = request->buffer_offset;
      request->buffer_offset += n;
    } else {
      std::memcpy(piece->inline_bytes.data(), request->inline_bytes.data(), n);
      std::memmove(request->inline_bytes.data(), request->inline_bytes.data() + n, remaining - n);
    }
    request->address += n;
    done += n;
    remaining -= n;
    link.receive(std::move(piece));
  }
  request->type = TlpType::CplD;
  request->byte_offset = done;
  request->length = remaining;
  request->byte_count = remaining;
  request->last_completion = true;
  link.receive(std::move(request));
}

}  // namespace pcie
