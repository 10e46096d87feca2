// SPDX-License-Identifier: Apache-2.0
// Commands that change a CQ: moderation (S-MOD-1) and size (S-OBJ-36, S-OVR-12). A resize gives the device a second buffer;
// when the command ends, the device has left the first, and the library moves what lies in it.
// Source: ib_uverbs uverbs_cmd.c, mlx5_ib cq.c.
#include <bit>
#include <cerrno>

#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/undo.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

int UverbsFile::modify_cq_ex(Io& io) {
  const auto cmd = io.request<ib_uverbs_ex_modify_cq>();
  if ((cmd.attr_mask & ~static_cast<std::uint32_t>(IBV_CQ_ATTR_MODERATE)) != 0 || cmd.reserved != 0) return -EINVAL;
  Use<Cq> cq;
  if (const int error = use(ObjectType::cq, cmd.cq_handle, cq); error != 0) return error;
  if ((cmd.attr_mask & IBV_CQ_ATTR_MODERATE) == 0) return 0;
  if (!kernel_.caps().moderation) return -EOPNOTSUPP;
  if (cmd.attr.cq_period > 0xfff) return -EINVAL;
  return modify_cq_moderation(kernel_.commands(), cq->cqn, cmd.attr.cq_count, cmd.attr.cq_period);
}

int UverbsFile::resize_cq(Io& io) {
  const auto cmd = io.request<ib_uverbs_resize_cq>();
  Use<Cq> cq;
  if (const int error = use(ObjectType::cq, cmd.cq_handle, cq); error != 0) return error;
  const std::uint32_t most = 1U << kernel_.caps().log_max_cq_sz;
  if (cmd.cqe == 0 || cmd.cqe >= most) return -EINVAL;
  const std::uint32_t entries = std::bit_ceil(cmd.cqe + 1);
  if (entries > most) return -EINVAL;
  if (cq->resizing) return -EBUSY;
  if (entries != cq->entries) {
    if (io.driver_in.size() < sizeof(mlx5_ib_resize_cq)) return -EINVAL;
    const auto user = io.driver_request<mlx5_ib_resize_cq>();
    if (user.reserved0 != 0 || user.reserved1 != 0 || user.buf_addr % 64 != 0 || user.cqe_size != cq->cqe_size)
      return -EINVAL;
    UserRegion buffer;
    if (const int error = kernel_.acquire(user_, {user.buf_addr}, std::uint64_t{entries} * user.cqe_size, buffer);
        error != 0)
      return error;
    cq->resizing = true;
    CqParams params;
    params.log_size = static_cast<unsigned>(std::bit_width(entries) - 1);
    params.page_offset = static_cast<std::uint32_t>(memory::Va{user.buf_addr}.offset() / 64);
    const int error = kernel::resize_cq(kernel_.commands(), cq->cqn, params, buffer.mapping);
    cq->resizing = false;
    kernel_.release(user_, error != 0 ? buffer : cq->buffer);
    if (error != 0) return error;
    cq->buffer = buffer;
    cq->entries = entries;
  }
  ib_uverbs_resize_cq_resp resp{};
  resp.cqe = entries - 1;
  io.respond(resp);
  return 0;
}

}  // namespace kernel
