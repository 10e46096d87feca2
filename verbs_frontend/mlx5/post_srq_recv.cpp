// SPDX-License-Identifier: Apache-2.0
// ibv_post_srq_recv: takes WQEs from the head of the free list, whose links are the order in which the HCA uses them, and
// publishes their number (S-PR-3 to S-PR-5, S-RQ-2). The SGE count is checked before the room, and empty SGEs are kept.
#include <algorithm>
#include <cerrno>

#include "verbs_frontend/mlx5/srq.h"
#include "verbs_frontend/mlx5/wqe.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

std::uint32_t next_of(Machine& m, const Srq& srq, std::uint32_t index) {
  return be16(m.load<std::uint16_t>(srq.wqe(index) + hca::prm::kSrqNextIndex)) & (srq.wqe_cnt - 1);
}

void set_next(Machine& m, Srq& srq, std::uint32_t index, std::uint32_t next) {
  m.store(srq.wqe(index) + hca::prm::kSrqNextIndex, be16(static_cast<std::uint16_t>(next)));
}

}  // namespace

int post_srq_recv(ibv_srq* ibsrq, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Machine m = machine_for(ibsrq->context);
  Srq& srq = srq_of(ibsrq);
  cpu::CallSpan call(m.thread(), points::post_srq_recv);
  m.compute(m.config().post_recv_call);
  m.lock(srq.lock);
  std::uint16_t nreq = 0;
  int error = 0;
  for (; wr != nullptr; ++nreq, wr = wr->next) {
    if (wr->num_sge > static_cast<int>(srq.granted.max_sge)) error = EINVAL;
    else if (srq.head == srq.tail) error = ENOMEM;
    if (error != 0) {
      *bad = wr;
      break;
    }
    m.compute(m.config().post_recv_wr);
    const std::uint32_t index = srq.head;
    srq.wrid[index] = wr->wr_id;
    srq.head = next_of(m, srq, index);
    std::byte* segment = srq.wqe(index) + hca::prm::kSrqHeadSize;
    for (int i = 0; i < wr->num_sge; ++i, segment += hca::prm::kDs) {
      m.compute(m.config().sge);
      put_data(m, segment, wr->sg_list[i].length, wr->sg_list[i].lkey, wr->sg_list[i].addr);
    }
    if (wr->num_sge < static_cast<int>(srq.granted.max_sge)) put_terminator(m, segment);
  }
  if (nreq != 0) {
    srq.counter = static_cast<std::uint16_t>(srq.counter + nreq);
    srq.occupancy.add(m.now(), nreq);
    m.barrier(cpu::Barrier::udma_to_device);
    m.store(srq.dbr, be32(srq.counter));
  }
  m.unlock(srq.lock);
  call.end(0, srq.srqn, nreq, error);
  return error;
}

void free_srq_wqe(Machine& m, Srq& srq, std::uint32_t index) {
  m.lock(srq.lock);
  set_next(m, srq, srq.tail, index);
  srq.tail = index;
  srq.occupancy.add(m.now(), -1);
  m.unlock(srq.lock);
}

void exchange_srq_wqe(Machine& m, Srq& srq, std::uint32_t index) {
  if (!srq.spare) return free_srq_wqe(m, srq, index);
  m.lock(srq.lock);
  set_next(m, srq, srq.spare_tail, index);
  srq.spare_tail = index;
  set_next(m, srq, srq.tail, srq.spare_head);
  srq.tail = srq.spare_head;
  srq.occupancy.add(m.now(), -1);
  srq.spare_head = next_of(m, srq, srq.tail);
  m.unlock(srq.lock);
}

}  // namespace verbs::mlx5
