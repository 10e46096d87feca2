// SPDX-License-Identifier: Apache-2.0
// Unreliable Datagrams between two programs: Q_Keys, the network header in front, address handles, multicast, errors.
#include <gtest/gtest.h>

#include <array>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

constexpr std::uint8_t kUdSendOnly = 0x64;
constexpr std::uint32_t kQkey = 0x11111111, kMulticastQpn = 0xFFFFFF;

struct Ud : Pair {
  Ud() { options[0].type = options[1].type = IBV_QPT_UD; }
};
void pause(End& e, sim::Picos d) { e.thread().sleep(d); }
void send_and_wait(End& e, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey, std::size_t offset, std::uint32_t n) {
  ASSERT_EQ(e.send_to(1, ah, qpn, qkey, {e.sge(offset, n)}), 0);
  EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
}

TEST(Ud, PayloadLiesBehindTheIpv4Header_A_63_S_UD_4) {
  Ud p;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.fill(5);
        ibv_ah* ah = e.peer_ah();
        ASSERT_NE(ah, nullptr);
        pause(e, 50_us);
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 100);
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 1024), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc[0].byte_len, 140u);
        EXPECT_EQ(wc[0].src_qp, e.peer.qpn);
        EXPECT_NE(wc[0].wc_flags & IBV_WC_GRH, 0u);
        EXPECT_TRUE(e.holds(40, 100, 5, 0));
        EXPECT_EQ(e.buffer[20], std::byte{0x45});
        EXPECT_EQ(e.buffer[29], std::byte{17}) << "UDP";
        EXPECT_EQ(std::memcmp(e.buffer + 32, e.peer.gid.raw + 12, 4), 0) << "source address";
        EXPECT_EQ(std::memcmp(e.buffer + 36, e.mine.gid.raw + 12, 4), 0) << "destination address";
      });
  ASSERT_EQ(p.sent(server_qpn, {kUdSendOnly}).size(), 1u);
  EXPECT_EQ(p.sent(server_qpn, {kUdSendOnly})[0].length, 14u + 20 + 8 + 12 + 8 + 100 + 4);
}

TEST(Ud, WrongQkeyIsDroppedAndTheSenderSucceeds_A_63_S_UD_3) {
  Ud p;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        send_and_wait(e, ah, e.peer.qpn, kQkey + 1, 0, 64);
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 32);
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 1024), 0);
        EXPECT_EQ(e.wait(1)[0].byte_len, 72u);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      });
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.qkey_mismatch"), 1u);
}

TEST(Ud, PrivilegedQkeyOfTheQpReplacesTheWrs_S_UD_2) {
  Ud p;
  p.options[0].qkey = 0x80001234;
  p.options[1].qkey = 0x80001234;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        send_and_wait(e, ah, e.peer.qpn, 0x8fffffff, 0, 64);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 1024), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

TEST(Ud, ReplyGoesToTheAddressOfTheReceivedHeader_S_UD_6) {
  Ud p;
  p.run(
      [](End& e) {
        ASSERT_EQ(e.receive(9, 8192, 1024), 0);
        e.fill(2);
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        ASSERT_EQ(e.send_to(1, ah, e.peer.qpn, kQkey, {e.sge(0, 64)}, 0), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].wr_id, 9u);
        EXPECT_EQ(wc[0].src_qp, e.peer.qpn);
        EXPECT_TRUE(e.holds(8192 + 40, 64, 2, 0));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 1024), 0);
        auto wc = e.wait(1);
        ibv_ah_attr attr{};
        auto* grh = reinterpret_cast<ibv_grh*>(e.buffer);
        ASSERT_EQ(ibv_init_ah_from_wc(e.context, 1, &wc[0], grh, &attr), 0);
        EXPECT_EQ(std::memcmp(&attr.grh.dgid, &e.peer.gid, 16), 0);
        EXPECT_EQ(attr.grh.sgid_index, 3);
        ibv_ah* ah = ibv_create_ah_from_wc(e.pd, &wc[0], grh, 1);
        ASSERT_NE(ah, nullptr);
        send_and_wait(e, ah, wc[0].src_qp, kQkey, 40, 64);
      });
}

TEST(Ud, Ipv6HeaderFillsTheWholeArea_S_UD_4) {
  Ud p;
  p.run(
      [](End& e) {
        ibv_gid own{};
        ASSERT_EQ(ibv_query_gid(e.context, 1, 1, &own), 0);
        ibv_ah_attr a{};
        a.is_global = 1;
        a.port_num = 1;
        e.process_.exchange->swap("link local", &own, &a.grh.dgid, sizeof own);
        a.grh.sgid_index = 1;
        a.grh.hop_limit = 9;
        a.grh.flow_label = 0x12345;
        a.grh.traffic_class = 0x28;
        e.fill(4);
        ibv_ah* ah = ibv_create_ah(e.pd, &a);
        ASSERT_NE(ah, nullptr);
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 50);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 1024), 0);
        ibv_gid own{}, sender{};
        ASSERT_EQ(ibv_query_gid(e.context, 1, 1, &own), 0);
        e.process_.exchange->swap("link local", &own, &sender, sizeof own);
        auto wc = e.wait(1);
        EXPECT_EQ(wc[0].byte_len, 90u);
        EXPECT_TRUE(e.holds(40, 50, 4, 0));
        EXPECT_EQ(std::memcmp(e.buffer + 8, &sender, 16), 0);
        EXPECT_EQ(std::memcmp(e.buffer + 24, &own, 16), 0);
        EXPECT_EQ(e.buffer[7], std::byte{9}) << "hop limit as the sender gave it (S-ROCE-5)";
        ibv_ah_attr attr{};
        ASSERT_EQ(ibv_init_ah_from_wc(e.context, 1, &wc[0], reinterpret_cast<ibv_grh*>(e.buffer), &attr), 0);
        EXPECT_EQ(attr.grh.sgid_index, 1);
        EXPECT_EQ(attr.grh.flow_label, 0x12345u);
        EXPECT_EQ(attr.grh.traffic_class, 0x28);
      });
}

TEST(Ud, MessageLongerThanThePortMtuIsALocalError_S_UD_1_S_ERR_17) {
  Ud p;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 4096);
        ASSERT_EQ(e.send_to(2, ah, e.peer.qpn, kQkey, {e.sge(0, 4097)}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_LEN_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_SQE);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 8192), 0);
        EXPECT_EQ(e.wait(1)[0].byte_len, 4136u);
      });
}

TEST(Ud, SmallEthernetMtuBoundsTheMessage_S_UD_1) {
  Ud p;
  for (auto& h : p.scenario.hosts) h.kernel.netdev.mtu = {1500};
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 1024);
        ASSERT_EQ(e.send_to(2, ah, e.peer.qpn, kQkey, {e.sge(0, 1025)}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_LEN_ERR}));
      },
      [](End&) {});
}

TEST(Ud, SendErrorLeadsToSqeAndReceivesGoOn_A_16) {
  Ud p;
  p.run(
      [](End& e) {
        ASSERT_EQ(e.receive(9, 8192, 1024), 0);
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        for (std::uint64_t i = 0; i < 4; ++i) {
          ibv_sge s = e.sge(0, 64);
          if (i == 1) s.lkey += 1;
          ASSERT_EQ(e.send_to(i, ah, e.peer.qpn, kQkey, {s}), 0);
        }
        EXPECT_EQ(e.statuses(4),
                  (Statuses{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_SQE);
        e.meet("in SQE");
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].wr_id, 9u);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS) << "a receive in SQE";
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RTS;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 64);
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 1024), 0);
        e.meet("in SQE");
        ibv_ah* ah = e.peer_ah();
        ASSERT_EQ(e.send_to(7, ah, e.peer.qpn, kQkey, {e.sge(0, 64)}, 0), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      });
}

TEST(Ud, ReceiveWithoutRoomForHeaderAndPayloadEndsTheQp_S_UD_5) {
  Ud p;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 64);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 103), 0);
        ASSERT_EQ(e.receive(2, 0, 200), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_LOC_LEN_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        EXPECT_TRUE(e.events().empty());
      });
}

TEST(Ud, WithoutAReceiveTheDatagramIsLost_S_UD_5) {
  Ud p;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        send_and_wait(e, ah, e.peer.qpn, kQkey, 0, 64);
        e.meet("sent");
      },
      [](End& e) {
        e.meet("sent");
        pause(e, 50_us);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        ASSERT_EQ(e.receive(1, 0, 200), 0);
        pause(e, 50_us);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
      });
  EXPECT_EQ(p.counter("host1.hca.responder.unreliable_packets_dropped"), 1u);
}

class UdOpcode : public testing::TestWithParam<ibv_wr_opcode> {};
TEST_P(UdOpcode, OfOtherServicesIsALocalError_S_PS_3) {
  Ud p;
  p.run(
      [&](End& e) {
        ibv_send_wr wr{}, *bad = nullptr;
        ibv_sge s = e.sge(0, 64);
        wr.opcode = GetParam();
        wr.sg_list = &s;
        wr.num_sge = 1;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.ud = {e.peer_ah(), e.peer.qpn, kQkey};
        ASSERT_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_QP_OP_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_SQE);
      },
      [](End&) {});
}
INSTANTIATE_TEST_SUITE_P(Ud, UdOpcode, testing::Values(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV));

TEST(Ud, AnAddressHandleHoldsItsPd_S_OBJ_20_A_8) {
  Ud p;
  p.run(
      [](End& e) {
        ibv_pd* pd = ibv_alloc_pd(e.context);
        ibv_ah_attr a{};
        a.port_num = 1;
        errno = 0;
        EXPECT_EQ(ibv_create_ah(pd, &a), nullptr);
        EXPECT_EQ(errno, EINVAL) << "RoCE without a GRH";
        a.is_global = 1;
        a.grh = {e.peer.gid, 0, 3, 64, 0};
        ibv_ah* ah = ibv_create_ah(pd, &a);
        ASSERT_NE(ah, nullptr);
        EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
        a.grh.sgid_index = 200;
        EXPECT_EQ(ibv_create_ah(pd, &a), nullptr);
        EXPECT_EQ(errno, EINVAL) << "no such GID";
        EXPECT_EQ(ibv_destroy_ah(ah), 0);
        EXPECT_EQ(ibv_dealloc_pd(pd), 0);
      },
      [](End&) {});
}

// WQEs of control, datagram and inline segments take more than one basic block and wrap at the end of a small ring.
TEST(Ud, InlineMessagesWithImmediateWrapInTheRing_A_27) {
  Ud p;
  p.options[0].inline_bytes = 100;
  p.options[0].send_wr = 3;
  p.run(
      [](End& e) {
        ibv_ah* ah = e.peer_ah();
        pause(e, 50_us);
        for (std::uint32_t i = 0; i < 30; ++i) {
          std::array<char, 100> text{};
          text.fill(static_cast<char>('a' + i % 26));
          ibv_sge s{reinterpret_cast<std::uint64_t>(text.data()), 20 + i * 2, 0};
          ibv_send_wr wr{}, *bad = nullptr;
          wr.wr_id = i;
          wr.opcode = IBV_WR_SEND_WITH_IMM;
          wr.imm_data = i;
          wr.sg_list = &s;
          wr.num_sge = 1;
          wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
          wr.wr.ud = {ah, e.peer.qpn, kQkey};
          ASSERT_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 12; ++i) ASSERT_EQ(e.receive(i, i * 256, 256), 0);
        for (std::uint32_t i = 0; i < 30; ++i) {
          const auto wc = e.wait(1);
          EXPECT_EQ(wc[0].byte_len, 60 + i * 2);
          EXPECT_EQ(wc[0].imm_data, i);
          EXPECT_NE(wc[0].wc_flags & IBV_WC_WITH_IMM, 0u);
          for (std::uint32_t k = 0; k < 20 + i * 2; ++k)
            EXPECT_EQ(static_cast<char>(e.buffer[wc[0].wr_id * 256 + 40 + k]), static_cast<char>('a' + i % 26));
          ASSERT_EQ(e.receive(wc[0].wr_id, wc[0].wr_id * 256, 256), 0);
        }
      });
}

// Multicast -------------------------------------------------------------------------------------------------------------

ibv_gid group(std::uint8_t last) {
  ibv_gid g{};
  g.raw[10] = g.raw[11] = 0xff;
  g.raw[12] = 239;
  g.raw[13] = 129;  // the top bit is not in the MAC address
  g.raw[15] = last;
  return g;
}
ibv_ah* group_ah(End& e, const ibv_gid& g) {
  ibv_ah_attr a{};
  a.is_global = 1;
  a.port_num = 1;
  a.grh = {g, 0, 3, 1, 0};
  return ibv_create_ah(e.pd, &a);
}

TEST(Multicast, EachAttachedQpWithTheKeyGetsACopy_S_UD_8) {
  Ud p;
  const ibv_gid g = group(7);
  p.run(
      [&](End& e) {
        e.fill(6);
        ASSERT_EQ(ibv_attach_mcast(e.qp, &g, 0), 0);
        ASSERT_EQ(e.receive(9, 8192, 1024), 0);
        e.meet("attached");
        ibv_ah* ah = group_ah(e, g);
        ASSERT_NE(ah, nullptr);
        ASSERT_EQ(e.send_to(1, ah, kMulticastQpn, kQkey, {e.sge(0, 64)}, 0), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].wr_id, 9u) << "the sender is a member too";
        EXPECT_TRUE(e.holds(8192 + 40, 64, 6, 0));
        EXPECT_EQ(ibv_detach_mcast(e.qp, &g, 0), 0);
      },
      [&](End& e) {
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_UD;
        init.cap = {4, 4, 1, 1, 0};
        ibv_qp* more[2];
        for (int i = 0; i < 2; ++i) {
          more[i] = ibv_create_qp(e.pd, &init);
          std::swap(e.qp, more[i]);
          e.o.qkey = i == 0 ? kQkey : kQkey + 1;
          e.go_to_rts();
          ASSERT_EQ(e.receive(20 + static_cast<std::uint64_t>(i), 4096, 1024), 0);
          ASSERT_EQ(ibv_attach_mcast(e.qp, &g, 0), 0);
          std::swap(e.qp, more[i]);
        }
        ASSERT_EQ(e.receive(10, 0, 1024), 0);
        ASSERT_EQ(ibv_attach_mcast(e.qp, &g, 0), 0);
        ASSERT_EQ(ibv_attach_mcast(e.qp, &g, 0), 0) << "twice is once";
        e.meet("attached");
        const auto wc = e.wait(2);
        EXPECT_EQ(wc[0].wr_id, 20u);
        EXPECT_EQ(wc[1].wr_id, 10u);
        EXPECT_TRUE(e.holds(40, 64, 6, 0));
        EXPECT_TRUE(e.holds(4096 + 40, 64, 6, 0));
        EXPECT_EQ(ibv_destroy_qp(e.qp), EBUSY);
        EXPECT_EQ(ibv_detach_mcast(e.qp, &g, 0), 0);
        EXPECT_EQ(ibv_detach_mcast(e.qp, &g, 0), EINVAL);
        EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
        e.process_.os.exit();  // leaves the other groups
      });
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.qkey_mismatch"), 1u);
  EXPECT_EQ(p.counter("host1.kernel.objects_left_on_close"), 0u);
}

TEST(Multicast, GroupsWithoutMembersAreIgnored_S_UD_8) {
  Ud p;
  p.run(
      [](End& e) {
        const ibv_gid g = group(8);
        ibv_ah* ah = group_ah(e, g);
        send_and_wait(e, ah, kMulticastQpn, kQkey, 0, 64);
      },
      [](End&) {});
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.no_group_member"), 1u);
}

TEST(Multicast, OnlyUdQpsAndMulticastGidsAreAttached_S_UD_8) {
  Ud p;
  p.options[1].type = IBV_QPT_RC;
  p.options[1].connect = false;
  p.run([](End& e) { EXPECT_EQ(ibv_attach_mcast(e.qp, &e.peer.gid, 0), EINVAL); },
        [](End& e) {
          const ibv_gid g = group(1);
          EXPECT_EQ(ibv_attach_mcast(e.qp, &g, 0), EINVAL);
        });
}

// Loopback --------------------------------------------------------------------------------------------------------------

TEST(Ud, ADatagramToItselfStaysInTheDevice_S_ROCE_8) {
  Ud p;
  p.run(
      [](End& e) {
        e.fill(1);
        ASSERT_EQ(e.receive(5, 8192, 1024), 0);
        ibv_ah_attr a{};
        a.is_global = 1;
        a.port_num = 1;
        a.grh = {e.mine.gid, 0, 3, 64, 0};
        ibv_ah* ah = ibv_create_ah(e.pd, &a);
        pause(e, 50_us);
        ASSERT_EQ(e.send_to(1, ah, e.qp->qp_num, kQkey, {e.sge(0, 64)}), 0);
        const auto wc = e.wait(2);
        EXPECT_TRUE(wc[0].wr_id == 5 || wc[1].wr_id == 5);
        EXPECT_TRUE(e.holds(8192 + 40, 64, 1, 0));
      },
      [](End&) {});
  EXPECT_TRUE(p.frames.empty());
}

}  // namespace
}  // namespace sys::test
