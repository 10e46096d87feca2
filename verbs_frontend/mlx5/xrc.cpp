// SPDX-License-Identifier: Apache-2.0
// XRC domains, and target QPs, which exist in the kernel only: a program configures them and never posts to them.
#include "verbs_frontend/mlx5/xrc.h"

#include <rdma/mlx5-abi.h>

#include <cerrno>
#include <memory>

#include "verbs_frontend/libibverbs/command.h"

namespace verbs::mlx5 {
namespace {

/// A QP object without rings.
std::unique_ptr<Qp> make_target(ibv_context* context, void* qp_context) {
  auto qp = std::make_unique<Qp>();
  ibv_qp& q = qp->qp();
  q.context = context;
  q.qp_context = qp_context;
  q.state = IBV_QPS_RESET;
  q.qp_type = IBV_QPT_XRC_RECV;
  return qp;
}

ibv_qp* finish(std::unique_ptr<Qp> qp, const ib_uverbs_create_qp_resp& resp) {
  qp->qp().handle = resp.qp_handle;
  qp->qp().qp_num = resp.qpn;
  return &qp.release()->qp();
}

}  // namespace

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  cpu::current().compute(process().config->control_call);
  constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr->comp_mask & ~kNeeded) != 0) return fail(ENOSYS);
  if ((attr->comp_mask & kNeeded) != kNeeded) return fail(EINVAL);
  Command c(IB_USER_VERBS_CMD_OPEN_XRCD);
  auto& req = c.add<ib_uverbs_open_xrcd>();
  const auto& resp = c.expect<ib_uverbs_open_xrcd_resp>();
  req.response = c.response_address();
  req.fd = static_cast<std::uint32_t>(attr->fd);
  req.oflags = static_cast<std::uint32_t>(attr->oflags);
  if (c.issue(*context_of(context).syscalls, context->cmd_fd) != 0) return nullptr;
  return &(new Xrcd{{context}, resp.xrcd_handle})->xrcd;
}

int close_xrcd(ibv_xrcd* xrcd) {
  cpu::current().compute(process().config->control_call);
  Command c(IB_USER_VERBS_CMD_CLOSE_XRCD);
  c.add<ib_uverbs_close_xrcd>().xrcd_handle = xrcd_of(xrcd).handle;
  if (const int e = c.issue(*context_of(xrcd->context).syscalls, xrcd->context->cmd_fd)) return e;
  delete &xrcd_of(xrcd);
  return 0;
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  cpu::current().compute(process().config->control_call);
  constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  constexpr std::uint32_t kKnown = kNeeded | IBV_QP_OPEN_ATTR_CONTEXT;
  if ((attr->comp_mask & ~kKnown) != 0) return fail(ENOSYS);
  if ((attr->comp_mask & kNeeded) != kNeeded) return fail(EINVAL);
  auto qp = make_target(context, (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr);
  Command c(IB_USER_VERBS_CMD_OPEN_QP);
  auto& req = c.add<ib_uverbs_open_qp>();
  const auto& resp = c.expect<ib_uverbs_create_qp_resp>();
  req.response = c.response_address();
  req.user_handle = reinterpret_cast<std::uint64_t>(&qp->qp());
  req.pd_handle = xrcd_of(attr->xrcd).handle;
  req.qpn = attr->qp_num;
  req.qp_type = static_cast<std::uint8_t>(attr->qp_type);
  if (c.issue(*context_of(context).syscalls, context->cmd_fd) != 0) return nullptr;
  return finish(std::move(qp), resp);
}

ibv_qp* create_xrc_target(ibv_context* context, ibv_qp_init_attr_ex& a) {
  if ((a.comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0) return fail(EINVAL);
  auto qp = make_target(context, a.qp_context);
  Command c(IB_USER_VERBS_CMD_CREATE_QP);
  auto& req = c.add<ib_uverbs_create_qp>();
  c.add<mlx5_ib_create_qp>();
  const auto& resp = c.expect<ib_uverbs_create_qp_resp>();
  c.expect<mlx5_ib_create_qp_resp>();
  req.response = c.response_address();
  req.user_handle = reinterpret_cast<std::uint64_t>(&qp->qp());
  req.pd_handle = xrcd_of(a.xrcd).handle;
  req.qp_type = IBV_QPT_XRC_RECV;
  if (c.issue(*context_of(context).syscalls, context->cmd_fd) != 0) return nullptr;
  a.cap = {};
  return finish(std::move(qp), resp);
}

}  // namespace verbs::mlx5
