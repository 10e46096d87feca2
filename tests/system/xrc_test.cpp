// SPDX-License-Identifier: Apache-2.0
// XRC from the verbs API to the wire: domains, SRQs with their own CQ, sender and target QPs, shared opens, refusals.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Events = std::vector<ibv_event_type>;
using Statuses = std::vector<ibv_wc_status>;

constexpr std::uint8_t kXrcSendOnly = 0xA4, kXrcAck = 0xB1;

ibv_xrcd* open_domain(End& e, int fd = -1, int flags = O_CREAT) {
  ibv_xrcd_init_attr a{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, flags};
  return ibv_open_xrcd(e.context, &a);
}

/// The receiving side: domain, target QP, SRQs.
struct Target {
  ibv_xrcd* domain = nullptr;
  std::vector<ibv_srq*> srqs;

  void prepare(End& e, int fd = -1) {
    domain = open_domain(e, fd);
    ASSERT_NE(domain, nullptr);
    ibv_qp_init_attr_ex a{};
    a.qp_type = IBV_QPT_XRC_RECV;
    a.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    a.xrcd = domain;
    ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
    e.qp = ibv_create_qp_ex(e.context, &a);
    ASSERT_NE(e.qp, nullptr);
  }
  std::uint32_t add_srq(End& e, ibv_cq* cq, ibv_xrcd* in = nullptr) {
    ibv_srq_init_attr_ex a{};
    a.attr = {7, 1, 0};
    a.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    a.srq_type = IBV_SRQT_XRC;
    a.pd = e.pd;
    a.xrcd = in != nullptr ? in : domain;
    a.cq = cq;
    srqs.push_back(ibv_create_srq_ex(e.context, &a));
    EXPECT_NE(srqs.back(), nullptr);
    std::uint32_t number = 0;
    EXPECT_EQ(ibv_get_srq_num(srqs.back(), &number), 0);
    return number;
  }
  int post(End& e, std::size_t srq, std::uint64_t id, std::size_t offset, std::uint32_t n) {
    ibv_sge s = e.sge(offset, n);
    ibv_recv_wr wr{id, nullptr, &s, 1}, *bad = nullptr;
    return ibv_post_srq_recv(srqs[srq], &wr, &bad);
  }
};

void make_sender(End& e) {
  ibv_qp_init_attr a{};
  a.send_cq = e.cq;
  a.qp_type = IBV_QPT_XRC_SEND;
  a.cap = {16, 0, 2, 0, 0};
  ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
  e.qp = ibv_create_qp(e.pd, &a);
  ASSERT_NE(e.qp, nullptr);
}

/// Brings an XRC QP to RTS with exactly the attributes of its type (S-QP-13).
void connect(End& e, const char* tag) {
  const bool sender = e.qp->qp_type == IBV_QPT_XRC_SEND;
  e.mine = e.address();
  ASSERT_EQ(e.process_.exchange->swap(tag, &e.mine, &e.peer, sizeof e.mine), 0);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = e.o.mtu;
  a.dest_qp_num = e.peer.qpn;
  a.rq_psn = e.peer.psn;
  a.max_dest_rd_atomic = 4;
  a.min_rnr_timer = 12;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = e.peer.gid;
  a.ah_attr.grh.sgid_index = 3;
  a.ah_attr.port_num = 1;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  const int responder = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  EXPECT_EQ(ibv_modify_qp(e.qp, &a, sender ? mask | responder : mask), EINVAL);
  if (!sender) mask |= responder;
  ASSERT_EQ(ibv_modify_qp(e.qp, &a, mask), 0);
  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = e.o.timeout;
  a.retry_cnt = e.o.retry;
  a.rnr_retry = e.o.rnr_retry;
  a.sq_psn = e.o.psn;
  a.max_rd_atomic = 4;
  mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
  if (sender) mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  ASSERT_EQ(ibv_modify_qp(e.qp, &a, mask), 0);
}

int send_to(End& e, std::uint32_t srqn, std::uint64_t id, ibv_wr_opcode opcode, std::size_t offset, std::uint32_t n,
            std::uint64_t remote = 0) {
  ibv_sge s = e.sge(offset, n);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.opcode = opcode;
  wr.sg_list = &s;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = e.peer.rkey;
  wr.qp_type.xrc.remote_srqn = srqn;
  return ibv_post_send(e.qp, &wr, &bad);
}

std::vector<ibv_wc> wait_on(End& e, ibv_cq* cq, std::size_t n) {
  ibv_cq* const mine = std::exchange(e.cq, cq);
  const auto wc = e.wait(n);
  e.cq = mine;
  return wc;
}

struct XrcPair : Pair {
  XrcPair() { options[0].connect = options[1].connect = false; }
};

TEST(Xrc, EachMessageNamesItsSrqAndCompletesAtItsCq_S_XRC_2) {
  XrcPair p;
  Target t;
  std::uint32_t numbers[2] = {};
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        make_sender(e);
        connect(e, "xrc");
        server_qpn = e.peer.qpn;
        e.meet("posted");
        e.fill(9);
        ASSERT_EQ(send_to(e, numbers[1], 1, IBV_WR_SEND, 0, 100), 0);
        ASSERT_EQ(send_to(e, numbers[0], 2, IBV_WR_SEND, 0, 3000), 0);
        ASSERT_EQ(send_to(e, numbers[1], 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, e.peer.va + 32768), 0);
        ASSERT_EQ(send_to(e, numbers[0], 4, IBV_WR_RDMA_READ, 60000, 128, e.peer.va + 32768), 0);
        EXPECT_EQ(e.statuses(4), (Statuses(4, IBV_WC_SUCCESS)));
        e.meet("done");
      },
      [&](End& e) {
        t.prepare(e);
        ibv_cq* second = ibv_create_cq(e.context, 15, nullptr, nullptr, 0);
        numbers[0] = t.add_srq(e, e.cq);
        numbers[1] = t.add_srq(e, second);
        connect(e, "xrc");
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        for (std::uint64_t i = 0; i < 2; ++i) {
          ASSERT_EQ(t.post(e, 0, 10 + i, 4096 * i, 4096), 0);
          ASSERT_EQ(t.post(e, 1, 20 + i, 8192 + 4096 * i, 4096), 0);
        }
        e.meet("posted");
        const auto first = wait_on(e, e.cq, 1), other = wait_on(e, second, 2);
        EXPECT_EQ(first[0].wr_id, 10u);
        EXPECT_EQ(first[0].byte_len, 3000u);
        EXPECT_EQ(first[0].qp_num, e.qp->qp_num);
        EXPECT_EQ(other[0].wr_id, 20u);
        EXPECT_EQ(other[0].byte_len, 100u);
        EXPECT_EQ(other[1].wr_id, 21u);
        EXPECT_EQ(other[1].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT_TRUE(e.holds(0, 3000, 9, 0));
        e.meet("done");
        EXPECT_EQ(ibv_destroy_cq(second), EBUSY) << "the SRQ reports there";
        EXPECT_EQ(ibv_close_xrcd(t.domain), EBUSY);
        for (ibv_srq* s : t.srqs) EXPECT_EQ(ibv_destroy_srq(s), 0);
        EXPECT_EQ(ibv_destroy_cq(second), 0);
        EXPECT_EQ(ibv_dereg_mr(e.mr), 0);
        EXPECT_EQ(ibv_dealloc_pd(e.pd), 0) << "the target QP holds neither PD nor SRQ";
        ibv_srq_init_attr basic{nullptr, {7, 1, 0}};
        ibv_pd* pd = ibv_alloc_pd(e.context);
        ibv_srq* same_number = ibv_create_srq(pd, &basic);
        EXPECT_EQ(ibv_destroy_srq(same_number), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
        EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
        EXPECT_EQ(ibv_close_xrcd(t.domain), 0);
      });
  const auto sends = p.sent(server_qpn, {kXrcSendOnly});
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].length, 14 + 20 + 8 + 12 + 4 + 100 + 4u) << "with the XRC header";
  EXPECT_FALSE(std::none_of(p.frames.begin(), p.frames.end(), [](const SentFrame& f) { return f.opcode == kXrcAck; }));
}

TEST(Xrc, SrqOfNobodyIsRefused_S_XRC_3) {
  XrcPair p;
  Target t;
  constexpr std::uint32_t kNobody = 77;
  p.run(
      [&](End& e) {
        make_sender(e);
        connect(e, "xrc");
        e.meet("ready");
        ASSERT_EQ(send_to(e, kNobody, 1, IBV_WR_SEND, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_INV_REQ_ERR}));
      },
      [&](End& e) {
        t.prepare(e);
        connect(e, "xrc");
        e.meet("ready");
        e.thread().sleep(100_us);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
      });
}

TEST(Xrc, SrqOfAnotherDomainIsRefused_S_XRC_3) {
  XrcPair p;
  Target t;
  std::uint32_t number = 0;
  p.run(
      [&](End& e) {
        make_sender(e);
        connect(e, "xrc");
        e.meet("ready");
        ASSERT_EQ(send_to(e, number, 1, IBV_WR_SEND, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_INV_REQ_ERR}));
      },
      [&](End& e) {
        t.prepare(e);
        ibv_xrcd* other = open_domain(e);
        number = t.add_srq(e, e.cq, other);
        ASSERT_EQ(t.post(e, 0, 1, 0, 64), 0);
        connect(e, "xrc");
        e.meet("ready");
        e.thread().sleep(100_us);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
      });
}

TEST(Xrc, EmptySrqAnswersRnr_S_SRQ_6) {
  XrcPair p;
  Target t;
  std::uint32_t number = 0;
  p.run(
      [&](End& e) {
        make_sender(e);
        connect(e, "xrc");
        e.meet("ready");
        ASSERT_EQ(send_to(e, number, 1, IBV_WR_SEND, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        t.prepare(e);
        number = t.add_srq(e, e.cq);
        connect(e, "xrc");
        e.meet("ready");
        e.thread().sleep(1_ms);
        ASSERT_EQ(t.post(e, 0, 1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
  EXPECT_GE(p.counter("host1.hca.responder.rnr_naks_sent"), 1u);
}

// Two contexts share the domain through a file: the QP that one created serves the SRQ of the other, and lives until the
// last of the two lets go.
TEST(Xrc, ATargetQpIsOpenedBySomebodyElse_S_XRC_1) {
  XrcPair p;
  Target t;
  std::uint32_t number = 0;
  p.run(
      [&](End& e) {
        make_sender(e);
        connect(e, "xrc");
        e.meet("ready");
        ASSERT_EQ(send_to(e, number, 1, IBV_WR_SEND, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("done");
      },
      [&](End& e) {
        const int fd = e.process_.os.open("/tmp/xrc_domain", O_RDONLY | O_CREAT);
        ASSERT_GE(fd, 0);
        t.prepare(e, fd);
        const std::uint32_t qpn = e.qp->qp_num;
        connect(e, "xrc");

        int n = 0;
        ibv_device** list = ibv_get_device_list(&n);
        ibv_context* second = ibv_open_device(list[0]);
        ibv_free_device_list(list);
        ibv_xrcd_init_attr a{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, 0};
        ibv_xrcd* same = ibv_open_xrcd(second, &a);
        ASSERT_NE(same, nullptr);
        ibv_qp_open_attr o{};
        o.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
        o.xrcd = same;
        o.qp_type = IBV_QPT_XRC_RECV;
        o.qp_num = qpn + 5;
        errno = 0;
        EXPECT_EQ(ibv_open_qp(second, &o), nullptr);
        EXPECT_EQ(errno, EINVAL);
        o.qp_num = qpn;
        ibv_qp* opened = ibv_open_qp(second, &o);
        ASSERT_NE(opened, nullptr);
        EXPECT_EQ(opened->qp_num, qpn);
        EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
        e.qp = opened;
        EXPECT_EQ(e.state(), IBV_QPS_RTS) << "still there";

        number = t.add_srq(e, e.cq);
        ASSERT_EQ(t.post(e, 0, 1, 0, 64), 0);
        e.meet("ready");
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("done");
        EXPECT_EQ(ibv_destroy_qp(opened), 0);
        EXPECT_EQ(ibv_close_xrcd(same), 0);
        EXPECT_EQ(ibv_destroy_srq(t.srqs[0]), 0);
        EXPECT_EQ(ibv_close_xrcd(t.domain), 0);
        EXPECT_EQ(ibv_close_device(second), 0);
        const auto census = p.cluster->host(1).hca().census();
        EXPECT_EQ(census.qps + census.srqs + census.xrcds, 0u);
      });
}

}  // namespace
}  // namespace sys::test
