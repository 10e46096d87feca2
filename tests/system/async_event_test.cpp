// SPDX-License-Identifier: Apache-2.0
// S-AE-2 as a table: what causes each asynchronous event, whose it is, in which order the events come, that each comes once, and
// that destroying their object waits for the acknowledgement.
#include <algorithm>
#include <cerrno>

#include "tests/system/verbs_pair.h"
#include "verbs_frontend/mlx5/srq.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Picos;

enum class Whose { qp, cq, srq, port, device };
struct Expected {
  ibv_event_type type;
  Whose whose;
};

/// What a cause works with at the host that gets the events; the other host's End is the peer.
struct Watched {
  Pair* pair = nullptr;
  ibv_srq* srq = nullptr;
};

struct Cause {
  const char* name;
  std::vector<Expected> events;
  std::function<void(Pair&)> set_up;
  std::function<void(End&, Watched&)> prepare;  ///< before the connection is made
  std::function<void(End&, Watched&)> act;      ///< at the host that gets the events
  std::function<void(End&)> peer;
};
std::ostream& operator<<(std::ostream& out, const Cause& c) { return out << c.name; }

void put_on_srq(End& e, Watched& w) {
  ibv_srq_init_attr shared{};
  shared.attr = {3, 1, 0};
  w.srq = ibv_create_srq(e.pd, &shared);
  ASSERT_NE(w.srq, nullptr);
  ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = e.cq;
  init.srq = w.srq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {16, 16, 1, 1, 0};
  e.qp = ibv_create_qp(e.pd, &init);
  ASSERT_NE(e.qp, nullptr);
}
void post_to_srq(End& e, Watched& w) {
  ibv_sge s = e.sge(0, 64);
  ibv_recv_wr wr{1, nullptr, &s, 1}, *bad = nullptr;
  ASSERT_EQ(ibv_post_srq_recv(w.srq, &wr, &bad), 0);
}
int to_state(End& e, ibv_qp_state state, bool notify = false) {
  ibv_qp_attr a{};
  a.qp_state = state;
  a.en_sqd_async_notify = notify;
  return ibv_modify_qp(e.qp, &a, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));
}
void impatient(Pair& p) {
  p.options[0].timeout = 10;
  p.options[0].retry = 1;
}
void idle(End&) {}
void rest(End&, Watched&) {}

std::vector<Cause> causes() {
  std::vector<Cause> all;
  all.push_back({"CQ_ERR_and_QP_FATAL_by_overrun",
                 {{IBV_EVENT_CQ_ERR, Whose::cq}, {IBV_EVENT_QP_FATAL, Whose::qp}},
                 [](Pair& p) {
                   impatient(p);
                   p.options[1].cqe = 1;
                 },
                 rest,
                 [](End& e, Watched&) {
                   for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
                 },
                 [](End& e) {
                   e.thread().sleep(50_us);
                   for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.send(i, 0, 64), 0);
                 }});
  all.push_back({"QP_ACCESS_ERR_by_a_write_with_a_wrong_key",
                 {{IBV_EVENT_QP_ACCESS_ERR, Whose::qp}},
                 nullptr,
                 rest,
                 rest,
                 [](End& e) { ASSERT_EQ(e.write(1, 0, 64, e.peer.va, e.peer.rkey + 1), 0); }});
  all.push_back({"QP_REQ_ERR_by_a_request_that_the_QP_forbids",
                 {{IBV_EVENT_QP_REQ_ERR, Whose::qp}},
                 [](Pair& p) {
                   p.options[1].qp_access = 0;
                   p.scenario.hosts[1].hca.transport.forbidden_event = hca::ForbiddenEvent::request_error;
                 },
                 rest,
                 rest,
                 [](End& e) { ASSERT_EQ(e.write(1, 0, 64, e.peer.va, e.peer.rkey), 0); }});
  all.push_back({"COMM_EST_by_the_first_packet_in_RTR",
                 {{IBV_EVENT_COMM_EST, Whose::qp}},
                 [](Pair& p) { p.options[0].connect = p.options[1].connect = false; },
                 rest,
                 [](End& e, Watched&) {
                   e.go_to_rtr();
                   ASSERT_EQ(e.receive(1, 0, 64), 0);
                 },
                 [](End& e) {
                   e.go_to_rts();
                   e.thread().sleep(100_us);
                   ASSERT_EQ(e.send(1, 0, 64), 0);
                 }});
  all.push_back({"SQ_DRAINED_by_SQD",
                 {{IBV_EVENT_SQ_DRAINED, Whose::qp}},
                 nullptr,
                 rest,
                 [](End& e, Watched&) { ASSERT_EQ(to_state(e, IBV_QPS_SQD, true), 0); },
                 idle});
  all.push_back({"SRQ_LIMIT_REACHED_by_a_consumed_WQE",
                 {{IBV_EVENT_SRQ_LIMIT_REACHED, Whose::srq}},
                 nullptr,
                 put_on_srq,
                 [](End& e, Watched& w) {
                   for (int i = 0; i < 3; ++i) post_to_srq(e, w);
                   ibv_srq_attr a{0, 0, 2};
                   ASSERT_EQ(ibv_modify_srq(w.srq, &a, IBV_SRQ_LIMIT), 0);
                 },
                 [](End& e) {
                   e.thread().sleep(50_us);
                   for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.send(i, 0, 64), 0);
                 }});
  all.push_back(
      {"SRQ_ERR_and_QP_FATAL_by_a_link_to_nowhere",
       {{IBV_EVENT_SRQ_ERR, Whose::srq}, {IBV_EVENT_QP_FATAL, Whose::qp}, {IBV_EVENT_QP_LAST_WQE_REACHED, Whose::qp}},
       impatient,
       put_on_srq,
       [](End& e, Watched& w) {
         post_to_srq(e, w);
         e.thread().sleep(1_us);
         auto* ring = reinterpret_cast<std::byte*>(verbs::mlx5::srq_of(w.srq).buf);
         ring[2] = ring[3] = std::byte{0xff};
       },
       [](End& e) {
         e.thread().sleep(50_us);
         for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.send(i, 0, 64), 0);
       }});
  all.push_back({"QP_LAST_WQE_REACHED_by_ERR",
                 {{IBV_EVENT_QP_LAST_WQE_REACHED, Whose::qp}},
                 nullptr,
                 put_on_srq,
                 [](End& e, Watched&) { ASSERT_EQ(to_state(e, IBV_QPS_ERR), 0); },
                 idle});
  all.push_back({"PORT_ERR_and_PORT_ACTIVE_by_a_link_that_flaps",
                 {{IBV_EVENT_PORT_ERR, Whose::port}, {IBV_EVENT_PORT_ACTIVE, Whose::port}},
                 [](Pair& p) {
                   p.scenario.fabric.link.down = {{20_ms, 1_ms}};
                 },
                 rest,
                 [](End& e, Watched&) {
                   const auto state = [&] {
                     ibv_port_attr a{};
                     EXPECT_EQ(___ibv_query_port(e.context, 1, &a), 0);
                     return std::pair(a.state, int{a.phys_state});
                   };
                   EXPECT_LT(e.thread().now(), 20_ms);
                   EXPECT_EQ(state(), std::pair(IBV_PORT_ACTIVE, 5));
                   e.thread().sleep(20_ms + 500_us - e.thread().now());
                   EXPECT_EQ(state(), std::pair(IBV_PORT_DOWN, 3));
                   e.thread().sleep(1_ms);
                   EXPECT_EQ(state(), std::pair(IBV_PORT_ACTIVE, 5));
                 },
                 idle});
  all.push_back({"GID_CHANGE_by_addresses_that_come_and_go",
                 {{IBV_EVENT_GID_CHANGE, Whose::port}, {IBV_EVENT_GID_CHANGE, Whose::port}},
                 nullptr,
                 rest,
                 [](End& e, Watched& w) {
                   kernel::Kernel& kernel = w.pair->cluster->host(1).kernel();
                   const kernel::Gid address = *kernel::gid_of_ipv4("10.9.8.7");
                   const auto gid = [&](int index) {
                     ibv_gid g{};
                     EXPECT_EQ(ibv_query_gid(e.context, 1, index, &g), 0);
                     return std::equal(address.begin(), address.end(), g.raw);
                   };
                   EXPECT_FALSE(gid(4));
                   ASSERT_EQ(kernel.add_address(address), 0);
                   EXPECT_EQ(kernel.add_address(address), -EEXIST);
                   EXPECT_TRUE(gid(4) && gid(5)) << "RoCEv1 and RoCEv2";
                   ASSERT_EQ(kernel.remove_address(address), 0);
                   EXPECT_EQ(kernel.remove_address(address), -EADDRNOTAVAIL);
                   EXPECT_FALSE(gid(4) || gid(5));
                 },
                 idle});
  all.push_back({"DEVICE_FATAL_by_an_internal_error",
                 {{IBV_EVENT_DEVICE_FATAL, Whose::device}},
                 [](Pair& p) { p.scenario.hosts[1].hca.internal_error_at = 20_ms; },
                 rest,
                 [](End& e, Watched&) { e.thread().sleep(21_ms - e.thread().now()); },
                 idle});
  all.push_back(
      {"DEVICE_FATAL_by_an_event_queue_that_overflows",
       {{IBV_EVENT_DEVICE_FATAL, Whose::device}},
       [](Pair& p) { p.scenario.hosts[1].kernel.driver.log_comp_eq_size = 3; },
       rest,
       [](End& e, Watched& w) {
         // Twenty CQs are told at once, and the core that would make room is busy.
         std::vector<ibv_cq*> cqs;
         for (int i = 0; i < 20; ++i) {
           cqs.push_back(ibv_create_cq(e.context, 4, nullptr, nullptr, 1));
           ASSERT_EQ(ibv_req_notify_cq(cqs.back(), 0), 0);
         }
         std::vector<ibv_qp*> qps;
         for (ibv_cq* cq : cqs) {
           ibv_qp* qp = e.make_qp(cq, cq);
           ibv_qp_attr a{};
           a.qp_state = IBV_QPS_INIT;
           a.port_num = 1;
           ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
           std::swap(e.qp, qp);
           ASSERT_EQ(e.receive(1, 0, 64), 0);
           std::swap(e.qp, qp);
           qps.push_back(qp);
         }
         w.pair->cluster->host(1).core(1).steal({}, 1_ms);
         for (ibv_qp* qp : qps) {
           ibv_qp_attr a{};
           a.qp_state = IBV_QPS_ERR;
           ASSERT_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0) << "its receive is flushed";
         }
         e.thread().sleep(1_ms);
         EXPECT_EQ(w.pair->counter("host1.hca.events.eq_overruns"), 12u) << "eight of twenty fit";
       },
       idle});
  return all;
}

/// Reads what has come, without acknowledging it.
std::vector<ibv_async_event> read_events(End& e) {
  std::vector<ibv_async_event> got;
  e.process_.os.set_nonblock(e.context->async_fd, true);
  for (ibv_async_event event{}; ibv_get_async_event(e.context, &event) == 0;) got.push_back(event);
  EXPECT_EQ(errno, EAGAIN);
  return got;
}

bool is_of(const ibv_async_event& event, const End& e, const Watched& w, Whose whose) {
  switch (whose) {
    case Whose::qp:
      return event.element.qp == e.qp;
    case Whose::cq:
      return event.element.cq == e.cq;
    case Whose::srq:
      return event.element.srq == w.srq;
    case Whose::port:
      return event.element.port_num == 1;
    case Whose::device:
      return true;
  }
  return false;
}

class AsyncEvent : public testing::TestWithParam<Cause> {};
TEST_P(AsyncEvent, ComesOnceInOrderAndHoldsItsObject_S_AE_2) {
  const Cause& cause = GetParam();
  Pair p;
  if (cause.set_up) cause.set_up(p);
  Watched w{&p};
  p.run(
      [&](End& e) {
        cause.peer(e);
        e.meet("over");
      },
      [&](End& e) {
        cause.act(e, w);
        e.thread().sleep(3_ms);
        std::vector<ibv_async_event> got = read_events(e);
        ASSERT_EQ(got.size(), cause.events.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
          EXPECT_EQ(got[i].event_type, cause.events[i].type) << i;
          EXPECT_TRUE(is_of(got[i], e, w, cause.events[i].whose)) << i;
        }
        e.thread().sleep(5_ms);
        EXPECT_TRUE(read_events(e).empty()) << "once";
        e.meet("over");

        // Another thread acknowledges later; destroying the objects waits for it (S-CE-32).
        const Picos acknowledged = e.thread().now() + 500_us;
        p.cluster->host(1)
            .create_thread(e.process_, 1, "acknowledge",
                           [&got] {
                             cpu::current().sleep(500_us);
                             for (ibv_async_event& event : got) ibv_ack_async_event(&event);
                           })
            .start(e.thread().now());
        const auto held = [&](Whose whose) {
          return std::any_of(cause.events.begin(), cause.events.end(),
                             [&](const Expected& x) { return x.whose == whose; });
        };
        bool waited = false;
        const auto check = [&](Whose whose) {
          waited |= held(whose);
          EXPECT_EQ(e.thread().now() >= acknowledged, waited);
        };
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        check(Whose::qp);
        if (w.srq != nullptr) {
          ASSERT_EQ(ibv_destroy_srq(w.srq), 0);
          check(Whose::srq);
        }
        ASSERT_EQ(ibv_destroy_cq(e.cq), 0);
        check(Whose::cq);
        e.thread().sleep(1_ms);
      },
      [&](End& e) { cause.prepare(e, w); });
}
INSTANTIATE_TEST_SUITE_P(Table, AsyncEvent, testing::ValuesIn(causes()),
                         [](const auto& i) { return std::string(i.param.name); });

// Every context of the device hears of the port, and both hosts do.
TEST(LinkDown, BothPortsHearOfItAndRcRetriesOverIt_S_AE_2) {
  Pair p;
  p.scenario.fabric.link.down = {{20_ms, 3_ms}};
  p.run(
      [](End& e) {
        ASSERT_LT(e.thread().now(), 19_ms);
        e.thread().sleep(21_ms - e.thread().now());
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_SUCCESS}));
        EXPECT_GT(e.thread().now(), 23_ms);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}));
      },
      [](End& e) {
        ibv_context* second = ibv_open_device(e.context->device);
        ASSERT_NE(second, nullptr);
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_SUCCESS}));
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}));
        std::swap(e.context, second);
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE}));
        std::swap(e.context, second);
        EXPECT_EQ(ibv_close_device(second), 0);
      });
  EXPECT_GE(p.counter("fabric.host0_to_host1.lost_while_down"), 1u);
}

TEST(LinkDown, LongerThanTheRetriesEndsTheConnection_S_AE_4) {
  Pair p;
  impatient(p);
  p.scenario.fabric.link.down = {{20_ms, 1_s}};
  p.run(
      [](End& e) {
        e.thread().sleep(21_ms - e.thread().now());
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_RETRY_EXC_ERR}));
        EXPECT_EQ(e.events(), (std::vector<ibv_event_type>{IBV_EVENT_PORT_ERR})) << "an error of a requester is a CQE";
      },
      [](End&) {});
}

// A peer finds the new address; the QP uses the new entry of the GID table.
TEST(GidChange, ANewAddressCarriesTraffic_S_AE_2) {
  Pair p;
  p.options[0].connect = p.options[1].connect = false;
  p.run(
      [](End& e) {
        e.meet("added");
        const auto gid = *kernel::gid_of_ipv4("10.9.8.7");
        std::copy(gid.begin(), gid.end(), e.peer.gid.raw);
        e.go_to_rts();
        e.meet("ready");
        ASSERT_EQ(e.send(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        ASSERT_EQ(p.cluster->host(1).kernel().add_address(*kernel::gid_of_ipv4("10.9.8.7")), 0);
        e.meet("added");
        e.o.sgid_index = 5;
        e.go_to_rts();
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        e.meet("ready");
        EXPECT_EQ(e.statuses(1), (std::vector<ibv_wc_status>{IBV_WC_SUCCESS}));
      });
}

}  // namespace
}  // namespace sys::test
