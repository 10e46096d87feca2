// SPDX-License-Identifier: Apache-2.0
// ibv_post_recv: receive WQEs of data segments, a terminator behind a short list, and the doorbell record; no MMIO
// (S-PR-1 to S-PR-5, S-BAR-3).
#include <cerrno>

#include "verbs_frontend/mlx5/signature.h"
#include "verbs_frontend/mlx5/wqe.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

/// A WQE that is signed begins with the signature's segment, and what it does not use is zero.
std::byte* open_signed(Machine& m, const WorkQueue& rq, std::byte* wqe) {
  const std::array<std::byte, 16> zeros{};
  for (std::size_t at = 0; at < std::size_t{1} << rq.wqe_shift; at += zeros.size())
    m.store_bytes(wqe + at, zeros.data(), zeros.size());
  return wqe + zeros.size();
}

void build(Machine& m, const WorkQueue& rq, std::byte* wqe, const ibv_recv_wr& wr) {
  std::byte* seg = wqe;
  int used = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    m.compute(m.config().sge);
    put_data(m, seg, sge.length, sge.lkey, sge.addr);
    seg += 16;
    ++used;
  }
  if (used < rq.max_gs) put_terminator(m, seg);
}

}  // namespace

int post_recv(ibv_qp* ibqp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Machine m = machine_for(ibqp->context);
  Qp& qp = qp_of(ibqp);
  WorkQueue& rq = qp.rq;
  cpu::CallSpan call(m.thread(), points::post_recv);
  m.compute(m.config().post_recv_call);
  m.lock(rq.lock);
  std::uint32_t nreq = 0;
  int error = 0;
  for (; wr != nullptr; ++nreq, wr = wr->next) {
    if (overflow(m, rq, nreq, ibqp->recv_cq)) error = ENOMEM;
    else if (wr->num_sge > rq.state_max_gs) error = EINVAL;
    if (error != 0) {
      *bad = wr;
      break;
    }
    m.compute(m.config().post_recv_wr);
    const std::uint32_t idx = rq.index(rq.head + nreq);
    std::byte* wqe = rq.slot(idx);
    build(m, rq, qp.signature ? open_signed(m, rq, wqe) : wqe, *wr);
    if (qp.signature) sign_receive(m, qp, wqe, wr->num_sge, static_cast<std::uint16_t>(rq.head + nreq));
    rq.wrid[idx] = wr->wr_id;
  }
  if (nreq != 0) {
    rq.head += nreq;
    rq.trace_occupancy(m.now());
    m.barrier(cpu::Barrier::udma_to_device);
    m.store(qp.dbr + kRecvWord, be32(rq.head & 0xffff));
  }
  m.unlock(rq.lock);
  call.end(0, ibqp->qp_num, nreq, error);
  return error;
}

}  // namespace verbs::mlx5
