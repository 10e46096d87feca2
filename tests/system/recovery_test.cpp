// SPDX-License-Identifier: Apache-2.0
// How RC traffic recovers from loss, and what holds of rings, order, addresses and exit: two programs and the cable.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/system/run_workload.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;
using sim::Picos;

constexpr std::uint8_t kSendFirst = 0, kSendMiddle = 1, kSendLast = 2, kSendOnly = 4, kReadRequest = 12,
                       kReadFirst = 13, kReadMiddle = 14, kReadLast = 15, kAck = 17;
const std::vector<std::uint8_t> kSends{kSendFirst, kSendMiddle, kSendLast, kSendOnly};
constexpr std::uint32_t kPsn = 0x100;  // of both ends by default

void pause(End& e, Picos d) { e.thread().sleep(d); }

TEST(Recovery, PsnsWrapFrom24Bits_A_46) {
  Pair p;
  p.options[0].psn = 0xFFFFFE;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.fill(1);
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(0, 4096, 1, 0));
      });
  std::vector<std::uint32_t> psns;
  for (const SentFrame& f : p.sent(server_qpn, kSends)) psns.push_back(f.psn);
  EXPECT_EQ(psns, (std::vector<std::uint32_t>{0xFFFFFE, 0xFFFFFF, 0, 1}));
}

TEST(Recovery, LostMiddlePacketCostsOneNakAndGoBackN_A_47) {
  Pair p;
  p.lose(kSendMiddle, kPsn + 3);
  std::uint32_t client_qpn = 0, server_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        server_qpn = e.peer.qpn;
        e.fill(3);
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 10 * 1024), 0);
        ASSERT_EQ(e.send(2, 0, 100), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.receive(i, i * 16384, 16384), 0);
        const auto wc = e.wait(2);
        EXPECT_EQ(wc[0].byte_len, 10240u);
        EXPECT_EQ(wc[1].byte_len, 100u);
        EXPECT_TRUE(e.holds(0, 10240, 3, 0));
        pause(e, 1_ms);
        ibv_wc more{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &more), 0) << "no second completion";
      });
  std::vector<SentFrame> naks;
  for (const SentFrame& f : p.sent(client_qpn, {kAck}))
    if (f.syndrome == 0x60) naks.push_back(f);
  ASSERT_EQ(naks.size(), 1u);
  EXPECT_EQ(naks[0].psn, kPsn + 3);
  EXPECT_EQ(p.counter("host0.hca.requester.timeouts"), 0u);
  const auto sends = p.sent(server_qpn, kSends);
  EXPECT_EQ(std::count_if(sends.begin(), sends.end(), [](const SentFrame& f) { return f.psn == kPsn + 2; }), 1)
      << "not resent";
  EXPECT_EQ(std::count_if(sends.begin(), sends.end(), [](const SentFrame& f) { return f.psn == kPsn + 3; }), 2);
}

TEST(Recovery, LostAcknowledgementIsRepeatedForTheDuplicate_A_47) {
  Pair p;
  p.options[0].timeout = 8;
  p.lose(kAck);
  p.run(
      [](End& e) {
        pause(e, 50_us);
        const Picos start = e.thread().now();
        ASSERT_EQ(e.send(1, 0, 3000), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_GE(e.thread().now() - start, (Picos{4'096'000LL << 8}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        pause(e, 5_ms);
        ibv_wc more{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &more), 0) << "the duplicate takes no receive";
      });
  EXPECT_EQ(p.counter("host1.hca.responder.duplicates"), 3u);
}

TEST(Recovery, LaterAcknowledgementCoversALostOne_A_47) {
  Pair p;
  p.lose(kAck);
  p.run(
      [](End& e) {
        pause(e, 50_us);
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.send(i, 0, 100), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 4096), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      });
  EXPECT_EQ(p.counter("host0.hca.requester.retransmitted_packets"), 0u);
}

struct Lost {
  std::uint8_t opcode;
  std::uint32_t packet, packets;
};
void PrintTo(const Lost& l, std::ostream* out) { *out << l.packet << " of " << l.packets; }
class LostReadResponse : public testing::TestWithParam<Lost> {};
TEST_P(LostReadResponse, IsAskedForAgainFromTheGap_A_49) {
  const Lost& l = GetParam();
  const std::uint32_t bytes = l.packets * 1024;
  Pair p;
  p.options[0].timeout = 10;
  p.options[0].retry = 2;  // however many responses follow the gap, it costs one retry
  p.lose(l.opcode, kPsn + l.packet);
  std::uint32_t server_qpn = 0;
  std::uint64_t remote = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        remote = e.peer.va;
        ASSERT_EQ(e.read(1, 0, bytes, remote, e.peer.rkey), 0);
        ASSERT_EQ(e.read(2, 40960, 100, remote, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(0, bytes, 9, 0));
        EXPECT_TRUE(e.holds(40960, 100, 9, 0));
        e.meet("done");
      },
      [](End& e) { e.meet("done"); }, [](End& e) { e.fill(9); });
  const auto requests = p.sent(server_qpn, {kReadRequest});
  ASSERT_GE(requests.size(), 3u);
  const auto again =
      std::find_if(requests.begin() + 1, requests.end(), [&](const SentFrame& f) { return f.psn == kPsn + l.packet; });
  ASSERT_NE(again, requests.end());
  EXPECT_EQ(again->reth_va, remote + l.packet * 1024);
  EXPECT_EQ(again->reth_length, bytes - l.packet * 1024);
}
INSTANTIATE_TEST_SUITE_P(
    Rc, LostReadResponse,
    testing::Values(Lost{kReadFirst, 0, 4}, Lost{kReadMiddle, 2, 4}, Lost{kReadLast, 3, 4}, Lost{kReadMiddle, 1, 32}),
    [](const auto& i) {
      std::string name = "packet";
      return name.append(std::to_string(i.param.packet)).append("of").append(std::to_string(i.param.packets));
    });

TEST(Recovery, CorruptedPacketIsLikeALostOne_A_69) {
  Pair p;
  p.lose(kSendMiddle, kPsn + 1);
  p.scenario.fabric.link.impairment.events[0].type = fabric::ImpairmentType::corrupt;
  p.run(
      [](End& e) {
        e.fill(3);
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(0, 4096, 3, 0));
      });
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.icrc_errors"), 1u);
  EXPECT_EQ(p.counter("host0.hca.requester.sequence_naks_received"), 1u);
}

// Rings wrap many times; every message arrives once, in order, with its bytes.
TEST(Rings, WorkAndCompletionQueuesWrap) {
  Pair p;
  for (EndOptions& o : p.options) {
    o.send_wr = o.recv_wr = 4;
    o.cqe = 7;
    o.inline_bytes = 200;  // WQEs of several WQEBBs, so that they wrap inside
  }
  constexpr std::uint64_t kMessages = 10 * 64;
  p.run(
      [](End& e) {
        e.fill(0);
        pause(e, 50_us);
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          const bool small = i % 3 == 0;
          ASSERT_EQ(e.send(i, i % 512, small ? 150 : 300, IBV_SEND_SIGNALED | (small ? unsigned{IBV_SEND_INLINE} : 0U)),
                    0);
          const auto wc = e.wait(1);
          ASSERT_EQ(wc.size(), 1u);
          ASSERT_EQ(wc[0].status, IBV_WC_SUCCESS);
          ASSERT_EQ(wc[0].wr_id, i);
        }
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, i * 512, 512), 0);
        for (std::uint64_t i = 0; i < kMessages; ++i) {
          const auto wc = e.wait(1);
          ASSERT_EQ(wc.size(), 1u);
          ASSERT_EQ(wc[0].wr_id, i);
          ASSERT_EQ(wc[0].byte_len, i % 3 == 0 ? 150u : 300u);
          ASSERT_TRUE(e.holds(i % 4 * 512, wc[0].byte_len, 0, i % 512)) << i;
          ASSERT_EQ(e.receive(i + 4, i % 4 * 512, 512), 0);
        }
      });
}

// WQEBB 0 is read ahead of a batch, then comes round again 65536 WQEBBs later with other contents.
TEST(Rings, WhatWasReadAheadIsForgottenBeforeItsIndexComesRound) {
  Pair p;
  for (EndOptions& o : p.options) o.send_wr = 64;
  const auto pair_of_writes = [](End& e, std::size_t from) {
    ibv_sge s[2] = {e.sge(from, 8), e.sge(from + 8, 8)};
    ibv_send_wr wr[2]{}, *bad = nullptr;
    for (std::size_t i = 0; i < 2; ++i) {
      wr[i].opcode = IBV_WR_RDMA_WRITE;
      wr[i].sg_list = &s[i];
      wr[i].num_sge = 1;
      wr[i].wr.rdma.remote_addr = e.peer.va + i * 8;
      wr[i].wr.rdma.rkey = e.peer.rkey;
    }
    wr[0].next = &wr[1];
    wr[1].send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(ibv_post_send(e.qp, wr, &bad), 0);
    EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
  };
  p.run(
      [&](End& e) {
        e.fill(1);
        pair_of_writes(e, 0);
        for (std::uint32_t i = 2; i < 0x10000; ++i) {
          const bool last = i % 32 == 31;
          ASSERT_EQ(e.write(i, 64, 8, e.peer.va + 64, e.peer.rkey, last ? unsigned{IBV_SEND_SIGNALED} : 0U), 0);
          if (!last) continue;
          ASSERT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
        pair_of_writes(e, 1000);
        e.meet("done");
      },
      [](End& e) {
        e.meet("done");
        EXPECT_TRUE(e.holds(0, 16, 1, 1000));
      });
}

// Packets that wait for their QP context are not overtaken by those that find it.
TEST(Order, ContextMissesDoNotReorderPackets) {
  ScenarioConfig s = one_workload(Op::send_bw, 3000, 40);
  s.workloads[0].mtu = 256;
  s.workloads[0].qps = 4;
  s.workloads[0].tx_depth = 16;
  s.workloads.push_back(s.workloads[0]);
  s.workloads[1].client = "host1";
  for (HostConfig& h : s.hosts) h.hca.context.qpc_entries = 2;
  Simulation run(s);
  run.run();
  ASSERT_TRUE(run.cluster->finished());
  for (const char* host : {"host0", "host1"}) {
    const std::string path = host;
    EXPECT_GT(run.context.stats.counter(path + ".hca.qpc.misses").value, 100u);
    EXPECT_EQ(run.context.stats.counter(path + ".hca.responder.out_of_sequence").value, 0u);
    EXPECT_EQ(run.context.stats.counter(path + ".hca.requester.stale_responses").value, 0u);
    EXPECT_EQ(run.context.stats.counter(path + ".hca.requester.retransmitted_packets").value, 0u);
  }
}

TEST(Order, WriteIsVisibleWhenTheSendBehindItCompletes_A_60) {
  Pair p;
  p.run(
      [](End& e) {
        e.fill(7);
        pause(e, 50_us);
        ASSERT_EQ(e.write(1, 0, 20000, e.peer.va, e.peer.rkey, 0), 0);
        ASSERT_EQ(e.send(2, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 40000, 8), 0);
        for (ibv_wc wc{}; ibv_poll_cq(e.cq, 1, &wc) == 0;) {}
        EXPECT_TRUE(e.holds(0, 20000, 7, 0));
      });
}

// The RETH carries the I/O virtual address of the region, PCIe the bus address that the IOMMU maps, memory the frame.
TEST(Addresses, FourDifferentNumbers_A_68) {
  Pair p;
  constexpr std::uint64_t kIova = 0x7'0000'0000;
  p.options[1].iova = kIova;
  for (HostConfig& h : p.scenario.hosts) h.iommu.mode = iommu::Mode::translated;
  std::uint32_t server_qpn = 0;
  std::uint64_t address = 0, phys = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        EXPECT_EQ(e.peer.va, kIova);
        e.fill(2);
        ASSERT_EQ(e.write(1, 0, 5000, e.peer.va + 0x123, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("done");
      },
      [&](End& e) {
        e.meet("done");
        address = reinterpret_cast<std::uint64_t>(e.buffer);
        phys = e.process_.space.translate({address})->phys.v;
        EXPECT_TRUE(e.holds(0x123, 5000, 2, 0));
      });
  const auto writes = p.sent(server_qpn, {6});
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].reth_va, kIova + 0x123);
  EXPECT_NE(address, kIova);
  EXPECT_NE(phys, kIova);
  EXPECT_NE(phys, address);
  EXPECT_GT(p.counter("host1.iommu.iotlb_misses"), 0u) << "the bus address is translated";
}

TEST(Exit, WithoutCleanUpReleasesEverything_A_7) {
  Pair p;
  hca::Hca::Census before{};
  std::size_t pinned = 1;
  p.run(
      [&](End& e) {
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 3000), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        before = p.cluster->host(0).hca().census();
        ASSERT_EQ(e.send(2, 0, 3000), 0);  // still under way at exit
        e.process_.os.exit();
        pinned = e.process_.space.pinned_pages();
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        pause(e, 5_ms);
        e.process_.os.exit();
      });
  EXPECT_EQ(before.qps, 1u);
  EXPECT_EQ(pinned, 0u);
  for (const std::size_t i : {0, 1}) {
    const auto c = p.cluster->host(i).hca().census();
    EXPECT_EQ(c.qps, 0u);
    EXPECT_EQ(c.cqs, 0u);
    EXPECT_EQ(c.pds, before.pds - 1) << "the kernel's own stay";
    EXPECT_EQ(c.mkeys, before.mkeys - 1);
    EXPECT_EQ(c.eqs, before.eqs);
  }
}

}  // namespace
}  // namespace sys::test
