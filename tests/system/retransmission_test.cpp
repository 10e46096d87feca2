// SPDX-License-Identifier: Apache-2.0
// Retransmission that meets other work of the same queue: what property tests have found, each in its smallest form.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;
using sim::Picos;

constexpr std::uint8_t kSendFirst = 0, kSendMiddle = 1, kSendLast = 2, kSendOnly = 4, kReadRequest = 12, kReadLast = 15,
                       kAck = 17;
constexpr std::uint32_t kPsn = 0x100;  // of both ends by default

fabric::ImpairmentEventConfig& impair(Pair& p, fabric::ImpairmentType type, std::uint8_t opcode) {
  p.lose(opcode);
  p.scenario.fabric.link.impairment.events.back().type = type;
  return p.scenario.fabric.link.impairment.events.back();
}

// A repeated request is answered again, but only requests in sequence count against max_dest_rd_atomic (S-RC-23, S-RC-24).
TEST(Retransmission, DuplicateReadTakesNoReadResource) {
  Pair p;
  for (EndOptions& o : p.options) o.rd_atomic = 1;
  p.scenario.hosts[1].hca.send.tx_buffer = sim::Bytes{4096};  // so that the repeated answer takes a while
  impair(p, fabric::ImpairmentType::duplicate, kReadRequest);
  p.run(
      [](End& e) {
        ASSERT_EQ(e.read(1, 0, 30000, e.peer.va, e.peer.rkey), 0);
        ASSERT_EQ(e.read(2, 32768, 100, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(0, 30000, 9, 0));
        EXPECT_TRUE(e.holds(32768, 100, 9, 0));
        e.meet("done");
      },
      [](End& e) { e.meet("done"); }, [](End& e) { e.fill(9); });
  EXPECT_GT(p.counter("host1.hca.responder.duplicates"), 0u);
  EXPECT_EQ(p.counter("host1.hca.responder.naks_sent"), 0u);
}

// READ data are lost; the ACK of the WRITE behind tells, at every point of the way of a third request that then has to
// wait for the READ window. Without a timeout, nothing but the rewound queue itself can bring the data (S-RC-33).
TEST(Retransmission, GapFoundWhileAWqeIsFetchedIsAskedForAgain) {
  Pair p;
  p.options[0].rd_atomic = 1;
  p.options[0].timeout = 0;
  impair(p, fabric::ImpairmentType::drop, kReadLast).count = 1'000'000;
  p.run(
      [](End& e) {
        for (std::int64_t i = 0; i < 150; ++i) {
          ASSERT_EQ(e.read(1, 0, 2048, e.peer.va, e.peer.rkey), 0);
          ASSERT_EQ(e.write(2, 8192, 8, e.peer.va + 8192, e.peer.rkey, 0), 0);
          e.thread().sleep(Picos{i * 20'000});
          ASSERT_EQ(e.read(3, 4096, 8, e.peer.va, e.peer.rkey), 0);
          ASSERT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS})) << i;
        }
        e.meet("done");
      },
      [](End& e) { e.meet("done"); });
}

// What was sent before a WQE that cannot be executed still arrives (S-QP-44, A-56).
TEST(Retransmission, GoesOnBehindALocalError) {
  Pair p;
  p.options[0].timeout = 8;
  p.lose(kSendOnly, kPsn);
  p.run(
      [](End& e) {
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, 100), 0);
        ASSERT_EQ(e.send(2, {{e.va(), 8, e.mr->lkey + 0x100}}), 0);
        ASSERT_EQ(e.send(3, 0, 100), 0);
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

// An acknowledgement that comes while its message is being sent again ends that (S-RC-33).
TEST(Retransmission, EndsWithALateAcknowledgement) {
  Pair p;
  p.options[0].timeout = 5;
  constexpr std::uint32_t kBytes = 1000 * 1024;
  for (EndOptions& o : p.options) {
    o.bytes = kBytes;
    o.mtu = IBV_MTU_4096;  // 250 packets: one acknowledgement
  }
  for (HostConfig& h : p.scenario.hosts) h.kernel.netdev.mtu = sim::Bytes{9000};
  impair(p, fabric::ImpairmentType::reorder, kAck).time = Picos{(4'096'000LL << 5) + 500'000};
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, kBytes), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        ASSERT_EQ(e.send(2, 0, 100), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, kBytes), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      });
  EXPECT_EQ(p.counter("host0.hca.requester.timeouts"), 1u);
  const std::size_t sent = p.sent(server_qpn, {kSendFirst, kSendMiddle, kSendLast}).size();
  EXPECT_GT(sent, 250u) << "the retransmission has begun";
  EXPECT_LT(sent, 400u) << "and stopped";
}

}  // namespace
}  // namespace sys::test
