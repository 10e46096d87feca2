// SPDX-License-Identifier: Apache-2.0
// Completion queues between two programs: moderation, resizing under traffic, CQE sizes, scatter-to-CQE.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/system/verbs_pair.h"
#include "verbs_frontend/mlx5/mlx5.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;
using sim::Picos;

/// Replaces the QP of an end that is not connected yet by one on another CQ, and connects it.
void connect_with(End& e, ibv_cq* cq, bool signal_all = false) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {32, 128, 2, 2, 0};
  init.sq_sig_all = signal_all;
  ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
  e.qp = ibv_create_qp(e.pd, &init);
  ASSERT_NE(e.qp, nullptr);
  if (cq != e.cq) {
    ASSERT_EQ(ibv_destroy_cq(std::exchange(e.cq, cq)), 0);
  }
  e.mine = e.address();
  ASSERT_EQ(e.process_.exchange->swap("new address", &e.mine, &e.peer, sizeof e.mine), 0);
  e.go_to_rts();
  e.meet("connected again");
}

struct Unconnected : Pair {
  Unconnected() {
    for (EndOptions& o : options) o.connect = false;
  }
};

/// The client sends `n` messages when the server asks for them.
void send_when_asked(End& e, const std::vector<unsigned>& bursts) {
  std::uint64_t id = 0;
  for (const unsigned n : bursts) {
    e.meet("go");
    for (unsigned i = 0; i < n; ++i) ASSERT_EQ(e.send(id++, 0, 8), 0);
    e.wait(n);
  }
}

TEST(Moderation, CountOrPeriodMakeTheEvent_A_39) {
  Unconnected p;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        send_when_asked(e, {3, 4, 1});
      },
      [](End& e) {
        ibv_comp_channel* channel = ibv_create_comp_channel(e.context);
        connect_with(e, ibv_create_cq(e.context, 63, nullptr, channel, 0));
        ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {4, 5000}};
        EXPECT_EQ(ibv_modify_cq(e.cq, &attr), EINVAL) << "S-MOD-1: the period has 12 bits";
        attr.attr_mask = 1 << 3;
        EXPECT_EQ(ibv_modify_cq(e.cq, &attr), EINVAL);
        attr = {IBV_CQ_ATTR_MODERATE, {4, 1000}};
        ASSERT_EQ(ibv_modify_cq(e.cq, &attr), 0);
        for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        const auto event_after_arm = [&](bool look_early, std::size_t cqes) {
          EXPECT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
          const Picos armed = e.thread().now();
          e.meet("go");
          if (look_early) {
            e.thread().sleep(100_us);
            e.wait(cqes, 1_us);  // S-MOD-3: only the event waits
          }
          ibv_cq* cq = nullptr;
          void* cq_context = nullptr;
          EXPECT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), 0);
          ibv_ack_cq_events(cq, 1);
          const Picos took = e.thread().now() - armed;
          if (!look_early) e.wait(cqes);
          return took;
        };
        const Picos three = event_after_arm(true, 3);
        EXPECT_GE(three, 1000_us);
        EXPECT_LT(three, 1020_us);
        EXPECT_LT(event_after_arm(false, 4), 50_us);
        attr = {IBV_CQ_ATTR_MODERATE, {0, 0}};
        ASSERT_EQ(ibv_modify_cq(e.cq, &attr), 0);
        EXPECT_LT(event_after_arm(false, 1), 50_us) << "no moderation";
      });
}

TEST(Moderation, PeriodMayStartWithEachCqe_S_MOD_2) {
  Unconnected p;
  p.scenario.hosts[1].kernel.driver.cq_period_mode = kernel::CqPeriodMode::cqe;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        e.meet("go");
        for (std::uint64_t i = 0; i < 3; ++i) {
          ASSERT_EQ(e.send(i, 0, 8), 0);
          e.thread().sleep(300_us);
        }
      },
      [](End& e) {
        ibv_comp_channel* channel = ibv_create_comp_channel(e.context);
        connect_with(e, ibv_create_cq(e.context, 63, nullptr, channel, 0));
        ibv_modify_cq_attr attr{IBV_CQ_ATTR_MODERATE, {100, 500}};
        ASSERT_EQ(ibv_modify_cq(e.cq, &attr), 0);
        for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
        e.meet("go");
        const Picos begin = e.thread().now();
        ibv_cq* cq = nullptr;
        void* cq_context = nullptr;
        ASSERT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), 0);
        ibv_ack_cq_events(cq, 1);
        const Picos took = e.thread().now() - begin;
        EXPECT_GE(took, 1100_us) << "500 us after the third, which comes after 600 us";
        EXPECT_LT(took, 1120_us);
      });
}

// An arm for solicited completions sleeps through a successful SEND and wakes for the failed WRITE behind it.
TEST(SolicitedArm, AnErrorCompletionCountsAsSolicited_A_34_S_CE_3) {
  Unconnected p;
  p.run(
      [](End& e) {
        ibv_comp_channel* channel = ibv_create_comp_channel(e.context);
        connect_with(e, ibv_create_cq(e.context, 63, nullptr, channel, 0));
        e.meet("go");
        ASSERT_EQ(ibv_req_notify_cq(e.cq, 1), 0);
        ASSERT_EQ(e.send(1, 0, 8), 0);
        e.thread().sleep(200_us);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        const Picos begin = e.thread().now();
        e.process_.os.set_nonblock(channel->fd, true);
        ibv_cq* cq = nullptr;
        void* cq_context = nullptr;
        EXPECT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), -1) << "nothing solicited yet";
        e.process_.os.set_nonblock(channel->fd, false);
        ASSERT_EQ(e.write(2, 0, 8, e.peer.va, e.peer.rkey + 1), 0);
        ASSERT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), 0);
        ibv_ack_cq_events(cq, 1);
        EXPECT_LT(e.thread().now() - begin, 100_us);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) {
        connect_with(e, e.cq);
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        e.meet("go");
        e.thread().sleep(1_ms);
      });
}

TEST(Resize, UnderTrafficLosesRepeatsAndReordersNothing_A_44) {
  Unconnected p;
  constexpr unsigned kMessages = 600;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        unsigned done = 0;
        for (unsigned i = 0; i < kMessages; ++i) {
          ASSERT_EQ(e.send(i, 0, i % 3 == 0 ? 100 : 8), 0);
          if (i - done >= 16) done += static_cast<unsigned>(e.wait(8).size());
        }
        e.wait(kMessages - done);
      },
      [](End& e) {
        connect_with(e, ibv_create_cq(e.context, 15, nullptr, nullptr, 0));
        ASSERT_EQ(e.cq->cqe, 15);
        std::uint64_t posted = 0, next = 0;
        const int sizes[] = {63, 31, 127, 15};
        unsigned resizes = 0;
        while (next < kMessages) {
          while (posted - next < 10 && posted < kMessages) {
            ASSERT_EQ(e.receive(posted, 0, 128), 0);
            ++posted;
          }
          if (next >= 40 * (resizes + 1) && resizes < 12) {
            e.thread().sleep(30_us);  // up to ten CQEs wait
            const int size = sizes[resizes++ % 4];
            ASSERT_EQ(ibv_resize_cq(e.cq, size), 0);
            ASSERT_EQ(e.cq->cqe, size);
          }
          ibv_wc wc[4];
          const int n = ibv_poll_cq(e.cq, 4, wc);
          ASSERT_GE(n, 0);
          for (int i = 0; i < n; ++i) {
            ASSERT_EQ(wc[i].wr_id, next++);
            ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
          }
          if (n == 0) e.thread().sleep(500_ns);
        }
        EXPECT_EQ(resizes, 12u);
        e.thread().sleep(50_us);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
        EXPECT_EQ(ibv_resize_cq(e.cq, -1), EINVAL);
        EXPECT_EQ(ibv_resize_cq(e.cq, 1 << 22), EINVAL) << "more than max_cqe";
        EXPECT_EQ(ibv_resize_cq(e.cq, 12), 0) << "S-OBJ-36: rounds to what it is";
      });
}

TEST(Resize, BelowWhatWaitsIsRefusedAndLosesNothing_A_44) {
  Unconnected p;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        send_when_asked(e, {10});
        e.meet("sent");
      },
      [](End& e) {
        connect_with(e, ibv_create_cq(e.context, 63, nullptr, nullptr, 0));
        for (std::uint64_t i = 0; i < 10; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        e.meet("go");
        e.meet("sent");
        EXPECT_EQ(ibv_resize_cq(e.cq, 7), EINVAL);
        EXPECT_EQ(e.cq->cqe, 63);
        EXPECT_EQ(ibv_resize_cq(e.cq, 15), 0);
        const auto wc = e.wait(10);
        for (std::size_t i = 0; i < wc.size(); ++i) EXPECT_EQ(wc[i].wr_id, i);
      });
}

TEST(Resize, AnArmedCqStaysArmed_S_OVR_13) {
  Unconnected p;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        send_when_asked(e, {1});
      },
      [](End& e) {
        ibv_comp_channel* channel = ibv_create_comp_channel(e.context);
        connect_with(e, ibv_create_cq(e.context, 15, nullptr, channel, 0));
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
        ASSERT_EQ(ibv_resize_cq(e.cq, 63), 0);
        e.meet("go");
        ibv_cq* cq = nullptr;
        void* cq_context = nullptr;
        ASSERT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), 0);
        EXPECT_EQ(cq, e.cq);
        ibv_ack_cq_events(cq, 1);
        e.wait(1);
      });
}

/// Messages that come in the CQE are copied by the poll, not by the device.
struct InCqe {
  const char* name;
  std::uint32_t bytes;
  const char* cqe_size;  ///< MLX5_CQE_SIZE
  const char* scatter;   ///< MLX5_SCATTER_TO_CQE
  bool in_cqe;
};
class ReceiveInCqe : public testing::TestWithParam<InCqe> {};
TEST_P(ReceiveInCqe, TheBufferIsWrittenByThePoll_S_CQE_16) {
  const InCqe& c = GetParam();
  Pair p;
  if (c.cqe_size != nullptr) p.scenario.hosts[1].env["MLX5_CQE_SIZE"] = c.cqe_size;
  if (c.scatter != nullptr) p.scenario.hosts[1].env["MLX5_SCATTER_TO_CQE"] = c.scatter;
  p.run(
      [&](End& e) {
        e.fill(11);
        e.meet("posted");
        ASSERT_EQ(e.send(1, 64, c.bytes), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("sent");
      },
      [&](End& e) {
        e.fill(99);
        ASSERT_EQ(e.receive(1, {e.sge(4096, 5), e.sge(8192, 1000)}), 0);
        e.meet("posted");
        e.meet("sent");
        e.thread().sleep(10_us);
        EXPECT_EQ(e.holds(4096, 5, 99, 4096), c.in_cqe) << "S-INL-2: before the poll";
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].byte_len, c.bytes);
        EXPECT_TRUE(e.holds(4096, 5, 11, 64));
        EXPECT_TRUE(e.holds(8192, c.bytes - 5, 11, 69));
        EXPECT_TRUE(e.holds(8192 + c.bytes - 5, 100, 99, 8192 + c.bytes - 5)) << "not a byte more";
      });
}
INSTANTIATE_TEST_SUITE_P(
    Rc, ReceiveInCqe,
    testing::Values(InCqe{"Bytes6", 6, nullptr, nullptr, true}, InCqe{"Bytes32", 32, nullptr, nullptr, true},
                    InCqe{"Bytes33", 33, nullptr, nullptr, false}, InCqe{"SwitchedOff", 32, nullptr, "0", false},
                    InCqe{"Cqe128Bytes32", 32, "128", nullptr, true}, InCqe{"Cqe128Bytes64", 64, "128", nullptr, true},
                    InCqe{"Cqe128Bytes65", 65, "128", nullptr, false}),
    [](const auto& i) { return std::string(i.param.name); });

class ResultInCqe : public testing::TestWithParam<bool> {};
TEST_P(ResultInCqe, OnlyIfEveryRequestIsSignaled_S_CQE_16) {
  const bool all = GetParam();
  Unconnected p;
  p.run(
      [&](End& e) {
        e.fill(1);
        connect_with(e, e.cq, all);
        ASSERT_EQ(e.read(1, 4096, 32, e.peer.va, e.peer.rkey), 0);
        ASSERT_EQ(e.read(2, 8192, 33, e.peer.va, e.peer.rkey), 0);
        e.thread().sleep(50_us);
        EXPECT_EQ(e.holds(4096, 32, 1, 4096), all) << "waits in the CQE";
        EXPECT_TRUE(e.holds(8192, 33, 77, 0));
        const auto wc = e.wait(2);
        EXPECT_EQ(wc[0].byte_len, 32u);
        EXPECT_TRUE(e.holds(4096, 32, 77, 0));
        e.meet("done");
      },
      [&](End& e) {
        e.fill(77);
        connect_with(e, e.cq);
        e.meet("done");
      });
}
INSTANTIATE_TEST_SUITE_P(Read, ResultInCqe, testing::Bool());

TEST(ScatterToCqe, ATooShortReceiveFailsAsWithoutIt_S_ERR_9) {
  Pair p;
  p.run(
      [](End& e) {
        e.meet("posted");
        ASSERT_EQ(e.send(1, 0, 20), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_INV_REQ_ERR}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, {e.sge(0, 10), e.sge(64, 9)}), 0);
        e.meet("posted");
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_LEN_ERR}));
      });
}

TEST(CqRing, OwnerBitsFlipWithEachPass_A_26) {
  Unconnected p;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        send_when_asked(e, std::vector<unsigned>(9, 1));
      },
      [](End& e) {
        connect_with(e, ibv_create_cq(e.context, 3, nullptr, nullptr, 0));
        const verbs::mlx5::Cq& cq = verbs::mlx5::cq_of(e.cq);
        ASSERT_EQ(cq.entries, 4u);
        for (std::uint64_t i = 0; i < 9; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        const unsigned owner[] = {0, 0, 0, 0, 1, 1, 1, 1, 0};
        for (std::size_t i = 0; i < 9; ++i) {
          ibv_wc wc{};
          EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0) << "what the last pass left is not returned again";
          e.meet("go");
          e.thread().sleep(20_us);
          EXPECT_EQ(std::to_integer<unsigned>(cq.buf[(i % 4 + 1) * 64 - 1]) & 1, owner[i]);
          ASSERT_EQ(ibv_poll_cq(e.cq, 1, &wc), 1);
          EXPECT_EQ(wc.wr_id, i);
        }
      });
}

/// Two arms between two events carry one sequence number; each consumed event gives the next.
TEST(Arm, SequenceNumbersCountEvents_A_40) {
  Unconnected p;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        send_when_asked(e, {1, 1, 1});
      },
      [](End& e) {
        ibv_comp_channel* channel = ibv_create_comp_channel(e.context);
        connect_with(e, ibv_create_cq(e.context, 15, nullptr, channel, 0));
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        const auto sn = [&] {
          e.thread().sleep(1_us);
          return hca::prm::be32(verbs::mlx5::cq_of(e.cq).dbr[1]) >> 28;
        };
        for (std::uint32_t i = 0; i < 3; ++i) {
          ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
          EXPECT_EQ(sn(), i);
          ASSERT_EQ(ibv_req_notify_cq(e.cq, 0), 0);
          EXPECT_EQ(sn(), i);
          e.meet("go");
          ibv_cq* cq = nullptr;
          void* cq_context = nullptr;
          ASSERT_EQ(ibv_get_cq_event(channel, &cq, &cq_context), 0);
          ibv_ack_cq_events(cq, 1);
          e.wait(1);
        }
      });
}

TEST(CreateCqEx, IgnoresOverrunWhenAsked_S_OBJ_35) {
  Unconnected p;
  p.run(
      [](End& e) {
        connect_with(e, e.cq);
        send_when_asked(e, {6});
        e.meet("sent");
      },
      [](End& e) {
        ibv_cq_init_attr_ex attr{};
        attr.cqe = 3;
        attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
        attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
        attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
        ibv_cq_ex* cq = ibv_create_cq_ex(e.context, &attr);
        ASSERT_NE(cq, nullptr);
        connect_with(e, ibv_cq_ex_to_cq(cq));
        for (std::uint64_t i = 0; i < 6; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        e.meet("go");
        e.meet("sent");
        EXPECT_TRUE(e.events().empty()) << "no CQ_ERR (S-OVR-6)";
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      });
}

}  // namespace
}  // namespace sys::test
