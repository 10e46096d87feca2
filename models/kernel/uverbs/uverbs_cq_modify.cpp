// SPDX-License-Identifier: Apache-2.0
// Commands that change a CQ: moderation (S-MOD-1) and size (S-OBJ-36). Source: ib_uverbs uverbs_cmd.c.
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

int UverbsFile::modify_cq_ex(Io& io) {
  const auto cmd = io.request<ib_uverbs_ex_modify_cq>();
  if ((cmd.attr_mask & ~static_cast<std::uint32_t>(IBV_CQ_ATTR_MODERATE)) != 0 || cmd.reserved != 0) return -EINVAL;
  Use<Cq> cq;
  if (const int error = use(ObjectType::cq, cmd.cq_handle, cq); error != 0) return error;
  if ((cmd.attr_mask & IBV_CQ_ATTR_MODERATE) == 0) return 0;
  return ib_modify_cq(*cq, cmd.attr.cq_count, cmd.attr.cq_period);
}

int UverbsFile::resize_cq(Io& io) {
  const auto cmd = io.request<ib_uverbs_resize_cq>();
  Use<Cq> cq;
  if (const int error = use(ObjectType::cq, cmd.cq_handle, cq); error != 0) return error;
  if (const int error = ib_resize_cq(*cq, cmd.cqe, &io.udata); error != 0) return error;
  ib_uverbs_resize_cq_resp resp{};
  resp.cqe = cq->cqe;
  io.respond(resp);
  return 0;
}

}  // namespace kernel
