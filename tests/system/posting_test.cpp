// SPDX-License-Identifier: Apache-2.0
// Posting: when slots come back, what a refused chain leaves behind, inline data.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

std::uint64_t post_until_full(End& e, unsigned flags = 0) {
  std::uint64_t n = 0;
  while (n < 100'000 && e.write(n, 0, 8, e.peer.va, e.peer.rkey, flags) == 0) ++n;
  return n;
}

TEST(Posting, UnsignaledWorkNeverGivesItsSlotsBack_A_17) {
  Pair p;
  p.run(
      [](End& e) {
        const std::uint64_t slots = post_until_full(e);
        EXPECT_GE(slots, e.o.send_wr);
        for (int i = 0; i < 20; ++i) {
          e.thread().sleep(1_ms);
          ibv_wc wc{};
          EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
          EXPECT_EQ(e.write(1, 0, 8, e.peer.va, e.peer.rkey), ENOMEM);
        }
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RESET;  // only a reset helps, S-PS-42
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
        e.peer = e.address();
        e.go_to_rts();
        EXPECT_EQ(post_until_full(e), slots);
      },
      [](End&) {});
}

TEST(Posting, OneCompletionFreesAllSlotsUpToIt_A_17) {
  Pair p;
  p.run(
      [](End& e) {
        const std::uint64_t slots = post_until_full(e);
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RESET;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
        e.peer = e.address();
        e.go_to_rts();
        for (int round = 0; round < 3; ++round) {
          for (std::uint64_t i = 1; i < slots; ++i) ASSERT_EQ(e.write(i, 0, 8, e.peer.va, e.peer.rkey, 0), 0);
          ASSERT_EQ(e.write(slots, 0, 8, e.peer.va, e.peer.rkey), 0);
          EXPECT_EQ(e.write(99, 0, 8, e.peer.va, e.peer.rkey), ENOMEM);
          const auto wc = e.wait(1);
          EXPECT_EQ(wc[0].wr_id, slots);
          EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        }
      },
      [](End&) {});
}

TEST(Posting, ChainIsPostedUpToTheRefusedRequest_A_18) {
  Pair p;
  p.run(
      [&](End& e) {
        e.thread().sleep(50_us);
        e.fill(1);
        ibv_sge s[3] = {e.sge(0, 8), e.sge(8, 8), e.sge(16, 8)};
        ibv_send_wr wr[5]{}, *bad = nullptr;
        for (std::size_t i = 0; i < 5; ++i) {
          wr[i].wr_id = i;
          wr[i].opcode = IBV_WR_SEND;
          wr[i].sg_list = s;
          wr[i].num_sge = i == 2 ? 3 : 1;
          wr[i].send_flags = IBV_SEND_SIGNALED;
          wr[i].next = i < 4 ? &wr[i + 1] : nullptr;
        }
        const std::uint64_t before = p.counter("host0.hca.uar.doorbells") + p.counter("host0.hca.uar.blueflame");
        EXPECT_EQ(ibv_post_send(e.qp, wr, &bad), ENOMEM);
        EXPECT_EQ(bad, &wr[2]);
        const auto wc = e.wait(2);
        for (std::uint64_t i : {0, 1}) {
          EXPECT_EQ(wc[i].wr_id, i);
          EXPECT_EQ(wc[i].status, IBV_WC_SUCCESS);
        }
        EXPECT_EQ(p.counter("host0.hca.uar.doorbells") + p.counter("host0.hca.uar.blueflame"), before + 1);
        e.meet("done");
      },
      [](End& e) {
        ibv_sge s[3] = {e.sge(0, 8), e.sge(8, 8), e.sge(16, 8)};
        ibv_recv_wr wr[5]{}, *bad = nullptr;
        for (std::size_t i = 0; i < 5; ++i) {
          wr[i].wr_id = i;
          wr[i].sg_list = s;
          wr[i].num_sge = i == 2 ? 3 : 1;
          wr[i].next = i < 4 ? &wr[i + 1] : nullptr;
        }
        EXPECT_EQ(ibv_post_recv(e.qp, wr, &bad), EINVAL);
        EXPECT_EQ(bad, &wr[2]);
        e.meet("done");
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      });
}

TEST(Posting, InlineDataAreTakenDuringTheCall_A_20) {
  Pair p;
  p.options[0].inline_bytes = 200;
  p.run(
      [](End& e) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 16, 2, 2, 200};
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        e.qp = ibv_create_qp(e.pd, &init);
        const std::uint32_t most = init.cap.max_inline_data;
        ASSERT_GE(most, 200u);
        e.peer = e.address();
        e.go_to_rts();
        e.fill(6);
        const unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
        EXPECT_EQ(e.write(1, 0, most + 1, e.va(8192), e.mr->rkey, flags), ENOMEM);
        ibv_sge s = e.sge(0, most);
        s.lkey = 0xdead;  // not looked at
        ASSERT_EQ(e.post(2, IBV_WR_RDMA_WRITE, {s}, e.va(8192), e.mr->rkey, flags), 0);
        std::memset(e.buffer, 0, most);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(8192, most, 6, 0));
      },
      [](End&) {});
}

}  // namespace
}  // namespace sys::test
