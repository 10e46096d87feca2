// SPDX-License-Identifier: Apache-2.0
// Sizes of a QP's rings: from the requested capabilities to WQE size, ring size and granted capabilities, in the
// driver's own arithmetic and order of checks (S-OBJ-40 to S-OBJ-44), unsigned wrap of max_inline_data included
// (an RC QP with no SGE and no inline data is granted 0xfffffffc).
#include <algorithm>
#include <bit>
#include <cerrno>

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {
namespace {

constexpr std::uint32_t align(std::uint32_t v, std::uint32_t to) { return (v + to - 1) & ~(to - 1); }

// Segment sizes that precede the data of the largest WQE.
constexpr std::uint32_t kXrc = 16, kCtrl = 16, kRaddr = 16, kAtomic = 16, kUmr = 16 + 48 + 64 + 64, kDatagram = 48;

std::uint32_t overhead_of(ibv_qp_type type, std::uint64_t ops) {
  if (type == IBV_QPT_UD) return kCtrl + kDatagram;
  std::uint32_t o = kCtrl;
  if (ops & (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ))
    o = kCtrl + kRaddr;
  if (ops & (IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)) o = kCtrl + kRaddr + kAtomic;
  if (ops & (IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV)) o = kUmr;
  return type == IBV_QPT_XRC_SEND ? o + kXrc : o;
}

int size_sq(const Mlx5Context& c, ibv_qp_type type, const ibv_qp_cap& wanted, std::uint64_t ops, QpSizes& out) {
  if (wanted.max_send_wr == 0) return 0;
  if (wanted.max_send_wr > 0x7fffffffU / c.max_sq_desc) return EINVAL;
  const std::uint32_t overhead = overhead_of(type, ops);
  if (wanted.max_send_sge > (c.max_sq_desc - overhead) / 16) return EINVAL;
  std::uint32_t size = overhead + 16 * wanted.max_send_sge;
  if (wanted.max_inline_data != 0) {
    if (wanted.max_inline_data > c.max_sq_desc) return EINVAL;
    size = std::max(size, overhead + align(4 + wanted.max_inline_data, 16));
  }
  if (size > c.max_sq_desc) return EINVAL;
  const std::uint32_t wqe = align(size, hca::prm::kWqebb);
  const std::uint32_t ring = std::bit_ceil(wanted.max_send_wr * wqe);
  if (ring / hca::prm::kWqebb > c.max_send_wqebb) return EINVAL;
  out.sq_wqe_bytes = wqe;
  out.sq_wqebbs = ring / hca::prm::kWqebb;
  out.sq_max_post = ring / wqe;
  out.granted.max_send_wr = out.sq_max_post;
  out.granted.max_inline_data = wqe - overhead - 4;
  return 0;
}

int size_rq(const Mlx5Context& c, const ibv_qp_cap& wanted, bool with_srq, bool signature, QpSizes& out) {
  out.granted.max_recv_wr = out.granted.max_recv_sge = 0;
  if (with_srq || wanted.max_recv_wr == 0) return 0;
  if (wanted.max_recv_wr > c.max_recv_wr) return EINVAL;
  if (wanted.max_recv_sge > c.max_rq_desc / 16) return EINVAL;
  const std::uint32_t head = signature ? 16 : 0;
  out.rq_stride = std::bit_ceil(16 * std::max(1U, wanted.max_recv_sge) + head);
  if (out.rq_stride > c.max_rq_desc) return EINVAL;
  out.rq_bytes = std::max(64U, std::bit_ceil(wanted.max_recv_wr) * out.rq_stride);
  out.rq_wqes = out.rq_bytes / out.rq_stride;
  out.granted.max_recv_wr = out.rq_wqes;
  out.granted.max_recv_sge = (out.rq_stride - head) / 16;
  return 0;
}

}  // namespace

int size_qp(const Mlx5Context& c, ibv_qp_type type, const ibv_qp_cap& wanted, std::uint64_t ops, bool with_srq,
            bool signature, QpSizes& out) {
  out = {};
  out.granted = wanted;
  if (const int e = size_sq(c, type, wanted, ops, out)) return e;
  if (const int e = size_rq(c, wanted, with_srq, signature, out)) return e;
  out.buf_bytes = out.rq_bytes + out.sq_wqebbs * hca::prm::kWqebb;
  return 0;
}

}  // namespace verbs::mlx5
