// SPDX-License-Identifier: Apache-2.0
// ibv_query_device_ex (S-OBJ-10): the attributes of ibv_query_device and those that came later. Zero stands for what the
// device does not have: on-demand paging, segmentation offload, receive hashing, tag matching, device memory.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs_frontend/libibverbs/ex_command.h"
#include "verbs_frontend/mlx5/mlx5.h"
#include "verbs_frontend/mlx5/verbs.h"

namespace verbs::mlx5 {

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (size < offsetof(ibv_device_attr_ex, comp_mask) + sizeof attr->comp_mask) return EINVAL;
  cpu::current().compute(process().config->control_call);
  ExCommand c(IB_USER_VERBS_EX_CMD_QUERY_DEVICE);
  c.add<ib_uverbs_ex_query_device>();
  const auto& r = c.expect<ib_uverbs_ex_query_device_resp>();
  if (const int e = c.issue(*context_of(context).syscalls, context->cmd_fd)) return e;
  ibv_device_attr_ex all{};
  fill_device_attr(r.base, all.orig_attr);
  all.completion_timestamp_mask = r.timestamp_mask;
  all.hca_core_clock = r.hca_core_clock;
  all.device_cap_flags_ex = r.device_cap_flags_ex;
  all.max_wq_type_rq = r.max_wq_type_rq;
  all.raw_packet_caps = r.raw_packet_caps;
  all.cq_mod_caps.max_cq_count = r.cq_moderation_caps.max_cq_moderation_count;
  all.cq_mod_caps.max_cq_period = r.cq_moderation_caps.max_cq_moderation_period;
  all.phys_port_cnt_ex = r.base.phys_port_cnt;
  std::memset(static_cast<void*>(attr), 0, size);
  std::memcpy(static_cast<void*>(attr), &all, std::min(size, sizeof all));
  return 0;
}

}  // namespace verbs::mlx5
