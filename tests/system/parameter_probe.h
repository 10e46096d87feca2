// SPDX-License-Identifier: Apache-2.0
// What the parameter test asks of a device beside its workloads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "cpu/thread.h"
#include "sim/units.h"

namespace sys::test {

using namespace sim::literals;

inline void append(std::string& out, const std::string& key, std::uint64_t value) {
  out.append(key).append(" ").append(std::to_string(value)).append("\n");
}

// A QP that is its own peer posts an atomic to its own memory, tries SQD, and flushes a receive that it posts in ERR.
inline void loop(ibv_context* c, std::string& out) {
  cpu::Thread& thread = cpu::current();
  ibv_pd* pd = ibv_alloc_pd(c);
  ibv_cq* cq = ibv_create_cq(c, 4, nullptr, nullptr, 0);
  constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  auto* bytes = static_cast<std::byte*>(thread.space().alloc(4096, 4096));
  ibv_mr* mr = ibv_reg_mr(pd, bytes, 4096, kRights);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {8, 8, 1, 1, 0};
  ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == nullptr || mr == nullptr) return;
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = static_cast<unsigned>(kRights);
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
  ibv_sge sge{reinterpret_cast<std::uint64_t>(bytes), 8, mr->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = sge.addr + 64;
  wr.wr.atomic.rkey = mr->rkey;
  wr.wr.atomic.compare_add = 1;
  if (ibv_post_send(qp, &wr, &bad) == 0) {
    ibv_wc wc{};
    for (int i = 0; i < 1000 && ibv_poll_cq(cq, 1, &wc) == 0; ++i) {}
  }
  a.qp_state = IBV_QPS_SQD;
  append(out, "SQD", static_cast<std::uint64_t>(ibv_modify_qp(qp, &a, IBV_QP_STATE)));
  a.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(qp, &a, IBV_QP_STATE);
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  const sim::Picos start = thread.now();
  if (ibv_post_recv(qp, &receive, &bad_receive) == 0) {
    ibv_wc wc{};
    for (int i = 0; i < 1000 && ibv_poll_cq(cq, 1, &wc) == 0; ++i) thread.sleep(1_us);
  }
  append(out, "receive in ERR", static_cast<std::uint64_t>((thread.now() - start).n));
  ibv_destroy_qp(qp);
  ibv_destroy_cq(cq);
  ibv_dereg_mr(mr);
  ibv_dealloc_pd(pd);
}

}  // namespace sys::test
