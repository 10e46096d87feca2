// SPDX-License-Identifier: Apache-2.0
// Shared receive queues from the verbs API to the wire: FIFO over QPs, limit event, errors, empty queue, destruction.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"
#include "verbs_frontend/mlx5/srq.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Events = std::vector<ibv_event_type>;
using Statuses = std::vector<ibv_wc_status>;

/// What the receiving side has beside its End: the SRQ that its QPs are on.
struct Shared {
  ibv_srq* srq = nullptr;
  ibv_srq_attr granted{};

  /// Puts the End on an SRQ of `max_wr` WQEs.
  Pair::Program prepare(std::uint32_t max_wr) {
    return [this, max_wr](End& e) {
      ibv_srq_init_attr init{};
      init.attr = {max_wr, 1, 0};
      srq = ibv_create_srq(e.pd, &init);
      ASSERT_NE(srq, nullptr);
      granted = init.attr;
      ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
      e.qp = make_qp(e);
      ASSERT_NE(e.qp, nullptr);
    };
  }
  ibv_qp* make_qp(End& e) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = e.cq;
    init.srq = srq;
    init.qp_type = e.o.type;
    init.cap = {16, 16, 1, 1, 0};
    ibv_qp* qp = ibv_create_qp(e.pd, &init);
    EXPECT_EQ(init.cap.max_recv_wr, 0u);
    return qp;
  }
  int post(End& e, std::uint64_t id, std::size_t offset, std::uint32_t n) const {
    ibv_sge s = e.sge(offset, n);
    ibv_recv_wr wr{id, nullptr, &s, 1}, *bad = nullptr;
    return ibv_post_srq_recv(srq, &wr, &bad);
  }
  int arm(std::uint32_t limit) const {
    ibv_srq_attr a{0, 0, limit};
    return ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT);
  }
  ibv_srq_attr query() const {
    ibv_srq_attr a{};
    EXPECT_EQ(ibv_query_srq(srq, &a), 0);
    return a;
  }
};

/// Connects a second QP of both ends.
void second_connection(End& e, ibv_qp* qp) {
  e.qp = qp;
  e.mine = e.address();
  ASSERT_EQ(e.process_.exchange->swap("second address", &e.mine, &e.peer, sizeof e.mine), 0);
  e.go_to_rts();
}

TEST(Srq, LimitEventComesOnceWhenTheQueueFallsBelow_A_64) {
  Pair p;
  Shared s;
  const auto prepare = s.prepare(15);
  p.run(
      [&](End& e) {
        e.fill(3);
        e.meet("armed");
        for (std::uint64_t i = 0; i < 4; ++i) {
          ASSERT_EQ(e.send(i, 0, 100), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
        e.meet("sent");
      },
      [&](End& e) {
        for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(s.post(e, 100 + i, 4096 + 128 * i, 128), 0);
        EXPECT_EQ(s.arm(s.granted.max_wr), EINVAL);
        EXPECT_EQ(s.arm(s.granted.max_wr - 1), 0) << "the largest one";
        e.thread().sleep(100_us);
        EXPECT_EQ(e.events(), (Events{IBV_EVENT_SRQ_LIMIT_REACHED})) << "10 are below 14 at once";
        ASSERT_EQ(s.arm(7), 0);
        EXPECT_EQ(s.query().srq_limit, 7u);
        e.meet("armed");
        const auto wc = e.wait(4);
        for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(wc[i].wr_id, 100 + i) << "in the order of posting";
        EXPECT_TRUE(e.holds(4096 + 128 * 3, 100, 3, 0));
        e.meet("sent");
        e.thread().sleep(100_us);
        EXPECT_EQ(e.events(), (Events{IBV_EVENT_SRQ_LIMIT_REACHED})) << "6 WQEs are left, fewer than 7";
        EXPECT_EQ(s.query().srq_limit, 0u);
        ibv_srq_attr a{4, 0, 0};
        EXPECT_EQ(ibv_modify_srq(s.srq, &a, IBV_SRQ_MAX_WR), EINVAL);
      },
      prepare);
}

TEST(Srq, ALimitArmedTooLateWaitsWhenTheDeviceChecksOnlyReceives) {
  Pair p;
  Shared s;
  p.scenario.hosts[1].hca.receive.srq_limit_at_arm = false;
  const auto prepare = s.prepare(15);
  p.run(
      [&](End& e) {
        e.meet("armed");
        ASSERT_EQ(e.send(1, 0, 100), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("sent");
      },
      [&](End& e) {
        ASSERT_EQ(s.post(e, 1, 0, 128), 0);
        ASSERT_EQ(s.post(e, 2, 0, 128), 0);
        ASSERT_EQ(s.arm(7), 0);
        e.thread().sleep(100_us);
        EXPECT_EQ(e.events(), Events{});
        e.meet("armed");
        e.meet("sent");
        e.thread().sleep(100_us);
        EXPECT_EQ(e.events(), (Events{IBV_EVENT_SRQ_LIMIT_REACHED}));
      },
      prepare);
}

// Receives complete out of order when freed WQEs are posted again: the device follows the list, not the ring.
TEST(Srq, WqesAreUsedInTheOrderOfTheListOverManyLaps_S_RQ_2) {
  constexpr std::uint64_t kMessages = 200;
  Pair p;
  Shared s;
  const auto prepare = s.prepare(7);
  p.run(
      [&](End& e) {
        e.meet("posted");
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          *reinterpret_cast<std::uint64_t*>(e.buffer) = i;
          ASSERT_EQ(e.send(i, 0, 8), 0);
          ASSERT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
      },
      [&](End& e) {
        std::uint64_t posted = 0;
        for (; posted < s.granted.max_wr; ++posted) ASSERT_EQ(s.post(e, posted, 64 * posted, 8), 0);
        EXPECT_EQ(s.post(e, 99, 0, 8), ENOMEM) << "the granted number is what fits";
        e.meet("posted");
        std::vector<std::uint64_t> free;
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          const auto wc = e.wait(1);
          ASSERT_EQ(wc[0].status, IBV_WC_SUCCESS);
          ASSERT_EQ(*reinterpret_cast<std::uint64_t*>(e.buffer + 64 * wc[0].wr_id), i);
          free.push_back(wc[0].wr_id);
          if (free.size() < 3) continue;
          for (; !free.empty(); free.pop_back()) ASSERT_EQ(s.post(e, free.back(), 64 * free.back(), 8), 0);
        }
      },
      prepare);
}

TEST(Srq, EmptyQueueAnswersRnrUntilAReceiveIsPosted_S_SRQ_6) {
  Pair p;
  Shared s;
  const auto prepare = s.prepare(15);
  p.run(
      [&](End& e) {
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        e.thread().sleep(2_ms);
        ASSERT_EQ(s.post(e, 1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        ibv_recv_wr wr{}, *bad = nullptr;
        EXPECT_EQ(ibv_post_recv(e.qp, &wr, &bad), ENOMEM) << "S-SRQ-1";
      },
      prepare);
  EXPECT_GT(p.counter("host1.hca.responder.rnr_naks_sent"), 1u);
}

TEST(Srq, QpInErrorKeepsItsHandsOffTheQueueAndSaysSo_S_SRQ_5) {
  Pair p;
  Shared s;
  const auto prepare = s.prepare(15);
  p.run(
      [&](End& e) {
        e.meet("posted");
        ASSERT_EQ(e.send(1, 0, 2048), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_INV_REQ_ERR}));
        e.meet("failed");
      },
      [&](End& e) {
        for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(s.post(e, i, 0, 1024), 0);
        e.meet("posted");
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].status, IBV_WC_LOC_LEN_ERR);
        EXPECT_EQ(wc[0].wr_id, 0u);
        e.meet("failed");
        e.thread().sleep(100_us);
        ibv_wc more{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &more), 0) << "the other four stay in the queue";
        EXPECT_EQ(e.events(), (Events{IBV_EVENT_QP_LAST_WQE_REACHED}));
        EXPECT_EQ(ibv_destroy_srq(s.srq), EBUSY) << "the QP uses it (S-OBJ-21)";
        EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);
        EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
        EXPECT_EQ(ibv_destroy_srq(s.srq), 0);
      },
      prepare);
}

TEST(Srq, ResetGivesTheWqesOfUnpolledCompletionsBack_S_QP_46) {
  Pair p;
  Shared s;
  const auto prepare = s.prepare(3);
  p.run(
      [&](End& e) {
        e.meet("posted");
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.send(i, 0, 64), 0);
        EXPECT_EQ(e.statuses(3).size(), 3u);
        e.meet("sent");
      },
      [&](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(s.post(e, i, 0, 64), 0);
        EXPECT_EQ(s.post(e, 3, 0, 64), ENOMEM);
        e.meet("posted");
        e.meet("sent");
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RESET;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
        for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(s.post(e, i, 0, 64), 0);
        EXPECT_EQ(s.post(e, 3, 0, 64), ENOMEM);
      },
      prepare);
}

// The program overwrites a link with nonsense: the queue fails, and so does the QP that needs a WQE from it.
TEST(Srq, ALinkThatLeadsNowhereFailsTheQueue_S_AE_2) {
  Pair p;
  Shared s;
  p.options[0].timeout = 10;
  p.options[0].retry = 1;
  const auto prepare = s.prepare(3);
  p.run(
      [&](End& e) {
        e.meet("posted");
        ASSERT_EQ(e.send(1, 0, 64), 0);
        ASSERT_EQ(e.send(2, 0, 64), 0);
        const auto statuses = e.statuses(2);
        EXPECT_EQ(statuses[1], IBV_WC_REM_OP_ERR) << "NAK 0x63 (S-ERR-11)";
      },
      [&](End& e) {
        ASSERT_EQ(s.post(e, 1, 0, 64), 0);
        e.thread().sleep(1_us);
        auto* ring = reinterpret_cast<std::byte*>(verbs::mlx5::srq_of(s.srq).buf);
        ring[2] = ring[3] = std::byte{0xff};
        e.meet("posted");
        e.thread().sleep(1_ms);
        const Events events = e.events();
        EXPECT_EQ(std::count(events.begin(), events.end(), IBV_EVENT_SRQ_ERR), 1);
        EXPECT_EQ(std::count(events.begin(), events.end(), IBV_EVENT_QP_FATAL), 1);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
      },
      prepare);
}

TEST(Srq, TwoQpsShareTheQueueFirstComeFirstServed_S_SRQ_2) {
  Pair p;
  Shared s;
  const auto prepare = s.prepare(31);
  p.run(
      [&](End& e) {
        ibv_qp* qps[2] = {e.qp, nullptr};
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 16, 1, 1, 0};
        second_connection(e, qps[1] = ibv_create_qp(e.pd, &init));
        e.meet("posted");
        for (std::uint64_t i = 0; i < 10; ++i) {
          e.qp = qps[i % 2];
          *reinterpret_cast<std::uint64_t*>(e.buffer) = i;
          ASSERT_EQ(e.send(i, 0, 8), 0);
          ASSERT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
        e.meet("sent");
      },
      [&](End& e) {
        ibv_qp* qps[2] = {e.qp, s.make_qp(e)};
        second_connection(e, qps[1]);
        for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(s.post(e, i, 64 * i, 8), 0);
        e.meet("posted");
        e.meet("sent");
        const auto wc = e.wait(10);
        for (std::uint64_t i = 0; i < 10; ++i) {
          EXPECT_EQ(wc[i].wr_id, i);
          EXPECT_EQ(wc[i].qp_num, qps[i % 2]->qp_num);
          EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(e.buffer + 64 * i), i);
        }
      },
      prepare);
}

class UnreliableSrq : public testing::TestWithParam<ibv_qp_type> {};
TEST_P(UnreliableSrq, DropsWhenEmptyAndReceivesOtherwise_S_SRQ_6) {
  const bool ud = GetParam() == IBV_QPT_UD;
  Pair p;
  Shared s;
  p.options[0].type = p.options[1].type = GetParam();
  p.run(
      [&](End& e) {
        e.fill(4);
        ibv_ah* ah = ud ? e.peer_ah() : nullptr;
        const auto send = [&](std::uint64_t id, std::size_t offset) {
          return ud ? e.send_to(id, ah, e.peer.qpn, e.o.qkey, {e.sge(offset, 64)}) : e.send(id, offset, 64);
        };
        ASSERT_EQ(send(1, 0), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS})) << "the sender does not learn it";
        e.meet("lost");
        e.meet("posted");
        ASSERT_EQ(send(2, 128), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        e.meet("lost");
        e.thread().sleep(20_us);
        ASSERT_EQ(s.post(e, 7, 4096, 128), 0);
        e.meet("posted");
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc[0].wr_id, 7u);
        EXPECT_EQ(wc[0].byte_len, ud ? 104u : 64u);
        EXPECT_TRUE(e.holds(4096 + (ud ? 40 : 0), 64, 4, 128)) << "the second message, not the first";
      },
      s.prepare(7));
}
INSTANTIATE_TEST_SUITE_P(Uc, UnreliableSrq, testing::Values(IBV_QPT_UC));
INSTANTIATE_TEST_SUITE_P(Ud, UnreliableSrq, testing::Values(IBV_QPT_UD));

TEST(Srq, DestroyWaitsForTheAcknowledgementOfItsEvents_S_OBJ_21) {
  Pair p;
  Shared s;
  sim::Picos acked{0}, destroyed{0};
  ibv_async_event event{};
  p.run([](End&) {},
        [&](End& e) {
          ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
          ASSERT_EQ(s.arm(1), 0);
          ASSERT_EQ(ibv_get_async_event(e.context, &event), 0);
          EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
          EXPECT_EQ(event.element.srq, s.srq);
          cpu::Thread& other = p.cluster->host(1).create_thread(e.process_, 1, "acknowledger", [&] {
            cpu::current().sleep(500_us);
            acked = cpu::current().now();
            ibv_ack_async_event(&event);
          });
          other.start(e.thread().now());
          EXPECT_EQ(ibv_destroy_srq(s.srq), 0);
          destroyed = e.thread().now();
        },
        s.prepare(7));
  EXPECT_GT(acked, sim::Picos{0});
  EXPECT_GE(destroyed, acked);
}

}  // namespace
}  // namespace sys::test
