// SPDX-License-Identifier: Apache-2.0
// Scatter-to-CQE: the HCA put the data of a small message into the CQE, and polling copies it to the buffers that the
// WQE names (S-CQE-16, S-INL-2), but not for the null key. The scatter list is read back from the ring.
#include <algorithm>

#include "cpu/core.h"
#include "verbs_frontend/mlx5/srq.h"

namespace verbs::mlx5 {
namespace {

/// The program's next instruction sees the bytes, so they do not wait in the store buffer. False if the program has no
/// memory there.
bool copy_now(Machine& m, std::uint64_t to, const std::byte* data, std::uint32_t n) {
  cpu::Thread& t = m.thread();
  const memory::AddressSpace& space = t.space();
  for (std::uint32_t done = 0; done < n;) {
    const memory::Va at{to + done};
    const auto place = space.translate(at);
    if (!place || place->mmio) return false;
    const auto line = std::min<std::uint32_t>(n - done, 64 - static_cast<std::uint32_t>(at.v & 63));
    t.core().memory().commit_store(place->phys, {data + done, line}, {}, t.core().index());
    m.compute(t.core().config().copy_line_cost);
    done += line;
  }
  return true;
}

/// Copies into one segment. The address is what the WR named: in a region whose iova is not its address it may lie
/// anywhere, and the real driver would end the program with SIGSEGV.
ibv_wc_status put(Machine& m, const std::byte* segment, bool copy, const std::byte*& data, std::uint32_t& left) {
  const auto length = be32(m.load<std::uint32_t>(segment));
  const auto addr = be64(m.load<std::uint64_t>(segment + 8));
  const std::uint32_t n = std::min(left, length);
  if (n != 0 && copy && !copy_now(m, addr, data, n)) return IBV_WC_LOC_PROT_ERR;
  data += n;
  left -= n;
  return IBV_WC_SUCCESS;
}

bool is_null(Machine& m, Qp& qp, const std::byte* segment) {
  return be32(m.load<std::uint32_t>(segment + 4)) == qp.context().null_key;
}

}  // namespace

ibv_wc_status scatter_to_receive(Machine& m, Qp& qp, const std::byte* data, std::uint32_t n) {
  if (n == 0) return IBV_WC_SUCCESS;
  const std::byte* segment = qp.rq.slot(qp.rq.index(qp.rq.tail)) + (qp.signature ? 16 : 0);
  for (int i = 0; i < qp.rq.max_gs; ++i, segment += 16) {
    const ibv_wc_status status = put(m, segment, !is_null(m, qp, segment), data, n);
    if (status != IBV_WC_SUCCESS || n == 0) return status;
  }
  return IBV_WC_LOC_LEN_ERR;
}

ibv_wc_status scatter_to_shared(Machine& m, const Srq& srq, std::uint32_t index, const std::byte* data,
                                std::uint32_t n) {
  if (n == 0) return IBV_WC_SUCCESS;
  const std::byte* segment = srq.wqe(index) + hca::prm::kSrqHeadSize;
  for (std::uint32_t i = 0; i < srq.granted.max_sge; ++i, segment += hca::prm::kDs) {
    const ibv_wc_status status = put(m, segment, true, data, n);  // the driver does not look for the null key here
    if (status != IBV_WC_SUCCESS || n == 0) return status;
  }
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
    const ibv_wc_status status = put(m, segment, !is_null(m, qp, segment), data, n);
    if (status != IBV_WC_SUCCESS || n == 0) return status;
  }
  return IBV_WC_LOC_LEN_ERR;
}

}  // namespace verbs::mlx5
