// SPDX-License-Identifier: Apache-2.0
// Unreliable Connection between two programs: what completes when, what a lost or refused packet does, and what the cable
// carries.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

constexpr std::uint8_t kUc = 0x20, kSendFirst = kUc, kSendMiddle = kUc + 1, kSendLast = kUc + 2, kSendOnly = kUc + 4,
                       kSendOnlyImm = kUc + 5, kWriteFirst = kUc + 6, kWriteMiddle = kUc + 7, kWriteLast = kUc + 8,
                       kWriteLastImm = kUc + 9, kWriteOnly = kUc + 10;
const std::vector<std::uint8_t> kAll{kSendFirst,  kSendMiddle,  kSendLast,  kSendOnly,     kSendOnlyImm,
                                     kWriteFirst, kWriteMiddle, kWriteLast, kWriteLastImm, kWriteOnly};

struct Uc : Pair {
  Uc() { options[0].type = options[1].type = IBV_QPT_UC; }
};
void pause(End& e, sim::Picos d) { e.thread().sleep(d); }

TEST(Uc, SendsAndWritesOfEveryLengthArrive_S_UC_1_A_45) {
  Uc p;
  std::uint32_t server_qpn = 0;
  constexpr std::uint32_t kLengths[] = {0, 1, 1023, 1024, 1025, 4096};
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.fill(3);
        pause(e, 50_us);
        for (const std::uint32_t n : kLengths) {
          ASSERT_EQ(e.send(n, 0, n), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
        ASSERT_EQ(e.write(9, 0, 3000, e.peer.va + 32768, e.peer.rkey), 0);
        ASSERT_EQ(
            e.post(10, IBV_WR_RDMA_WRITE_WITH_IMM, {e.sge(5, 2048)}, e.peer.va + 40000, e.peer.rkey, IBV_SEND_SIGNALED),
            0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(e.receive(i, i * 4096, 4096), 0);
        const auto wc = e.wait(7);
        for (std::size_t i = 0; i < 6; ++i) {
          EXPECT_EQ(wc[i].status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc[i].byte_len, kLengths[i]);
          EXPECT_TRUE(e.holds(i * 4096, kLengths[i], 3, 0)) << i;
        }
        EXPECT_EQ(wc[6].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT_EQ(wc[6].byte_len, 2048u);
        EXPECT_TRUE(e.holds(32768, 3000, 3, 0));
        EXPECT_TRUE(e.holds(40000, 2048, 3, 5));
      });
  std::vector<std::uint8_t> opcodes, pads;
  std::vector<std::uint32_t> psns;
  for (const SentFrame& f : p.sent(server_qpn, kAll)) {
    opcodes.push_back(f.opcode);
    psns.push_back(f.psn);
    pads.push_back(f.pad);
    EXPECT_FALSE(f.ack_req);
  }
  EXPECT_EQ(opcodes, (std::vector<std::uint8_t>{kSendOnly, kSendOnly, kSendOnly, kSendOnly, kSendFirst, kSendLast,
                                                kSendFirst, kSendMiddle, kSendMiddle, kSendLast, kWriteFirst,
                                                kWriteMiddle, kWriteLast, kWriteFirst, kWriteLastImm}));
  for (std::size_t i = 0; i < psns.size(); ++i) EXPECT_EQ(psns[i], 0x100 + i);
  EXPECT_EQ(pads, (std::vector<std::uint8_t>{0, 3, 1, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(p.counter("host1.hca.tx.packets"), 0u) << "nothing is acknowledged";
}

// The last of 64 packets leaves the port 64 serialisation times after the first; the CQE follows, and no answer is awaited.
TEST(Uc, CompletesWhenTheLastPacketHasLeft_S_UC_2) {
  Uc p;
  sim::Picos completed{0};
  std::uint32_t server_qpn = 0;
  p.options[1].connect = false;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        ASSERT_EQ(e.send(1, 0, 64 << 10), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS})) << "although the peer is in RESET";
        completed = e.thread().now();
      },
      [](End&) {});
  const auto frames = p.sent(server_qpn, kAll);
  ASSERT_EQ(frames.size(), 64u);
  EXPECT_GT(completed, frames.back().t);
  EXPECT_LT(completed, frames.back().t + 2_us);
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.qp_state"), 64u);
}

class UcLoss : public testing::TestWithParam<std::uint8_t> {};
TEST_P(UcLoss, TheNextMessageTakesTheSameReceive_A_62_S_UC_3) {
  Uc p;
  p.lose(GetParam());
  const bool write = GetParam() >= kWriteFirst;
  p.run(
      [&](End& e) {
        e.fill(7);
        pause(e, 50_us);
        if (write) {
          ASSERT_EQ(
              e.post(1, IBV_WR_RDMA_WRITE_WITH_IMM, {e.sge(0, 4096)}, e.peer.va + 8192, e.peer.rkey, IBV_SEND_SIGNALED),
              0);
        } else {
          ASSERT_EQ(e.send(1, 0, 4096), 0);
        }
        ASSERT_EQ(e.send(2, 100, 2000), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 4096), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc[0].wr_id, 0u) << "the receive of the broken message serves the next one";
        EXPECT_EQ(wc[0].byte_len, 2000u);
        EXPECT_TRUE(e.holds(0, 2000, 7, 100));
        pause(e, 100_us);
        ibv_wc more{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &more), 0);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        EXPECT_TRUE(e.events().empty());
      });
  EXPECT_GE(p.counter("host1.hca.responder.unreliable_messages_dropped") +
                p.counter("host1.hca.responder.unreliable_packets_dropped"),
            1u);
}
INSTANTIATE_TEST_SUITE_P(Packets, UcLoss,
                         testing::Values(kSendFirst, kSendMiddle, kSendLast, kWriteFirst, kWriteMiddle, kWriteLastImm));

// A write that loses its tail has already changed memory.
TEST(Uc, APartOfALostWriteStays_S_UC_5) {
  Uc p;
  p.lose(kWriteLast);
  p.run(
      [](End& e) {
        e.fill(9);
        ASSERT_EQ(e.write(1, 0, 3072, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("written");
      },
      [](End& e) {
        e.meet("written");
        pause(e, 50_us);
        EXPECT_TRUE(e.holds(0, 2048, 9, 0));
        EXPECT_EQ(e.buffer[2048], std::byte{0});
      });
}

struct Fault {
  const char* name;
  std::uint32_t rkey = 0, n = 64;
  int qp_access = IBV_ACCESS_REMOTE_WRITE;
  bool send = false, posted = true;
};
void PrintTo(const Fault& f, std::ostream* out) { *out << f.name; }
class UcFault : public testing::TestWithParam<Fault> {};
TEST_P(UcFault, IsADropThatNobodyHearsOf_S_UC_4) {
  const Fault& f = GetParam();
  Uc p;
  p.options[1].qp_access = f.qp_access;
  p.run(
      [&](End& e) {
        pause(e, 50_us);
        ASSERT_EQ(f.send ? e.send(1, 0, f.n) : e.write(1, 0, f.n, e.peer.va, e.peer.rkey + f.rkey), 0);
        ASSERT_EQ(e.send(2, 0, 32), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        e.meet("sent");
      },
      [&](End& e) {
        if (f.posted) {
          ASSERT_EQ(e.receive(7, 0, 64), 0);
        }
        e.meet("sent");
        if (f.posted) {
          const auto wc = e.wait(1);
          EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc[0].byte_len, 32u) << "only the good message took the receive";
        }
        pause(e, 100_us);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        EXPECT_TRUE(e.events().empty());
      });
  EXPECT_EQ(p.counter("host1.hca.tx.packets"), 0u);
  EXPECT_GE(p.counter("host1.hca.responder.unreliable_packets_dropped"), 1u);
}
INSTANTIATE_TEST_SUITE_P(Kinds, UcFault,
                         testing::Values(Fault{.name = "wrong_key", .rkey = 1},
                                         Fault{.name = "no_write_on_qp", .qp_access = 0},
                                         Fault{.name = "longer_than_the_receive", .n = 2000, .send = true},
                                         Fault{.name = "no_receive", .send = true, .posted = false}),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(Uc, ReceiveWithABadKeyEndsTheQp_S_UC_4) {
  Uc p;
  p.run(
      [](End& e) {
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ibv_sge s = e.sge(0, 64);
        s.lkey += 1;
        ASSERT_EQ(e.receive(1, {s}), 0);
        ASSERT_EQ(e.receive(2, 0, 64), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
      });
}

class UcOpcode : public testing::TestWithParam<ibv_wr_opcode> {};
TEST_P(UcOpcode, OfOtherServicesIsALocalError_S_PS_3) {
  Uc p;
  p.run(
      [&](End& e) {
        ASSERT_EQ(e.post(1, GetParam(), {e.sge(0, 8)}, e.peer.va, e.peer.rkey, IBV_SEND_SIGNALED), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_QP_OP_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_SQE);
      },
      [](End&) {});
}
INSTANTIATE_TEST_SUITE_P(Uc, UcOpcode,
                         testing::Values(IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV, IBV_WR_ATOMIC_FETCH_AND_ADD));

TEST(Uc, ALocalErrorLeadsToSqeAndBack_S_UC_6_S_QP_51) {
  Uc p;
  p.run(
      [](End& e) {
        pause(e, 50_us);
        for (std::uint64_t i = 0; i < 4; ++i) {
          ibv_sge s = e.sge(0, 64);
          if (i == 1) s.lkey += 1;
          ASSERT_EQ(e.send(i, {s}), 0);
        }
        EXPECT_EQ(e.statuses(4),
                  (Statuses{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_SQE);
        ASSERT_EQ(e.send(5, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_WR_FLUSH_ERR})) << "posted in SQE";
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RTS;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
        ASSERT_EQ(e.send(6, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS})) << "the first send and the one after";
      });
}

// The kernel has not heard of the move to SQE: the program names the current state instead of asking for it (S-QP-11).
TEST(Uc, TheCurrentStateInModifyLeadsOutOfSqe_S_QP_11) {
  Uc p;
  p.run(
      [](End& e) {
        ibv_sge s = e.sge(0, 64);
        s.lkey += 1;
        ASSERT_EQ(e.send(1, {s}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_PROT_ERR}));
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RTS;
        EXPECT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), EINVAL);
        a.cur_qp_state = IBV_QPS_SQE;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
        ASSERT_EQ(e.send(2, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End&) {});
}

TEST(Uc, PsnsWrapFrom24Bits_A_46) {
  Uc p;
  p.options[0].psn = 0xFFFFFE;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
  std::vector<std::uint32_t> psns;
  for (const SentFrame& f : p.sent(server_qpn, kAll)) psns.push_back(f.psn);
  EXPECT_EQ(psns, (std::vector<std::uint32_t>{0xFFFFFE, 0xFFFFFF, 0, 1}));
}

// The error comes while the queue has already taken up the failed request again: nothing beyond the queue is flushed.
TEST(Uc, FailureBehindRequestsUnderWayFlushesOnlyWhatIsPosted_S_QP_51) {
  Uc p;
  p.run(
      [&](End& e) {
        std::vector<ibv_sge> bad{{e.va(), 3000, e.mr->lkey + 0x100}};
        ibv_send_wr wr[3]{}, *refused = nullptr;
        for (std::size_t i = 0; i < 3; ++i) {
          wr[i].wr_id = i;
          wr[i].opcode = IBV_WR_SEND;
          if (i < 2) wr[i].next = &wr[i + 1];
        }
        wr[2].sg_list = bad.data();
        wr[2].num_sge = 1;
        ASSERT_EQ(ibv_post_send(e.qp, wr, &refused), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].wr_id, 2u);
        EXPECT_EQ(wc[0].status, IBV_WC_LOC_PROT_ERR);
        pause(e, 1_ms);
        ibv_wc more{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &more), 0);
        EXPECT_EQ(e.state(), IBV_QPS_SQE);
      },
      [](End&) {});
}

}  // namespace
}  // namespace sys::test
