// SPDX-License-Identifier: Apache-2.0
// Commands that create, modify, query and destroy QPs. Source: ib_uverbs uverbs_cmd.c (create_qp, modify_qp, query_qp).
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

int UverbsFile::create_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_create_qp>();
  const bool xrc_send = cmd.qp_type == IBV_QPT_XRC_SEND;
  if (cmd.qp_type != IBV_QPT_RC && cmd.qp_type != IBV_QPT_UC && cmd.qp_type != IBV_QPT_UD && !xrc_send &&
      cmd.qp_type != IBV_QPT_XRC_RECV)
    return -EOPNOTSUPP;
  if (cmd.qp_type == IBV_QPT_XRC_RECV) return create_xrc_target(cmd, io);
  Use<Pd> pd;
  Use<Cq> send_cq, recv_cq;
  Use<Srq> srq;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  if (const int error = parent(ObjectType::cq, cmd.send_cq_handle, send_cq); error != 0) return error;
  if (!xrc_send)
    if (const int error = parent(ObjectType::cq, cmd.recv_cq_handle, recv_cq); error != 0) return error;
  if (!xrc_send && cmd.is_srq != 0) {
    if (const int error = parent(ObjectType::srq, cmd.srq_handle, srq); error != 0) return error;
    if (srq->xrcd != nullptr) return -EINVAL;  // XRC SRQs serve XRC target QPs
  }
  QpInitAttr attr;
  attr.send_cq = send_cq.get();
  attr.recv_cq = recv_cq.get();
  attr.srq = srq.get();
  attr.cap = {cmd.max_send_wr, cmd.max_recv_wr, cmd.max_send_sge, cmd.max_recv_sge, cmd.max_inline_data};
  attr.qp_type = static_cast<ibv_qp_type>(cmd.qp_type);
  attr.sq_sig_all = cmd.sq_sig_all != 0;
  std::unique_ptr<Qp> qp;
  if (const int error = ib_create_qp(*pd, attr, consumer(), &io.udata, qp); error != 0) return error;
  ib_uverbs_create_qp_resp resp{};
  resp.qpn = qp->qpn;
  resp.max_send_wr = qp->cap.max_send_wr;
  resp.max_recv_wr = qp->cap.max_recv_wr;
  resp.max_send_sge = qp->cap.max_send_sge;
  resp.max_recv_sge = qp->cap.max_recv_sge;
  resp.max_inline_data = qp->cap.max_inline_data;
  resp.qp_handle = add(std::move(qp), cmd.user_handle);
  io.respond(resp);
  return 0;
}

// Address vector and port: INIT to RTR keeps the port; elsewhere the address vector's port becomes the QP's.
int UverbsFile::check_ports(const Qp& qp, ib_uverbs_modify_qp& cmd) const {
  const auto valid = [&](std::uint8_t port) { return port >= 1 && port <= device_->attr.ex.orig_attr.phys_port_cnt; };
  const std::uint32_t mask = cmd.attr_mask;
  if ((mask & IBV_QP_PORT) != 0 && !valid(cmd.port_num)) return -EINVAL;
  if ((mask & IBV_QP_AV) == 0) return 0;
  if (!valid(cmd.dest.port_num)) return -EINVAL;
  if ((mask & IBV_QP_STATE) != 0 && cmd.qp_state == IBV_QPS_RTR) return cmd.dest.port_num == qp.port ? 0 : -EINVAL;
  if ((mask & IBV_QP_PORT) != 0) return cmd.port_num == cmd.dest.port_num ? 0 : -EINVAL;
  cmd.port_num = cmd.dest.port_num;
  cmd.attr_mask |= IBV_QP_PORT;
  return 0;
}

namespace {

/// The attributes that the mask names; alternate paths do not exist on RoCE.
ibv_qp_attr attributes(const ib_uverbs_modify_qp& cmd) {
  ibv_qp_attr a{};
  const auto given = [&](std::uint32_t bit) { return (cmd.attr_mask & bit) != 0; };
  if (given(IBV_QP_STATE)) a.qp_state = static_cast<ibv_qp_state>(cmd.qp_state);
  if (given(IBV_QP_CUR_STATE)) a.cur_qp_state = static_cast<ibv_qp_state>(cmd.cur_qp_state);
  if (given(IBV_QP_PATH_MTU)) a.path_mtu = static_cast<ibv_mtu>(cmd.path_mtu);
  a.qkey = cmd.qkey;
  a.rq_psn = cmd.rq_psn;
  a.sq_psn = cmd.sq_psn;
  a.dest_qp_num = cmd.dest_qp_num;
  a.qp_access_flags = cmd.qp_access_flags;
  a.pkey_index = cmd.pkey_index;
  a.en_sqd_async_notify = cmd.en_sqd_async_notify;
  a.max_rd_atomic = cmd.max_rd_atomic;
  a.max_dest_rd_atomic = cmd.max_dest_rd_atomic;
  a.min_rnr_timer = cmd.min_rnr_timer;
  a.port_num = cmd.port_num;
  a.timeout = cmd.timeout;
  a.retry_cnt = cmd.retry_cnt;
  a.rnr_retry = cmd.rnr_retry;
  ibv_ah_attr& av = a.ah_attr;
  std::memcpy(av.grh.dgid.raw, cmd.dest.dgid, sizeof av.grh.dgid.raw);
  av.grh.flow_label = cmd.dest.flow_label;
  av.grh.sgid_index = cmd.dest.sgid_index;
  av.grh.hop_limit = cmd.dest.hop_limit;
  av.grh.traffic_class = cmd.dest.traffic_class;
  av.sl = cmd.dest.sl;
  av.static_rate = cmd.dest.static_rate;
  av.is_global = cmd.dest.is_global;
  av.port_num = cmd.dest.port_num;
  return a;
}

}  // namespace

int UverbsFile::modify_qp(Io& io) {
  auto cmd = io.request<ib_uverbs_modify_qp>();
  if ((cmd.attr_mask & ~((static_cast<std::uint32_t>(IBV_QP_DEST_QPN) << 1) - 1)) != 0) return -EOPNOTSUPP;
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  if (const int error = check_ports(qp->target(), cmd); error != 0) return error;
  const auto given = [&](std::uint32_t bit) { return (cmd.attr_mask & bit) != 0; };
  if (given(IBV_QP_CUR_STATE) && cmd.cur_qp_state > IBV_QPS_ERR) return -EINVAL;
  if (given(IBV_QP_STATE) && cmd.qp_state > IBV_QPS_ERR) return -EINVAL;
  if (given(IBV_QP_PATH_MTU) && cmd.path_mtu > IBV_MTU_4096) return -EINVAL;
  if (given(IBV_QP_QKEY) && (cmd.qkey >> 31) != 0 && !kernel_.config().driver.privileged) return -EPERM;
  if (given(IBV_QP_ALT_PATH)) return -EINVAL;
  return ib_modify_qp(*qp, attributes(cmd), cmd.attr_mask, &io.udata);
}

int UverbsFile::query_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_query_qp>();
  Use<Qp> qp;
  if (const int error = use(ObjectType::qp, cmd.qp_handle, qp); error != 0) return error;
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  if (const int error = ib_query_qp(*qp, a, init); error != 0) return error;
  ib_uverbs_query_qp_resp r{};
  r.qp_state = static_cast<std::uint8_t>(a.qp_state);
  r.cur_qp_state = static_cast<std::uint8_t>(a.cur_qp_state);
  r.sq_draining = a.sq_draining;
  r.path_mtu = static_cast<std::uint8_t>(a.path_mtu);
  r.path_mig_state = static_cast<std::uint8_t>(a.path_mig_state);
  r.qkey = a.qkey;
  r.rq_psn = a.rq_psn;
  r.sq_psn = a.sq_psn;
  r.dest_qp_num = a.dest_qp_num;
  r.qp_access_flags = a.qp_access_flags;
  r.pkey_index = a.pkey_index;
  r.port_num = a.port_num;
  r.timeout = a.timeout;
  r.retry_cnt = a.retry_cnt;
  r.rnr_retry = a.rnr_retry;
  r.min_rnr_timer = a.min_rnr_timer;
  r.max_rd_atomic = a.max_rd_atomic;
  r.max_dest_rd_atomic = a.max_dest_rd_atomic;
  r.sq_sig_all = static_cast<std::uint8_t>(init.sq_sig_all);
  r.max_send_wr = a.cap.max_send_wr;
  r.max_recv_wr = a.cap.max_recv_wr;
  r.max_send_sge = a.cap.max_send_sge;
  r.max_recv_sge = a.cap.max_recv_sge;
  r.max_inline_data = a.cap.max_inline_data;
  std::memcpy(r.dest.dgid, a.ah_attr.grh.dgid.raw, sizeof r.dest.dgid);
  r.dest.flow_label = a.ah_attr.grh.flow_label;
  r.dest.sgid_index = a.ah_attr.grh.sgid_index;
  r.dest.hop_limit = a.ah_attr.grh.hop_limit;
  r.dest.traffic_class = a.ah_attr.grh.traffic_class;
  r.dest.sl = a.ah_attr.sl;
  r.dest.is_global = a.ah_attr.is_global;
  r.dest.port_num = a.ah_attr.port_num;
  io.respond(r);
  return 0;
}

int UverbsFile::destroy_qp(Io& io) {
  const auto cmd = io.request<ib_uverbs_destroy_qp>();
  ib_uverbs_destroy_qp_resp resp{};
  const auto report = [](const Uobject& u, void* arg) {
    static_cast<ib_uverbs_destroy_qp_resp*>(arg)->events_reported = u.async_events_reported;
  };
  const int error = destroy(ObjectType::qp, cmd.qp_handle, report, &resp);
  if (error == 0) io.respond(resp);
  return error;
}

}  // namespace kernel
