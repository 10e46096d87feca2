// SPDX-License-Identifier: Apache-2.0
// ibv_cq_ex: start_poll, next_poll, end_poll and the read functions that the creation flags ask for (S-CQE-12 as
// recorded for this interface: no WITH_IMM on requester completions, byte_len is the CQE's byte count, the GRH flag is
// computed for requester CQEs too).
#include <cerrno>

#include "verbs_frontend/mlx5/cqe.h"

namespace verbs::mlx5 {
namespace {

Cq& self(ibv_cq_ex* q) { return *reinterpret_cast<Cq*>(q); }

int take(Machine& m, Cq& cq, sim::Picos entry) {
  Completion c;
  Seen seen = take_completion(m, cq, entry, c);
  while (seen == Seen::skipped) {
    c = {};
    seen = take_completion(m, cq, entry, c);
  }
  if (seen == Seen::empty) return ENOENT;
  cq.cqe = c.cqe;
  cq.umr_opcode = c.umr_opcode;
  if (c.counted && (seen == Seen::found || c.is_error)) {
    cq.base.cq_ex.status = c.status;
    if (seen == Seen::found) cq.base.cq_ex.wr_id = c.wr_id;
  }
  return seen == Seen::error ? -2 : 0;
}

int start_poll(ibv_cq_ex* q, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  Machine m = machine_for(q->context);
  Cq& cq = self(q);
  const sim::Picos entry = m.now();
  begin_poll(cq, entry);
  m.compute(m.config().poll_call);
  m.lock(cq.lock);
  const int r = take(m, cq, entry);
  if (r != 0) m.unlock(cq.lock);
  settle_journeys(m, cq);
  if (r == ENOENT) {
    cq.empty_polls->add();
    cq.last_return = m.now();
  } else {
    forget_empty_polls(cq);
  }
  if (r != 0) trace_poll(m, cq);
  return r;
}

int next_poll(ibv_cq_ex* q) {
  Machine m = machine_for(q->context);
  Cq& cq = self(q);
  const int r = take(m, cq, sim::Picos{-2});
  settle_journeys(m, cq);
  forget_empty_polls(cq);
  return r;
}

void end_poll(ibv_cq_ex* q) {
  Machine m = machine_for(q->context);
  Cq& cq = self(q);
  store_consumer_index(m, cq);
  m.unlock(cq.lock);
  trace_poll(m, cq);
}

ibv_wc_opcode read_opcode(ibv_cq_ex* q) {
  const Cq& cq = self(q);
  Completion c;
  c.cqe = cq.cqe;
  c.umr_opcode = cq.umr_opcode;
  switch (c.opcode()) {
    case MLX5_CQE_RESP_WR_IMM:
      return IBV_WC_RECV_RDMA_WITH_IMM;
    case MLX5_CQE_RESP_SEND:
    case MLX5_CQE_RESP_SEND_IMM:
    case MLX5_CQE_RESP_SEND_INV:
      return IBV_WC_RECV;
    case MLX5_CQE_REQ: {
      ibv_wc_opcode out{};
      return requester_opcode(c, out) ? out : IBV_WC_SEND;
    }
    default:
      return IBV_WC_SEND;
  }
}
std::uint32_t read_vendor_err(ibv_cq_ex* q) {
  return reinterpret_cast<const mlx5_err_cqe&>(self(q).cqe).vendor_err_synd;
}
std::uint32_t read_byte_len(ibv_cq_ex* q) { return be32(self(q).cqe.byte_cnt); }
__be32 read_imm_data(ibv_cq_ex* q) {
  const mlx5_cqe64& cqe = self(q).cqe;
  return cqe.op_own >> 4 == MLX5_CQE_RESP_SEND_INV ? be32(cqe.imm_inval_pkey) : cqe.imm_inval_pkey;
}
std::uint32_t read_qp_num(ibv_cq_ex* q) { return be32(self(q).cqe.sop_drop_qpn) & 0xffffff; }
std::uint32_t read_src_qp(ibv_cq_ex* q) { return be32(self(q).cqe.flags_rqpn) & 0xffffff; }
unsigned int read_wc_flags(ibv_cq_ex* q) {
  const mlx5_cqe64& cqe = self(q).cqe;
  unsigned flags = 0;
  switch (cqe.op_own >> 4) {
    case MLX5_CQE_RESP_WR_IMM:
    case MLX5_CQE_RESP_SEND_IMM:
      flags |= IBV_WC_WITH_IMM;
      break;
    case MLX5_CQE_RESP_SEND_INV:
      flags |= IBV_WC_WITH_INV;
      break;
    default:
      break;
  }
  if (be32(cqe.flags_rqpn) >> 28 & 3) flags |= IBV_WC_GRH;
  return flags;
}
std::uint32_t read_slid(ibv_cq_ex* q) { return be16(self(q).cqe.slid); }
std::uint8_t read_sl(ibv_cq_ex* q) { return be32(self(q).cqe.flags_rqpn) >> 24 & 0xf; }
std::uint8_t read_dlid_path_bits(ibv_cq_ex* q) { return self(q).cqe.ml_path & 0x7f; }
std::uint64_t read_completion_ts(ibv_cq_ex* q) { return be64(self(q).cqe.timestamp); }
std::uint16_t read_cvlan(ibv_cq_ex* q) { return be16(self(q).cqe.vlan_info); }
std::uint32_t read_flow_tag(ibv_cq_ex* q) { return be32(self(q).cqe.sop_drop_qpn) & 0xffffff; }

}  // namespace

void set_cq_ex_ops(Cq& cq, std::uint64_t wc_flags) {
  ibv_cq_ex& q = cq.base.cq_ex;
  q.start_poll = start_poll;
  q.next_poll = next_poll;
  q.end_poll = end_poll;
  q.read_opcode = read_opcode;
  q.read_vendor_err = read_vendor_err;
  q.read_wc_flags = read_wc_flags;
  if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN) q.read_byte_len = read_byte_len;
  if (wc_flags & IBV_WC_EX_WITH_IMM) q.read_imm_data = read_imm_data;
  if (wc_flags & IBV_WC_EX_WITH_QP_NUM) q.read_qp_num = read_qp_num;
  if (wc_flags & IBV_WC_EX_WITH_SRC_QP) q.read_src_qp = read_src_qp;
  if (wc_flags & IBV_WC_EX_WITH_SLID) q.read_slid = read_slid;
  if (wc_flags & IBV_WC_EX_WITH_SL) q.read_sl = read_sl;
  if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS) q.read_dlid_path_bits = read_dlid_path_bits;
  if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) q.read_completion_ts = read_completion_ts;
  if (wc_flags & IBV_WC_EX_WITH_CVLAN) q.read_cvlan = read_cvlan;
  if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG) q.read_flow_tag = read_flow_tag;
}

}  // namespace verbs::mlx5
