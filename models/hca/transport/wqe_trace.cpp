// SPDX-License-Identifier: Apache-2.0
// What the requester records of its WQEs: the span from the head of the queue to the last packet, the doorbell as its
// cause, and the levels of the queue. A WQE that a fence or window holds back comes to the head several times and is one
// span: it began when it came first, and its work when it came last.
#include <utility>

#include "hca/trace_points.h"
#include "hca/transport/requester.h"

namespace hca {

// The doorbell that covers the WQE at the head of the queue.
sim::trace::Cause Requester::doorbell_of(const Qp& qp, sim::MsgId msg) {
  return {msg, qp.doorbells.empty() ? 0 : qp.doorbells.front().span};
}

// The WQE at the head of the queue is served; returns the cause of what it does.
sim::trace::Cause Requester::begin_wqe(Qp& qp, sim::MsgId msg) {
  const auto started = [&](const DoorbellSpan& d) {
    return static_cast<std::int16_t>(static_cast<std::uint16_t>(d.producer - qp.sq_ci)) <= 0;
  };
  while (!qp.doorbells.empty() && started(qp.doorbells.front())) qp.doorbells.pop_front();
  if (!trace_.on(points::wqe)) return doorbell_of(qp, msg);
  if (qp.wqe_span.id == 0) qp.wqe_span = {trace_.begin_span(points::wqe), doorbell_of(qp, msg), device_.context.now()};
  return {msg, qp.wqe_span.id};
}

// It has left the queue; `start` is when it was served last, `bytes` what is known of it.
void Requester::end_wqe(Qp& qp, std::uint16_t index, std::uint8_t opcode, std::uint64_t length, sim::Picos start,
                        std::span<const std::byte> bytes) {
  if (qp.wqe_span.id == 0) return;
  const OpenSpan span = std::exchange(qp.wqe_span, {});
  const sim::Picos now = device_.context.now();
  trace_.end_span(span.id, points::wqe, span.cause, span.since, start, now, qp.qpn, index, opcode, length);
  if (!bytes.empty()) trace_.bytes(span.id, span.cause.msg, now, bytes);
}

void Requester::push_sent(Qp& qp, SentWqe s) {
  qp.sent.push_back(std::move(s));
  qp.sq_depth.set(device_.context.now(), static_cast<std::int64_t>(qp.sent.size()));
}

SentWqe Requester::pop_sent(Qp& qp) {
  SentWqe s = qp.sent.pop_front();
  qp.sq_depth.set(device_.context.now(), static_cast<std::int64_t>(qp.sent.size()));
  return s;
}

void Requester::set_reads(Qp& qp, std::uint32_t outstanding) {
  qp.reads_outstanding = outstanding;
  qp.rd_atomic.set(device_.context.now(), outstanding);
}

}  // namespace hca
