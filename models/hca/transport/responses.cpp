// SPDX-License-Identifier: Apache-2.0
// What a responder sends: acknowledgements and READ data, strictly in request order (S-RC-21). Each acknowledgement leaves
// after the writes of its request have been handed to the DMA engine, so the peer's completion implies placement.
#include <algorithm>

#include "hca/transport/responder.h"

namespace hca {

void Responder::answer(Qp& qp, ResponseJob job) {
  qp.responses.push_back(job);
  if (!qp.responding) respond(qp);
}

sim::Flow Responder::respond(Qp& qp) {
  qp.responding = true;
  while (!qp.responses.empty()) {
    const std::uint32_t life = qp.generation;
    const sim::Picos coalescing =
        qp.responses.front().acknowledges() ? device_.config.transport.ack_coalescing : sim::Picos{0};
    co_await device_.context.delay(device_.config.receive.ack_turnaround + coalescing);
    if (life != qp.generation || qp.responses.empty()) continue;
    if (coalescing.n > 0) {  // the last of several acknowledgements stands for all (S-RC-20)
      while (qp.responses.size() > 1 && qp.responses[1].acknowledges()) {
        qp.responses.pop_front();
        coalesced_.add();
      }
    }
    const ResponseJob job = qp.responses.front();
    if (job.kind == ResponseJob::ack) send_ack(qp, job);
    else if (job.kind == ResponseJob::read) co_await send_read_data(qp, job);
    else co_await send_atomic_result(qp, job);
    if (life != qp.generation || qp.responses.empty()) continue;
    if (job.kind != ResponseJob::ack && !job.duplicate) --qp.resources_busy;
    qp.responses.pop_front();
  }
  qp.responding = false;
}

void Responder::send_ack(Qp& qp, const ResponseJob& job) {
  OutPacket* p = tx_.make(qp, qp.response_packets);
  p->packet->cause = job.cause;
  p->packet->cause.critical = false;
  wire::Headers& h = p->headers;
  h.bth.opcode = wire::make_opcode(qp.transport(), wire::kAcknowledge);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qpn = qp.remote_qpn;
  h.bth.psn = job.psn;
  h.aeth = {job.syndrome, job.msn};
  tx_.submit(p, {});
}

sim::Task<void> Responder::send_read_data(Qp& qp, const ResponseJob& job) {
  const std::uint32_t life = qp.generation;
  const std::uint32_t packets = wire::packet_count(job.length, qp.mtu);
  for (std::uint32_t i = 0; i < packets; ++i) {
    const std::uint32_t n = std::min(qp.mtu, job.length - i * qp.mtu);
    if (n > 0) co_await tx_.buffer().acquire(n);
    if (life != qp.generation || qp.responses.empty()) {
      if (n > 0) tx_.buffer().release(n);
      co_return;
    }
    OutPacket* p = tx_.make(qp, qp.response_packets);
    p->buffer_bytes = n;
    p->last = i + 1 == packets;
    p->packet->payload_length = n;
    p->packet->cause = job.cause;
    p->packet->cause.critical = p->last;
    Extents gather;
    Fault fault = Fault::none;
    if (n > 0) {
      p->packet->payload = device_.context.buffers.make(n);
      fault = co_await translation_.translate(job.rkey, job.va + std::uint64_t{i} * qp.mtu, n, MkeyAccess::remote_read,
                                              job.pd, qp.qpn, p->packet->cause, gather);
    }
    if (i == 0) device_.context.journeys.mark(job.cause.msg, sim::Stage::translation, device_.context.now());
    const bool superseded = life != qp.generation || qp.responses.empty();  // a NAK has ended the QP
    if (fault != Fault::none || superseded) {
      const sim::trace::Cause why = p->packet->cause;
      tx_.discard(p);
      if (!superseded) response_failed(qp, job.psn + i, fault, why);
      co_return;
    }
    const bool first = i == 0, last = p->last;
    wire::Headers& h = p->headers;
    h.bth.opcode = wire::make_opcode(qp.transport(), first && last ? wire::kReadResponseOnly
                                                     : first       ? wire::kReadResponseFirst
                                                     : last        ? wire::kReadResponseLast
                                                                   : wire::kReadResponseMiddle);
    h.bth.pkey = qp.pkey;
    h.bth.dest_qpn = qp.remote_qpn;
    h.bth.psn = job.psn + i;
    h.aeth = {wire::ack_syndrome(), job.msn};
    tx_.submit(p, gather);
    if (!last) co_await device_.context.delay(device_.config.send.packet_interval);
    if (life != qp.generation || qp.responses.empty()) co_return;
  }
}

// Data of a READ or the operand of an atomic could not be reached: the key went away, or the IOMMU refused. What stands
// behind them must not leave with a gap before it, and the NAK is the last answer of this QP (S-ERR-11).
void Responder::payload_failed(Qp& qp, Psn psn, sim::trace::Cause why) {
  tx_.cancel(qp.response_packets);
  response_failed(qp, psn, Fault::dma, why);
}

void Responder::response_failed(Qp& qp, Psn psn, Fault fault, sim::trace::Cause cause) {
  qp.responses.clear();
  if (!qp.receives()) return;  // ERR already, and silent
  naks_.add();
  const Refusal& why = refusals::of_remote(fault);
  send_ack(qp, {ResponseJob::ack, static_cast<std::uint8_t>(why.nak), psn, qp.msn, 0, 0, 0, cause});
  if (fault == Fault::dma) return control_.queue_unreadable(qp);
  events_.async(why.event, qp.qpn);
  control_.enter_error(qp);
}

}  // namespace hca
