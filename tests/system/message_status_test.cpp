// SPDX-License-Identifier: Apache-2.0
// Messages know who posted them, and how and when they ended.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Journey;
using sim::Picos;

struct Log : sim::JourneySink {
  void finished(const Journey& j) override { done.push_back(j); }
  void failed(const Journey& j) override { lost.push_back(j); }
  std::vector<Journey> done, lost;
};
Picos stages_of(const Journey& j) { return std::accumulate(j.stage.begin(), j.stage.end(), Picos{0}); }

struct MessageStatus : testing::Test {
  void run(Pair::Program client, Pair::Program server) {
    p.context.journeys.set_sink(&log);
    p.run(std::move(client), std::move(server));
    p.context.journeys.end(p.context.now());
  }
  Pair p;
  Log log;
};

TEST_F(MessageStatus, ASuccessNamesItsPoster) {
  std::uint32_t qpn[2]{};
  const auto exchange = [&](End& e, int side) {
    qpn[side] = e.qp->qp_num;
    ASSERT_EQ(e.receive(1, 0, 100), 0);
    e.meet("posted");
    ASSERT_EQ(e.send(0xabcd'0000'0000'0000 + static_cast<std::uint64_t>(side), 4096, 100), 0);
    for (const ibv_wc& wc : e.wait(2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(e.write(20, 0, 8, e.peer.va, e.peer.rkey), 0);
    e.wait(1);
  };
  run([&](End& e) { exchange(e, 0); }, [&](End& e) { exchange(e, 1); });
  EXPECT_TRUE(log.lost.empty());
  ASSERT_EQ(log.done.size(), 4u);
  int of_host[2]{};
  for (const Journey& j : log.done) {
    ASSERT_TRUE(j.poster.host == 0 || j.poster.host == 1);
    const auto host = static_cast<std::size_t>(j.poster.host);
    ++of_host[host];
    EXPECT_EQ(j.poster.qpn, qpn[host]);
    EXPECT_EQ(j.poster.wr_id, j.opcode == IBV_WR_SEND ? 0xabcd'0000'0000'0000 + host : 20);
    EXPECT_EQ(j.status, IBV_WC_SUCCESS);
    EXPECT_EQ(stages_of(j), j.total());
  }
  EXPECT_EQ(of_host[0], 2);
  EXPECT_EQ(of_host[1], 2);
}

// The first send finds no receive and gives up, those behind it flush; each is known to have failed when it is polled.
TEST_F(MessageStatus, TooManyRnrNaksFailOneAndFlushTheRest) {
  p.options[0].rnr_retry = 1;
  Picos posted{0}, polled{0};
  std::uint32_t qpn = 0;
  run(
      [&](End& e) {
        qpn = e.qp->qp_num;
        posted = e.thread().now();
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.send(40 + i, 0, 100, i == 0 ? IBV_SEND_SIGNALED : 0), 0);
        e.thread().sleep(10_ms);
        e.wait(3);
        polled = e.thread().now();
        e.meet("failed");
      },
      [](End& e) { e.meet("failed"); });
  EXPECT_TRUE(log.done.empty());
  ASSERT_EQ(log.lost.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Journey& j = log.lost[i];
    EXPECT_EQ(j.poster.wr_id, 40 + i);
    EXPECT_EQ(j.poster.qpn, qpn);
    EXPECT_EQ(j.status, i == 0 ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_WR_FLUSH_ERR);
    EXPECT_GE(j.start, posted);
    EXPECT_GE(j.last, posted + 10_ms) << "known when the program polls";
    EXPECT_LE(j.last, polled);
    EXPECT_LE(stages_of(j), j.total());
  }
}

TEST_F(MessageStatus, WhatNobodyPollsForIsUnfinishedOrFlushed) {
  p.options[0].timeout = 0;
  p.scenario.fabric.link.impairment.drop = 1;
  run(
      [&](End& e) {
        ASSERT_EQ(e.send(1, 0, 100, 0), 0);
        e.thread().sleep(50_us);
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_ERR;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
        e.thread().sleep(50_us);
      },
      [](End& e) { ASSERT_EQ(e.write(2, 0, 8, e.peer.va, e.peer.rkey, 0), 0); });
  EXPECT_TRUE(log.done.empty());
  ASSERT_EQ(log.lost.size(), 2u);
  for (const Journey& j : log.lost) {
    EXPECT_EQ(int{j.status}, j.poster.wr_id == 1 ? int{IBV_WC_WR_FLUSH_ERR} : int{sim::kUnfinished});
    EXPECT_EQ(j.poster.host, j.poster.wr_id == 1 ? 0 : 1);
    EXPECT_EQ(j.last, p.context.now());
  }
}

// The sender of a datagram is told of success when it has left; the message is lost where no receive waits for it.
TEST_F(MessageStatus, ADatagramWithoutAReceiveIsLost) {
  p.options[0].type = p.options[1].type = IBV_QPT_UD;
  run(
      [&](End& e) {
        ASSERT_EQ(e.send_to(7, e.peer_ah(), e.peer.qpn, e.o.qkey, {e.sge(0, 100)}), 0);
        EXPECT_EQ(e.statuses(1).at(0), IBV_WC_SUCCESS);
        e.thread().sleep(100_us);
      },
      [](End&) {});
  EXPECT_TRUE(log.done.empty());
  ASSERT_EQ(log.lost.size(), 1u);
  EXPECT_EQ(log.lost[0].status, sim::kLost);
  EXPECT_EQ(log.lost[0].poster.wr_id, 7u);
  EXPECT_LT(log.lost[0].last, p.context.now());
}

}  // namespace
}  // namespace sys::test
