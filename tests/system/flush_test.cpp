// SPDX-License-Identifier: Apache-2.0
// What happens to work of a QP in ERR, before and after it got there.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

void to_error(End& e) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
}

// The peer is silent: five unsignaled sends are stuck. Both queues flush in posting order, and what is posted later follows.
TEST(Flush, EverythingPostedEndsInOrder_A_13) {
  Pair p;
  for (EndOptions& o : p.options) o.timeout = 0;
  p.scenario.fabric.link.impairment.drop = 1;
  p.run(
      [](End& e) {
        for (std::uint64_t i = 0; i < 5; ++i) ASSERT_EQ(e.send(i, 0, 100, 0), 0);
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(100 + i, 0, 100), 0);
        e.thread().sleep(50_us);
        to_error(e);
        std::uint64_t sent = 0, received = 100;
        const auto check = [&](std::size_t n) {
          for (const ibv_wc& wc : e.wait(n)) {
            EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
            EXPECT_EQ(wc.wr_id, wc.wr_id < 100 ? sent++ : received++);
          }
        };
        check(9);
        for (const sim::Picos later : {1_us, 1_ms, 300_ms}) {
          e.thread().sleep(later);
          ASSERT_EQ(e.send(sent, 0, 100, 0), 0);
          ASSERT_EQ(e.receive(received, 0, 100), 0);
          check(2);
        }
        EXPECT_EQ(sent, 8u);
        EXPECT_EQ(received, 107u);
      },
      [](End&) {});
}

// A program that sleeps until the completion comes is woken, although the receive rings no doorbell.
TEST(Flush, ReceivePostedInErrorWakesASleepingProgram_S_QP_43) {
  Pair p;
  const sim::Outcome outcome = p.run(
      [](End& e) {
        to_error(e);
        e.thread().sleep(10_ms);
        ASSERT_EQ(e.receive(1, 0, 100), 0);
        ibv_wc wc{};
        while (ibv_poll_cq(e.cq, 1, &wc) == 0) {}  // waits without an event of its own
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      },
      [](End& e) { to_error(e); });
  EXPECT_EQ(outcome, sim::Outcome::quiescent) << "looking for receives ends with the programs";
}

}  // namespace
}  // namespace sys::test
