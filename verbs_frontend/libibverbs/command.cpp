// SPDX-License-Identifier: Apache-2.0
// The uverbs commands without driver data: marshalling between the verbs structs and <rdma/ib_user_verbs.h>. Commands
// with driver data (GET_CONTEXT, ALLOC_PD, CREATE_CQ, CREATE_QP) are built by the provider. Follows the write() ABI; the
// newer ioctl ABI is not used.
#include "verbs_frontend/libibverbs/command.h"

#include <cstring>

#include "verbs_frontend/libibverbs/ex_command.h"
#include "verbs_frontend/libibverbs/provider.h"

namespace verbs {
namespace {

int issue(Command& c, ibv_context* context) { return c.issue(*context_of(context).syscalls, context->cmd_fd); }

void to_kernel(const ibv_ah_attr& from, ib_uverbs_qp_dest& to) {
  std::memcpy(to.dgid, from.grh.dgid.raw, sizeof to.dgid);
  to.flow_label = from.grh.flow_label;
  to.dlid = from.dlid;
  to.sgid_index = from.grh.sgid_index;
  to.hop_limit = from.grh.hop_limit;
  to.traffic_class = from.grh.traffic_class;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.is_global;
  to.port_num = from.port_num;
}

void from_kernel(const ib_uverbs_qp_dest& from, ibv_ah_attr& to) {
  std::memcpy(to.grh.dgid.raw, from.dgid, sizeof from.dgid);
  to.grh.flow_label = from.flow_label;
  to.dlid = from.dlid;
  to.grh.sgid_index = from.sgid_index;
  to.grh.hop_limit = from.hop_limit;
  to.grh.traffic_class = from.traffic_class;
  to.sl = from.sl;
  to.src_path_bits = from.src_path_bits;
  to.static_rate = from.static_rate;
  to.is_global = from.is_global;
  to.port_num = from.port_num;
}

std::string firmware_version(std::uint64_t v) {
  return std::to_string(v >> 32 & 0xffff) + "." + std::to_string(v >> 16 & 0xffff) + "." + std::to_string(v & 0xffff);
}

}  // namespace

int cmd_query_device(ibv_context* context, ibv_device_attr& out) {
  Command c(IB_USER_VERBS_CMD_QUERY_DEVICE);
  auto& req = c.add<ib_uverbs_query_device>();
  const auto& r = c.expect<ib_uverbs_query_device_resp>();
  req.response = c.response_address();
  if (const int e = issue(c, context)) return e;
  out = {};
  fill_device_attr(r, out);
  return 0;
}

void fill_device_attr(const ib_uverbs_query_device_resp& r, ibv_device_attr& out) {
  const std::string fw = firmware_version(r.fw_ver);
  fw.copy(out.fw_ver, sizeof out.fw_ver - 1);
  out.node_guid = r.node_guid;
  out.sys_image_guid = r.sys_image_guid;
  out.max_mr_size = r.max_mr_size;
  out.page_size_cap = r.page_size_cap;
  out.vendor_id = r.vendor_id;
  out.vendor_part_id = r.vendor_part_id;
  out.hw_ver = r.hw_ver;
  out.max_qp = static_cast<int>(r.max_qp);
  out.max_qp_wr = static_cast<int>(r.max_qp_wr);
  out.device_cap_flags = r.device_cap_flags;
  out.max_sge = static_cast<int>(r.max_sge);
  out.max_sge_rd = static_cast<int>(r.max_sge_rd);
  out.max_cq = static_cast<int>(r.max_cq);
  out.max_cqe = static_cast<int>(r.max_cqe);
  out.max_mr = static_cast<int>(r.max_mr);
  out.max_pd = static_cast<int>(r.max_pd);
  out.max_qp_rd_atom = static_cast<int>(r.max_qp_rd_atom);
  out.max_ee_rd_atom = static_cast<int>(r.max_ee_rd_atom);
  out.max_res_rd_atom = static_cast<int>(r.max_res_rd_atom);
  out.max_qp_init_rd_atom = static_cast<int>(r.max_qp_init_rd_atom);
  out.max_ee_init_rd_atom = static_cast<int>(r.max_ee_init_rd_atom);
  out.atomic_cap = static_cast<ibv_atomic_cap>(r.atomic_cap);
  out.max_ee = static_cast<int>(r.max_ee);
  out.max_rdd = static_cast<int>(r.max_rdd);
  out.max_mw = static_cast<int>(r.max_mw);
  out.max_raw_ipv6_qp = static_cast<int>(r.max_raw_ipv6_qp);
  out.max_raw_ethy_qp = static_cast<int>(r.max_raw_ethy_qp);
  out.max_mcast_grp = static_cast<int>(r.max_mcast_grp);
  out.max_mcast_qp_attach = static_cast<int>(r.max_mcast_qp_attach);
  out.max_total_mcast_qp_attach = static_cast<int>(r.max_total_mcast_qp_attach);
  out.max_ah = static_cast<int>(r.max_ah);
  out.max_fmr = static_cast<int>(r.max_fmr);
  out.max_map_per_fmr = static_cast<int>(r.max_map_per_fmr);
  out.max_srq = static_cast<int>(r.max_srq);
  out.max_srq_wr = static_cast<int>(r.max_srq_wr);
  out.max_srq_sge = static_cast<int>(r.max_srq_sge);
  out.max_pkeys = r.max_pkeys;
  out.local_ca_ack_delay = r.local_ca_ack_delay;
  out.phys_port_cnt = r.phys_port_cnt;
}

int cmd_query_port(ibv_context* context, std::uint8_t port, ibv_port_attr& out) {
  Command c(IB_USER_VERBS_CMD_QUERY_PORT);
  auto& req = c.add<ib_uverbs_query_port>();
  const auto& r = c.expect<ib_uverbs_query_port_resp>();
  req.response = c.response_address();
  req.port_num = port;
  if (const int e = issue(c, context)) return e;
  out = {};
  out.state = static_cast<ibv_port_state>(r.state);
  out.max_mtu = static_cast<ibv_mtu>(r.max_mtu);
  out.active_mtu = static_cast<ibv_mtu>(r.active_mtu);
  out.gid_tbl_len = static_cast<int>(r.gid_tbl_len);
  out.port_cap_flags = r.port_cap_flags;
  out.max_msg_sz = r.max_msg_sz;
  out.bad_pkey_cntr = r.bad_pkey_cntr;
  out.qkey_viol_cntr = r.qkey_viol_cntr;
  out.pkey_tbl_len = r.pkey_tbl_len;
  out.lid = r.lid;
  out.sm_lid = r.sm_lid;
  out.lmc = r.lmc;
  out.max_vl_num = r.max_vl_num;
  out.sm_sl = r.sm_sl;
  out.subnet_timeout = r.subnet_timeout;
  out.init_type_reply = r.init_type_reply;
  out.active_width = r.active_width;
  out.active_speed = r.active_speed;
  out.phys_state = r.phys_state;
  out.link_layer = r.link_layer;
  out.flags = r.flags;
  return 0;
}

int cmd_dealloc_pd(ibv_pd* pd) {
  Command c(IB_USER_VERBS_CMD_DEALLOC_PD);
  c.add<ib_uverbs_dealloc_pd>().pd_handle = pd->handle;
  return issue(c, pd->context);
}

int cmd_reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access, ibv_mr& mr) {
  Command c(IB_USER_VERBS_CMD_REG_MR);
  auto& req = c.add<ib_uverbs_reg_mr>();
  const auto& r = c.expect<ib_uverbs_reg_mr_resp>();
  req.response = c.response_address();
  req.start = reinterpret_cast<std::uint64_t>(addr);
  req.length = length;
  req.hca_va = iova;
  req.pd_handle = pd->handle;
  req.access_flags = static_cast<std::uint32_t>(access);
  if (const int e = issue(c, pd->context)) return e;
  mr.context = pd->context;
  mr.pd = pd;
  mr.addr = addr;
  mr.length = length;
  mr.handle = r.mr_handle;
  mr.lkey = r.lkey;
  mr.rkey = r.rkey;
  return 0;
}

int cmd_rereg_mr(ibv_mr& mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  Command c(IB_USER_VERBS_CMD_REREG_MR);
  auto& req = c.add<ib_uverbs_rereg_mr>();
  const auto& r = c.expect<ib_uverbs_rereg_mr_resp>();
  req.response = c.response_address();
  req.mr_handle = mr.handle;
  req.flags = static_cast<std::uint32_t>(flags);
  req.start = req.hca_va = reinterpret_cast<std::uint64_t>(addr);
  req.length = length;
  req.pd_handle = flags & IBV_REREG_MR_CHANGE_PD ? pd->handle : 0;
  req.access_flags = static_cast<std::uint32_t>(access);
  if (const int e = issue(c, mr.context)) return e;
  mr.lkey = r.lkey;
  mr.rkey = r.rkey;
  return 0;
}

int cmd_dereg_mr(ibv_mr* mr) {
  Command c(IB_USER_VERBS_CMD_DEREG_MR);
  c.add<ib_uverbs_dereg_mr>().mr_handle = mr->handle;
  return issue(c, mr->context);
}

int cmd_alloc_mw(ibv_pd* pd, ibv_mw_type type, ibv_mw& mw) {
  Command c(IB_USER_VERBS_CMD_ALLOC_MW);
  auto& req = c.add<ib_uverbs_alloc_mw>();
  const auto& r = c.expect<ib_uverbs_alloc_mw_resp>();
  req.response = c.response_address();
  req.pd_handle = pd->handle;
  req.mw_type = static_cast<std::uint8_t>(type);
  if (const int e = issue(c, pd->context)) return e;
  mw = {pd->context, pd, r.rkey, r.mw_handle, type};
  return 0;
}

int cmd_dealloc_mw(ibv_mw* mw) {
  Command c(IB_USER_VERBS_CMD_DEALLOC_MW);
  c.add<ib_uverbs_dealloc_mw>().mw_handle = mw->handle;
  return issue(c, mw->context);
}

int cmd_modify_cq(ibv_cq* cq, const ibv_modify_cq_attr& attr) {
  ExCommand c(IB_USER_VERBS_EX_CMD_MODIFY_CQ);
  auto& req = c.add<ib_uverbs_ex_modify_cq>();
  req.cq_handle = cq->handle;
  req.attr_mask = attr.attr_mask;
  req.attr.cq_count = attr.moderate.cq_count;
  req.attr.cq_period = attr.moderate.cq_period;
  return c.issue(*context_of(cq->context).syscalls, cq->context->cmd_fd);
}

int cmd_destroy_cq(ibv_cq* cq) {
  Command c(IB_USER_VERBS_CMD_DESTROY_CQ);
  auto& req = c.add<ib_uverbs_destroy_cq>();
  const auto& r = c.expect<ib_uverbs_destroy_cq_resp>();
  req.response = c.response_address();
  req.cq_handle = cq->handle;
  if (const int e = issue(c, cq->context)) return e;
  AckWaiters& w = reinterpret_cast<CqBase*>(cq)->ack_waiters;
  wait_for_acks(w, cq->comp_events_completed, r.comp_events_reported,
                "ibv_destroy_cq: completion events not acknowledged");
  wait_for_acks(w, cq->async_events_completed, r.async_events_reported,
                "ibv_destroy_cq: async events not acknowledged");
  return 0;
}

int cmd_modify_qp(ibv_qp* qp, const ibv_qp_attr& a, int mask) {
  Command c(IB_USER_VERBS_CMD_MODIFY_QP);
  auto& req = c.add<ib_uverbs_modify_qp>();
  req.qp_handle = qp->handle;
  req.attr_mask = static_cast<std::uint32_t>(mask);
  if (mask & IBV_QP_AV) to_kernel(a.ah_attr, req.dest);
  if (mask & IBV_QP_ALT_PATH) to_kernel(a.alt_ah_attr, req.alt_dest);
  req.qkey = a.qkey;
  req.rq_psn = a.rq_psn;
  req.sq_psn = a.sq_psn;
  req.dest_qp_num = a.dest_qp_num;
  req.qp_access_flags = a.qp_access_flags;
  req.pkey_index = a.pkey_index;
  req.alt_pkey_index = a.alt_pkey_index;
  req.qp_state = static_cast<std::uint8_t>(a.qp_state);
  req.cur_qp_state = static_cast<std::uint8_t>(a.cur_qp_state);
  req.path_mtu = static_cast<std::uint8_t>(a.path_mtu);
  req.path_mig_state = static_cast<std::uint8_t>(a.path_mig_state);
  req.en_sqd_async_notify = a.en_sqd_async_notify;
  req.max_rd_atomic = a.max_rd_atomic;
  req.max_dest_rd_atomic = a.max_dest_rd_atomic;
  req.min_rnr_timer = a.min_rnr_timer;
  req.port_num = a.port_num;
  req.timeout = a.timeout;
  req.retry_cnt = a.retry_cnt;
  req.rnr_retry = a.rnr_retry;
  req.alt_port_num = a.alt_port_num;
  req.alt_timeout = a.alt_timeout;
  return issue(c, qp->context);
}

int cmd_query_qp(ibv_qp* qp, ibv_qp_attr& a, int mask, ibv_qp_init_attr& init) {
  Command c(IB_USER_VERBS_CMD_QUERY_QP);
  auto& req = c.add<ib_uverbs_query_qp>();
  const auto& r = c.expect<ib_uverbs_query_qp_resp>();
  req.response = c.response_address();
  req.qp_handle = qp->handle;
  req.attr_mask = static_cast<std::uint32_t>(mask);
  if (const int e = issue(c, qp->context)) return e;
  a = {};
  from_kernel(r.dest, a.ah_attr);
  from_kernel(r.alt_dest, a.alt_ah_attr);
  a.cap = {r.max_send_wr, r.max_recv_wr, r.max_send_sge, r.max_recv_sge, r.max_inline_data};
  a.qkey = r.qkey;
  a.rq_psn = r.rq_psn;
  a.sq_psn = r.sq_psn;
  a.dest_qp_num = r.dest_qp_num;
  a.qp_access_flags = r.qp_access_flags;
  a.pkey_index = r.pkey_index;
  a.alt_pkey_index = r.alt_pkey_index;
  a.qp_state = static_cast<ibv_qp_state>(r.qp_state);
  a.cur_qp_state = static_cast<ibv_qp_state>(r.cur_qp_state);
  a.path_mtu = static_cast<ibv_mtu>(r.path_mtu);
  a.path_mig_state = static_cast<ibv_mig_state>(r.path_mig_state);
  a.sq_draining = r.sq_draining;
  a.max_rd_atomic = r.max_rd_atomic;
  a.max_dest_rd_atomic = r.max_dest_rd_atomic;
  a.min_rnr_timer = r.min_rnr_timer;
  a.port_num = r.port_num;
  a.timeout = r.timeout;
  a.retry_cnt = r.retry_cnt;
  a.rnr_retry = r.rnr_retry;
  a.alt_port_num = r.alt_port_num;
  a.alt_timeout = r.alt_timeout;
  init = {};
  init.qp_context = qp->qp_context;
  init.send_cq = qp->send_cq;
  init.recv_cq = qp->recv_cq;
  init.srq = qp->srq;
  init.cap = a.cap;
  init.qp_type = qp->qp_type;
  init.sq_sig_all = r.sq_sig_all;
  return 0;
}

int cmd_destroy_qp(ibv_qp* qp) {
  Command c(IB_USER_VERBS_CMD_DESTROY_QP);
  auto& req = c.add<ib_uverbs_destroy_qp>();
  const auto& r = c.expect<ib_uverbs_destroy_qp_resp>();
  req.response = c.response_address();
  req.qp_handle = qp->handle;
  if (const int e = issue(c, qp->context)) return e;
  wait_for_acks(reinterpret_cast<QpBase*>(qp)->ack_waiters, qp->events_completed, r.events_reported,
                "ibv_destroy_qp: async events not acknowledged");
  return 0;
}

void wait_for_acks(AckWaiters& w, const std::uint32_t& completed, std::uint32_t reported, const char* why) {
  while (completed != reported) {
    w.threads.push_back(&cpu::current());
    cpu::current().park(why);
  }
}

void wake_ack_waiters(AckWaiters& w) {
  for (cpu::Thread* t : w.threads) t->unpark(cpu::current().now());
  w.threads.clear();
}

std::nullptr_t fail(int error) {
  errno = error;
  return nullptr;
}

}  // namespace verbs
