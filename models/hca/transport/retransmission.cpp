// SPDX-License-Identifier: Apache-2.0
// Go-back-N: sequence NAKs, lost READ responses and the local ACK timeout rewind the send queue to a PSN and spend one
// retry; any progress restores the retries (S-RC-34, S-RC-38, S-RC-40…46). When the timeout fires is said in timeout.h. One
// lazy timer per QP: it re-arms itself when progress moved the deadline.
#include <algorithm>

#include "hca/trace_points.h"
#include "hca/transport/requester.h"
#include "hca/transport/timeout.h"

namespace hca {

void Requester::rewind(Qp& qp, Psn to) {
  ++qp.rewinds;
  tx_.cancel(qp.requests);
  qp.send_psn = to;
}

void Requester::send_again(Qp& qp, Psn from, unsigned cause, std::uint64_t up) {
  const SentWqe* s = find(qp, from);
  trace_.instant(points::retransmit, {s != nullptr ? s->msg : 0, up}, device_.context.now(), qp.qpn, from.value(),
                 cause);
  qp.again_span = up;
  rewind(qp, from);
  qp.ack_deadline = sim::kNever;  // starts again behind the last packet of the message
  kick(qp);
}

// Spends a retry on sending again from `from`; false if none is left, which fails the WQE of the oldest unacknowledged PSN.
bool Requester::retry(Qp& qp, Psn from, unsigned cause, std::uint64_t up) {
  if (qp.retries_left == 0) {
    fail(qp, qp.unacked_psn, prm::kSynTransportRetry, kVendorRetryExceeded, up);
    return false;
  }
  --qp.retries_left;
  send_again(qp, from, cause, up);
  return true;
}

// READ data from `missing` on were lost. The responses that still follow the gap tell nothing new: one retry pays for it,
// and if its answer is lost as well, the timeout tells.
void Requester::ask_again(Qp& qp, Psn missing, std::uint64_t up) {
  if (qp.read_gap_reported) {
    stale_.add();
    return;
  }
  if (retry(qp, missing, 2, up)) qp.read_gap_reported = true;
}

// An answer moved the acknowledged edge: retries and timer start over.
void Requester::progress(Qp& qp) {
  qp.retries_left = qp.retry_count;
  qp.rnr_left = qp.rnr_retry;
  qp.expiries = 0;
  qp.read_gap_reported = false;
  qp.ack_deadline = sim::kNever;
  if (qp.unacked_psn != qp.next_psn) start_timer(qp);
}

// Does nothing while the timer runs: later requests do not postpone it.
void Requester::start_timer(Qp& qp) {
  if (qp.ack_timeout == 0 || qp.ack_deadline != sim::kNever) return;  // 0: wait for ever
  const AckWait wait = ack_wait(device_.config.transport, qp.ack_timeout, qp.retry_count, qp.expiries);
  qp.ack_deadline = device_.context.now() + wait.duration;
  if (qp.timer_scheduled) return;
  qp.timer_scheduled = true;
  device_.context.scheduler.at(qp.ack_deadline, &Requester::timer_fired, this, timer_key(qp));
}

Qp* Requester::find_by_key(std::uint64_t key) {
  Qp* qp = device_.qps.find(static_cast<std::uint32_t>(key));
  return qp != nullptr && qp->generation == key >> 32 ? qp : nullptr;
}

void Requester::timer_fired(void* self, std::uint64_t key) {
  auto* r = static_cast<Requester*>(self);
  Qp* qp = r->find_by_key(key);
  if (qp == nullptr) return;
  qp->timer_scheduled = false;
  if (qp->ack_deadline == sim::kNever || !qp->sends()) return;
  if (qp->ack_deadline > r->device_.context.now()) {
    qp->timer_scheduled = true;
    r->device_.context.scheduler.at(qp->ack_deadline, &Requester::timer_fired, r, key);
    return;
  }
  qp->ack_deadline = sim::kNever;
  if (qp->unacked_psn == qp->next_psn || qp->rnr_waiting) return;
  r->timeouts_.add();
  qp->read_gap_reported = false;
  const SentWqe* oldest = r->find(*qp, qp->unacked_psn);
  const sim::trace::Cause cause{oldest != nullptr ? oldest->msg : 0, oldest != nullptr ? oldest->span : 0};
  r->trace_.instant(points::ack_timeout, cause, r->device_.context.now(), qp->qpn, qp->unacked_psn.value(),
                    qp->expiries);
  const TransportConfig& config = r->device_.config.transport;
  const AckWait expired = ack_wait(config, qp->ack_timeout, qp->retry_count, qp->expiries++);
  if (!expired.spends_retry) r->send_again(*qp, qp->unacked_psn, 0, cause.parent);
  else if (gives_up(config, qp->retries_left))
    r->fail(*qp, qp->unacked_psn, prm::kSynTransportRetry, kVendorRetryExceeded, cause.parent);
  else r->retry(*qp, qp->unacked_psn, 0, cause.parent);
}

// Sends again from send_psn to the end of the WQE that owns it. The WQE and its payload are read from host memory anew.
sim::Task<void> Requester::resend(Qp& qp) {
  const std::uint32_t life = qp.generation, rewinds = qp.rewinds;
  SentWqe* s = find(qp, qp.send_psn);
  if (s == nullptr || s->failed_syndrome != 0) {
    qp.send_psn = qp.next_psn;
    co_return;
  }
  const Psn first = s->first_psn, last = s->last_psn;
  const sim::trace::Cause cause{s->msg, qp.again_span != 0 ? qp.again_span : s->span};
  if (s->awaits_data()) {
    const SendWqe wqe = parse_send_wqe({s->wqe, s->wqe_offset}, qp.service);
    const std::uint32_t already = s->response_bytes;
    retransmits_.add();
    qp.send_psn = last + 1U;
    if (s->is_atomic()) send_atomic_request(qp, wqe, first, cause);
    else send_read_request(qp, wqe, first + already / qp.mtu, already, cause);
    start_timer(qp);
    co_return;
  }
  const auto from = static_cast<std::uint32_t>(qp.send_psn - first);
  sim::BufferRef again;
  const bool read = co_await read_wqebbs(qp, s->index, wqe_basic_blocks(s->ds), again, cause);
  if (life != qp.generation || rewinds != qp.rewinds || qp.send_psn != first + from) co_return;
  if (!read) {
    control_.queue_unreadable(qp);
    co_return;
  }
  const SendWqe wqe = parse_send_wqe({again, 0}, qp.service);
  retransmits_.add(static_cast<std::uint64_t>(last - first) + 1 - from);
  if (wqe.malformed || wire::packet_count(wqe.length, qp.mtu) != static_cast<std::uint32_t>(last - first) + 1) {
    fail(qp, first, prm::kSynLocalProt, kVendorLocalProt, cause.parent);  // software rewrote a WQE that it does not own
    co_return;
  }
  co_await send_message(qp, wqe, first, from, cause);
}

}  // namespace hca
