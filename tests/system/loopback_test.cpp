// SPDX-License-Identifier: Apache-2.0
// Traffic between QPs of one device, and of a QP with itself: nothing of it is seen on the cable.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

TEST(Loopback, TwoQpsOfOneDevice) {
  Pair p;
  sim::Picos took{0};
  p.run(
      [&](End& e) {
        End a(e.process_, e.o), b(e.process_, e.o);
        a.peer = b.address();
        b.peer = a.address();
        a.go_to_rts();
        b.go_to_rts();
        a.fill(3);
        ASSERT_EQ(b.receive(7, 0, 8192), 0);
        ASSERT_EQ(a.send(1, 0, 5000), 0);
        EXPECT_EQ(a.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        const auto wc = b.wait(1);
        EXPECT_EQ(wc[0].byte_len, 5000u);
        EXPECT_EQ(wc[0].src_qp, a.qp->qp_num);
        EXPECT_TRUE(b.holds(0, 5000, 3, 0));
        const sim::Picos start = e.thread().now();
        ASSERT_EQ(a.read(2, 16384, 5000, b.va(), b.mr->rkey), 0);
        EXPECT_EQ(a.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        took = e.thread().now() - start;
        EXPECT_TRUE(a.holds(16384, 5000, 3, 0));
      },
      [](End&) {});
  EXPECT_TRUE(p.frames.empty()) << "the cable stays silent";
  EXPECT_EQ(p.counter("host0.hca.tx.loopback_packets"), 5u + 1 + 1 + 5) << "message, ACK, READ request and data";
  EXPECT_LT(took, 10_us);
}

TEST(Loopback, AQpWithItself) {
  Pair p;
  p.run(
      [](End& e) {
        End a(e.process_, e.o);
        a.peer = a.address();
        a.go_to_rts();
        a.fill(5);
        ASSERT_EQ(a.receive(1, 32768, 4096), 0);
        ASSERT_EQ(a.send(2, 0, 3000), 0);
        std::vector<std::uint64_t> ids;
        for (const ibv_wc& wc : a.wait(2)) {
          EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          ids.push_back(wc.wr_id);
        }
        std::sort(ids.begin(), ids.end());
        EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 2}));
        EXPECT_TRUE(a.holds(32768, 3000, 5, 0));
        ASSERT_EQ(a.write(3, 0, 64, a.va(40000), a.mr->rkey + 1), 0);
        EXPECT_EQ(a.statuses(1).size(), 1u);
        EXPECT_EQ(a.state(), IBV_QPS_ERR) << "requester and responder fail together";
      },
      [](End&) {});
  EXPECT_TRUE(p.frames.empty());
}

// The request and its acknowledgement cross the device's switch once each.
TEST(Loopback, CrossingTakesItsTime) {
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.send.loopback_latency = 10_us;
  p.run(
      [](End& e) {
        End a(e.process_, e.o);
        a.peer = a.address();
        a.go_to_rts();
        const sim::Picos start = e.thread().now();
        ASSERT_EQ(a.write(1, 0, 8, a.va(64), a.mr->rkey), 0);
        EXPECT_EQ(a.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_GE(e.thread().now() - start, 20_us);
        EXPECT_LT(e.thread().now() - start, 23_us);
      },
      [](End&) {});
}

}  // namespace
}  // namespace sys::test
