// SPDX-License-Identifier: Apache-2.0
// One flow per QP takes request packets in order of arrival. on_request() lists the checks in the order of the
// specification; the first that fails decides the answer. Data land packet by packet, so a message that fails later leaves
// a partial write (S-RC-18).
#include "hca/transport/responder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "hca/trace_points.h"
#include "hca/transport/scatter_to_cqe.h"
#include "hca/transport/send_wqe.h"

namespace hca {

using wire::MessageKind;

Responder::Responder(Device& device, DmaEngine& dma, Translation& translation, CompletionUnit& completions,
                     EventUnit& events, TxPort& tx, ReceiveQueue& receive_queue, QpControl& control,
                     const std::string& path)
    : device_(device),
      dma_(dma),
      translation_(translation),
      completions_(completions),
      events_(events),
      tx_(tx),
      receive_queue_(receive_queue),
      control_(control),
      atomics_(device, dma, path + ".atomics"),
      trace_(device.context, device.host, path),
      requests_(device.context.stats.counter(path + ".requests")),
      duplicates_(device.context.stats.counter(path + ".duplicates")),
      out_of_sequence_(device.context.stats.counter(path + ".out_of_sequence")),
      naks_(device.context.stats.counter(path + ".naks_sent")),
      rnr_naks_(device.context.stats.counter(path + ".rnr_naks_sent")),
      coalesced_(device.context.stats.counter(path + ".acks_coalesced")),
      broken_messages_(device.context.stats.counter(path + ".unreliable_messages_dropped")),
      dropped_packets_(device.context.stats.counter(path + ".unreliable_packets_dropped")) {}

void Responder::request(Qp& qp, RxPtr packet) {
  requests_.add();
  qp.rx.push_back(std::move(packet));
  if (!qp.receiving) serve(qp);
}

sim::Flow Responder::serve(Qp& qp) {
  qp.receiving = true;
  while (!qp.rx.empty()) {
    RxPtr rx = qp.rx.pop_front();
    if (!qp.receives()) continue;
    if (qp.unreliable()) co_await on_unreliable_request(qp, *rx);
    else co_await on_request(qp, *rx);
  }
  qp.receiving = false;
}

sim::Task<void> Responder::on_request(Qp& qp, RxPacket& rx) {
  const wire::OpcodeInfo& op = *rx.parsed.op;
  if (rx.packet->cause.critical)
    device_.context.journeys.mark(rx.packet->cause.msg, sim::Stage::receive, device_.context.now());
  if (!in_sequence(qp, rx)) co_return;  // PSN
  if (qp.state == QpState::rtr && !qp.comm_est_raised) {
    qp.comm_est_raised = true;
    events_.async(prm::kEventCommEst, qp.qpn);
  }
  if (!opcode_fits(qp, rx)) {  // opcode sequence and validity
    refuse(qp, rx, refusals::invalid_request);
    co_return;
  }
  if (qp.service == prm::kStXrc && (op.starts() || op.takes_receive_wqe) && !select_srq(qp, rx)) {
    refuse(qp, rx, refusals::invalid_request);  // S-XRC-3
    co_return;
  }
  const bool allowed = op.kind == MessageKind::send || (op.kind == MessageKind::write && qp.rwe) ||
                       (op.kind == MessageKind::read_request && qp.rre) || (op.kind == MessageKind::atomic && qp.rae);
  if (!allowed) {  // QP access flags
    const bool access = device_.config.transport.forbidden_event == ForbiddenEvent::access_error;
    refuse(qp, rx, access ? refusals::forbidden : refusals::forbidden_request);
    co_return;
  }
  if (!wire::payload_fits(op, rx.packet->payload_length, qp.mtu)) {
    refuse(qp, rx, refusals::invalid_request);
    co_return;
  }
  switch (op.kind) {
    case MessageKind::send:
      co_await on_send(qp, rx);
      break;
    case MessageKind::write:
      co_await on_write(qp, rx);
      break;
    case MessageKind::atomic:
      co_await on_atomic(qp, rx);
      break;
    default:
      co_await on_read(qp, rx);
      break;
  }
}

// True for the expected PSN. Otherwise answers: a gap is reported once, an old packet is a duplicate (S-RC-11, S-RC-23).
bool Responder::in_sequence(Qp& qp, const RxPacket& rx) {
  const std::int32_t ahead = rx.bth().psn - qp.expected_psn;
  if (ahead == 0) {
    qp.nak_sent = qp.rnr_nak_sent = false;
    return true;
  }
  if (ahead > 0) {
    out_of_sequence_.add();
    if (!qp.nak_sent && !(qp.rnr_nak_sent && device_.config.transport.silent_after_rnr_nak)) {
      qp.nak_sent = true;
      naks_.add();
      answer(qp, {ResponseJob::ack, wire::kNakPsnSequence, qp.expected_psn, qp.msn, 0, 0, 0, rx.packet->cause});
    }
    return false;
  }
  duplicates_.add();
  duplicate(qp, rx);
  return false;
}

// A message in progress continues with MIDDLE or LAST of its kind; otherwise FIRST, ONLY, a READ or an atomic begins
// (S-RC-12).
bool Responder::opcode_fits(const Qp& qp, const RxPacket& rx) const {
  const wire::OpcodeInfo& op = *rx.parsed.op;
  if (!op.is_request() || (op.kind == MessageKind::atomic && !device_.config.caps.atomic)) return false;
  const bool in_message = qp.rx_kind != 0xFF;
  return in_message ? !op.starts() && qp.rx_kind == static_cast<std::uint8_t>(op.kind) : op.starts();
}

sim::Task<void> Responder::on_send(Qp& qp, RxPacket& rx) {
  const wire::OpcodeInfo& op = *rx.parsed.op;
  const std::uint32_t life = qp.generation;
  if (op.starts()) {
    if (!co_await take_receive_wqe(qp, rx)) co_return;
    qp.rx_bytes = 0;
  }
  device_.context.journeys.mark(rx.packet->cause.critical ? rx.packet->cause.msg : 0, sim::Stage::rq_wqe,
                                device_.context.now());
  bool placed = false;
  if (receives_in_cqe(qp, op, rx.packet->payload_length)) placed = fits_receive(qp, rx);
  else placed = co_await scatter(qp, rx);
  if (!placed || qp.ended(life)) co_return;
  if (op.has(wire::kHasIeth)) {
    if (!co_await invalidate(qp, rx)) co_return;
  }
  qp.rx_kind = op.ends() ? std::uint8_t{0xFF} : static_cast<std::uint8_t>(op.kind);
  if (op.ends()) post_receive(qp, rx);
  advance(qp, rx);
}

sim::Task<void> Responder::on_write(Qp& qp, RxPacket& rx) {
  const wire::OpcodeInfo& op = *rx.parsed.op;
  const std::uint32_t life = qp.generation;
  if (op.starts()) {
    const wire::Reth& reth = rx.parsed.headers.reth;
    if (reth.length > 1U << 31) {
      refuse(qp, rx, refusals::wrong_length);
      co_return;
    }
    qp.rx_va = reth.va;
    qp.rx_rkey = reth.rkey;
    qp.rx_left = reth.length;
    qp.rx_bytes = 0;
  }
  const std::uint32_t n = rx.packet->payload_length;
  if (op.takes_receive_wqe && !qp.rx_wqe_valid) {
    if (!co_await take_receive_wqe(qp, rx)) co_return;
  }
  if (qp.ended(life)) co_return;
  if (n > qp.rx_left || (op.ends() && n != qp.rx_left)) {
    refuse(qp, rx, refusals::wrong_length);
    co_return;
  }
  if (op.starts() && qp.rx_left > 0) {
    const Fault fault = co_await translation_.check(qp.rx_rkey, qp.rx_va, qp.rx_left, MkeyAccess::remote_write, qp.pd,
                                                    qp.qpn, rx.packet->cause);
    if (qp.ended(life)) co_return;
    if (fault != Fault::none) {
      refuse(qp, rx, refusals::of_remote(fault));
      co_return;
    }
  }
  if (!co_await scatter(qp, rx) || qp.ended(life)) co_return;
  qp.rx_kind = op.ends() ? std::uint8_t{0xFF} : static_cast<std::uint8_t>(op.kind);
  if (op.ends_receive_wqe) post_receive(qp, rx);
  advance(qp, rx);
}

// Makes the next receive WQE the current one; without one the answer is an RNR NAK (S-RC-14).
sim::Task<bool> Responder::take_receive_wqe(Qp& qp, const RxPacket& rx) {
  if (qp.rx_wqe_valid) co_return true;  // UC: of a message that was given up (S-UC-3)
  const std::uint32_t life = qp.generation;
  if (receive_queue_.take_ready(qp, rx.packet->cause)) co_return true;
  const bool taken = co_await receive_queue_.take(qp, rx.packet->cause);
  if (taken) co_return true;
  if (qp.ended(life)) co_return false;
  if (receive_queue_.failed(qp)) refuse(qp, rx, refusals::device_fault);
  else rnr_nak(qp, rx);
  co_return false;
}

void Responder::rnr_nak(Qp& qp, const RxPacket& rx) {
  if (qp.unreliable()) {
    drop_message(qp, rx);
    return;
  }
  rnr_naks_.add();
  qp.rnr_nak_sent = true;
  trace_.instant(points::rnr_nak, rx.packet->cause, device_.context.now(), qp.qpn, rx.bth().psn.value(),
                 qp.min_rnr_timer);
  answer(qp, {ResponseJob::ack, wire::rnr_syndrome(qp.min_rnr_timer), rx.bth().psn, qp.msn, 0, 0, 0, rx.packet->cause});
}

// Places one packet's payload: into the receive WQE's segments (SEND) or at the RETH address (WRITE).
sim::Task<bool> Responder::scatter(Qp& qp, RxPacket& rx) {
  const wire::OpcodeInfo& op = *rx.parsed.op;
  const std::uint32_t life = qp.generation, n = rx.packet->payload_length;
  const bool write = op.kind == MessageKind::write;
  sim::trace::Cause cause = rx.packet->cause;
  cause.critical = write && cause.critical && !op.ends_receive_wqe;  // otherwise the CQE is what software waits for
  std::uint64_t& up = rx.packet->cause.parent;
  std::uint32_t done = 0;
  const std::byte* segments = write ? nullptr : qp.rx_wqe.buffer.data() + qp.rx_wqe.offset;
  ReceiveCursor cursor(segments, qp.rx_wqe.segments);
  if (!write) cursor.skip(qp.rx_bytes);
  while (done < n) {
    Gather g{false, n - done, qp.rx_rkey, qp.rx_va};
    if (!write) {
      const auto next = cursor.next(n - done);
      if (!next) {  // longer than the receive WQE
        refuse(qp, rx, refusals::receive_too_short);
        co_return false;
      }
      g = *next;
    }
    Extents to;
    const Fault fault = co_await translation_.translate(
        g.lkey, g.va, g.length, write ? MkeyAccess::remote_write : MkeyAccess::local_write, qp.pd, qp.qpn, cause, to);
    up = cause.parent;
    if (qp.ended(life)) co_return false;
    if (fault != Fault::none) {
      refuse(qp, rx, write ? refusals::of_remote(fault) : refusals::of_receive(fault));
      co_return false;
    }
    if (done == 0) co_await device_.context.delay(device_.config.receive.scatter);
    if (qp.ended(life)) co_return false;
    if (done + g.length == n)
      device_.context.journeys.mark(rx.packet->cause.critical ? cause.msg : 0, sim::Stage::scatter,
                                    device_.context.now());
    for (std::uint32_t i = 0; i < to.count; ++i) {
      dma_.write(to.item[i].at, to.item[i].length, rx.packet->payload, rx.packet->payload_offset + done, cause,
                 to.item[i].relaxed);
      done += to.item[i].length;
    }
    if (write) qp.rx_va += g.length;
  }
  if (write) qp.rx_left -= n;
  qp.rx_bytes += n;
  co_return true;
}

// The packet is executed: expected PSN, MSN, acknowledgement.
void Responder::advance(Qp& qp, RxPacket& rx) {
  ++qp.expected_psn;
  if (rx.parsed.op->ends()) qp.msn = (qp.msn + 1) & 0xFFFFFF;
  if (rx.bth().ack_req && !qp.unreliable()) {
    answer(qp, {ResponseJob::ack, wire::ack_syndrome(), rx.bth().psn, qp.msn, 0, 0, 0, rx.packet->cause});
  }
}

void Responder::reset(Qp& qp) {
  tx_.cancel(qp.response_packets);
  qp.rx.clear();
  qp.responses.clear();
  qp.resources.clear();
  qp.resources_busy = 0;
  qp.rx_kind = 0xFF;
  qp.rx_wqe_valid = false;
  qp.nak_sent = qp.rnr_nak_sent = qp.comm_est_raised = false;
  qp.msn = 0;
  receive_queue_.reset(qp);
}

}  // namespace hca
