// SPDX-License-Identifier: Apache-2.0
// ib_post_send and ib_post_recv for kernel consumers: checks in the driver's order, WQEs in kernel memory, doorbell record,
// and an eight-byte doorbell; the kernel never copies a WQE into the device. Addresses of data segments are DMA addresses,
// those of inline data kernel addresses. Source: mlx5_ib wr.c. Not built: atomics, which mlx5_ib refuses too, LOCAL_INV,
// REG_MR, datagrams.
#include <algorithm>
#include <array>
#include <cerrno>

#include "cpu/call_span.h"
#include "hca/prm.h"
#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/trace_points.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;
using prm::be32;
using prm::be64;

namespace {

constexpr std::uint8_t kFenceAll = 0x80;  // of fm_ce_se: wait for all READs and atomics before

/// The mlx5 opcode of a WR; negative for what verbs do not know.
int mlx5_opcode(ibv_wr_opcode op) {
  static constexpr std::array<std::uint8_t, 12> kTable{
      MLX5_OPCODE_RDMA_WRITE, MLX5_OPCODE_RDMA_WRITE_IMM, MLX5_OPCODE_SEND,      MLX5_OPCODE_SEND_IMM,
      MLX5_OPCODE_RDMA_READ,  MLX5_OPCODE_ATOMIC_CS,      MLX5_OPCODE_ATOMIC_FA, MLX5_OPCODE_UMR,
      MLX5_OPCODE_UMR,        MLX5_OPCODE_SEND_INVAL,     MLX5_OPCODE_TSO,       MLX5_OPCODE_UMR};
  const auto i = static_cast<std::size_t>(op);
  return i < kTable.size() ? kTable.at(i) : -1;
}

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

template <class T>
void store(cpu::Thread& t, std::byte* at, T value) {
  t.store(at, &value, sizeof value);
}

/// One ib_post_send under way.
struct Post {
  cpu::Thread& t;
  const KernelVerbsConfig& cost;
  Mlx5Qp& qp;
  KernelQp& k;
  std::byte* ctrl = nullptr;  ///< WQE under construction, or the last one begun
  std::byte* seg = nullptr;
  std::uint32_t ds = 0;
  std::uint32_t bytes = 0;  ///< payload of the WR

  void advance(std::uint32_t n) {
    seg += n;
    ds += n / prm::kDs;
    if (seg == k.sq.end()) seg = k.sq.buf;
  }
};

bool overflow(cpu::Thread& t, const KernelWorkQueue& wq, std::uint32_t nreq, Cq& cq) {
  if (wq.head - wq.tail + nreq < wq.max_post) [[likely]]
    return false;
  KernelCq& c = *static_cast<Mlx5Cq&>(cq).kernel;
  t.lock(c.lock);
  const std::uint32_t used = wq.head - wq.tail;
  t.unlock(c.lock);
  return used + nreq >= wq.max_post;
}

void put_data(cpu::Thread& t, std::byte* seg, const ibv_sge& sge) {
  store(t, seg, be32(sge.length));
  store(t, seg + 4, be32(sge.lkey));
  store(t, seg + 8, be64(sge.addr));
}

void begin_wqe(Post& p, const ibv_send_wr& wr) {
  KernelWorkQueue& sq = p.k.sq;
  p.ctrl = p.seg = sq.slot(sq.index(sq.cur_post));
  p.ds = p.bytes = 0;
  store(p.t, p.ctrl + 8, 0U);
  store(p.t, p.ctrl + 12, immediate_of(wr));
  const bool signaled = (wr.send_flags & IBV_SEND_SIGNALED) != 0, solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  store(p.t, p.ctrl + 11,
        static_cast<std::uint8_t>(p.k.signal_bits | (signaled ? MLX5_WQE_CTRL_CQ_UPDATE : 0) |
                                  (solicited ? MLX5_WQE_CTRL_SOLICITED : 0)));
  p.advance(sizeof(mlx5_wqe_ctrl_seg));
}

/// Segments between the control segment and the data.
int put_operation(Post& p, const ibv_send_wr& wr) {
  switch (wr.opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
      return 0;
    case IBV_WR_RDMA_READ:
      if (p.qp.qp_type != IBV_QPT_RC) return -EOPNOTSUPP;
      [[fallthrough]];
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      store(p.t, p.seg, be64(wr.wr.rdma.remote_addr));
      store(p.t, p.seg + 8, be32(wr.wr.rdma.rkey));
      store(p.t, p.seg + 12, 0U);
      p.advance(sizeof(mlx5_wqe_raddr_seg));
      return 0;
    default:
      return -EOPNOTSUPP;
  }
}

int put_inline(Post& p, const ibv_send_wr& wr) {
  std::byte* const header = p.seg;
  std::byte* to = p.seg + 4;
  std::uint32_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    total += sge.length;
    if (total > p.k.max_inline) return -ENOMEM;
    const auto* from = reinterpret_cast<const std::byte*>(sge.addr);
    for (std::uint32_t left = sge.length; left > 0;) {
      if (to == p.k.sq.end()) to = p.k.sq.buf;
      std::array<std::byte, 32> piece;
      const auto n = static_cast<std::uint32_t>(
          std::min({std::size_t{left}, piece.size(), static_cast<std::size_t>(p.k.sq.end() - to)}));
      p.t.load(from, piece.data(), n);
      p.t.compute(p.cost.inline_copy_16b * ((n + 15) / 16));
      p.t.store(to, piece.data(), n);
      from += n;
      to += n;
      left -= n;
    }
  }
  store(p.t, header, be32(total | prm::kInlineFlag));
  p.ds += (total + 4 + prm::kDs - 1) / prm::kDs;
  p.bytes = total;
  return 0;
}

void put_gather_list(Post& p, const ibv_send_wr& wr) {
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    p.t.compute(p.cost.sge);
    put_data(p.t, p.seg, sge);
    p.advance(sizeof(mlx5_wqe_data_seg));
    p.bytes += sge.length;
  }
}

void finish_wqe(Post& p, const ibv_send_wr& wr, int opcode, std::uint32_t nreq, sim::Picos entry) {
  KernelWorkQueue& sq = p.k.sq;
  const std::uint32_t idx = sq.index(sq.cur_post);
  store(p.t, p.ctrl, be32(std::uint32_t{sq.cur_post} << 8 | static_cast<std::uint32_t>(opcode)));
  store(p.t, p.ctrl + 4, be32(p.qp.qpn << 8 | p.ds));
  if ((wr.send_flags & IBV_SEND_FENCE) != 0)
    store(p.t, p.ctrl + 11,
          static_cast<std::uint8_t>(p.t.load(reinterpret_cast<std::uint8_t*>(p.ctrl + 11)) | kFenceAll));
  sq.wrid[idx] = wr.wr_id;
  sq.wqe_head[idx] = sq.head + nreq;

  Kernel& kernel = p.qp.device->kernel;
  // On a CQ that the core polls it is the address of an ib_cqe, which means nothing to readers of traces.
  const std::uint64_t shown_wr_id = p.qp.send_cq->poll == nullptr ? wr.wr_id : 0;
  const sim::MsgId id = kernel.context().journeys.begin(entry, p.k.flow, static_cast<std::uint8_t>(wr.opcode), p.bytes,
                                                        {kernel.platform().host, p.qp.qpn, shown_wr_id});
  sq.wr(sq.head + nreq) = {id, static_cast<std::uint8_t>(wr.opcode)};
  p.k.tags->publish(sq.cur_post, id);
  p.k.new_msgs.push_back(id);
  sq.cur_post = static_cast<std::uint16_t>(sq.cur_post + (p.ds * prm::kDs + prm::kWqebb - 1) / prm::kWqebb);
}

int build(Post& p, const ibv_send_wr& wr, std::uint32_t nreq, sim::Picos entry) {
  const int opcode = mlx5_opcode(wr.opcode);
  if (opcode < 0) return -EINVAL;
  if (wr.num_sge < 0 || static_cast<std::uint32_t>(wr.num_sge) > p.k.sq.max_gs) return -ENOMEM;
  if (overflow(p.t, p.k.sq, nreq, *p.qp.send_cq)) return -ENOMEM;
  p.t.compute(p.cost.post_send_wr);
  begin_wqe(p, wr);
  if (const int error = put_operation(p, wr); error != 0) return error;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0 && wr.num_sge > 0) {
    if (const int error = put_inline(p, wr); error != 0) return error;
  } else {
    put_gather_list(p, wr);
  }
  finish_wqe(p, wr, opcode, nreq, entry);
  return 0;
}

/// The record before the doorbell, the WQEs before the record (S-BAR-2), and a doorbell that stays inside the lock.
void ring_doorbell(Post& p, std::uint32_t nreq) {
  Kernel& kernel = p.qp.device->kernel;
  cpu::Thread& t = p.t;
  KernelQp& k = p.k;
  k.sq.head += nreq;
  k.sq.trace_occupancy(t.now());
  const sim::trace::Cause before = t.cause();
  t.set_cause({k.new_msgs.front(), before.parent});
  t.barrier(cpu::Barrier::wmb);
  store(t, k.dbr.bytes + prm::kSndDbr, be32(k.sq.cur_post));
  t.barrier(cpu::Barrier::wmb);
  for (const sim::MsgId id : k.new_msgs) kernel.context().journeys.mark(id, sim::Stage::cpu_post, t.now());
  k.new_msgs.clear();
  t.mmio_store64(kernel.uar().map + prm::kUarBfBase + k.bf_offset, t.load(reinterpret_cast<std::uint64_t*>(p.ctrl)));
  k.bf_offset ^= prm::kBfBufSize;
  t.set_cause(before);
}

}  // namespace

int post_send(Qp& core, const ibv_send_wr* wr, const ibv_send_wr** bad) {
  auto& qp = static_cast<Mlx5Qp&>(core);
  KernelQp& k = *qp.kernel;
  Post p{cpu::current(), qp.device->kernel.config().verbs, qp, k};
  const sim::Picos entry = p.t.now();
  cpu::CallSpan call(p.t, trace_points::post_send);
  p.t.compute(p.cost.post_send_call);
  p.t.lock(k.sq.lock);
  std::uint32_t nreq = 0;
  int error = 0;
  for (; wr != nullptr; ++nreq, wr = wr->next) {
    error = build(p, *wr, nreq, entry);
    if (error == 0) continue;
    *bad = wr;
    break;
  }
  const sim::MsgId first = k.new_msgs.empty() ? 0 : k.new_msgs.front();
  if (nreq != 0) ring_doorbell(p, nreq);
  p.t.unlock(k.sq.lock);
  call.end(first, qp.qpn, nreq, -error);
  return error;
}

int post_recv(Qp& core, const ibv_recv_wr* wr, const ibv_recv_wr** bad) {
  auto& qp = static_cast<Mlx5Qp&>(core);
  KernelQp& k = *qp.kernel;
  KernelWorkQueue& rq = k.rq;
  cpu::Thread& t = cpu::current();
  const KernelVerbsConfig& cost = qp.device->kernel.config().verbs;
  cpu::CallSpan call(t, trace_points::post_recv);
  t.compute(cost.post_recv_call);
  t.lock(rq.lock);
  std::uint32_t nreq = 0;
  int error = 0;
  for (; wr != nullptr; ++nreq, wr = wr->next) {
    if (overflow(t, rq, nreq, *qp.recv_cq)) error = -ENOMEM;
    else if (wr->num_sge < 0 || static_cast<std::uint32_t>(wr->num_sge) > rq.max_gs) error = -EINVAL;
    if (error != 0) {
      *bad = wr;
      break;
    }
    t.compute(cost.post_recv_wr);
    const std::uint32_t idx = rq.index(rq.head + nreq);
    std::byte* seg = rq.slot(idx);
    for (int i = 0; i < wr->num_sge; ++i, seg += sizeof(mlx5_wqe_data_seg)) {
      t.compute(cost.sge);
      put_data(t, seg, wr->sg_list[i]);
    }
    if (static_cast<std::uint32_t>(wr->num_sge) < rq.max_gs) {  // ends the list
      store(t, seg, 0U);
      store(t, seg + 4, be32(prm::kInvalidLkey));
      store(t, seg + 8, std::uint64_t{0});
    }
    rq.wrid[idx] = wr->wr_id;
  }
  if (nreq != 0) {
    rq.head += nreq;
    rq.trace_occupancy(t.now());
    t.barrier(cpu::Barrier::wmb);
    store(t, k.dbr.bytes + prm::kRcvDbr, be32(rq.head & 0xffff));
  }
  t.unlock(rq.lock);
  call.end(0, qp.qpn, nreq, -error);
  return error;
}

}  // namespace kernel::mlx5_ib
