// SPDX-License-Identifier: Apache-2.0
// A queue's head leaves when its payload reads are done; then header building and the transmit pipeline (a constant
// latency), then the wire as soon as it is free. The ICRC is computed over the real bytes when the headers are built.
#include "hca/transport/tx_port.h"

#include <utility>

#include "hca/trace_points.h"

namespace hca {

TxPort::TxPort(sim::Context& context, const SendConfig& config, DmaEngine& dma, std::int32_t host,
               const std::string& path)
    : context_(context),
      config_(config),
      dma_(dma),
      pool_(context.pools.of<OutPacket>("outgoing packet")),
      buffer_(config.tx_buffer.n),
      trace_(context, host, path),
      packets_(context.stats.counter(path + ".packets")),
      bytes_(context.stats.counter(path + ".bytes")),
      loopback_packets_(context.stats.counter(path + ".loopback_packets")) {}

OutPacket* TxPort::make(Qp& qp, OutQueue& queue) {
  sim::Ptr<OutPacket> owner = pool_.make();
  OutPacket* p = owner.get();
  p->self = std::move(owner);
  p->packet = port_->make_packet();
  p->packet->serial = next_serial_++;
  p->qp = &qp;
  p->queue = &queue;
  p->enqueued = context_.now();
  return p;
}

void TxPort::submit(OutPacket* p, const Extents& gather) {
  p->queued = true;
  p->reads = static_cast<std::uint16_t>(gather.count);
  p->queue->ring.push_back(p);
  std::uint32_t offset = p->packet->payload_offset;
  const sim::trace::Cause why = p->packet->cause;
  for (std::uint32_t i = 0; i < gather.count; ++i) {
    p->packet->cause.parent =
        dma_.read(gather.item[i].at, gather.item[i].length, p->packet->payload, offset, why, &payload_arrived, p,
                  reinterpret_cast<std::uint64_t>(this), gather.item[i].relaxed);
    offset += gather.item[i].length;
  }
  if (gather.count == 0) release_ready(*p->queue);
}

void TxPort::payload_arrived(void* packet, std::uint64_t port, DmaStatus status) {
  auto* p = static_cast<OutPacket*>(packet);
  auto* self = reinterpret_cast<TxPort*>(port);
  --p->reads;
  p->failed |= status != DmaStatus::ok;
  if (p->reads > 0) return;
  if (!p->queued) self->retire(p);
  else self->release_ready(*p->queue);
}

void TxPort::release_ready(OutQueue& queue) {
  while (!queue.ring.empty() && queue.ring.front()->reads == 0) {
    OutPacket* p = queue.ring.pop_front();
    p->queued = false;
    if (p->failed) {
      Qp& qp = *p->qp;
      sink_->payload_failed(qp, *p);
      retire(p);
      return;
    }
    enter_pipeline(*p);
    p->buffer_bytes = 0;  // now owned by the pipeline
    retire(p);
  }
}

void TxPort::enter_pipeline(OutPacket& p) {
  if (p.last) context_.journeys.mark(p.packet->cause.msg, sim::Stage::payload_dma, context_.now());
  (p.frame ? *p.frame : p.qp->frame).build(*p.packet, p.headers);
  const bool loopback = loops_back(p);
  pipeline_.push_back({std::move(p.packet), context_.now() + config_.tx_pipeline, p.enqueued, p.buffer_bytes, p.qp->qpn,
                       p.headers.bth.psn, p.headers.bth.opcode, p.last, loopback, p.report_leaving, p.qp->generation});
  pump();
}

// Puts every packet on the wire that has passed the pipeline, while the wire is free.
void TxPort::pump() {
  const sim::Picos now = context_.now();
  if (pump_at_ <= now) pump_at_ = sim::kNever;
  while (!pipeline_.empty()) {
    const InPipeline& next = pipeline_.front();
    const sim::Picos when = next.loopback ? next.due : sim::max(next.due, port_->ready_at());
    if (when > now) {
      if (when < pump_at_) {
        pump_at_ = when;
        context_.scheduler.at<&TxPort::pump>(when, this);
      }
      return;
    }
    InPipeline p = pipeline_.pop_front();
    if (p.last) context_.journeys.mark(p.packet->cause.msg, sim::Stage::packetise, now);
    const std::uint64_t span = trace_.span(points::tx, p.packet->cause, p.enqueued, p.due - config_.tx_pipeline, now,
                                           p.qpn, p.psn.value(), p.opcode, p.packet->payload_length);
    if (span != 0) p.packet->cause.parent = span;
    const std::uint64_t up = p.packet->cause.parent;
    packets_.add();
    bytes_.add(p.packet->frame_length());
    if (p.loopback) {
      turn_round(std::move(p.packet));
    } else if (!removed_) {
      copy_multicast(*p.packet);
      port_->send(std::move(p.packet));
    }
    if (p.report) report_leaving(p.qpn, p.generation, p.psn, up, !p.loopback);
    if (p.buffer_bytes > 0) buffer_.release(p.buffer_bytes);
  }
}

// A packet has left when the wire is free for the next one.
void TxPort::report_leaving(std::uint32_t qpn, std::uint32_t generation, Psn psn, std::uint64_t span, bool on_wire) {
  last_leaves_ = sim::max(last_leaves_, on_wire ? port_->ready_at() : context_.now());
  leaving_.push_back({qpn, generation, psn, span});
  context_.scheduler.at<&TxPort::left>(last_leaves_, this);
}

void TxPort::left() {
  const Leaving l = leaving_.pop_front();
  sink_->packet_left(l.qpn, l.generation, l.psn, l.span);
}

void TxPort::cancel(OutQueue& queue) {
  while (!queue.ring.empty()) {
    OutPacket* p = queue.ring.pop_front();
    p->queued = false;
    if (p->reads == 0) retire(p);
  }
}

void TxPort::retire(OutPacket* p) {
  const std::uint32_t credit = p->buffer_bytes;
  { sim::Ptr<OutPacket> dead = std::move(p->self); }
  if (credit > 0) buffer_.release(credit);
}

}  // namespace hca
