// SPDX-License-Identifier: Apache-2.0
// Scatter-to-CQE: the HCA put the data of a small message into the CQE, and polling copies it to the buffers that the
// WQE names (S-CQE-16, S-INL-2). The scatter list is read back from the ring.
#include <algorithm>

#include "verbs_frontend/mlx5/srq.h"

namespace verbs::mlx5 {
namespace {

/// Copies into one segment; true when all data has found room.
bool put(Machine& m, const std::byte* segment, const std::byte*& data, std::uint32_t& left) {
  const auto length = be32(m.load<std::uint32_t>(segment));
  const auto addr = be64(m.load<std::uint64_t>(segment + 8));
  const std::uint32_t n = std::min(left, length);
  if (n != 0) m.thread().copy(reinterpret_cast<void*>(addr), data, n);
  data += n;
  left -= n;
  return left == 0;
}

}  // namespace

ibv_wc_status scatter_to_receive(Machine& m, Qp& qp, const std::byte* data, std::uint32_t n) {
  if (n == 0) return IBV_WC_SUCCESS;
  const std::byte* segment = qp.rq.slot(qp.rq.index(qp.rq.tail));
  for (int i = 0; i < qp.rq.max_gs; ++i, segment += 16)
    if (put(m, segment, data, n)) return IBV_WC_SUCCESS;
  return IBV_WC_LOC_LEN_ERR;
}

ibv_wc_status scatter_to_shared(Machine& m, const Srq& srq, std::uint32_t index, const std::byte* data,
                                std::uint32_t n) {
  if (n == 0) return IBV_WC_SUCCESS;
  const std::byte* segment = srq.wqe(index) + hca::prm::kSrqHeadSize;
  for (std::uint32_t i = 0; i < srq.granted.max_sge; ++i, segment += hca::prm::kDs)
    if (put(m, segment, data, n)) return IBV_WC_SUCCESS;
  return IBV_WC_LOC_LEN_ERR;
}

ibv_wc_status scatter_to_send(Machine& m, Qp& qp, std::uint32_t idx, const std::byte* data, std::uint32_t n) {
  const std::byte* ctrl = qp.sq.slot(idx);
  const std::uint8_t opcode = m.load<std::uint8_t>(ctrl + 3);
  std::uint32_t before = 0;
  switch (opcode) {
    case MLX5_OPCODE_RDMA_READ:
      before = 2;
      break;
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
      before = 3;
      n = 8;
      break;
    default:
      return IBV_WC_REM_INV_REQ_ERR;
  }
  const std::uint32_t ds = m.load<std::uint8_t>(ctrl + 7) & 0x3f;
  const std::byte* segment = ctrl + std::size_t{before} * 16;
  for (std::uint32_t i = before; i < ds; ++i, segment += 16) {
    if (segment == qp.sq.end()) segment = qp.sq.buf;
    if (put(m, segment, data, n)) return IBV_WC_SUCCESS;
  }
  return IBV_WC_LOC_LEN_ERR;
}

}  // namespace verbs::mlx5
