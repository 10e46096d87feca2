// SPDX-License-Identifier: Apache-2.0
// A completion queue that software does not empty: what is lost, who is told, and how it is put right.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

constexpr int kSlots = 16;             // a CQ created with 15 entries
constexpr std::size_t kMessages = 60;  // more than fit while the device looks for room

struct OverrunPair : Pair {
  OverrunPair() {
    options[1].cqe = kSlots - 1;
    options[0].timeout = 8;
    options[0].retry = 1;
    for (EndOptions& o : options) o.send_wr = o.recv_wr = 64;
  }
};
void fill(End& e, std::uint64_t messages) {
  e.meet("receives are posted");
  for (std::uint64_t i = 0; i < messages; ++i) ASSERT_EQ(e.send(i, 0, 8), 0);
}
void post_receives(End& e, std::uint64_t n) {
  for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
  e.meet("receives are posted");
}
std::ptrdiff_t count(const std::vector<ibv_event_type>& events, ibv_event_type type) {
  return std::count(events.begin(), events.end(), type);
}
int poll(End& e) {
  int n = 0;
  for (ibv_wc wc{}; ibv_poll_cq(e.cq, 1, &wc) == 1; ++n) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  return n;
}

TEST(Overrun, EndsTheCqAndItsQp_A_41) {
  OverrunPair p;
  p.run(
      [](End& e) {
        fill(e, kMessages);
        const auto wc = e.wait(kMessages);
        std::size_t good = 0;
        while (wc[good].status == IBV_WC_SUCCESS) ++good;
        EXPECT_GE(good, std::size_t{kSlots});
        ASSERT_LT(good, kMessages);
        EXPECT_EQ(wc[good].status, IBV_WC_RETRY_EXC_ERR) << "the peer has fallen silent";
        for (std::size_t i = good + 1; i < kMessages; ++i) EXPECT_EQ(wc[i].status, IBV_WC_WR_FLUSH_ERR);
        e.meet("done");
      },
      [](End& e) {
        post_receives(e, kMessages);
        e.meet("done");
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
        EXPECT_EQ(poll(e), kSlots) << "what was in the ring can still be polled, S-OVR-4";
        EXPECT_EQ(poll(e), 0) << "flushes are not reported, S-OVR-3";
      });
}

TEST(Overrun, AFullRingIsNoOverrun_S_OVR_1) {
  OverrunPair p;
  p.run(
      [](End& e) {
        fill(e, kSlots);
        EXPECT_EQ(e.statuses(kSlots), Statuses(kSlots, IBV_WC_SUCCESS));
        e.meet("full");
        e.meet("polled");
        ASSERT_EQ(e.send(99, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        post_receives(e, kMessages);
        e.meet("full");
        e.thread().sleep(100_us);
        EXPECT_TRUE(e.events().empty());
        EXPECT_EQ(poll(e), kSlots);
        e.meet("polled");
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS})) << "the device reads the record again, S-OVR-8";
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      });
}

// The second QP of the CQ is its own peer.
TEST(Overrun, FailsEachQpOfASharedCqWhenItNeedsTheCq_A_42) {
  OverrunPair p;
  p.run(
      [](End& e) {
        fill(e, kMessages);
        e.wait(kMessages);
        e.meet("done");
      },
      [](End& e) {
        ibv_qp* const first = e.qp;
        e.qp = e.make_qp(e.cq, e.cq);
        ibv_qp* const second = e.qp;
        e.peer = e.address();
        e.go_to_rts();
        e.qp = first;
        post_receives(e, kMessages);
        e.meet("done");
        EXPECT_EQ(count(e.events(), IBV_EVENT_QP_FATAL), 1);
        e.qp = second;
        EXPECT_EQ(e.state(), IBV_QPS_RTS) << "it has not needed the CQ yet";
        ASSERT_EQ(e.write(1, 0, 8, e.va(64), e.mr->rkey, 0), 0);
        e.thread().sleep(100_us);
        EXPECT_EQ(e.state(), IBV_QPS_RTS) << "an unsignaled success needs none";
        ASSERT_EQ(e.write(2, 0, 8, e.va(64), e.mr->rkey), 0);
        e.thread().sleep(100_us);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_QP_FATAL}));
      });
}

TEST(Overrun, IsNotDetectedWhenIgnored_A_43) {
  OverrunPair p;
  p.run(
      [](End& e) {
        fill(e, 40);
        EXPECT_EQ(e.statuses(40), Statuses(40, IBV_WC_SUCCESS));
        e.meet("done");
      },
      [](End& e) {
        post_receives(e, 50);
        e.meet("done");
        EXPECT_TRUE(e.events().empty());
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
        EXPECT_LT(poll(e), 40) << "completions have been overwritten";
      },
      [](End& e) {
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        ASSERT_EQ(ibv_destroy_cq(e.cq), 0);
        ibv_cq_init_attr_ex a{};
        a.cqe = kSlots - 1;
        a.wc_flags = IBV_WC_STANDARD_FLAGS;
        a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
        a.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
        ibv_cq_ex* cq = ibv_create_cq_ex(e.context, &a);
        ASSERT_NE(cq, nullptr);
        e.cq = ibv_cq_ex_to_cq(cq);
        e.qp = e.make_qp(e.cq, e.cq);
        ASSERT_NE(e.qp, nullptr);
      });
}

// The receive CQ overruns; the send queue reports to another one, where its flush is seen.
TEST(Overrun, FlushesToTheHealthyCq_S_OVR_3) {
  OverrunPair p;
  p.run(
      [](End& e) {
        fill(e, kMessages);
        e.wait(kMessages);
        e.meet("done");
      },
      [](End& e) {
        ASSERT_EQ(e.send(7, 0, 8), 0);  // the client has no receive for it
        post_receives(e, kMessages);
        e.meet("done");
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL}));
        ibv_wc wc{};
        ASSERT_EQ(ibv_poll_cq(e.qp->send_cq, 1, &wc), 1);
        EXPECT_EQ(wc.wr_id, 7u);
        EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
      },
      [](End& e) {
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        e.qp = e.make_qp(ibv_create_cq(e.context, 15, nullptr, nullptr, 0), e.cq);
        ASSERT_NE(e.qp, nullptr);
      });
}

TEST(Overrun, IsCuredByNewObjects_S_OVR_7) {
  OverrunPair p;
  p.run(
      [](End& e) {
        fill(e, kMessages);
        e.wait(kMessages);
        e.meet("done");
      },
      [](End& e) {
        post_receives(e, kMessages);
        e.meet("done");
        e.events();
        EXPECT_EQ(ibv_destroy_cq(e.cq), EBUSY);
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        ASSERT_EQ(ibv_destroy_cq(e.cq), 0);
        e.cq = ibv_create_cq(e.context, 15, nullptr, nullptr, 0);
        ASSERT_NE(e.cq, nullptr);
        e.qp = e.make_qp(e.cq, e.cq);
        e.peer = e.address();
        e.go_to_rts();
        ASSERT_EQ(e.write(1, 0, 8, e.va(64), e.mr->rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

}  // namespace
}  // namespace sys::test
