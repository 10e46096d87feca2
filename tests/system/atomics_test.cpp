// SPDX-License-Identifier: Apache-2.0
// CMP_AND_SWP and FETCH_ADD between two programs: values, errors, loss, the window that they share with READs, and
// atomicity among the QPs of a device.
#include <gtest/gtest.h>

#include <ostream>
#include <set>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;
using sim::Picos;

constexpr std::uint8_t kSendOnly = 4, kReadRequest = 12, kAtomicAck = 18, kCompareSwap = 19, kFetchAdd = 20;
constexpr std::uint32_t kPsn = 0x100;
constexpr int kAllRights =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct AtomicPair : Pair {
  AtomicPair() {
    for (EndOptions& o : options) o.qp_access = o.mr_access = kAllRights;
  }
};

struct Operation {
  ibv_wr_opcode opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  std::uint64_t compare_add = 0, swap = 0;
  std::size_t result = 0;  ///< offset in the buffer of the requester
};
int post(End& e, std::uint64_t id, const Operation& op, std::uint64_t remote, std::uint32_t rkey, ibv_sge sge,
         unsigned flags = IBV_SEND_SIGNALED) {
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.opcode = op.opcode;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags = flags;
  wr.wr.atomic.remote_addr = remote;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = op.compare_add;
  wr.wr.atomic.swap = op.swap;
  return ibv_post_send(e.qp, &wr, &bad);
}
int post(End& e, std::uint64_t id, const Operation& op) {
  return post(e, id, op, e.peer.va, e.peer.rkey, e.sge(op.result, 8));
}
std::uint64_t word(const End& e, std::size_t offset) {
  std::uint64_t v;
  std::memcpy(&v, e.buffer + offset, 8);
  return v;
}
void set_word(const End& e, std::size_t offset, std::uint64_t v) { std::memcpy(e.buffer + offset, &v, 8); }

// Each operation returns the value before it; the number is one of the processor, not of the wire.
TEST(Atomics, ValuesOfEachOperation_A_61) {
  AtomicPair p;
  static constexpr std::uint64_t kStart = 0x0102030405060708;
  p.run(
      [](End& e) {
        const Operation add{IBV_WR_ATOMIC_FETCH_AND_ADD, 0x10, 0, 0}, miss{IBV_WR_ATOMIC_CMP_AND_SWP, kStart, 99, 8},
            hit{IBV_WR_ATOMIC_CMP_AND_SWP, kStart + 0x10, ~0ULL, 16}, wrap{IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 24},
            look{IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 32};
        std::uint64_t id = 0;
        for (const Operation& op : {add, miss, hit, wrap, look}) ASSERT_EQ(post(e, id++, op), 0);
        const auto wc = e.wait(5);
        for (const ibv_wc& c : wc) {
          EXPECT_EQ(c.status, IBV_WC_SUCCESS);
          EXPECT_EQ(c.byte_len, 8u);
        }
        EXPECT_EQ(wc[0].opcode, IBV_WC_FETCH_ADD);
        EXPECT_EQ(wc[1].opcode, IBV_WC_COMP_SWAP);
        EXPECT_EQ(word(e, 0), kStart);
        EXPECT_EQ(word(e, 8), kStart + 0x10) << "compared unequal, but returned";
        EXPECT_EQ(word(e, 16), kStart + 0x10);
        EXPECT_EQ(word(e, 24), ~0ULL);
        EXPECT_EQ(word(e, 32), 2u) << "the sum wraps at 2^64";
        e.meet("done");
      },
      [](End& e) {
        e.meet("done");
        EXPECT_EQ(word(e, 0), 2u);
        EXPECT_EQ(word(e, 8), 0u) << "the neighbour";
      },
      [](End& e) { set_word(e, 0, kStart); });
}

TEST(Atomics, DeviceTellsItsScope_S_ATM_4) {
  AtomicPair p;
  p.run(
      [](End& e) {
        ibv_device_attr a{};
        ASSERT_EQ(ibv_query_device(e.context, &a), 0);
        EXPECT_EQ(a.atomic_cap, IBV_ATOMIC_HCA);
      },
      [](End&) {});
}

TEST(Atomics, DeviceWithoutThemRefusesThePost_A_24) {
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.caps.atomic = false;
  p.run(
      [](End& e) {
        ibv_device_attr a{};
        ASSERT_EQ(ibv_query_device(e.context, &a), 0);
        EXPECT_EQ(a.atomic_cap, IBV_ATOMIC_NONE);
        EXPECT_EQ(post(e, 1, Operation{}), EOPNOTSUPP);
        EXPECT_EQ(post(e, 1, Operation{IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, 0}), EOPNOTSUPP);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      },
      [](End&) {});
}

struct Fault {
  const char* name;
  ibv_wc_status status;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0, lkey = 0;
  int mr_access = kAllRights, qp_access = kAllRights;
  bool at_responder = true;
};
void PrintTo(const Fault& f, std::ostream* out) { *out << f.name; }
class AtomicFault : public testing::TestWithParam<Fault> {};
TEST_P(AtomicFault, EndsTheQpAndChangesNothing_A_61) {
  const Fault& f = GetParam();
  AtomicPair p;
  p.options[1].mr_access = f.mr_access;
  p.options[1].qp_access = f.qp_access;
  p.run(
      [&](End& e) {
        ibv_sge s = e.sge(0, 8);
        s.lkey += f.lkey;
        const Operation op{IBV_WR_ATOMIC_FETCH_AND_ADD, 7, 0, 0};
        ASSERT_EQ(post(e, 1, op, e.peer.va + f.va, e.peer.rkey + f.rkey, s), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{f.status}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        e.meet("failed");
      },
      [&](End& e) {
        e.meet("failed");
        e.thread().sleep(100_us);
        EXPECT_EQ(e.state(), f.at_responder ? IBV_QPS_ERR : IBV_QPS_RTS);
        EXPECT_EQ(e.events(), f.at_responder ? std::vector<ibv_event_type>{IBV_EVENT_QP_ACCESS_ERR}
                                             : std::vector<ibv_event_type>{});
        EXPECT_EQ(word(e, 0), f.at_responder ? 0u : 7u) << "a bad lkey shows when the operation has been executed";
        EXPECT_EQ(word(e, 8), 0u);
      });
}
INSTANTIATE_TEST_SUITE_P(
    Rc, AtomicFault,
    testing::Values(
        Fault{.name = "misaligned_S_ERR_7", .status = IBV_WC_REM_INV_REQ_ERR, .va = 4},
        Fault{.name = "wrong_rkey_S_ERR_1", .status = IBV_WC_REM_ACCESS_ERR, .rkey = 1},
        Fault{.name = "beyond_region_S_ERR_2", .status = IBV_WC_REM_ACCESS_ERR, .va = 64 << 10},
        Fault{.name = "no_atomic_on_region_S_ERR_3",
              .status = IBV_WC_REM_ACCESS_ERR,
              .mr_access = kAllRights & ~IBV_ACCESS_REMOTE_ATOMIC},
        Fault{.name = "no_atomic_on_qp_S_ERR_4",
              .status = IBV_WC_REM_INV_REQ_ERR,
              .qp_access = kAllRights & ~IBV_ACCESS_REMOTE_ATOMIC},
        Fault{.name = "wrong_lkey_S_ERR_15", .status = IBV_WC_LOC_PROT_ERR, .lkey = 1, .at_responder = false}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(Atomics, ResultMustHaveRoomForEightBytes_S_ATM_6) {
  AtomicPair p;
  p.run(
      [](End& e) {
        ibv_qp_init_attr_ex init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 16, 2, 2, 0};
        init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        init.pd = e.pd;
        init.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        e.qp = ibv_create_qp_ex(e.context, &init);
        ASSERT_NE(e.qp, nullptr);
        e.connect();
        ibv_qp_ex* q = ibv_qp_to_qp_ex(e.qp);
        ibv_wr_start(q);
        q->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_atomic_fetch_add(q, e.peer.rkey, e.peer.va, 1);
        ibv_wr_set_sge(q, e.mr->lkey, e.va(), 4);
        ASSERT_EQ(ibv_wr_complete(q), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_LEN_ERR}));
        e.meet("done");
      },
      [](End& e) {
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        ibv_qp_init_attr init{};
        init.send_cq = init.recv_cq = e.cq;
        init.qp_type = IBV_QPT_RC;
        init.cap = {16, 16, 2, 2, 0};
        e.qp = ibv_create_qp(e.pd, &init);
        ASSERT_NE(e.qp, nullptr);
        e.connect();
        e.meet("done");
        EXPECT_EQ(word(e, 0), 0u) << "not executed";
      });
}

TEST(Atomics, InlineIsMalformed_S_ERR_16) {
  AtomicPair p;
  for (EndOptions& o : p.options) o.inline_bytes = 64;
  p.run(
      [](End& e) {
        ASSERT_EQ(post(e, 1, Operation{}, e.peer.va, e.peer.rkey, e.sge(0, 8), IBV_SEND_SIGNALED | IBV_SEND_INLINE), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_QP_OP_ERR}));
      },
      [](End&) {});
}

// The result may cross a page, the operand cannot.
TEST(Atomics, ResultMayCrossAPage) {
  AtomicPair p;
  p.run(
      [](End& e) {
        ASSERT_EQ(post(e, 1, Operation{IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 4092}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_EQ(word(e, 4092), 0x1122334455667788u);
      },
      [](End&) {}, [](End& e) { set_word(e, 0, 0x1122334455667788u); });
}

class LostAtomic : public testing::TestWithParam<unsigned> {};
TEST_P(LostAtomic, IsExecutedOnceAndRepeatsItsResult_A_48) {
  const auto lost = static_cast<std::uint8_t>(GetParam());
  AtomicPair p;
  p.options[0].timeout = 10;
  p.lose(lost, kPsn + 1);
  std::uint32_t client_qpn = 0, server_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        server_qpn = e.peer.qpn;
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post(e, i, {IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, i * 8}), 0);
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(word(e, i * 8), 100 + 5 * i);
        e.meet("done");
      },
      [](End& e) {
        e.meet("done");
        EXPECT_EQ(word(e, 0), 115u);
      },
      [](End& e) { set_word(e, 0, 100); });
  const auto requests = p.sent(server_qpn, {kFetchAdd});
  EXPECT_EQ(std::count_if(requests.begin(), requests.end(), [](const SentFrame& f) { return f.psn == kPsn + 1; }), 2);
  EXPECT_EQ(p.counter("host1.hca.responder.atomics.operations"), 3u) << "duplicates are not executed again";
}
INSTANTIATE_TEST_SUITE_P(Rc, LostAtomic, testing::Values(unsigned{kFetchAdd}, unsigned{kAtomicAck}),
                         testing::PrintToStringParamName());

// READ and atomic requests share max_rd_atomic; what stands behind them in the queue waits too.
TEST(Atomics, ShareTheWindowOfReads_S_RC_31) {
  AtomicPair p;
  p.options[0].rd_atomic = 2;
  std::uint32_t client_qpn = 0, server_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        server_qpn = e.peer.qpn;
        for (std::uint64_t i = 0; i < 6; ++i) {
          if (i % 2 == 0) ASSERT_EQ(post(e, i, {IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 1024}), 0);
          else ASSERT_EQ(e.read(i, 2048, 8, e.peer.va, e.peer.rkey), 0);
        }
        ASSERT_EQ(e.write(6, 0, 8, e.peer.va + 64, e.peer.rkey), 0);
        for (const ibv_wc& wc : e.wait(7)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      },
      [](End&) {});
  int outstanding = 0, most = 0, requests = 0;
  for (const SentFrame& f : p.frames) {
    if (f.qpn == server_qpn && (f.opcode == kReadRequest || f.opcode == kFetchAdd)) ++outstanding, ++requests;
    if (f.qpn == client_qpn && (f.opcode == 16 || f.opcode == kAtomicAck)) --outstanding;
    most = std::max(most, outstanding);
    if (f.qpn == server_qpn && f.opcode == 10) {
      EXPECT_EQ(requests, 6) << "the WRITE waits for its turn";
    }
  }
  EXPECT_EQ(most, 2);
}

// Two QPs add to one counter at the same time, each by a key of its own: no sum is lost and no value is handed out twice.
TEST(Atomics, AreAtomicAmongTheQpsOfADevice_S_ATM_4) {
  AtomicPair p;
  constexpr std::uint64_t kEach = 16;
  p.run(
      [](End& e) {
        End other(e.process_, e.o);
        other.connect();
        other.peer.va = e.peer.va;
        std::uint32_t mine = 0;
        ASSERT_EQ(e.process_.exchange->swap("key", &mine, &other.peer.rkey, sizeof mine), 0);
        for (std::uint64_t i = 0; i < kEach; ++i)
          for (End* x : {&e, &other}) ASSERT_EQ(post(*x, i, {IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, i * 8}), 0);
        std::set<std::uint64_t> seen;
        for (End* x : {&e, &other}) {
          for (const ibv_wc& wc : x->wait(kEach)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
          for (std::uint64_t i = 0; i < kEach; ++i) seen.insert(word(*x, i * 8));
        }
        EXPECT_EQ(seen.size(), 2 * kEach);
        EXPECT_EQ(*seen.rbegin(), 2 * kEach - 1);
        e.meet("done");
      },
      [](End& e) {
        End other(e.process_, e.o);
        other.connect();
        ibv_mr* again = ibv_reg_mr(other.pd, e.buffer, e.o.bytes, kAllRights);
        ASSERT_NE(again, nullptr);
        std::uint32_t theirs = 0;
        ASSERT_EQ(e.process_.exchange->swap("key", &again->rkey, &theirs, sizeof theirs), 0);
        e.meet("done");
        EXPECT_EQ(word(e, 0), 2 * kEach);
      });
  EXPECT_GT(p.counter("host1.hca.responder.atomics.conflicts"), 0u) << "they did meet";
}

// One after another, each operation adds atomic_execute to the time of the whole.
TEST(Atomics, ExecutionTakesItsTime) {
  AtomicPair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.transport.atomic_execute = 5_us;
  p.run(
      [](End& e) {
        const Picos start = e.thread().now();
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(post(e, i, Operation{}), 0);
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        EXPECT_GE(e.thread().now() - start, 15_us);
        EXPECT_LT(e.thread().now() - start, 21_us);
      },
      [](End&) {});
}

TEST(Atomics, OperandsAreBigEndianOnTheWire_S_ATM_2) {
  AtomicPair p;
  std::vector<std::byte> request, answer;
  struct Keep final : sim::trace::Sink {
    Keep(std::vector<std::byte>& r, std::vector<std::byte>& a) : request(r), answer(a) {}
    using Sink::on;
    void on(const sim::trace::PacketRecord& r) override {
      if (!r.transmit || r.bytes.size() < 58) return;
      const auto opcode = std::to_integer<std::uint8_t>(r.bytes[42]);
      if (opcode == kCompareSwap) request.assign(r.bytes.begin(), r.bytes.end());
      if (opcode == kAtomicAck) answer.assign(r.bytes.begin(), r.bytes.end());
    }
    void close(Picos) override {}
    std::vector<std::byte>&request, &answer;
  };
  p.context.tracer.add_sink(std::make_unique<Keep>(request, answer));
  p.run(
      [](End& e) {
        ASSERT_EQ(post(e, 1, {IBV_WR_ATOMIC_CMP_AND_SWP, 0x1112131415161718, 0x2122232425262728, 0}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End&) {}, [](End& e) { set_word(e, 0, 0x3132333435363738); });
  const auto at = [](const std::vector<std::byte>& b, std::size_t offset) {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < 8; ++i) v = v << 8 | std::to_integer<std::uint64_t>(b.at(offset + i));
    return v;
  };
  EXPECT_EQ(at(request, 54 + 12), 0x2122232425262728u) << "swap";
  EXPECT_EQ(at(request, 54 + 20), 0x1112131415161718u) << "compare";
  EXPECT_EQ(at(answer, 54 + 4), 0x3132333435363738u) << "original";
}

}  // namespace
}  // namespace sys::test
