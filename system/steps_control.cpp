// SPDX-License-Identifier: Apache-2.0
// Steps of the control path: queue pair attributes, resizing, shared receive queues, multicast, memory windows.
#include <arpa/inet.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "system/steps_program.h"

namespace sys {
namespace {

constexpr std::uint32_t kDefaultPsn = 256;

ibv_mtu mtu_code(std::uint32_t bytes) { return static_cast<ibv_mtu>(std::bit_width(bytes) - 8); }

/// Attributes that a transition to `to` requires (S-QP-12).
int required(ibv_qp_type type, ibv_qp_state to) {
  const bool rc = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
  const bool responds = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV,
             requests = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  switch (to) {
    case IBV_QPS_INIT:
      if (type == IBV_QPT_RAW_PACKET) return IBV_QP_PORT;
      return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    case IBV_QPS_RTR:
      if (type == IBV_QPT_UD || type == IBV_QPT_RAW_PACKET) return 0;
      return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             (responds ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    case IBV_QPS_RTS:
      if (type == IBV_QPT_RAW_PACKET) return 0;
      return IBV_QP_SQ_PSN | (rc ? IBV_QP_TIMEOUT : 0) |
             (requests ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);
    default:
      return 0;
  }
}

/// What is written in `c`, and its mask.
int take(StepObjects& objects, const QpAttrConfig& c, const std::string& peer_program, ibv_qp_attr& a) {
  int mask = 0;
  const auto number = [&mask](const auto& from, auto& to, int bit) {
    if (!from) return;
    to = static_cast<std::remove_reference_t<decltype(to)>>(*from);
    mask |= bit;
  };
  number(c.cur_qp_state, a.cur_qp_state, IBV_QP_CUR_STATE);
  number(c.qkey, a.qkey, IBV_QP_QKEY);
  number(c.rq_psn, a.rq_psn, IBV_QP_RQ_PSN);
  number(c.sq_psn, a.sq_psn, IBV_QP_SQ_PSN);
  number(c.dest_qp_num, a.dest_qp_num, IBV_QP_DEST_QPN);
  number(c.pkey_index, a.pkey_index, IBV_QP_PKEY_INDEX);
  number(c.max_rd_atomic, a.max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC);
  number(c.max_dest_rd_atomic, a.max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC);
  number(c.min_rnr_timer, a.min_rnr_timer, IBV_QP_MIN_RNR_TIMER);
  number(c.port_num, a.port_num, IBV_QP_PORT);
  number(c.timeout, a.timeout, IBV_QP_TIMEOUT);
  number(c.retry_cnt, a.retry_cnt, IBV_QP_RETRY_CNT);
  number(c.rnr_retry, a.rnr_retry, IBV_QP_RNR_RETRY);
  number(c.en_sqd_async_notify, a.en_sqd_async_notify, IBV_QP_EN_SQD_ASYNC_NOTIFY);
  if (c.path_mtu) {
    a.path_mtu = mtu_code(*c.path_mtu);
    mask |= IBV_QP_PATH_MTU;
  }
  if (c.qp_access_flags) {
    a.qp_access_flags = mask_of(*c.qp_access_flags);
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (c.ah_attr) {
    a.ah_attr = objects.ah_attr(*c.ah_attr, peer_program);
    mask |= IBV_QP_AV;
  }
  return mask;
}

/// Everything that a QP's declaration says or leaves to the defaults.
void take_declaration(StepObjects& objects, const std::string& name, ibv_qp_attr& a) {
  const QpConfig& c = objects.qp_config(name);
  a.path_mtu = IBV_MTU_4096;
  a.qkey = kDefaultQkey;
  a.sq_psn = a.rq_psn = kDefaultPsn;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  a.max_rd_atomic = a.max_dest_rd_atomic = 16;
  a.min_rnr_timer = 12;
  a.port_num = 1;
  a.timeout = 14;
  a.retry_cnt = a.rnr_retry = 7;
  std::string peer_program;
  if (!c.peer.empty()) {
    const auto [owner, peer] = objects.foreign(c.peer);
    peer_program = owner->program();
    a.dest_qp_num = owner->qp({peer})->qp_num;
    a.rq_psn = owner->qp_config(peer).attr.sq_psn.value_or(kDefaultPsn);
    a.ah_attr = objects.ah_attr({}, peer_program);
  }
  take(objects, c.attr, peer_program, a);
}

std::string peer_program_of(StepObjects& objects, const std::string& qp) {
  const Name& peer = objects.qp_config(qp).peer;
  return peer.empty() ? "" : objects.foreign(peer).first->program();
}

int modify(StepObjects& objects, const StepObjects::Object& q, std::optional<ibv_qp_state> to, const QpAttrConfig& attr,
           bool fill) {
  ibv_qp_attr a{};
  auto* const qp = static_cast<ibv_qp*>(q.handle);
  int mask = 0;
  if (fill && to) {
    mask |= required(qp->qp_type, *to);
    if (mask != 0) take_declaration(objects, q.name, a);
  }
  mask |= take(objects, attr, peer_program_of(objects, q.name), a);
  if (to) {
    a.qp_state = *to;
    mask |= IBV_QP_STATE;
  }
  return ibv_modify_qp(qp, &a, mask);
}

template <class T>
void same(const char* field, const std::optional<T>& expected, std::uint64_t got) {
  if (expected && static_cast<std::uint64_t>(*expected) != got)
    throw StepFailed{std::string(field) + " is " + std::to_string(got) + ", expected " +
                     std::to_string(static_cast<std::uint64_t>(*expected))};
}

}  // namespace

int StepsProgram::connect(StepObjects& objects, const Name& name, ibv_qp_state from, ibv_qp_state to) {
  const StepObjects::Object& q = objects.find(name, ObjectKind::qp);
  for (const ibv_qp_state s : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS})
    if (s > from && s <= to)
      if (const int e = modify(objects, q, s, {}, true)) return e;
  return 0;
}

int StepsProgram::modify_qp(const ModifyQpStep& s) {
  return modify(objects_, objects_.find(s.qp, ObjectKind::qp), s.qp_state, s.attr, s.fill);
}

int StepsProgram::query_qp(const QueryQpStep& s) {
  ibv_qp_attr a{}, wanted{};
  ibv_qp_init_attr init{};
  const StepObjects::Object& q = objects_.find(s.qp, ObjectKind::qp);
  const int mask = take(objects_, s.attr, {}, wanted);
  if (const int e = ibv_query_qp(static_cast<ibv_qp*>(q.handle), &a, IBV_QP_STATE | mask, &init)) return e;
  if (s.qp_state && a.qp_state != *s.qp_state)
    throw StepFailed{"the QP is in " + std::string(sim::enum_name(a.qp_state)) + ", expected " +
                     std::string(sim::enum_name(*s.qp_state))};
  same("sq_draining", s.sq_draining, a.sq_draining);
  if (s.attr.path_mtu) same("path_mtu", s.attr.path_mtu, 128ULL << a.path_mtu);
  same("qkey", s.attr.qkey, a.qkey);
  same("rq_psn", s.attr.rq_psn, a.rq_psn);
  same("sq_psn", s.attr.sq_psn, a.sq_psn);
  same("dest_qp_num", s.attr.dest_qp_num, a.dest_qp_num);
  same("pkey_index", s.attr.pkey_index, a.pkey_index);
  same("max_rd_atomic", s.attr.max_rd_atomic, a.max_rd_atomic);
  same("max_dest_rd_atomic", s.attr.max_dest_rd_atomic, a.max_dest_rd_atomic);
  same("min_rnr_timer", s.attr.min_rnr_timer, a.min_rnr_timer);
  same("port_num", s.attr.port_num, a.port_num);
  same("timeout", s.attr.timeout, a.timeout);
  same("retry_cnt", s.attr.retry_cnt, a.retry_cnt);
  same("rnr_retry", s.attr.rnr_retry, a.rnr_retry);
  if (s.attr.qp_access_flags)
    same("qp_access_flags", std::optional(mask_of(*s.attr.qp_access_flags)), a.qp_access_flags);
  return 0;
}

int StepsProgram::resize_cq(const ResizeCqStep& s) { return ibv_resize_cq(objects_.cq(s.cq), s.cqe); }

int StepsProgram::modify_srq(const SrqStep& s) {
  ibv_srq_attr a{};
  int mask = 0;
  if (s.max_wr) {
    a.max_wr = *s.max_wr;
    mask |= IBV_SRQ_MAX_WR;
  }
  if (s.srq_limit) {
    a.srq_limit = *s.srq_limit;
    mask |= IBV_SRQ_LIMIT;
  }
  return ibv_modify_srq(objects_.srq(s.srq), &a, mask);
}

int StepsProgram::query_srq(const SrqStep& s) {
  ibv_srq_attr a{};
  if (const int e = ibv_query_srq(objects_.srq(s.srq), &a)) return e;
  same("max_wr", s.max_wr, a.max_wr);
  same("srq_limit", s.srq_limit, a.srq_limit);
  return 0;
}

int StepsProgram::mcast(const McastStep& s, bool attach) {
  ibv_gid gid{};
  if (inet_pton(AF_INET6, s.gid.c_str(), gid.raw) != 1) throw StepFailed{"\"" + s.gid + "\" is not an IPv6 address"};
  ibv_qp* qp = objects_.qp(s.qp);
  const auto lid = static_cast<std::uint16_t>(s.lid);
  return attach ? ibv_attach_mcast(qp, &gid, lid) : ibv_detach_mcast(qp, &gid, lid);
}

int StepsProgram::change_address(const AddressStep& s) {
  const std::string& text = s.add.empty() ? s.remove : s.add;
  const auto gid = kernel::gid_of_ipv4(text);
  if (!gid) throw StepFailed{"\"" + text + "\" is not an IPv4 address"};
  kernel::Kernel& kernel = objects_.host().kernel();
  cpu::current().compute(kernel.config().syscall.entry);
  const int error = s.add.empty() ? kernel.remove_address(*gid) : kernel.add_address(*gid);
  cpu::current().compute(kernel.config().syscall.exit);
  return -error;
}

ibv_mw_bind_info StepsProgram::bind_info(const BindConfig& c) {
  ibv_mw_bind_info info{};
  info.mr = objects_.mr(c.mr);
  info.addr = objects_.base(info.mr) + c.offset;
  info.length = c.length.value_or(info.mr->length - std::min<std::uint64_t>(c.offset, info.mr->length));
  info.mw_access_flags = mask_of(c.access);
  return info;
}

int StepsProgram::bind_mw(const BindMwStep& s) {
  StepObjects::Object& q = objects_.find(s.qp, ObjectKind::qp);
  ibv_mw_bind bind{};
  bind.wr_id = s.wr_id.value_or(q.sends);
  bind.send_flags = s.signaled ? IBV_SEND_SIGNALED : 0;
  bind.bind_info = bind_info(s);
  ibv_mw* mw = objects_.mw(s.mw);
  const int error = ibv_bind_mw(static_cast<ibv_qp*>(q.handle), mw, &bind);
  if (error != 0) return error;
  ++q.sends;
  objects_.note_bound(s, mw->rkey);
  return 0;
}

void StepsProgram::check(const AssertStep& s) {
  if (s.memory)
    if (const std::string d = difference(*s.memory); !d.empty()) throw StepFailed{d};
  if (s.cq) same("cqe", std::optional(s.cq->cqe), static_cast<std::uint64_t>(objects_.cq(s.cq->cq)->cqe));
  if (!s.caps) return;
  const ibv_qp_cap& granted = objects_.granted(objects_.qp(s.caps->qp));
  same("max_send_wr", s.caps->max_send_wr, granted.max_send_wr);
  same("max_recv_wr", s.caps->max_recv_wr, granted.max_recv_wr);
  same("max_send_sge", s.caps->max_send_sge, granted.max_send_sge);
  same("max_recv_sge", s.caps->max_recv_sge, granted.max_recv_sge);
  same("max_inline_data", s.caps->max_inline_data, granted.max_inline_data);
}

}  // namespace sys
