// SPDX-License-Identifier: Apache-2.0
// What the parameter test asks of a device beside its workloads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "cpu/thread.h"
#include "memory/address_space.h"
#include "sim/units.h"

namespace sys::test {

using namespace sim::literals;

inline void append(std::string& out, const std::string& key, std::uint64_t value) {
  out.append(key).append(" ").append(std::to_string(value)).append("\n");
}

/// A QP that is its own peer, with one page of memory.
struct SelfPeer {
  explicit SelfPeer(ibv_context* c, ibv_comp_channel* channel = nullptr) {
    pd = ibv_alloc_pd(c);
    cq = ibv_create_cq(c, 15, nullptr, channel, 0);
    constexpr int kRights =
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
    bytes = static_cast<std::byte*>(cpu::current().space().alloc(4096, 4096));
    mr = ibv_reg_mr(pd, bytes, 4096, kRights);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_RC;
    init.cap = {8, 8, 1, 1, 0};
    qp = ibv_create_qp(pd, &init);
    if (!works()) return;
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = static_cast<unsigned>(kRights & ~IBV_ACCESS_MW_BIND);
    ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a = {};
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_256;
    a.dest_qp_num = qp->qp_num;
    a.max_dest_rd_atomic = 1;
    a.ah_attr.is_global = 1;
    ibv_query_gid(c, 1, 3, &a.ah_attr.grh.dgid);
    a.ah_attr.grh.sgid_index = 3;
    a.ah_attr.port_num = 1;
    ibv_modify_qp(qp, &a,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a = {};
    a.qp_state = IBV_QPS_RTS;
    a.max_rd_atomic = 1;
    ibv_modify_qp(
        qp, &a,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  SelfPeer(const SelfPeer&) = delete;
  SelfPeer& operator=(const SelfPeer&) = delete;
  ~SelfPeer() {
    if (qp != nullptr) ibv_destroy_qp(qp);
    if (cq != nullptr) ibv_destroy_cq(cq);
    if (mr != nullptr) ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
  }
  bool works() const { return cq != nullptr && mr != nullptr && qp != nullptr; }
  ibv_send_wr request(ibv_wr_opcode opcode, unsigned flags = 0) {
    sge = {reinterpret_cast<std::uint64_t>(bytes), 8, mr->lkey};
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.send_flags = flags | IBV_SEND_SIGNALED;
    return wr;
  }
  void receive() {
    ibv_sge to{reinterpret_cast<std::uint64_t>(bytes) + 1024, 64, mr->lkey};
    ibv_recv_wr wr{0, nullptr, &to, 1}, *bad = nullptr;
    ibv_post_recv(qp, &wr, &bad);
  }
  int post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  /// Posts, and appends the statuses of the next `n` completions.
  void run(const ibv_send_wr& wr, unsigned n, std::string& out) {
    if (post(wr) != 0) return;
    for (int i = 0; i < 2000 && n > 0; ++i) {
      ibv_wc wc{};
      if (ibv_poll_cq(cq, 1, &wc) != 1) continue;
      append(out, "status", wc.status);
      --n;
    }
  }
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qp = nullptr;
  std::byte* bytes = nullptr;
  ibv_sge sge{};
};

// A QP that is its own peer posts an atomic to its own memory, tries SQD, and flushes a receive that it posts in ERR.
inline void loop(ibv_context* c, std::string& out) {
  cpu::Thread& thread = cpu::current();
  SelfPeer p(c);
  if (!p.works()) return;
  ibv_send_wr wr = p.request(IBV_WR_ATOMIC_FETCH_AND_ADD);
  wr.wr.atomic.remote_addr = p.sge.addr + 64;
  wr.wr.atomic.rkey = p.mr->rkey;
  wr.wr.atomic.compare_add = 1;
  p.run(wr, 1, out);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_SQD;
  append(out, "SQD", static_cast<std::uint64_t>(ibv_modify_qp(p.qp, &a, IBV_QP_STATE)));
  a.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(p.qp, &a, IBV_QP_STATE);
  ibv_recv_wr receive{}, *bad = nullptr;
  const sim::Picos start = thread.now();
  if (ibv_post_recv(p.qp, &receive, &bad) == 0) {
    ibv_wc wc{};
    for (int i = 0; i < 1000 && ibv_poll_cq(p.cq, 1, &wc) == 0; ++i) thread.sleep(1_us);
  }
  append(out, "receive in ERR", static_cast<std::uint64_t>((thread.now() - start).n));
}

// A window is bound; keys that are no windows are invalidated, here and by the peer.
inline void windows(ibv_context* c, std::string& out) {
  SelfPeer binder(c), invalidator(c), sender(c);
  if (!binder.works() || !invalidator.works() || !sender.works()) return;
  ibv_mw* mw = ibv_alloc_mw(binder.pd, IBV_MW_TYPE_2);
  if (mw == nullptr) return;
  const sim::Picos start = cpu::current().now();
  ibv_send_wr wr = binder.request(IBV_WR_BIND_MW);
  wr.num_sge = 0;
  wr.bind_mw = {mw, ibv_inc_rkey(mw->rkey), {binder.mr, binder.sge.addr, 64, IBV_ACCESS_REMOTE_READ}};
  binder.run(wr, 1, out);
  append(out, "bind", static_cast<std::uint64_t>((cpu::current().now() - start).n));
  const int e = ibv_dereg_mr(binder.mr);
  append(out, "bound region", static_cast<std::uint64_t>(e));
  if (e == 0) binder.mr = nullptr;
  ibv_dealloc_mw(mw);
  wr = invalidator.request(IBV_WR_LOCAL_INV);
  wr.num_sge = 0;
  wr.invalidate_rkey = invalidator.mr->rkey;
  invalidator.run(wr, 1, out);
  sender.receive();
  wr = sender.request(IBV_WR_SEND_WITH_INV);
  wr.invalidate_rkey = sender.mr->rkey;
  sender.run(wr, 2, out);
}

// An event that moderation holds back, and one of a solicited message.
inline void moderation(ibv_context* c, std::string& out) {
  cpu::Thread& thread = cpu::current();
  ibv_comp_channel* channel = ibv_create_comp_channel(c);
  for (const unsigned flags : {0U, unsigned{IBV_SEND_SOLICITED}}) {
    SelfPeer p(c, channel);
    ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {100, 40}};
    if (!p.works() || ibv_modify_cq(p.cq, &attr) != 0) break;
    p.receive();
    p.receive();
    ibv_req_notify_cq(p.cq, 0);
    const sim::Picos start = thread.now();
    thread.sleep(10_us);
    if (p.post(p.request(IBV_WR_SEND, flags)) != 0 || p.post(p.request(IBV_WR_SEND, flags)) != 0) break;
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    ibv_get_cq_event(channel, &cq, &cq_context);
    ibv_ack_cq_events(cq, 1);
    append(out, "event", static_cast<std::uint64_t>((thread.now() - start).n));
  }
  ibv_destroy_comp_channel(channel);
}

}  // namespace sys::test
