// SPDX-License-Identifier: Apache-2.0
// ERR flushes both queues; RESET forgets everything and starts a new generation, which ends the flows of the old life at
// their next step (S-QP-40…46). SQE flushes the send queue only; SQD lets started messages finish (S-QP-50, S-QP-51). A QP whose queue or CQ has failed ends in ERR with QP_FATAL (S-OVR-3).
#include "hca/transport/qp_engine.h"

#include <utility>

#include "hca/trace_points.h"

namespace hca {

QpEngine::QpEngine(Device& device, EventUnit& events, const std::string& path)
    : device_(device), events_(events), trace_(device.context, device.host, path, sim::trace::TrackKind::instant) {}

void QpEngine::trace_state(Qp& qp) {
  const sim::Picos now = device_.context.now();
  trace_.instant(points::qp_state, {}, now, qp.qpn, static_cast<std::uint64_t>(qp.state));
  qp.state_track.set(now, static_cast<std::uint32_t>(qp.state));
}

void QpEngine::set_state(Qp& qp, QpState to) {
  qp.state = to;
  trace_state(qp);
}

void QpEngine::enter_error(Qp& qp) {
  if (qp.state == QpState::err || qp.state == QpState::reset) return;
  set_state(qp, QpState::err);
  requester_->flush(qp);
  responder_->flush(qp);
}

void QpEngine::send_failed(Qp& qp) {
  if (!qp.unreliable()) {
    enter_error(qp);
  } else if (qp.sends()) {
    set_state(qp, QpState::sqer);
    requester_->flush(qp);
  }
}

void QpEngine::drained(Qp& qp) {
  if (std::exchange(qp.notify_drained, false)) events_.async(prm::kEventSqDrained, qp.qpn);
}

void QpEngine::queue_unreadable(Qp& qp) {
  if (qp.state == QpState::reset || qp.fatal_reported) return;
  qp.fatal_reported = true;
  events_.async(prm::kEventWqCatas, qp.qpn);
  enter_error(qp);
}

void QpEngine::cq_failed(std::uint32_t qpn) {
  if (Qp* qp = device_.qps.find(qpn)) queue_unreadable(*qp);
}

void QpEngine::payload_failed(Qp& qp, const OutPacket& packet) {
  const Psn psn = packet.headers.bth.psn;
  if (packet.queue == &qp.requests) requester_->payload_failed(qp, psn, packet.packet->cause);
  else responder_->payload_failed(qp, psn, packet.packet->cause);
}

void QpEngine::packet_left(std::uint32_t qpn, std::uint32_t generation, Psn psn, std::uint64_t span) {
  Qp* qp = device_.qps.find(qpn);
  if (qp != nullptr && qp->generation == generation) requester_->packet_left(*qp, psn, span);
}

void QpEngine::state_changed(Qp& qp, QpState from) {
  trace_state(qp);
  switch (qp.state) {
    case QpState::reset:
      ++qp.generation;
      requester_->reset(qp);
      responder_->reset(qp);
      qp.timer_scheduled = qp.flushing_receives = qp.fatal_reported = false;
      break;
    case QpState::err:
      if (from != QpState::err) {
        requester_->flush(qp);
        responder_->flush(qp);
      }
      break;
    case QpState::rts:
      if (from == QpState::sqer) qp.sq_error = false;
      requester_->kick(qp);
      break;
    case QpState::sqd:
      if (qp.sent.empty()) drained(qp);
      break;
    default:
      break;
  }
}

bool QpEngine::idle(const Qp& qp) const {
  return !qp.sending && !qp.umr_executing && !qp.taking_responses && !qp.receiving && !qp.responding &&
         !qp.rq_refilling && !qp.flushing_receives;
}

}  // namespace hca
