// SPDX-License-Identifier: Apache-2.0
// Flushing the send queue of a QP in ERR or SQE: every WQE that is outstanding or posted ends with WR_FLUSH_ERR, in order,
// signaled or not (S-QP-43). WQEs that never started are read from the ring to learn where the next one begins.
#include <algorithm>

#include "hca/transport/requester.h"

namespace hca {

void Requester::flush(Qp& qp) {
  tx_.cancel(qp.requests);
  blueflame_.drop(qp.qpn);
  ++qp.rewinds;
  qp.rnr_waiting = false;
  qp.ack_deadline = sim::kNever;
  qp.rx_responses.clear();
  set_reads(qp, 0);
  while (!qp.sent.empty()) {
    const SentWqe s = pop_sent(qp);
    device_.context.journeys.give_up(s.msg, IBV_WC_WR_FLUSH_ERR);
    post_error(qp, s, prm::kSynFlush, kVendorFlush);
  }
  qp.send_psn = qp.unacked_psn = qp.next_psn;
  kick(qp);
}

sim::Task<void> Requester::flush_next(Qp& qp) {
  const std::uint32_t life = qp.generation;
  const std::uint16_t index = qp.sq_ci;
  const sim::Picos start = device_.context.now();
  const sim::MsgId msg = qp.tags != nullptr ? qp.tags->find(index) : 0;
  const sim::trace::Cause cause = begin_wqe(qp, msg);
  const bool fetched = co_await fetch_wqe(qp, index, cause);
  if (life != qp.generation || !qp.flushes_sends()) co_return;
  if (!fetched) {
    end_wqe(qp, index, 0, 0, start, {});
    qp.sq_ci = qp.sq_pi;  // an unreadable ring reports nothing
    co_return;
  }
  const std::byte* ctrl = qp.current.data() + qp.current_offset;
  SentWqe s;
  s.index = index;
  s.opcode = static_cast<std::uint8_t>(ctrl[3]);
  s.msg = msg;
  s.span = cause.parent;
  qp.current_valid = false;
  skip_wqe(qp, wqe_ds(ctrl));
  end_wqe(qp, index, s.opcode, 0, start, {});
  device_.context.journeys.give_up(s.msg, IBV_WC_WR_FLUSH_ERR);
  post_error(qp, s, prm::kSynFlush, kVendorFlush);
}

}  // namespace hca
