// SPDX-License-Identifier: Apache-2.0
// Completion queues of the driver. Rings and doorbell records are user memory, but for kernel consumers (kernel_qp.cpp). A resize gives the device a second
// ring; when the command ends, the device has left the first, and the library moves what lies in it (S-OBJ-36, S-OVR-12).
// Source: mlx5_ib cq.c.
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <cstddef>

#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/undo.h"

namespace kernel::mlx5_ib {

namespace {

/// What a CQ of either kind has.
CqParams params_of(const Mlx5Cq& cq, const CqInitAttr& attr) {
  Kernel& kernel = cq.device->kernel;
  CqParams p;
  p.log_size = static_cast<unsigned>(std::bit_width(cq.entries) - 1);
  p.cqe_size = cq.cqe_size;
  p.eqn = kernel.comp_eq(cq.comp_vector).eqn();
  p.period_from_cqe = kernel.config().driver.cq_period_mode == CqPeriodMode::cqe;
  p.solicited_breaks = kernel.config().driver.solicited_breaks_moderation;
  p.ignore_overrun = (attr.flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
  return p;
}

int create_user_cq(Mlx5Cq& cq, const CqInitAttr& attr, const Udata& udata) {
  Kernel& kernel = cq.device->kernel;
  if (udata.in.size() < offsetof(mlx5_ib_create_cq, cqe_comp_en)) return -EINVAL;
  const auto user = udata.request<mlx5_ib_create_cq>();
  if ((user.flags & ~static_cast<std::uint32_t>(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD)) != 0 || user.reserved0 != 0 ||
      user.reserved1 != 0)
    return -EINVAL;
  if ((user.cqe_size != 64 && user.cqe_size != 128) || user.buf_addr % 64 != 0) return -EINVAL;
  if (user.cqe_comp_en != 0) return -EOPNOTSUPP;

  Mlx5Ucontext& context = context_of(cq);
  cq.cqe_size = user.cqe_size;
  CqParams params = params_of(cq, attr);
  if (const int error =
          kernel.acquire(*context.user, {user.buf_addr}, std::uint64_t{cq.entries} * user.cqe_size, cq.buffer);
      error != 0)
    return error;
  Undo undo_buffer([&] { kernel.release(*context.user, cq.buffer); });
  if (const int error = acquire_dbr(context, user.db_addr, cq.dbr, params.dbr); error != 0) return error;
  Undo undo_dbr([&] { release_dbr(context, cq.dbr); });
  params.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  params.uar = context.uars.front();
  if (const int error = kernel::create_cq(kernel.commands(), params, cq.buffer.mapping, cq.cqn); error != 0)
    return error;
  undo_dbr.dismiss();
  undo_buffer.dismiss();
  udata.respond(mlx5_ib_create_cq_resp{cq.cqn, 0});
  return 0;
}

}  // namespace

int create_cq(Cq& core, const CqInitAttr& attr, const Udata* udata) {
  auto& cq = static_cast<Mlx5Cq&>(core);
  Kernel& kernel = cq.device->kernel;
  const std::uint32_t most = 1U << kernel.caps().log_max_cq_sz;
  if (attr.cqe == 0 || attr.cqe >= most) return -EINVAL;
  cq.entries = std::bit_ceil(attr.cqe + 1);
  if (cq.entries > most || cq.comp_vector >= kernel.comp_vectors()) return -EINVAL;
  if ((attr.flags &
       ~static_cast<std::uint32_t>(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN | IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)) != 0)
    return -EOPNOTSUPP;
  CqParams params = params_of(cq, attr);
  if (const int error = udata != nullptr ? create_user_cq(cq, attr, *udata) : create_kernel_cq(cq, params); error != 0)
    return error;
  cq.cqe = cq.entries - 1;
  kernel.add_cq(cq);
  return 0;
}

int modify_cq(Cq& cq, std::uint16_t count, std::uint16_t period) {
  Kernel& kernel = cq.device->kernel;
  if (!kernel.caps().moderation) return -EOPNOTSUPP;
  if (period > 0xfff) return -EINVAL;
  return modify_cq_moderation(kernel.commands(), cq.cqn, count, period);
}

int resize_cq(Cq& core, std::uint32_t cqe, const Udata* udata) {
  if (udata == nullptr) return -EOPNOTSUPP;
  auto& cq = static_cast<Mlx5Cq&>(core);
  Kernel& kernel = cq.device->kernel;
  const std::uint32_t most = 1U << kernel.caps().log_max_cq_sz;
  if (cqe == 0 || cqe >= most) return -EINVAL;
  const std::uint32_t entries = std::bit_ceil(cqe + 1);
  if (entries > most) return -EINVAL;
  if (cq.resizing) return -EBUSY;
  if (entries == cq.entries) return 0;
  if (udata->in.size() < sizeof(mlx5_ib_resize_cq)) return -EINVAL;
  const auto user = udata->request<mlx5_ib_resize_cq>();
  if (user.reserved0 != 0 || user.reserved1 != 0 || user.buf_addr % 64 != 0 || user.cqe_size != cq.cqe_size)
    return -EINVAL;
  memory::AddressSpace& space = *cq.ucontext->user;
  UserRegion buffer;
  if (const int error = kernel.acquire(space, {user.buf_addr}, std::uint64_t{entries} * user.cqe_size, buffer);
      error != 0)
    return error;
  cq.resizing = true;
  CqParams params;
  params.log_size = static_cast<unsigned>(std::bit_width(entries) - 1);
  params.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
  const int error = kernel::resize_cq(kernel.commands(), cq.cqn, params, buffer.mapping);
  cq.resizing = false;
  kernel.release(space, error != 0 ? buffer : cq.buffer);
  if (error != 0) return error;
  cq.buffer = buffer;
  cq.entries = entries;
  cq.cqe = entries - 1;
  return 0;
}

// The device lets go first, then the kernel's tables, then the memory: nothing is unpinned that the device may still use.
int destroy_cq(Cq& core) {
  auto& cq = static_cast<Mlx5Cq&>(core);
  Kernel& kernel = cq.device->kernel;
  if (const int error = kernel::destroy_cq(kernel.commands(), cq.cqn); error != 0) return error;
  kernel.remove_cq(cq);
  if (cq.kernel != nullptr) {
    free_kernel_cq(cq);
    return 0;
  }
  kernel.release(*cq.ucontext->user, cq.buffer);
  release_dbr(context_of(cq), cq.dbr);
  return 0;
}

}  // namespace kernel::mlx5_ib
