// SPDX-License-Identifier: Apache-2.0
// ibv_req_notify_cq: the arm word of the doorbell record, then the 64-bit CQ doorbell (S-CE-4, S-CE-6, S-BAR-4). The
// sequence number grows with each event consumed, not with each arm.
#include "verbs_frontend/mlx5/mlx5.h"
#include "verbs_frontend/mlx5/verbs.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {

int arm_cq(ibv_cq* ibcq, int solicited_only) {
  Machine m;
  Cq& cq = cq_of(ibcq);
  forget_empty_polls(cq);
  cpu::CallSpan call(m.thread(), points::req_notify_cq);
  m.compute(m.config().arm_call);
  const std::uint32_t sn = cq.arm_sn & 3, ci = cq.cons_index & 0xffffff;
  const std::uint32_t cmd = solicited_only != 0 ? hca::prm::kArmCmdSolicited : hca::prm::kArmCmdAny;
  const std::uint32_t word = sn << 28 | cmd << 24 | ci;
  m.store(cq.dbr + kArmWord, be32(word));
  m.barrier(cpu::Barrier::mmio_wc_start);
  m.mmio_store64(mlx5_of(ibcq->context).cq_doorbell(), be64(std::uint64_t{word} << 32 | cq.cqn));
  m.barrier(cpu::Barrier::mmio_flush_writes);
  // The load pushes the doorbell to the device, and its answer pushes every CQE before it to memory.
  if (m.config().arm_read_back) m.thread().mmio_load64(mlx5_of(ibcq->context).cq_doorbell());
  call.end(0, cq.cqn, cq.cons_index, solicited_only != 0);
  return 0;
}

void cq_event(ibv_cq* cq) { ++cq_of(cq).arm_sn; }

}  // namespace verbs::mlx5
