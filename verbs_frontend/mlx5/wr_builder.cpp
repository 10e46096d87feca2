// SPDX-License-Identifier: Apache-2.0
// The ibv_wr_* builders (struct ibv_qp_ex): each builder stores its segments at once, errors are latched, and
// ibv_wr_complete either rings one doorbell for the batch or rolls everything back (S-PS-29). Recorded behaviours kept: the
// immediate word is written only by opcodes that have one; after a builder that found the queue full, setters rewrite the
// previous WQE. Not built: TSO.
#include <cerrno>

#include "verbs_frontend/mlx5/ah.h"
#include "verbs_frontend/mlx5/signature.h"
#include "verbs_frontend/mlx5/wqe.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

Qp& self(ibv_qp_ex* q) { return *reinterpret_cast<Qp*>(q); }

void latch(Qp::Batch& b, int error) {
  if (b.error == 0) b.error = error;
}

/// Takes the next WQE and stores its control segment except qpn_ds. False when the queue is full.
bool begin(Machine& m, Qp& qp, ibv_wr_opcode opcode) {
  WorkQueue& sq = qp.sq;
  Qp::Batch& b = qp.batch;
  m.compute(m.config().post_send_wr);
  if (overflow(m, sq, b.count, qp.qp().send_cq)) {
    latch(b, ENOMEM);
    return false;
  }
  const ibv_qp_ex& ex = qp.base.qp_ex;
  const std::uint32_t idx = sq.index(sq.cur_post);
  sq.wrid[idx] = ex.wr_id;
  sq.wqe_head[idx] = sq.head + b.count;
  b.ctrl = sq.slot(idx);
  const auto fence = ex.wr_flags & IBV_SEND_FENCE ? kFmFence : qp.small_fence;
  qp.small_fence = 0;
  m.store<std::uint32_t>(b.ctrl + 8, 0);
  m.store(b.ctrl + 11,
          static_cast<std::uint8_t>(qp.signal_bits | fence | (ex.wr_flags & IBV_SEND_SIGNALED ? kCeAlways : 0) |
                                    (ex.wr_flags & IBV_SEND_SOLICITED ? kSolicited : 0)));
  m.store(b.ctrl, index_opcode(sq.cur_post, mlx5_opcode(opcode).mlx5));
  b.opcode = opcode;
  b.bytes = 0;
  return true;
}

/// A setter is done. With the last one the WQE is complete: stores qpn_ds and moves on.
void finish(Machine& m, Qp& qp) {
  Qp::Batch& b = qp.batch;
  if (b.ctrl == nullptr || --b.setters != 0) return;
  m.store(b.ctrl + 4, qpn_ds(qp.qp().qp_num, b.ds));
  if (qp.signature) sign_send(m, qp.sq, b.ctrl, b.ds);
  if (b.error == 0) begin_journey(m, qp, qp.sq.head + b.count - 1, b.entry, b.opcode, b.bytes);
  qp.sq.cur_post += (b.ds + 3) / 4;
}

/// Builder of a WQE with `fixed` bytes of segments between control and data. Returns where they go, or nullptr when no
/// WQE was ever built on this QP.
std::byte* open(Machine& m, Qp& qp, ibv_wr_opcode opcode, std::uint32_t fixed) {
  Qp::Batch& b = qp.batch;
  begin(m, qp, opcode);
  ++b.count;
  if (b.ctrl == nullptr) return nullptr;
  const bool ud = qp.qp().qp_type == IBV_QPT_UD, xrc = qp.qp().qp_type == IBV_QPT_XRC_SEND;
  const std::uint32_t address = ud ? 48 : xrc ? 16 : 0;  // segment that a setter of its own fills in
  fixed += address;
  b.setters = address != 0 ? 2 : 1;
  b.ds = (16 + fixed) / 16;
  b.data = b.ctrl + 16 + fixed;
  return b.ctrl + 16 + (xrc ? address : 0);
}

void send(ibv_qp_ex* q) {
  Machine m = machine_for(q->qp_base.context);
  open(m, self(q), IBV_WR_SEND, 0);
}
void send_imm(ibv_qp_ex* q, __be32 imm) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (open(m, qp, IBV_WR_SEND_WITH_IMM, 0) != nullptr) m.store<std::uint32_t>(qp.batch.ctrl + 12, imm);
}
void send_inv(ibv_qp_ex* q, std::uint32_t rkey) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (open(m, qp, IBV_WR_SEND_WITH_INV, 0) != nullptr) m.store(qp.batch.ctrl + 12, be32(rkey));
}
void rdma(ibv_qp_ex* q, ibv_wr_opcode opcode, std::uint32_t rkey, std::uint64_t va) {
  Machine m = machine_for(q->qp_base.context);
  if (std::byte* seg = open(m, self(q), opcode, 16)) put_remote(m, seg, va, rkey);
}
void rdma_write(ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t va) { rdma(q, IBV_WR_RDMA_WRITE, rkey, va); }
void rdma_read(ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t va) { rdma(q, IBV_WR_RDMA_READ, rkey, va); }
void rdma_write_imm(ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t va, __be32 imm) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (std::byte* seg = open(m, qp, IBV_WR_RDMA_WRITE_WITH_IMM, 16)) {
    put_remote(m, seg, va, rkey);
    m.store<std::uint32_t>(qp.batch.ctrl + 12, imm);
  }
}
void cmp_swp(ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t va, std::uint64_t compare, std::uint64_t swap) {
  Machine m = machine_for(q->qp_base.context);
  if (std::byte* seg = open(m, self(q), IBV_WR_ATOMIC_CMP_AND_SWP, 32)) put_atomic(m, seg, va, rkey, swap, &compare);
}
void fetch_add(ibv_qp_ex* q, std::uint32_t rkey, std::uint64_t va, std::uint64_t add) {
  Machine m = machine_for(q->qp_base.context);
  if (std::byte* seg = open(m, self(q), IBV_WR_ATOMIC_FETCH_AND_ADD, 32)) put_atomic(m, seg, va, rkey, add, nullptr);
}
void bind_mw(ibv_qp_ex* q, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (open(m, qp, IBV_WR_BIND_MW, 0) == nullptr) return;
  qp.small_fence = kFmSmallFence;
  m.store(qp.batch.ctrl + 12, be32(mw->rkey));
  if (const int e = check_bind(*info)) return latch(qp.batch, e);
  qp.batch.setters = 1;
  qp.batch.ds = put_bind(m, qp.sq, qp.batch.ctrl, *info, mw->type, rkey, qp.qp().qp_num);
  finish(m, qp);
}
void local_inv(ibv_qp_ex* q, std::uint32_t rkey) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (open(m, qp, IBV_WR_LOCAL_INV, 0) == nullptr) return;
  qp.small_fence = kFmSmallFence;
  m.store(qp.batch.ctrl + 12, be32(rkey));
  qp.batch.setters = 1;
  qp.batch.ds = put_invalidate(m, qp.sq, qp.batch.ctrl, 0, true);
  finish(m, qp);
}

void set_sge_list(ibv_qp_ex* q, std::size_t n, const ibv_sge* list) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  Qp::Batch& b = qp.batch;
  if (b.ctrl == nullptr) return;
  if (static_cast<std::int64_t>(n) > qp.sq.max_gs) {
    latch(b, ENOMEM);
    return finish(m, qp);
  }
  std::byte* seg = b.data;
  for (std::size_t i = 0; i < n; ++i) {
    if (list[i].length == 0) continue;
    if (seg == qp.sq.end()) seg = qp.sq.buf;
    m.compute(m.config().sge);
    put_data(m, seg, list[i].length, list[i].lkey, list[i].addr);
    seg += 16;
    ++b.ds;
    b.bytes += list[i].length;
  }
  finish(m, qp);
}
void set_sge(ibv_qp_ex* q, std::uint32_t lkey, std::uint64_t addr, std::uint32_t length) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  Qp::Batch& b = qp.batch;
  if (b.ctrl == nullptr) return;
  if (length != 0) {
    m.compute(m.config().sge);
    put_data(m, b.data == qp.sq.end() ? qp.sq.buf : b.data, length, lkey, addr);
    ++b.ds;
    b.bytes = length;
  }
  finish(m, qp);
}

void set_inline_data_list(ibv_qp_ex* q, std::size_t n, const ibv_data_buf* list) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  Qp::Batch& b = qp.batch;
  if (b.ctrl == nullptr) return;
  std::byte* header = b.data == qp.sq.end() ? qp.sq.buf : b.data;
  std::byte* to = header + 4;
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    total += static_cast<std::uint32_t>(list[i].length);
    if (total > qp.max_inline) {
      latch(b, ENOMEM);
      return finish(m, qp);
    }
    to = copy_inline(m, qp.sq, to, reinterpret_cast<std::uint64_t>(list[i].addr),
                     static_cast<std::uint32_t>(list[i].length));
  }
  b.inline_used = true;
  if (total != 0) {
    m.store(header, be32(total | hca::prm::kInlineFlag));
    b.ds += (total + 4 + 15) / 16;
    b.bytes = total;
  }
  finish(m, qp);
}
void set_inline_data(ibv_qp_ex* q, void* addr, std::size_t length) {
  const ibv_data_buf one{addr, length};
  set_inline_data_list(q, 1, &one);
}

void set_ud_addr(ibv_qp_ex* q, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (qp.batch.ctrl == nullptr) return;
  put_datagram(m, qp.batch.ctrl + 16, ah, qpn, qkey);
  finish(m, qp);
}

void set_xrc_srqn(ibv_qp_ex* q, std::uint32_t srqn) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  if (qp.batch.ctrl == nullptr) return;
  put_xrc(m, qp.batch.ctrl + 16, srqn);
  finish(m, qp);
}

void start(ibv_qp_ex* q) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  const sim::Picos entry = m.now();
  Qp::Batch& b = qp.batch;
  b.call = cpu::CallSpan(m.thread(), points::post_send);
  m.compute(m.config().post_send_call);
  m.lock(qp.sq.lock);
  b.entry = entry;
  b.count = 0;
  b.error = 0;
  b.inline_used = false;
  b.cur_post_at_start = qp.sq.cur_post;
  b.small_fence_at_start = qp.small_fence;
}

void roll_back(Machine& m, Qp& qp) {
  qp.sq.cur_post = qp.batch.cur_post_at_start;
  qp.small_fence = qp.batch.small_fence_at_start;
  for (const sim::MsgId id : qp.new_msgs) m.state().context->journeys.take_back(id);
  qp.new_msgs.clear();
}

int complete(ibv_qp_ex* q) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  Qp::Batch& b = qp.batch;
  int error = b.error;
  if (qp.sq.state_max_gs < 0) error = EINVAL;
  if (error != 0) roll_back(m, qp);
  const sim::MsgId first = first_new(qp);
  if (error == 0 && b.count != 0) ring_send_doorbell(m, qp, b.count, b.inline_used, b.ds, b.ctrl);
  m.unlock(qp.sq.lock);
  b.call.end(first, qp.qp().qp_num, error == 0 ? b.count : 0, error);
  return error;
}

void abort(ibv_qp_ex* q) {
  Machine m = machine_for(q->qp_base.context);
  Qp& qp = self(q);
  roll_back(m, qp);
  m.unlock(qp.sq.lock);
  qp.batch.call.end(0, qp.qp().qp_num, 0, 0);
}

}  // namespace

void set_builders(Qp& qp, std::uint64_t ops) {
  ibv_qp_ex& q = qp.base.qp_ex;
  q.comp_mask = 0;
  q.wr_start = start;
  q.wr_complete = complete;
  q.wr_abort = abort;
  if (ops & IBV_QP_EX_WITH_SEND) q.wr_send = send;
  if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM) q.wr_send_imm = send_imm;
  if (ops & IBV_QP_EX_WITH_SEND_WITH_INV) q.wr_send_inv = send_inv;
  if (ops & IBV_QP_EX_WITH_RDMA_WRITE) q.wr_rdma_write = rdma_write;
  if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM) q.wr_rdma_write_imm = rdma_write_imm;
  if (ops & IBV_QP_EX_WITH_RDMA_READ) q.wr_rdma_read = rdma_read;
  if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP) q.wr_atomic_cmp_swp = cmp_swp;
  if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD) q.wr_atomic_fetch_add = fetch_add;
  if (ops & IBV_QP_EX_WITH_BIND_MW) q.wr_bind_mw = bind_mw;
  if (ops & IBV_QP_EX_WITH_LOCAL_INV) q.wr_local_inv = local_inv;
  q.wr_set_sge = set_sge;
  q.wr_set_sge_list = set_sge_list;
  q.wr_set_inline_data = set_inline_data;
  q.wr_set_inline_data_list = set_inline_data_list;
  if (qp.qp().qp_type == IBV_QPT_UD) q.wr_set_ud_addr = set_ud_addr;
  if (qp.qp().qp_type == IBV_QPT_XRC_SEND) q.wr_set_xrc_srqn = set_xrc_srqn;
}

}  // namespace verbs::mlx5
