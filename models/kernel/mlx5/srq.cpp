// SPDX-License-Identifier: Apache-2.0
// Shared receive queues of the driver. User space computed the ring and links its WQEs; the driver checks the size.
// Resizing is refused (S-SRQ-4). Source: mlx5_ib srq.c.
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <cstddef>

#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/undo.h"

namespace kernel::mlx5_ib {

namespace {
constexpr std::uint32_t kHead = hca::prm::kSrqHeadSize, kSegment = hca::prm::kDs, kSmallestWqe = 32;
}

int create_srq(Srq& core, const SrqInitAttr& attr, const Udata* udata) {
  if (udata == nullptr) return -EOPNOTSUPP;
  auto& srq = static_cast<Mlx5Srq&>(core);
  Kernel& kernel = srq.device->kernel;
  const DeviceCaps& caps = kernel.caps();
  const bool xrc = attr.srq_type == IBV_SRQT_XRC;
  if (attr.max_wr >= 1U << caps.log_max_srq_sz || attr.max_sge > caps.max_wqe_sz_rq / kSegment) return -EINVAL;
  if (udata->in.size() < offsetof(mlx5_ib_create_srq, uidx)) return -EINVAL;
  const auto user = udata->request<mlx5_ib_create_srq>();
  if (user.reserved0 != 0 || user.reserved1 != 0 || user.uidx > 0xffffff || user.buf_addr % 64 != 0) return -EINVAL;
  if (user.flags != 0) return -EOPNOTSUPP;  // WQE signatures

  Mlx5Ucontext& context = context_of(srq);
  const std::uint32_t wqes = std::bit_ceil(attr.max_wr + 1);
  const std::uint32_t wqe_bytes = std::max(kSmallestWqe, std::bit_ceil(kHead + attr.max_sge * kSegment));
  SrqParams params;
  if (const int error = kernel.acquire(*context.user, {user.buf_addr}, std::uint64_t{wqes} * wqe_bytes, srq.buffer);
      error != 0)
    return error;
  Undo undo_buffer([&] { kernel.release(*context.user, srq.buffer); });
  if (const int error = acquire_dbr(context, user.db_addr, srq.dbr, params.dbr); error != 0) return error;
  Undo undo_dbr([&] { release_dbr(context, srq.dbr); });
  params.xrc = xrc;
  params.pdn = srq.pd->pdn;
  params.log_size = static_cast<std::uint32_t>(std::bit_width(wqes) - 1);
  params.wqe_shift = static_cast<std::uint32_t>(std::bit_width(wqe_bytes) - 1);
  params.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  params.user_index = xrc ? user.uidx : 0;
  params.xrcdn = xrc ? attr.xrcd->domain->xrcdn : 0;
  params.cqn = xrc ? attr.cq->cqn : 0;
  if (const int error = kernel::create_srq(kernel.commands(), params, srq.buffer.mapping, srq.srqn); error != 0)
    return error;
  undo_dbr.dismiss();
  undo_buffer.dismiss();
  srq.max_wr = wqes - 1;
  srq.max_sge = (wqe_bytes - kHead) / kSegment;
  kernel.add_srq(srq);
  udata->respond(mlx5_ib_create_srq_resp{srq.srqn, 0});
  return 0;
}

int modify_srq(Srq& srq, const ibv_srq_attr& attr, std::uint32_t mask, const Udata* /*udata*/) {
  constexpr std::uint32_t kKnown = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
  if ((mask & ~kKnown) != 0 || (mask & IBV_SRQ_MAX_WR) != 0) return -EINVAL;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (attr.srq_limit >= srq.max_wr) return -EINVAL;
  return arm_srq(srq.device->kernel.commands(), srq.srqn, srq.xrcd != nullptr, attr.srq_limit);
}

int query_srq(Srq& srq, ibv_srq_attr& attr) {
  attr.max_wr = srq.max_wr;
  attr.max_sge = srq.max_sge;
  return kernel::query_srq(srq.device->kernel.commands(), srq.srqn, srq.xrcd != nullptr, attr.srq_limit);
}

int destroy_srq(Srq& core) {
  auto& srq = static_cast<Mlx5Srq&>(core);
  Kernel& kernel = srq.device->kernel;
  if (const int error = kernel::destroy_srq(kernel.commands(), srq.srqn, srq.xrcd != nullptr); error != 0) return error;
  kernel.remove_srq(srq);
  if (srq.ucontext == nullptr) return 0;
  kernel.release(*srq.ucontext->user, srq.buffer);
  release_dbr(context_of(srq), srq.dbr);
  return 0;
}

}  // namespace kernel::mlx5_ib
