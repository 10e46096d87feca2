// SPDX-License-Identifier: Apache-2.0
// The uverbs commands about SRQs without driver data.
#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/libibverbs/provider.h"

namespace verbs {

int cmd_modify_srq(ibv_srq* srq, const ibv_srq_attr& attr, int mask) {
  Command c(IB_USER_VERBS_CMD_MODIFY_SRQ);
  auto& req = c.add<ib_uverbs_modify_srq>();
  req.srq_handle = srq->handle;
  req.attr_mask = static_cast<std::uint32_t>(mask);
  req.max_wr = attr.max_wr;
  req.srq_limit = attr.srq_limit;
  return c.issue(*context_of(srq->context).syscalls, srq->context->cmd_fd);
}

int cmd_query_srq(ibv_srq* srq, ibv_srq_attr& attr) {
  Command c(IB_USER_VERBS_CMD_QUERY_SRQ);
  auto& req = c.add<ib_uverbs_query_srq>();
  const auto& r = c.expect<ib_uverbs_query_srq_resp>();
  req.response = c.response_address();
  req.srq_handle = srq->handle;
  if (const int e = c.issue(*context_of(srq->context).syscalls, srq->context->cmd_fd)) return e;
  attr = {r.max_wr, r.max_sge, r.srq_limit};
  return 0;
}

int cmd_destroy_srq(ibv_srq* srq) {
  Command c(IB_USER_VERBS_CMD_DESTROY_SRQ);
  auto& req = c.add<ib_uverbs_destroy_srq>();
  const auto& r = c.expect<ib_uverbs_destroy_srq_resp>();
  req.response = c.response_address();
  req.srq_handle = srq->handle;
  if (const int e = c.issue(*context_of(srq->context).syscalls, srq->context->cmd_fd)) return e;
  wait_for_acks(reinterpret_cast<SrqBase*>(srq)->ack_waiters, srq->events_completed, r.events_reported,
                "ibv_destroy_srq: async events not acknowledged");
  return 0;
}

}  // namespace verbs
