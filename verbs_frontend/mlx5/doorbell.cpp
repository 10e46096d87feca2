// SPDX-License-Identifier: Apache-2.0
// The send doorbell: doorbell record, barriers, then either a BlueFlame copy of the WQE or its first 8 bytes into the
// register (S-BAR-2, S-BAR-6, S-BF-1..3). A copy takes whole 64-byte blocks, stale ring bytes included.
#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {
namespace {

/// Copies blocks of 64 bytes to the register, 8 bytes at a time, wrapping at the end of the ring.
void blueflame_copy(Machine& m, const WorkQueue& sq, memory::Va to, const std::byte* from, std::uint32_t bytes) {
  for (std::uint32_t done = 0; done < bytes; done += hca::prm::kWqebb) {
    for (std::uint32_t i = 0; i < hca::prm::kWqebb; i += 8)
      m.mmio_store64(to + done + i, m.load<std::uint64_t>(from + i));
    from += hca::prm::kWqebb;
    if (from == sq.end()) from = sq.buf;
  }
}

}  // namespace

void ring_send_doorbell(Machine& m, Qp& qp, std::uint32_t nreq, bool inlined, std::uint32_t ds, const std::byte* ctrl) {
  const Mlx5Context& c = qp.context();
  WorkQueue& sq = qp.sq;
  BfReg& bf = *qp.bf;
  sq.head += nreq;
  sq.trace_occupancy(m.now());
  const sim::trace::Cause before = m.thread().cause();
  m.thread().set_cause({first_new(qp), before.parent});

  m.barrier(cpu::Barrier::udma_to_device);
  m.store(qp.dbr + kSendWord, be32(sq.cur_post & 0xffff));
  if (bf.need_lock) m.lock(bf.lock, true);
  else m.barrier(cpu::Barrier::mmio_wc_start);

  for (const sim::MsgId id : qp.new_msgs) m.state().context->journeys.mark(id, sim::Stage::cpu_post, m.now());
  qp.new_msgs.clear();
  const bool blueflame =
      !c.shut_up_bf && nreq == 1 && bf.number != 0 && (inlined || c.prefer_bf) && ds > 1 && ds <= bf.half_size / 16;
  if (blueflame) blueflame_copy(m, sq, bf.reg + bf.half, ctrl, (ds * 16 + 63) & ~63U);
  else m.mmio_store64(bf.reg + bf.half, m.load<std::uint64_t>(ctrl));
  m.barrier(cpu::Barrier::mmio_flush_writes);
  bf.half ^= bf.half_size;
  if (bf.need_lock) m.unlock(bf.lock);
  m.thread().set_cause(before);
}

bool overflow(Machine& m, const WorkQueue& wq, std::uint32_t nreq, ibv_cq* cq) {
  if (wq.head - wq.tail + nreq < wq.max_post) [[likely]]
    return false;
  if (cq == nullptr) return true;
  Cq& c = cq_of(cq);
  m.lock(c.lock);
  const std::uint32_t used = wq.head - wq.tail;
  m.unlock(c.lock);
  return used + nreq >= wq.max_post;
}

void begin_journey(Machine& m, Qp& qp, std::uint32_t number, sim::Picos entry, ibv_wr_opcode opcode,
                   std::uint32_t bytes) {
  const auto op = static_cast<std::uint8_t>(opcode);
  const sim::Poster poster{m.state().host, qp.qp().qp_num, qp.sq.wrid[qp.sq.index(qp.sq.cur_post)]};
  const sim::MsgId id = m.state().context->journeys.begin(entry, qp.flow, op, bytes, poster);
  qp.sq.wr(number) = {id, op, entry};
  qp.tags->publish(qp.sq.cur_post & 0xffff, id);
  qp.new_msgs.push_back(id);
}

}  // namespace verbs::mlx5

namespace verbs {

void set_flow(ibv_qp* qp, std::uint32_t flow) { mlx5::qp_of(qp).flow = flow; }
std::uint32_t flow_of(const ibv_qp* qp) { return mlx5::qp_of(const_cast<ibv_qp*>(qp)).flow; }

}  // namespace verbs
