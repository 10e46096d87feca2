// SPDX-License-Identifier: Apache-2.0
// Queue pair states as programs meet them: what may be posted, what is flushed, SQD, recovery, read-back.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

void pause(End& e, sim::Picos d) { e.thread().sleep(d); }
void nothing(End&) {}
int to_state(End& e, ibv_qp_state state, int extra = 0) {
  ibv_qp_attr a{};
  a.qp_state = state;
  a.en_sqd_async_notify = 1;
  return ibv_modify_qp(e.qp, &a, IBV_QP_STATE | extra);
}
ibv_qp_attr query(End& e) {
  ibv_qp_attr a{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(e.qp, &a, IBV_QP_STATE, &init), 0);
  return a;
}

TEST(QpStates, PostingBeforeRtrAndRts_A_12_S_QP_41) {
  Pair p;
  p.options[0].connect = p.options[1].connect = false;
  p.run(
      [](End& e) {
        EXPECT_EQ(e.receive(1, 0, 64), EINVAL) << "RESET";
        EXPECT_EQ(e.receive(1, {}), EINVAL);
        EXPECT_EQ(e.send(1, 0, 64), ENOMEM);
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_INIT;
        a.port_num = 1;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
        EXPECT_EQ(e.receive(1, 0, 64), 0) << "INIT";
        EXPECT_EQ(e.send(1, 0, 64), ENOMEM);
      },
      nothing);
}

TEST(QpStates, ErrFlushesEachQueueInPostingOrder_A_13_S_QP_43_S_ERR_23) {
  Pair p;
  p.options[1].connect = false;
  p.run(
      [](End& e) {
        for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(e.send(i, 0, 64, 0), 0);
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(100 + i, 0, 64), 0);
        pause(e, 100_us);
        ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0);
        std::vector<std::uint64_t> sends, receives;
        for (const ibv_wc& wc : e.wait(9)) {
          EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
          (wc.wr_id < 100 ? sends : receives).push_back(wc.wr_id);
        }
        EXPECT_EQ(sends, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
        EXPECT_EQ(receives, (std::vector<std::uint64_t>{100, 101, 102, 103}));
        EXPECT_TRUE(e.events().empty());
        for (std::uint64_t round = 0; round < 3; ++round) {  // posted in ERR: one by one, as they come
          ASSERT_EQ(e.send(10 + round, 0, 64, 0), 0);
          ASSERT_EQ(e.receive(200 + round, 0, 64), 0);
          auto wc = e.wait(2);
          std::sort(wc.begin(), wc.end(), [](const ibv_wc& a, const ibv_wc& b) { return a.wr_id < b.wr_id; });
          EXPECT_EQ(wc[0].wr_id, 10 + round);
          EXPECT_EQ(wc[1].wr_id, 200 + round);
          EXPECT_EQ(wc[1].status, IBV_WC_WR_FLUSH_ERR);
        }
      },
      nothing);
}

// The look at the record comes `error_poll` after the store that changes it, or after something before it.
class ErrorPoll : public testing::TestWithParam<std::int64_t> {};
TEST_P(ErrorPoll, FindsAReceiveWithinItsInterval_S_DBR_4_S_QP_43) {
  const sim::Picos interval{GetParam() * 1'000'000};
  Pair p;
  for (auto& h : p.scenario.hosts) h.hca.receive.error_poll = interval;
  sim::Picos took{0};
  p.run(
      [&](End& e) {
        ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0);
        pause(e, 1_ms);
        const sim::Picos start = e.thread().now();
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        ibv_wc wc{};
        while (ibv_poll_cq(e.cq, 1, &wc) == 0) {}
        took = e.thread().now() - start;
      },
      nothing);
  EXPECT_LE(took, interval + 5_us);
  EXPECT_GE(took, 1_us);
}
INSTANTIATE_TEST_SUITE_P(Microseconds, ErrorPoll, testing::Values(1, 5, 80));

// Nothing but the polling of a QP in ERR is left: the run ends.
TEST(QpStates, LookingForReceivesDoesNotKeepTheSimulationAlive) {
  Pair p;
  EXPECT_EQ(p.run([](End& e) { ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0); },
                  [](End& e) { ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0); }),
            sim::Outcome::quiescent);
}

TEST(QpStates, ResetTakesTheQpsCompletionsAway_A_14_S_QP_46) {
  Pair p;
  p.run(
      [](End& e) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 16, 1, 1, 0};
        ibv_qp* a = e.qp;
        ibv_qp* b = ibv_create_qp(e.pd, &init);
        e.qp = b;
        e.go_to_rts();
        for (ibv_qp* each : {a, b}) {
          e.qp = each;
          ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0);
        }
        for (std::uint64_t i = 0; i < 4; ++i) {
          e.qp = a;
          ASSERT_EQ(e.send(10 + i, 0, 8), 0);
          pause(e, 20_us);
          e.qp = b;
          ASSERT_EQ(e.send(20 + i, 0, 8), 0);
          pause(e, 20_us);
        }
        e.qp = a;
        ASSERT_EQ(to_state(e, IBV_QPS_RESET), 0);
        const auto wc = e.wait(4);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(wc[i].wr_id, 20 + i);
        ibv_wc more{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &more), 0);
        for (std::uint64_t i = 0; i < 60; ++i) {  // the ring has 64 slots: the consumer index counts the removed ones
          e.qp = b;
          ASSERT_EQ(e.send(i, 0, 8), 0);
          EXPECT_EQ(e.wait(1)[0].wr_id, i);
        }
      },
      nothing);
}

TEST(QpStates, TrafficWorksAfterRecoveryOnBothSides_A_15_S_QP_53) {
  Pair p;
  const auto recover = [](End& e, bool client) {
    const std::uint32_t qpn = e.qp->qp_num;
    ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0);
    EXPECT_EQ(e.receive(50, 0, 64), 0);
    EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_WR_FLUSH_ERR}));
    ASSERT_EQ(to_state(e, IBV_QPS_RESET), 0);
    EXPECT_EQ(e.send(1, 0, 64), ENOMEM) << "the gate is closed again (S-QP-42)";
    e.reconnect(client ? 0x777777 : 0x123456, client ? 0x123456 : 0x777777);
    EXPECT_EQ(e.qp->qp_num, qpn);
    e.meet("recovered");
  };
  p.run(
      [&](End& e) {
        ASSERT_EQ(e.send(1, 0, 3000), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("sent");
        recover(e, true);
        pause(e, 50_us);
        ASSERT_EQ(e.send(2, 0, 3000), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("sent");
        recover(e, false);
        ASSERT_EQ(e.receive(2, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

TEST(QpStates, StateInUserSpaceFollowsOnlyModifyAndQuery_S_QP_47) {
  Pair p;
  p.run(
      [](End& e) {
        ibv_sge s = e.sge(0, 64);
        s.lkey += 1;
        ASSERT_EQ(e.send(1, {s}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_PROT_ERR}));
        EXPECT_EQ(e.qp->state, IBV_QPS_RTS);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        EXPECT_EQ(e.qp->state, IBV_QPS_ERR);
      },
      nothing);
}

struct Connected : testing::TestWithParam<ibv_qp_type> {
  Connected() { p.options[0].type = p.options[1].type = GetParam(); }
  Pair p;
};
INSTANTIATE_TEST_SUITE_P(Services, Connected, testing::Values(IBV_QPT_RC, IBV_QPT_UC));

TEST_P(Connected, FirstPacketInRtrRaisesCommEstOnce_S_QP_49) {
  p.options[1].connect = false;
  p.run(
      [](End& e) {
        e.meet("in RTR");
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.send(i, 0, 64), 0);
        e.wait(3);
        e.meet("sent");
      },
      [](End& e) {
        e.go_to_rtr();
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        e.meet("in RTR");
        e.wait(3);
        e.meet("sent");
        pause(e, 100_us);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_COMM_EST}));
        EXPECT_EQ(e.send(9, 0, 64), ENOMEM) << "RTR receives only";
      });
}

// SQD -------------------------------------------------------------------------------------------------------------------

TEST_P(Connected, StartedMessagesFinishInSqdAndNoOtherStarts_S_QP_50) {
  p.scenario.fabric.link.rate = {100'000'000};  // 64 KiB in 5 ms: draining can be watched
  p.run(
      [](End& e) {
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 64 << 10), 0);
        pause(e, 10_us);
        ASSERT_EQ(to_state(e, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
        ASSERT_EQ(e.send(2, 0, 64), 0) << "accepted, not started";
        const ibv_qp_attr a = query(e);
        EXPECT_EQ(a.qp_state, IBV_QPS_SQD);
        EXPECT_EQ(a.sq_draining, 1);
        EXPECT_EQ(to_state(e, IBV_QPS_RTS), EINVAL) << "not drained";
        EXPECT_TRUE(e.events().empty());
        EXPECT_EQ(e.wait(1)[0].wr_id, 1u);
        pause(e, 1_ms);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_SQ_DRAINED}));
        EXPECT_EQ(query(e).sq_draining, 0);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0) << "the second message waits";
        ASSERT_EQ(to_state(e, IBV_QPS_RTS), 0);
        EXPECT_EQ(e.wait(1)[0].wr_id, 2u);
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 64 << 10), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      });
}

TEST(Sqd, EventOnlyWhenAskedForAndAtOnceWhenIdle_S_QP_50) {
  Pair p;
  p.run(
      [](End& e) {
        ASSERT_EQ(to_state(e, IBV_QPS_SQD), 0);
        pause(e, 100_us);
        EXPECT_TRUE(e.events().empty());
        ASSERT_EQ(to_state(e, IBV_QPS_RTS), 0);
        ASSERT_EQ(to_state(e, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
        pause(e, 100_us);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_SQ_DRAINED}));
        ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0);
      },
      nothing);
}

// In SQD the path and the retry parameters can be replaced; traffic goes on with the new ones.
TEST(Sqd, AttributesChangeWhileDrained_S_QP_12) {
  Pair p;
  p.run(
      [](End& e) {
        ASSERT_EQ(to_state(e, IBV_QPS_SQD), 0);
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_SQD;
        a.timeout = 9;
        a.retry_cnt = 3;
        a.rnr_retry = 2;
        a.max_rd_atomic = 4;
        a.max_dest_rd_atomic = 2;
        a.min_rnr_timer = 5;
        a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        a.port_num = 1;
        a.ah_attr.is_global = 1;
        a.ah_attr.port_num = 1;
        a.ah_attr.grh = {e.peer.gid, 0x54321, 3, 64, 0x20};
        ASSERT_EQ(ibv_modify_qp(e.qp, &a,
                                IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_AV |
                                    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |
                                    IBV_QP_ACCESS_FLAGS),
                  0);
        const ibv_qp_attr q = query(e);
        EXPECT_EQ(q.timeout, 9);
        EXPECT_EQ(q.retry_cnt, 3);
        EXPECT_EQ(q.rnr_retry, 2);
        EXPECT_EQ(q.max_rd_atomic, 4);
        EXPECT_EQ(q.max_dest_rd_atomic, 2);
        EXPECT_EQ(q.min_rnr_timer, 5);
        EXPECT_EQ(q.qp_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE));
        EXPECT_EQ(q.ah_attr.grh.flow_label, 0x54321u);
        EXPECT_EQ(q.ah_attr.grh.traffic_class, 0x20);
        ASSERT_EQ(to_state(e, IBV_QPS_RTS), 0);
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

TEST(Sqd, IsRefusedAsByTheRealDriverWhenConfigured_S_QP_6) {
  Pair p;
  for (auto& h : p.scenario.hosts) h.kernel.driver.mlx5_no_sqd = true;
  p.run([](End& e) { EXPECT_EQ(to_state(e, IBV_QPS_SQD), EINVAL); }, nothing);
}

// A receiver in SQD answers; its own send queue alone stands still.
TEST(Sqd, InboundPacketsAreProcessed_S_QP_40) {
  Pair p;
  p.run(
      [](End& e) {
        e.meet("in SQD");
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 2000), 0);
        ASSERT_EQ(e.read(2, 0, 2000, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(to_state(e, IBV_QPS_SQD), 0);
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        e.meet("in SQD");
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

// Values ----------------------------------------------------------------------------------------------------------------

TEST(QpStates, AttributesReadBack_S_QP_48) {
  Pair p;
  p.options[0].rd_atomic = p.options[1].rd_atomic = 12;
  p.run(
      [](End& e) {
        const ibv_qp_attr q = query(e);
        EXPECT_EQ(q.qp_state, IBV_QPS_RTS);
        EXPECT_EQ(q.sq_psn, 0x100u);
        EXPECT_EQ(q.rq_psn, 0x100u);
        EXPECT_EQ(q.path_mtu, IBV_MTU_1024);
        EXPECT_EQ(q.dest_qp_num, e.peer.qpn);
        EXPECT_EQ(q.max_rd_atomic, 16) << "rounded up to a power of two (S-QP-30)";
        EXPECT_EQ(q.max_dest_rd_atomic, 16);
        EXPECT_EQ(q.qp_access_flags, static_cast<unsigned>(e.o.qp_access));
        EXPECT_EQ(q.timeout, 14);
        EXPECT_EQ(std::memcmp(&q.ah_attr.grh.dgid, &e.peer.gid, 16), 0);
      },
      nothing);
}

TEST(QpStates, QkeyReadsBack_S_QP_48) {
  Pair ud;
  ud.options[0].type = ud.options[1].type = IBV_QPT_UD;
  ud.run(
      [](End& e) {
        ibv_qp_attr q = query(e);
        EXPECT_EQ(q.qkey, 0x11111111u);
        EXPECT_EQ(q.sq_psn, 0x100u);
        ibv_qp_attr a{};
        a.qkey = 0x22222222;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_QKEY), 0);
        EXPECT_EQ(query(e).qkey, 0x22222222u);
      },
      nothing);
}

TEST(QpStates, AddressesOfDifferentIpVersionsAreRefused_S_QP_25) {
  Pair p;
  p.options[0].connect = p.options[1].connect = false;
  p.run(
      [](End& e) {
        e.o.sgid_index = 1;  // link-local IPv6; the peer's address is IPv4
        EXPECT_EQ(e.try_rtr(), EINVAL);
        e.o.sgid_index = 2;  // RoCEv1, whose frames are not built
        EXPECT_EQ(e.try_rtr(), EINVAL);
        e.o.sgid_index = 3;
        EXPECT_EQ(e.try_rtr(), 0);
      },
      nothing);
}

}  // namespace
}  // namespace sys::test
