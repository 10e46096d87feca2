// SPDX-License-Identifier: Apache-2.0
// Receiver not ready, requester side: an RNR NAK stops the send queue for the time that the responder's code names, then the
// message is sent again. Each NAK spends one of rnr_retry; 7 means for ever (S-RC-50…53). The responder's half is in
// responder.cpp, the timer table in wire.cpp.
#include "hca/trace_points.h"
#include "hca/transport/requester.h"

namespace hca {

void Requester::on_rnr_nak(Qp& qp, const RxPacket& rx, std::uint8_t timer) {
  const Psn psn = rx.bth().psn;
  const std::uint64_t up = rx.packet->cause.parent;
  if (psn != qp.unacked_psn) {
    if (!acknowledge(qp, psn - 1U, up)) return;
    progress(qp);
    complete(qp, up);
    if (!qp.sends()) return;
  }
  rnr_naks_.add();
  if (qp.rnr_left == 0) {
    fail(qp, psn, prm::kSynRnrRetry, kVendorRnrExceeded, up);
    return;
  }
  if (qp.rnr_retry < 7) --qp.rnr_left;
  rewind(qp, psn);
  qp.rnr_waiting = true;
  qp.ack_deadline = sim::kNever;
  const sim::Picos now = device_.context.now();
  qp.rnr_until = now + wire::rnr_delay(timer);
  const SentWqe* s = find(qp, psn);
  const std::uint64_t span = trace_.span(points::rnr_wait, {s != nullptr ? s->msg : 0, up}, now, now, qp.rnr_until,
                                         qp.qpn, psn.value(), timer);
  qp.again_span = span != 0 ? span : up;
  device_.context.scheduler.at(qp.rnr_until, &Requester::rnr_wait_over, this, timer_key(qp));
}

void Requester::rnr_wait_over(void* self, std::uint64_t key) {
  auto* r = static_cast<Requester*>(self);
  Qp* qp = r->find_by_key(key);
  if (qp == nullptr || !qp->rnr_waiting || qp->rnr_until > r->device_.context.now()) return;
  qp->rnr_waiting = false;
  r->kick(*qp);
}

}  // namespace hca
