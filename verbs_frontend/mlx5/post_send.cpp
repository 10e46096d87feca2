// SPDX-License-Identifier: Apache-2.0
// ibv_post_send: checks in the driver's order, WQE encoding, doorbell (S-PS-4 to S-PS-28, with the recorded corrections:
// a WR refused after its WQE was begun leaves that slot partly written, and the doorbell then carries its first bytes).
// RC, UC, UD and XRC. Not built: raw packets, TSO.
#include "verbs_frontend/mlx5/wqe.h"

#include <cerrno>

#include "verbs_frontend/mlx5/ah.h"
#include "verbs_frontend/mlx5/signature.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {

OpcodeInfo mlx5_opcode(ibv_wr_opcode op) {
  static constexpr std::array<std::uint8_t, 12> kTable{
      MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_SEND,      MLX5_OPCODE_SEND_IMM,
      MLX5_OPCODE_RDMA_READ,  MLX5_OPCODE_ATOMIC_CS,      MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_UMR,
      MLX5_OPCODE_UMR,        MLX5_OPCODE_SEND_INVAL,     MLX5_OPCODE_TSO,       MLX5_OPCODE_UMR};
  const auto i = static_cast<std::uint32_t>(op);
  return i < kTable.size() ? OpcodeInfo{kTable[i], true} : OpcodeInfo{0, false};
}

std::byte* copy_inline(Machine& m, const WorkQueue& sq, std::byte* to, std::uint64_t from, std::uint32_t n) {
  memory::AddressSpace& space = m.thread().space();
  while (n > 0) {
    if (to == sq.end()) to = sq.buf;
    std::array<std::byte, 32> piece;
    const std::size_t room = static_cast<std::size_t>(sq.end() - to);
    const std::size_t page = memory::kPageSize - (from & (memory::kPageSize - 1));
    const auto k = static_cast<std::uint32_t>(std::min({std::size_t{n}, piece.size(), room, page}));
    // Inline data may lie anywhere, on the program's stack too, which is not simulated memory.
    if (space.owns(reinterpret_cast<const void*>(from)))
      m.thread().load(reinterpret_cast<const void*>(from), piece.data(), k);
    else std::memcpy(piece.data(), reinterpret_cast<const void*>(from), k);
    m.compute(m.config().inline_copy_16b * ((k + 15) / 16));
    m.store_bytes(to, piece.data(), k);
    to += k;
    from += k;
    n -= k;
  }
  return to;
}

namespace {

bool is_atomic(ibv_wr_opcode op) { return op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD; }

std::uint32_t immediate_of(const ibv_send_wr& wr) {
  switch (wr.opcode) {
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return wr.imm_data;
    case IBV_WR_SEND_WITH_INV:
      return be32(wr.invalidate_rkey);
    default:
      return 0;
  }
}

/// State of one post_send call.
struct Post {
  Machine& m;
  Qp& qp;
  std::byte* ctrl = nullptr;  ///< WQE under construction, or the last one begun
  std::byte* seg = nullptr;
  std::uint32_t ds = 0;
  std::uint32_t bytes = 0;  ///< payload of the WR
  bool inlined = false;     ///< some WR of the call was inline

  void advance(std::uint32_t n) {
    seg += n;
    ds += n / 16;
  }
  void wrap() {
    if (seg == qp.sq.end()) seg = qp.sq.buf;
  }
};

/// Operation segments of a connected QP. EINVAL or EOPNOTSUPP leave the control segment half written.
int put_operation(Post& p, const ibv_send_wr& wr) {
  Machine& m = p.m;
  const bool rc = p.qp.qp().qp_type == IBV_QPT_RC || p.qp.qp().qp_type == IBV_QPT_XRC_SEND;
  switch (wr.opcode) {
    case IBV_WR_RDMA_READ:
      if (!rc) return 0;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      put_remote(m, p.seg, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey);
      p.advance(16);
      return 0;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD: {
      if (!rc) return 0;
      if (!p.qp.atomics) return EOPNOTSUPP;
      const bool cas = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
      const std::uint64_t compare = wr.wr.atomic.compare_add;
      put_atomic(m, p.seg, wr.wr.atomic.remote_addr, wr.wr.atomic.rkey, cas ? wr.wr.atomic.swap : compare,
                 cas ? &compare : nullptr);
      p.advance(32);
      return 0;
    }
    case IBV_WR_BIND_MW:
      p.qp.small_fence = kFmSmallFence;
      m.store(p.ctrl + 12, be32(wr.bind_mw.mw->rkey));
      if (const int e = check_bind(wr.bind_mw.bind_info)) return e;
      p.ds = put_bind(m, p.qp.sq, p.ctrl, wr.bind_mw.bind_info, wr.bind_mw.mw->type, wr.bind_mw.rkey, p.qp.qp().qp_num);
      return 0;
    case IBV_WR_LOCAL_INV:
      p.qp.small_fence = kFmSmallFence;
      m.store(p.ctrl + 12, be32(wr.invalidate_rkey));
      p.ds = put_invalidate(m, p.qp.sq, p.ctrl, 0, true);
      return 0;
    case IBV_WR_TSO:
      return EINVAL;
    default:
      return 0;
  }
}

int put_inline(Post& p, const ibv_send_wr& wr) {
  std::byte* header = p.seg;
  std::byte* to = p.seg + 4;
  std::uint32_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    total += sge.length;
    if (total > p.qp.max_inline) return ENOMEM;
    to = copy_inline(p.m, p.qp.sq, to, sge.addr, sge.length);
  }
  p.inlined = true;
  p.bytes = total;
  if (total == 0) return 0;
  p.m.store(header, be32(total | hca::prm::kInlineFlag));
  p.ds += (total + 4 + 15) / 16;
  return 0;
}

void put_gather_list(Post& p, const ibv_send_wr& wr) {
  const bool atomic = is_atomic(wr.opcode);
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    p.wrap();
    p.m.compute(p.m.config().sge);
    put_data(p.m, p.seg, atomic ? 8 : sge.length, sge.lkey, sge.addr);
    p.advance(16);
    p.bytes += atomic ? 8 : sge.length;
  }
}

/// Builds the WQE of one WR whose early checks have passed.
int build(Post& p, const ibv_send_wr& wr, std::uint8_t opcode, std::uint32_t nreq) {
  Machine& m = p.m;
  Qp& qp = p.qp;
  WorkQueue& sq = qp.sq;
  const std::uint32_t idx = sq.index(sq.cur_post);
  const auto fence = wr.send_flags & IBV_SEND_FENCE ? kFmFence : qp.small_fence;
  qp.small_fence = 0;

  p.ctrl = p.seg = sq.slot(idx);
  p.ds = p.bytes = 0;
  m.store<std::uint32_t>(p.ctrl + 8, 0);
  m.store(p.ctrl + 12, immediate_of(wr));
  m.store(p.ctrl + 11,
          static_cast<std::uint8_t>(qp.signal_bits | fence | (wr.send_flags & IBV_SEND_SIGNALED ? kCeAlways : 0) |
                                    (wr.send_flags & IBV_SEND_SOLICITED ? kSolicited : 0)));
  p.advance(16);
  if (qp.qp().qp_type == IBV_QPT_XRC_SEND) {
    put_xrc(m, p.seg, wr.qp_type.xrc.remote_srqn);
    p.advance(16);
  }
  if (qp.qp().qp_type == IBV_QPT_UD) {
    put_datagram(m, p.seg, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey);
    p.advance(48);
    p.wrap();
  } else if (const int e = put_operation(p, wr)) {
    return e;
  }
  const bool umr = (wr.opcode == IBV_WR_BIND_MW || wr.opcode == IBV_WR_LOCAL_INV) && qp.qp().qp_type != IBV_QPT_UD;
  if (umr) p.seg = sq.slot(sq.index(sq.cur_post + p.ds / 4));
  if ((wr.send_flags & IBV_SEND_INLINE) && wr.num_sge > 0) {
    if (const int e = put_inline(p, wr)) return e;
  } else {
    put_gather_list(p, wr);
  }
  m.store(p.ctrl, index_opcode(sq.cur_post, opcode));
  m.store(p.ctrl + 4, qpn_ds(qp.qp().qp_num, p.ds));
  if (qp.signature) sign_send(m, sq, p.ctrl, p.ds);

  sq.wrid[idx] = wr.wr_id;
  sq.wqe_head[idx] = sq.head + nreq;
  return 0;
}

}  // namespace

int post_send(ibv_qp* ibqp, ibv_send_wr* wr, ibv_send_wr** bad) {
  Machine m = machine_for(ibqp->context);
  Qp& qp = qp_of(ibqp);
  WorkQueue& sq = qp.sq;
  const sim::Picos entry = m.now();
  cpu::CallSpan call(m.thread(), points::post_send);
  m.compute(m.config().post_send_call);
  m.lock(sq.lock);
  Post p{m, qp};
  std::uint32_t nreq = 0;
  int error = 0;
  for (; wr != nullptr; ++nreq, wr = wr->next) {
    const OpcodeInfo op = mlx5_opcode(wr->opcode);
    if (!op.known) error = EINVAL;
    else if (overflow(m, sq, nreq, ibqp->send_cq)) error = ENOMEM;
    else if (wr->num_sge > sq.state_max_gs) error = ENOMEM;
    if (error == 0) {
      m.compute(m.config().post_send_wr);
      error = build(p, *wr, op.mlx5, nreq);
    }
    if (error != 0) {
      *bad = wr;
      break;
    }
    begin_journey(m, qp, sq.head + nreq, entry, wr->opcode, p.bytes);
    sq.cur_post += (p.ds + 3) / 4;
  }
  const sim::MsgId first = first_new(qp);
  if (nreq != 0) ring_send_doorbell(m, qp, nreq, p.inlined, p.ds, p.ctrl);
  m.unlock(sq.lock);
  call.end(first, ibqp->qp_num, nreq, error);
  return error;
}

}  // namespace verbs::mlx5
