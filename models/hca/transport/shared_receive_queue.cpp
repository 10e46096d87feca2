// SPDX-License-Identifier: Apache-2.0
// The list of an SRQ is a chain of next_wqe_index fields, so a run of slots is read ahead and the links are followed inside
// it; a link that leaves the run starts the next read. Links of posted WQEs do not change: software keeps one free slot
// between the last posted WQE and the end of its list (S-SRQ-7).
#include "hca/transport/shared_receive_queue.h"

#include <algorithm>
#include <cstring>

#include "hca/trace_points.h"

namespace hca {

SharedReceiveQueue::SharedReceiveQueue(Device& device, DmaEngine& dma, EventUnit& events, const std::string& path)
    : device_(device),
      dma_(dma),
      events_(events),
      trace_(device.context, device.host, path),
      record_reads_(device.context.stats.counter(path + ".record_reads")),
      wqe_fetches_(device.context.stats.counter(path + ".wqe_fetches")),
      limit_events_(device.context.stats.counter(path + ".limit_events")) {}

std::optional<RqWqe> SharedReceiveQueue::take_ready(Srq& srq, sim::trace::Cause cause) {
  if (srq.ready.empty()) return std::nullopt;
  RqWqe wqe = srq.ready.pop_front();
  ++srq.taken;
  if (!srq.refilling && srq.ready.size() <= device_.config.receive.rq_prefetch / 2) refill(srq, {0, cause.parent});
  if (srq.in_queue() < srq.limit && !srq.checking_limit) check_limit(srq, {0, cause.parent});
  return wqe;
}

sim::Task<bool> SharedReceiveQueue::ensure(Srq& srq, sim::trace::Cause cause) {
  ++srq.waiting;
  while (srq.ready.empty() && srq.refilling) co_await srq.refilled.wait();
  if (srq.ready.empty() && !srq.failed) {
    srq.refilling = true;
    co_await fetch(srq, cause);
    srq.refilling = false;
    srq.refilled.notify();
  }
  --srq.waiting;
  co_return !srq.ready.empty();
}

sim::Flow SharedReceiveQueue::refill(Srq& srq, sim::trace::Cause cause) {
  srq.refilling = true;
  co_await fetch(srq, cause);
  srq.refilling = false;
  srq.refilled.notify();
}

// One round: the doorbell record if nothing more is known to be posted, then a run of slots from the next WQE on.
sim::Task<void> SharedReceiveQueue::fetch(Srq& srq, sim::trace::Cause cause) {
  if (srq.posted == srq.fetched) co_await read_record(srq, cause);
  const auto posted = static_cast<std::uint16_t>(srq.posted - srq.fetched);
  const std::uint32_t first = srq.next;
  const std::uint64_t byte = std::uint64_t{first} * srq.stride;
  const auto in_page = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, srq.buffer.contiguous(byte) / srq.stride));
  const std::uint32_t n =
      std::min<std::uint32_t>({posted, device_.config.receive.rq_prefetch, srq.wqes - first, in_page});
  if (n == 0) co_return;
  const sim::Picos start = device_.context.now();
  wqe_fetches_.add();
  sim::BufferRef slots = device_.context.buffers.make(n * srq.stride);
  const std::uint64_t span = trace_.begin_span(points::srq_wqe_fetch);
  const sim::trace::Cause reads{cause.msg, span != 0 ? span : cause.parent};
  const DmaStatus status = co_await dma_.fetch(srq.buffer.at(byte), n * srq.stride, slots, 0, reads);
  const sim::Picos end = device_.context.now();
  trace_.end_span(span, points::srq_wqe_fetch, cause, start, start, end, srq.srqn, first, n);
  if (status != DmaStatus::ok) {
    fail(srq);
    co_return;
  }
  trace_.bytes(span, cause.msg, end, {slots.data(), n * std::size_t{srq.stride}});
  std::uint32_t found = 0;
  for (; found < n && srq.next - first < n; ++found) {
    const std::uint32_t offset = (srq.next - first) * srq.stride;
    std::uint16_t link;
    std::memcpy(&link, slots.data() + offset + prm::kSrqNextIndex, sizeof link);
    srq.ready.push_back({srq.next, slots, offset + prm::kSrqHeadSize, (srq.stride - prm::kSrqHeadSize) / prm::kDs});
    ++srq.fetched;
    srq.next = prm::be16(link);
    if (srq.next >= srq.wqes) {
      fail(srq);
      co_return;
    }
  }
}

// False when the record cannot be read. A count that software cannot have posted is ignored.
sim::Task<bool> SharedReceiveQueue::read_record(Srq& srq, sim::trace::Cause cause) {
  record_reads_.add();
  sim::BufferRef record = device_.context.buffers.make(4);
  if (co_await dma_.fetch(srq.dbr, 4, record, 0, cause) != DmaStatus::ok) {
    fail(srq);
    co_return false;
  }
  std::uint32_t counter;
  std::memcpy(&counter, record.data(), 4);
  const auto posted = static_cast<std::uint16_t>(prm::be32(counter));
  const auto queued = static_cast<std::uint16_t>(posted - srq.taken);
  if (queued <= srq.wqes && queued >= srq.in_queue()) srq.posted = posted;  // two reads may end out of order
  co_return true;
}

// Too few WQEs as far as is known: asks the record, then tells software once.
sim::Flow SharedReceiveQueue::check_limit(Srq& srq, sim::trace::Cause cause) {
  srq.checking_limit = true;
  const bool known = co_await read_record(srq, cause);
  srq.checking_limit = false;
  if (!known || srq.in_queue() >= srq.limit) co_return;
  srq.limit = 0;
  limit_events_.add();
  trace_.instant(points::srq_limit, cause, device_.context.now(), srq.srqn, srq.in_queue());
  events_.async(prm::kEventSrqLimit, srq.srqn);
}

void SharedReceiveQueue::arm(Srq& srq, std::uint16_t limit) {
  srq.limit = limit;
  if (limit != 0 && device_.config.receive.srq_limit_at_arm && !srq.checking_limit) check_limit(srq, {});
}

void SharedReceiveQueue::fail(Srq& srq) {
  if (std::exchange(srq.failed, true)) return;
  events_.async(prm::kEventSrqCatas, srq.srqn);
}

}  // namespace hca
