// SPDX-License-Identifier: Apache-2.0
// READ requests, and what the responder remembers of READs and atomics: max_dest_rd_atomic slots, recycled in order and kept
// after the answer, so that a duplicate READ can be told from a forged one and a duplicate atomic gets its first result
// (S-RC-23, S-RC-24, S-RC-25).
#include "hca/transport/responder.h"

namespace hca {

sim::Task<void> Responder::on_read(Qp& qp, RxPacket& rx) {
  const wire::Reth& reth = rx.parsed.headers.reth;
  const std::uint32_t life = qp.generation;
  if (qp.resources_busy >= qp.max_dest_rd_atomic) {
    refuse(qp, rx, refusals::too_many_reads);
    co_return;
  }
  if (reth.length > 1U << 31) {
    refuse(qp, rx, refusals::wrong_length);
    co_return;
  }
  if (reth.length > 0) {
    const Fault fault = co_await translation_.check(reth.rkey, reth.va, reth.length, MkeyAccess::remote_read, qp.pd,
                                                    qp.qpn, rx.packet->cause);
    if (qp.ended(life)) co_return;
    if (fault != Fault::none) {
      refuse(qp, rx, refusals::of_remote(fault));
      co_return;
    }
  }
  ResponderResource r;
  r.packets = wire::packet_count(reth.length, qp.mtu);
  r.rkey = reth.rkey;
  r.va = reth.va;
  r.length = reth.length;
  accept(qp, rx, r);
  answer(qp,
         {ResponseJob::read, 0, rx.bth().psn, qp.msn, reth.rkey, reth.va, reth.length, rx.packet->cause, false, qp.pd});
}

// The request is in order and permitted: it takes a slot, the oldest one if all are in use, and its PSNs.
void Responder::accept(Qp& qp, const RxPacket& rx, const ResponderResource& resource) {
  if (qp.resources.size() >= qp.max_dest_rd_atomic) qp.resources.pop_front();
  qp.resources.push_back(resource);
  ResponderResource& r = qp.resources.back();
  r.first = rx.bth().psn;
  r.operation = wire::operation_of(rx.bth().opcode);
  r.pd = qp.pd;
  ++qp.resources_busy;
  qp.msn = (qp.msn + 1) & 0xFFFFFF;
  qp.expected_psn += r.packets;
}

/// The remembered READ or atomic that owns `psn`.
ResponderResource* Responder::find_resource(Qp& qp, Psn psn) {
  for (std::size_t i = qp.resources.size(); i-- > 0;) {
    ResponderResource& r = qp.resources[i];
    if (!psn.behind(r.first) && psn.behind(r.first + r.packets)) return &r;
  }
  return nullptr;
}

// A request that has been executed. SENDs and WRITEs are acknowledged again with the latest PSN; a READ is read again if it
// is a part of one that is remembered; an atomic gets the result that it had. Others are dropped.
void Responder::duplicate(Qp& qp, const RxPacket& rx) {
  const wire::MessageKind kind = rx.parsed.op->kind;
  if (kind == wire::MessageKind::send || kind == wire::MessageKind::write) {
    if (rx.bth().ack_req)
      answer(qp, {ResponseJob::ack, wire::ack_syndrome(), qp.expected_psn - 1U, qp.msn, 0, 0, 0, rx.packet->cause});
    return;
  }
  const Psn psn = rx.bth().psn;
  const ResponderResource* r = find_resource(qp, psn);
  if (r == nullptr || r->operation != wire::operation_of(rx.bth().opcode)) return;
  if (kind == wire::MessageKind::atomic) {
    answer(qp, {ResponseJob::atomic, 0, psn, qp.msn, 0, 0, 8, rx.packet->cause, true});
    return;
  }
  const wire::Reth& reth = rx.parsed.headers.reth;
  const std::uint64_t offset = std::uint64_t{static_cast<std::uint32_t>(psn - r->first)} * qp.mtu;
  const bool inside = reth.rkey == r->rkey && reth.va == r->va + offset && reth.length <= r->length - offset;
  if (!inside) return;
  answer(qp, {ResponseJob::read, 0, psn, qp.msn, reth.rkey, reth.va, reth.length, rx.packet->cause, true, r->pd});
}

}  // namespace hca
