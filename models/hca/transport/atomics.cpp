// SPDX-License-Identifier: Apache-2.0
// CMP_SWAP and FETCH_ADD: the unit that executes them, the responder that accepts them and answers with the original
// value, and the requester that places it. Operands are big endian in packets and WQEs; memory holds the number as the
// processor writes it (S-ATM-1…7).
#include "hca/transport/atomics.h"

#include <bit>
#include <cstring>

#include "hca/trace_points.h"
#include "hca/transport/requester.h"
#include "hca/transport/responder.h"
#include "hca/transport/scatter_to_cqe.h"

namespace hca {

static_assert(std::endian::native == std::endian::little, "simulated processors are little endian, as this one");

AtomicUnit::AtomicUnit(Device& device, DmaEngine& dma, const std::string& path)
    : device_(device),
      dma_(dma),
      trace_(device.context, device.host, path),
      operations_(device.context.stats.counter(path + ".operations")),
      conflicts_(device.context.stats.counter(path + ".conflicts")) {
  for (std::size_t i = 0; i < kLocks; ++i) locks_.emplace_back(1);
}

sim::Task<std::optional<std::uint64_t>> AtomicUnit::execute(memory::Iova at, AtomicOperation operation,
                                                            sim::trace::Cause& cause) {
  const sim::Picos start = device_.context.now();
  sim::Semaphore& lock = locks_[at.v / 8 % kLocks];
  operations_.add();
  if (!lock.try_acquire()) {
    conflicts_.add();
    co_await lock.acquire();
  }
  const sim::Picos locked = device_.context.now();
  sim::BufferRef operand = device_.context.buffers.make(8);
  const std::uint64_t span = trace_.begin_span(points::atomic);
  const sim::trace::Cause why = cause;
  if (span != 0) cause.parent = span;
  std::optional<std::uint64_t> original;
  if (co_await dma_.fetch(at, 8, operand, 0, cause) == DmaStatus::ok) {
    co_await device_.context.delay(device_.config.transport.atomic_execute);
    std::uint64_t value;
    std::memcpy(&value, operand.data(), 8);
    original = value;
    const bool store = !operation.compare_swap || value == operation.compare;
    const std::uint64_t result = operation.compare_swap ? operation.swap_add : value + operation.swap_add;
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), &result, 8);
    // The next reader of the address issues its read behind this posted write, which it cannot pass.
    if (store) dma_.write_inline(at, bytes, cause);
  }
  trace_.end_span(span, points::atomic, why, start, locked, device_.context.now(), at.v,
                  operation.compare_swap ? 1 : 0);
  lock.release();
  co_return original;
}

// Responder ------------------------------------------------------------------------------------------------------------

sim::Task<void> Responder::on_atomic(Qp& qp, RxPacket& rx) {
  const wire::AtomicEth& eth = rx.parsed.headers.atomic;
  const std::uint32_t life = qp.generation;
  if (qp.resources_busy >= qp.max_dest_rd_atomic) {
    refuse(qp, rx, refusals::too_many_reads);
    co_return;
  }
  if (eth.va % 8 != 0) {
    refuse(qp, rx, refusals::misaligned_atomic);
    co_return;
  }
  const Fault fault =
      co_await translation_.check(eth.rkey, eth.va, 8, MkeyAccess::remote_atomic, qp.pd, qp.qpn, rx.packet->cause);
  if (qp.ended(life)) co_return;
  if (fault != Fault::none) {
    refuse(qp, rx, refusals::of_remote(fault));
    co_return;
  }
  ResponderResource r;
  r.rkey = eth.rkey;
  r.va = eth.va;
  r.length = 8;
  r.swap_add = eth.swap_add;
  r.compare = eth.compare;
  accept(qp, rx, r);
  answer(qp, {ResponseJob::atomic, 0, rx.bth().psn, qp.msn, 0, 0, 8, rx.packet->cause});
}

// Executes the operation unless a duplicate asks for the result that it had, and sends the original value.
sim::Task<void> Responder::send_atomic_result(Qp& qp, const ResponseJob& job) {
  const std::uint32_t life = qp.generation;
  ResponderResource* r = find_resource(qp, job.psn);
  sim::trace::Cause cause = job.cause;
  if (r == nullptr) co_return;  // a duplicate whose slot has been taken since: the requester has its result
  if (!r->executed) {
    Extents at;
    const Fault fault =
        co_await translation_.translate(r->rkey, r->va, 8, MkeyAccess::remote_atomic, r->pd, qp.qpn, cause, at);
    device_.context.journeys.mark(job.cause.msg, sim::Stage::translation, device_.context.now());
    if (life != qp.generation || qp.responses.empty()) co_return;
    std::optional<std::uint64_t> original;
    if (fault == Fault::none) {
      r = find_resource(qp, job.psn);
      const AtomicOperation operation{r->operation == wire::kCompareSwap, r->swap_add, r->compare};
      original = co_await atomics_.execute(at.item[0].at, operation, cause);
      if (life != qp.generation || qp.responses.empty()) co_return;
    }
    if (!original) {
      payload_failed(qp, job.psn, cause);
      co_return;
    }
    r = find_resource(qp, job.psn);  // other requests have taken slots meanwhile, but not this one: it is in progress
    r->original = *original;
    r->executed = true;
  }
  OutPacket* p = tx_.make(qp, qp.response_packets);
  p->last = true;
  p->packet->cause = cause;
  wire::Headers& h = p->headers;
  h.bth.opcode = wire::make_opcode(qp.transport(), wire::kAtomicAcknowledge);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qpn = qp.remote_qpn;
  h.bth.psn = job.psn;
  h.aeth = {wire::ack_syndrome(), job.msn};
  h.atomic_ack = r->original;
  tx_.submit(p, {});
}

// Requester ------------------------------------------------------------------------------------------------------------

void Requester::send_atomic_request(Qp& qp, const SendWqe& wqe, Psn psn, sim::trace::Cause cause) {
  device_.context.journeys.mark(cause.msg, sim::Stage::translation, device_.context.now());
  OutPacket* p = tx_.make(qp, qp.requests);
  p->last = true;
  p->packet->cause = {cause.msg, cause.parent, true};
  wire::Headers& h = p->headers;
  const bool swap = wqe.opcode == MLX5_OPCODE_ATOMIC_CS;
  h.bth.opcode = wire::make_opcode(qp.transport(), swap ? wire::kCompareSwap : wire::kFetchAdd);
  h.bth.pkey = qp.pkey;
  h.bth.dest_qpn = qp.remote_qpn;
  h.bth.ack_req = true;
  h.bth.psn = psn;
  h.xrc_srqn = wqe.xrc_srqn;
  h.atomic = {wqe.remote_va, wqe.rkey, wqe.swap_add, swap ? wqe.compare : 0};
  tx_.submit(p, {});
}

// Places the original value in the first segment of the WQE.
sim::Task<void> Requester::on_atomic_response(Qp& qp, RxPacket& rx) {
  const std::uint32_t life = qp.generation;
  const Psn psn = rx.bth().psn;
  const std::uint64_t up = rx.packet->cause.parent;
  SentWqe* s = find(qp, psn);
  if (s == nullptr || !s->is_atomic()) {
    fail(qp, psn, prm::kSynBadResp, kVendorBadResponse, up);
    co_return;
  }
  if (s->data_arrived) {
    stale_.add();
    co_return;
  }
  if (psn.ahead_of(qp.unacked_psn) && !acknowledge(qp, psn - 1U, up)) co_return;
  const sim::BufferRef value = device_.context.buffers.make(8);
  std::memcpy(value.data(), &rx.parsed.headers.atomic_ack, 8);
  if (result_goes_in_cqe(qp, *s, 8)) {
    s->wqe = value;
    s->wqe_offset = 0;
    s->result_in_cqe = true;
    atomic_done(qp, *s, psn, up);
    co_return;
  }
  sim::trace::Cause cause{s->msg, up, false};
  const SendWqe wqe = parse_send_wqe({s->wqe, s->wqe_offset}, qp.service);
  const auto segment = GatherCursor(wqe.bytes.data(), wqe.first_data_ds, wqe.ds).next(8);
  SIM_CHECK(segment.has_value(), "atomic without a result segment");
  Extents to;
  const Fault fault =
      co_await translation_.translate(segment->lkey, segment->va, 8, MkeyAccess::local_write, qp.pd, qp.qpn, cause, to);
  if (life != qp.generation) co_return;
  if (fault != Fault::none) {
    fail_result(qp, psn, cause.parent);
    co_return;
  }
  co_await device_.context.delay(device_.config.receive.scatter);
  if (life != qp.generation) co_return;
  s = find(qp, psn);
  if (s == nullptr) co_return;
  for (std::uint32_t i = 0, done = 0; i < to.count; done += to.item[i++].length)
    dma_.write(to.item[i].at, to.item[i].length, value, done, cause, to.item[i].relaxed);
  atomic_done(qp, *s, psn, cause.parent);
}

// The original value is in the WQE's segment, or will go into its CQE.
void Requester::atomic_done(Qp& qp, SentWqe& s, Psn psn, std::uint64_t up) {
  qp.unacked_psn = psn + 1U;
  if (qp.send_psn.behind(qp.unacked_psn)) qp.send_psn = qp.unacked_psn;
  progress(qp);
  data_complete(qp, s, up);
}

}  // namespace hca
