// SPDX-License-Identifier: Apache-2.0
// What a requester does with answers: ACKs complete WQEs in order, a READ response acknowledges everything before it and
// scatters its data, NAKs fail or rewind (S-RC-33…37). Answers of one QP are taken in order of arrival.
#include <algorithm>
#include <cstring>
#include <utility>

#include "hca/trace_points.h"
#include "hca/transport/requester.h"
#include "hca/transport/scatter_to_cqe.h"

namespace hca {

void Requester::response(Qp& qp, RxPtr packet) {
  if (!qp.sends()) return;
  qp.rx_responses.push_back(std::move(packet));
  if (!qp.taking_responses) take_responses(qp);
}

sim::Flow Requester::take_responses(Qp& qp) {
  qp.taking_responses = true;
  while (!qp.rx_responses.empty()) {
    RxPtr rx = qp.rx_responses.pop_front();
    const Psn psn = rx->bth().psn;
    if (rx->packet->cause.critical)
      device_.context.journeys.mark(rx->packet->cause.msg, sim::Stage::receive, device_.context.now());
    if (psn.behind(qp.unacked_psn) || !psn.behind(qp.sent_psn)) {
      stale_.add();  // outside the outstanding window: a ghost
      continue;
    }
    if (rx->parsed.op->kind == wire::MessageKind::read_response) {
      co_await on_read_response(qp, *rx);
      continue;
    }
    if (rx->parsed.op->kind == wire::MessageKind::atomic_ack) {
      co_await on_atomic_response(qp, *rx);
      continue;
    }
    if (rx->parsed.op->kind != wire::MessageKind::ack) {
      stale_.add();
      continue;
    }
    const std::uint8_t syndrome = rx->parsed.headers.aeth.syndrome;
    switch (wire::aeth_kind(syndrome)) {
      case wire::AethKind::ack:
        on_ack(qp, *rx);
        break;
      case wire::AethKind::rnr_nak:
        on_rnr_nak(qp, *rx, wire::aeth_value(syndrome));
        break;
      case wire::AethKind::nak:
        on_nak(qp, *rx, syndrome);
        break;
      case wire::AethKind::reserved:
        stale_.add();
        break;
    }
  }
  qp.taking_responses = false;
}

void Requester::on_ack(Qp& qp, const RxPacket& rx) {
  const std::uint64_t up = rx.packet->cause.parent;
  if (!acknowledge(qp, rx.bth().psn, up)) return;
  progress(qp);
  complete(qp, up);
  kick(qp);
}

// Moves the acknowledged edge to `up_to`. False when READ data or an atomic's result before it were lost: retransmission has
// started there.
bool Requester::acknowledge(Qp& qp, Psn up_to, std::uint64_t up) {
  for (std::size_t i = 0; i < qp.sent.size(); ++i) {
    SentWqe& s = qp.sent[i];
    if (s.first_psn.ahead_of(up_to)) break;
    if (s.awaits_data() && !s.data_arrived && s.failed_syndrome == 0) {
      const Psn missing = s.first_psn + s.response_bytes / qp.mtu;
      if (missing.ahead_of(up_to)) continue;  // a NAK in the middle of an answer that has come whole so far
      qp.unacked_psn = missing;
      complete(qp, up);
      ask_again(qp, missing, up);
      return false;
    }
  }
  if (!(up_to + 1U).behind(qp.unacked_psn)) qp.unacked_psn = up_to + 1U;
  if (qp.send_psn.behind(qp.unacked_psn)) qp.send_psn = qp.unacked_psn;
  return true;
}

SentWqe* Requester::find(Qp& qp, Psn psn) {
  for (std::size_t i = 0; i < qp.sent.size(); ++i) {
    SentWqe& s = qp.sent[i];
    if (!s.no_packet && !psn.behind(s.first_psn) && !psn.ahead_of(s.last_psn)) return &s;
  }
  return nullptr;
}

sim::Task<void> Requester::on_read_response(Qp& qp, RxPacket& rx) {
  const std::uint32_t life = qp.generation;
  const Psn psn = rx.bth().psn;
  const std::uint64_t up = rx.packet->cause.parent;
  SentWqe* s = find(qp, psn);
  if (s == nullptr || s->opcode != MLX5_OPCODE_RDMA_READ) {
    fail(qp, psn, prm::kSynBadResp, kVendorBadResponse, up);
    co_return;
  }
  const Psn expected = s->first_psn + s->response_bytes / qp.mtu;
  if (psn.behind(expected) || s->data_arrived) {
    stale_.add();
    co_return;
  }
  if (psn.ahead_of(expected)) {  // a response was lost: ask again from the gap
    ask_again(qp, expected, up);
    co_return;
  }
  if (s->first_psn.ahead_of(qp.unacked_psn) && !acknowledge(qp, s->first_psn - 1U, up)) co_return;
  const std::uint32_t n = rx.packet->payload_length;
  const std::uint32_t want = std::min(qp.mtu, s->length - s->response_bytes);
  const bool last = s->response_bytes + want == s->length;
  if (n != want || rx.parsed.op->ends() != last) {
    fail(qp, psn, prm::kSynBadResp, kVendorBadResponse, up);
    co_return;
  }
  if (n == s->length && result_goes_in_cqe(qp, *s, n)) {
    s->wqe = rx.packet->payload;
    s->wqe_offset = rx.packet->payload_offset;
    s->result_in_cqe = true;
    s->response_bytes = n;
    qp.unacked_psn = psn + 1U;
    if (qp.send_psn.behind(qp.unacked_psn)) qp.send_psn = qp.unacked_psn;
    progress(qp);
    data_complete(qp, *s, up);
    co_return;
  }
  sim::trace::Cause cause{s->msg, up, false};
  const SendWqe wqe = parse_send_wqe({s->wqe, s->wqe_offset}, qp.service);
  GatherCursor cursor(wqe.bytes.data(), wqe.first_data_ds, wqe.ds);
  cursor.skip(s->response_bytes);
  std::uint32_t done = 0;
  while (done < n) {
    const auto g = cursor.next(n - done);
    SIM_CHECK(g.has_value(), "READ scatter list shorter than its length");
    Extents to;
    const Fault fault =
        co_await translation_.translate(g->lkey, g->va, g->length, MkeyAccess::local_write, qp.pd, qp.qpn, cause, to);
    if (life != qp.generation) co_return;
    if (fault != Fault::none) {
      fail_result(qp, psn, cause.parent);
      co_return;
    }
    if (done == 0) co_await device_.context.delay(device_.config.receive.scatter);
    if (life != qp.generation) co_return;
    for (std::uint32_t i = 0; i < to.count; ++i) {
      dma_.write(to.item[i].at, to.item[i].length, rx.packet->payload, rx.packet->payload_offset + done, cause,
                 to.item[i].relaxed);
      done += to.item[i].length;
    }
  }
  s = find(qp, psn);
  if (s == nullptr) co_return;
  s->response_bytes += n;
  qp.unacked_psn = psn + 1U;
  if (qp.send_psn.behind(qp.unacked_psn)) qp.send_psn = qp.unacked_psn;
  progress(qp);
  if (!last) co_return;
  data_complete(qp, *s, cause.parent);
}

// The result of the READ or atomic that owns `psn` cannot be placed.
void Requester::fail_result(Qp& qp, Psn psn, std::uint64_t up) {
  const bool protection = device_.config.transport.result_fault == ResultFault::protection_error;
  fail(qp, psn, protection ? prm::kSynLocalProt : prm::kSynLocalAccess, kVendorLocalProt, up);
}

// The whole answer of a READ or atomic is on its way into memory.
void Requester::data_complete(Qp& qp, SentWqe& s, std::uint64_t up) {
  device_.context.journeys.mark(s.msg, sim::Stage::scatter, device_.context.now());
  s.data_arrived = true;
  set_reads(qp, qp.reads_outstanding - 1);
  complete(qp, up);
  kick(qp);
}

void Requester::on_nak(Qp& qp, const RxPacket& rx, std::uint8_t syndrome) {
  const Psn psn = rx.bth().psn;
  const std::uint64_t up = rx.packet->cause.parent;
  if (psn != qp.unacked_psn) {
    if (!acknowledge(qp, psn - 1U, up)) return;
    progress(qp);
  }
  complete(qp, up);
  if (!qp.sends()) return;
  trace_.instant(points::nak, rx.packet->cause, device_.context.now(), qp.qpn, psn.value(), syndrome);
  switch (syndrome) {
    case wire::kNakPsnSequence:
      sequence_naks_.add();
      retry(qp, psn, 1, up);
      break;
    case wire::kNakRemoteAccess:
      fail(qp, psn, prm::kSynRemoteAccess, kVendorRemoteAccess, up);
      break;
    case wire::kNakRemoteOperational:
      fail(qp, psn, prm::kSynRemoteOp, kVendorRemoteOp, up);
      break;
    default:
      fail(qp, psn, prm::kSynRemoteInvalReq, kVendorRemoteInvalid, up);
      break;
  }
}

// Reports every WQE at the head of the queue that is done; a failed one ends the QP.
void Requester::complete(Qp& qp, std::uint64_t up) {
  while (!qp.sent.empty()) {
    const SentWqe& s = qp.sent.front();
    if (s.failed_syndrome != 0) {
      const SentWqe failed = pop_sent(qp);
      post_error(qp, failed, failed.failed_syndrome, failed.failed_vendor);
      control_.send_failed(qp);
      return;
    }
    const bool acknowledged = s.no_packet ? !s.executing : s.last_psn.behind(qp.unacked_psn);
    if (!acknowledged || (s.awaits_data() && !s.data_arrived)) return;
    const SentWqe done = pop_sent(qp);
    if (done.signaled) post_success(qp, done, up);
  }
  if (qp.state == QpState::sqd) control_.drained(qp);
}

// The WQE that owns `psn` ends in error as soon as every earlier one has completed; nothing behind it is sent any more.
void Requester::fail(Qp& qp, Psn psn, std::uint8_t syndrome, std::uint8_t vendor, std::uint64_t up) {
  SentWqe* s = find(qp, psn);
  if (s == nullptr || s->failed_syndrome != 0) return;
  s->failed_syndrome = syndrome;
  s->failed_vendor = vendor;
  if (up != 0) s->span = up;
  qp.sq_error = true;
  complete(qp, up);
}

void Requester::post_success(Qp& qp, const SentWqe& s, std::uint64_t up) {
  PendingCqe cqe;
  auto* c = reinterpret_cast<mlx5_cqe64*>(cqe.bytes.data());
  c->srqn_uidx = prm::be32(qp.user_index);
  c->byte_cnt = prm::be32(s.awaits_data() ? s.length : 0);
  c->sop_drop_qpn = prm::be32(std::uint32_t{s.opcode} << 24 | qp.qpn);
  c->wqe_counter = prm::be16(s.index);
  c->op_own = MLX5_CQE_REQ << 4;
  if (s.result_in_cqe)
    scatter_to_cqe(device_.context, cqe, s.wqe.data() + s.wqe_offset, s.is_atomic() ? 8 : s.length, qp.result_in_cqe);
  // A SEND's journey ends at the receiver: its own completion is not on the critical path.
  const bool ends_here =
      s.opcode != MLX5_OPCODE_SEND && s.opcode != MLX5_OPCODE_SEND_IMM && s.opcode != MLX5_OPCODE_SEND_INVAL;
  cqe.cause = {s.msg, up != 0 ? up : s.span, ends_here};
  cqe.qpn = qp.qpn;
  completions_.post(qp.cqn_send, std::move(cqe));
}

void Requester::post_error(Qp& qp, const SentWqe& s, std::uint8_t syndrome, std::uint8_t vendor) {
  PendingCqe cqe;
  auto* c = reinterpret_cast<mlx5_err_cqe*>(cqe.bytes.data());
  c->srqn = prm::be32(qp.user_index);
  c->vendor_err_synd = vendor;
  c->syndrome = syndrome;
  c->s_wqe_opcode_qpn = prm::be32(std::uint32_t{s.opcode} << 24 | qp.qpn);
  c->wqe_counter = prm::be16(s.index);
  c->op_own = MLX5_CQE_REQ_ERR << 4;
  cqe.cause = {s.msg, s.span, false};
  cqe.qpn = qp.qpn;
  cqe.solicited = true;  // error CQEs count as solicited
  completions_.post(qp.cqn_send, std::move(cqe));
}

}  // namespace hca
