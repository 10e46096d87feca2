// SPDX-License-Identifier: Apache-2.0
// Commands about shared receive queues: create (basic and XRC), arm the limit, query, destroy. User space computed the ring
// and links its WQEs; the driver checks the size. Resizing is refused, as mlx5 does (S-SRQ-4).
// Source: ib_uverbs uverbs_cmd.c, mlx5_ib srq.c.
#include <bit>
#include <cerrno>

#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/undo.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

namespace {
constexpr std::uint32_t kHead = hca::prm::kSrqHeadSize, kSegment = hca::prm::kDs, kSmallestWqe = 32;
}

int UverbsFile::create_srq(Io& io) {
  const auto basic = io.request<ib_uverbs_create_srq>();
  ib_uverbs_create_xsrq cmd{};
  cmd.user_handle = basic.user_handle;
  cmd.srq_type = IBV_SRQT_BASIC;
  cmd.pd_handle = basic.pd_handle;
  cmd.max_wr = basic.max_wr;
  cmd.max_sge = basic.max_sge;
  return create_srq_common(cmd, io);
}

int UverbsFile::create_xsrq(Io& io) {
  const auto cmd = io.request<ib_uverbs_create_xsrq>();
  if (cmd.srq_type != IBV_SRQT_BASIC && cmd.srq_type != IBV_SRQT_XRC)
    return cmd.srq_type == IBV_SRQT_TM ? -EOPNOTSUPP : -EINVAL;
  return create_srq_common(cmd, io);
}

int UverbsFile::create_srq_common(const ib_uverbs_create_xsrq& cmd, Io& io) {
  const DeviceCaps& caps = kernel_.caps();
  const bool xrc = cmd.srq_type == IBV_SRQT_XRC;
  Use<Pd> pd;
  Use<Xrcd> xrcd;
  Use<Cq> cq;
  if (xrc)
    if (const int error = parent(ObjectType::xrcd, cmd.xrcd_handle, xrcd); error != 0) return error;
  if (xrc)
    if (const int error = parent(ObjectType::cq, cmd.cq_handle, cq); error != 0) return error;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  if (cmd.max_wr >= 1U << caps.log_max_srq_sz || cmd.max_sge > caps.max_wqe_sz_rq / kSegment) return -EINVAL;
  if (io.driver_in.size() < offsetof(mlx5_ib_create_srq, uidx)) return -EINVAL;
  const auto user = io.driver_request<mlx5_ib_create_srq>();
  if (user.reserved0 != 0 || user.reserved1 != 0 || user.uidx > 0xffffff || user.buf_addr % 64 != 0) return -EINVAL;
  if (user.flags != 0) return -EOPNOTSUPP;  // WQE signatures

  auto srq = std::make_unique<Srq>();
  const std::uint32_t wqes = std::bit_ceil(cmd.max_wr + 1);
  const std::uint32_t wqe_bytes = std::max(kSmallestWqe, std::bit_ceil(kHead + cmd.max_sge * kSegment));
  SrqParams params;
  if (const int error = kernel_.acquire(user_, {user.buf_addr}, std::uint64_t{wqes} * wqe_bytes, srq->buffer);
      error != 0)
    return error;
  Undo undo_buffer([&] { kernel_.release(user_, srq->buffer); });
  if (const int error = acquire_dbr(user.db_addr, srq->dbr, params.dbr); error != 0) return error;
  Undo undo_dbr([&] { release_dbr(srq->dbr); });
  params.xrc = xrc;
  params.pdn = pd->pdn;
  params.log_size = static_cast<std::uint32_t>(std::bit_width(wqes) - 1);
  params.wqe_shift = static_cast<std::uint32_t>(std::bit_width(wqe_bytes) - 1);
  params.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  params.user_index = xrc ? user.uidx : 0;
  params.xrcdn = xrc ? xrcd->domain->xrcdn : 0;
  params.cqn = xrc ? cq->cqn : 0;
  if (const int error = kernel::create_srq(kernel_.commands(), params, srq->buffer.mapping, srq->srqn); error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  undo_dbr.dismiss();
  undo_buffer.dismiss();

  srq->pd = pd.get();
  ++pd->usecnt;
  if (xrc) {
    srq->xrcd = xrcd.get();
    srq->cq = cq.get();
    ++xrcd->usecnt;
    ++xrcd->domain->members;
    ++cq->usecnt;
  }
  srq->user_handle = cmd.user_handle;
  srq->async = async_;
  srq->max_wr = wqes - 1;
  srq->max_sge = (wqe_bytes - kHead) / kSegment;
  kernel_.add_srq(*srq);
  ib_uverbs_create_srq_resp resp{};
  resp.max_wr = srq->max_wr;
  resp.max_sge = srq->max_sge;
  resp.srqn = xrc ? srq->srqn : 0;
  io.driver_respond(mlx5_ib_create_srq_resp{srq->srqn, 0});
  resp.srq_handle = add(std::move(srq));
  io.respond(resp);
  return 0;
}

int UverbsFile::modify_srq(Io& io) {
  const auto cmd = io.request<ib_uverbs_modify_srq>();
  constexpr std::uint32_t kKnown = IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT;
  Use<Srq> srq;
  if (const int error = use(ObjectType::srq, cmd.srq_handle, srq); error != 0) return error;
  if ((cmd.attr_mask & ~kKnown) != 0 || (cmd.attr_mask & IBV_SRQ_MAX_WR) != 0) return -EINVAL;
  if ((cmd.attr_mask & IBV_SRQ_LIMIT) == 0) return 0;
  if (cmd.srq_limit >= srq->max_wr) return -EINVAL;
  return arm_srq(kernel_.commands(), srq->srqn, srq->xrcd != nullptr, cmd.srq_limit);
}

int UverbsFile::query_srq(Io& io) {
  const auto cmd = io.request<ib_uverbs_query_srq>();
  Use<Srq> srq;
  if (const int error = use(ObjectType::srq, cmd.srq_handle, srq); error != 0) return error;
  std::uint32_t limit = 0;
  if (const int error = kernel::query_srq(kernel_.commands(), srq->srqn, srq->xrcd != nullptr, limit); error != 0)
    return error;
  io.respond(ib_uverbs_query_srq_resp{srq->max_wr, srq->max_sge, limit, 0});
  return 0;
}

int UverbsFile::destroy_srq(Io& io) {
  ib_uverbs_destroy_srq_resp resp{};
  const auto report = [](Object& o, void* arg) {
    static_cast<ib_uverbs_destroy_srq_resp*>(arg)->events_reported = o.async_events_reported;
  };
  const int error = destroy(ObjectType::srq, io.request<ib_uverbs_destroy_srq>().srq_handle, report, &resp);
  if (error == 0) io.respond(resp);
  return error;
}

int UverbsFile::tear_down_srq(Srq& srq) {
  if (const int error = kernel::destroy_srq(kernel_.commands(), srq.srqn, srq.xrcd != nullptr); error != 0)
    return error;
  kernel_.remove_srq(srq);
  kernel_.release(user_, srq.buffer);
  release_dbr(srq.dbr);
  --srq.pd->usecnt;
  if (srq.xrcd != nullptr) {
    --srq.xrcd->usecnt;
    --srq.xrcd->domain->members;
    --srq.cq->usecnt;
  }
  return 0;
}

}  // namespace kernel
