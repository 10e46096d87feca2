// SPDX-License-Identifier: Apache-2.0
// Up to rq_prefetch receive WQEs are on chip. When half of them are used, a background flow reads more: WQEs that are
// known to be posted at once, else the doorbell record first. A request that finds none waits for that flow, or starts it.
#include "hca/transport/receive_queue.h"

#include <algorithm>
#include <cstring>

#include "hca/trace_points.h"

namespace hca {

ReceiveQueue::ReceiveQueue(Device& device, DmaEngine& dma, SharedReceiveQueue& shared, const std::string& path)
    : device_(device),
      dma_(dma),
      shared_(shared),
      trace_(device.context, device.host, path),
      record_reads_(device.context.stats.counter(path + ".record_reads")),
      wqe_fetches_(device.context.stats.counter(path + ".wqe_fetches")),
      bad_records_(device.context.stats.counter(path + ".bad_records")) {}

bool ReceiveQueue::take_ready(Qp& qp, sim::trace::Cause cause) {
  if (qp.srqn != 0) {
    Srq* srq = device_.srqs.find(qp.srqn);
    std::optional<RqWqe> wqe = srq != nullptr ? shared_.take_ready(*srq, cause) : std::nullopt;
    if (!wqe) return false;
    qp.rx_wqe = std::move(*wqe);
    qp.rx_wqe_valid = true;
    return true;
  }
  if (qp.rq_ready.empty()) return false;
  qp.rx_wqe = qp.rq_ready.pop_front();
  qp.rx_wqe_valid = true;
  if (!qp.rq_refilling && qp.rq_ready.size() <= device_.config.receive.rq_prefetch / 2) refill(qp, {0, cause.parent});
  return true;
}

sim::Task<bool> ReceiveQueue::take(Qp& qp, sim::trace::Cause cause) {
  const std::uint32_t life = qp.generation;
  const bool in_error = qp.state == QpState::err;
  while (!take_ready(qp, cause)) {
    Srq* srq = qp.srqn != 0 ? device_.srqs.find(qp.srqn) : nullptr;
    if (qp.srqn != 0 && srq == nullptr) co_return false;
    bool posted = false;
    if (srq != nullptr) posted = co_await shared_.ensure(*srq, cause);
    else posted = co_await ensure(qp, cause);
    if (life != qp.generation || in_error != (qp.state == QpState::err) || !posted) co_return false;
  }
  co_return true;
}

bool ReceiveQueue::failed(const Qp& qp) const {
  const Srq* srq = qp.srqn != 0 ? device_.srqs.find(qp.srqn) : nullptr;
  return qp.rq_unreadable || (srq != nullptr && srq->failed);
}

// Makes rq_ready non-empty if a receive is posted: waits for a read-ahead under way, else reads record and WQEs.
sim::Task<bool> ReceiveQueue::ensure(Qp& qp, sim::trace::Cause cause) {
  const std::uint32_t life = qp.generation;
  while (qp.rq_ready.empty() && qp.rq_refilling && life == qp.generation) co_await qp.rq_refilled.wait();
  if (life != qp.generation) co_return false;
  if (qp.rq_ready.empty() && qp.rq_wqes > 0) {
    qp.rq_refilling = true;
    co_await fetch(qp, cause);
    qp.rq_refilling = false;
    qp.rq_refilled.notify();
  }
  co_return life == qp.generation && !qp.rq_ready.empty();
}

sim::Flow ReceiveQueue::refill(Qp& qp, sim::trace::Cause cause) {
  qp.rq_refilling = true;
  co_await fetch(qp, cause);
  qp.rq_refilling = false;
  qp.rq_refilled.notify();
}

// One round: the doorbell record if nothing more is known to be posted, then a run of WQEs.
sim::Task<void> ReceiveQueue::fetch(Qp& qp, sim::trace::Cause cause) {
  const std::uint32_t life = qp.generation;
  if (static_cast<std::uint16_t>(qp.rq_pi - static_cast<std::uint16_t>(qp.rq_ci)) == 0) {
    record_reads_.add();
    sim::BufferRef record = device_.context.buffers.make(8);
    const DmaStatus status = co_await dma_.fetch(qp.dbr, 8, record, 0, cause);
    if (life != qp.generation) co_return;
    qp.rq_unreadable = status != DmaStatus::ok;
    if (qp.rq_unreadable) co_return;
    std::uint32_t counter;
    std::memcpy(&counter, record.data() + prm::kRcvDbr, 4);
    const auto pi = static_cast<std::uint16_t>(prm::be32(counter));
    const auto ahead = static_cast<std::uint16_t>(pi - static_cast<std::uint16_t>(qp.rq_ci));
    if (ahead > qp.rq_wqes) {  // software cannot have posted more than the ring holds
      bad_records_.add();
      co_return;
    }
    qp.rq_pi = pi;
  }
  const auto posted = static_cast<std::uint16_t>(qp.rq_pi - static_cast<std::uint16_t>(qp.rq_ci));
  const std::uint32_t slot = qp.rq_ci % qp.rq_wqes;
  const std::uint64_t byte = std::uint64_t{slot} * qp.rq_stride;
  const auto in_page =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, qp.buffer.contiguous(byte) / qp.rq_stride));
  const std::uint32_t n =
      std::min<std::uint32_t>({posted, device_.config.receive.rq_prefetch, qp.rq_wqes - slot, in_page});
  if (n == 0) co_return;
  const sim::Picos start = device_.context.now();
  wqe_fetches_.add();
  sim::BufferRef wqes = device_.context.buffers.make(n * qp.rq_stride);
  const std::uint32_t first = qp.rq_ci;
  const std::uint64_t span = trace_.begin_span(points::rq_wqe_fetch);
  const sim::trace::Cause reads{cause.msg, span != 0 ? span : cause.parent};
  const DmaStatus status = co_await dma_.fetch(qp.buffer.at(byte), n * qp.rq_stride, wqes, 0, reads);
  trace_.end_span(span, points::rq_wqe_fetch, cause, start, start, device_.context.now(), qp.qpn, first, n);
  if (life != qp.generation) co_return;
  qp.rq_unreadable = status != DmaStatus::ok;
  if (qp.rq_unreadable) co_return;
  trace_.bytes(span, cause.msg, device_.context.now(), {wqes.data(), n * std::size_t{qp.rq_stride}});
  const std::uint32_t head = qp.signature ? prm::kDs : 0;  // the segment of the signature
  for (std::uint32_t i = 0; i < n; ++i)
    qp.rq_ready.push_back({first + i, wqes, i * qp.rq_stride + head, (qp.rq_stride - head) / prm::kDs});
  qp.rq_ci = first + n;
}

void ReceiveQueue::reset(Qp& qp) {
  qp.rq_ready.clear();
  qp.rq_unreadable = false;
  qp.rq_ci = 0;
  qp.rq_pi = 0;
}

}  // namespace hca
