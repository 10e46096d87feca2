// SPDX-License-Identifier: Apache-2.0
// How RC traffic fails, seen by two programs and on the cable: statuses, states, events, frames.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;
using sim::Picos;

constexpr std::uint8_t kSendFirst = 0, kSendMiddle = 1, kSendLast = 2, kSendOnly = 4;
const std::vector<std::uint8_t> kSends{kSendFirst, kSendMiddle, kSendLast, kSendOnly};
constexpr std::uint32_t kPsn = 0x100;  // of both ends by default

void nothing(End&) {}
void pause(End& e, Picos d) { e.thread().sleep(d); }

TEST(Errors, SendIntoTooSmallReceiveFailsBothSides_A_54) {
  Pair p;
  p.run(
      [](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.send(i, 0, 2048), 0);
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        ASSERT_EQ(e.send(9, 0, 8), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_WR_FLUSH_ERR})) << "a send posted in ERR";
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.receive(10 + i, 0, 1024), 0);
        const auto wc = e.wait(3);
        EXPECT_EQ(wc[0].status, IBV_WC_LOC_LEN_ERR);
        for (std::size_t i = 1; i < 3; ++i) EXPECT_EQ(wc[i].status, IBV_WC_WR_FLUSH_ERR);
        for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(wc[i].wr_id, 10 + i) << "in posting order";
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
      });
}

TEST(Errors, EmptySendsAndReceivesComplete_A_21) {
  Pair p;
  p.run(
      [](End& e) {
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, {}), 0);
        ASSERT_EQ(e.send(2, {e.sge(0, 0), e.sge(0, 0)}), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        ASSERT_EQ(e.send(3, 0, 1), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_INV_REQ_ERR}));
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.receive(i, {}), 0);
        const auto wc = e.wait(3);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc[0].byte_len, 0u);
        EXPECT_EQ(wc[1].byte_len, 0u);
        EXPECT_EQ(wc[2].status, IBV_WC_LOC_LEN_ERR);
      });
}

class RnrRetry : public testing::TestWithParam<unsigned> {};
TEST_P(RnrRetry, CountsTheAttemptsWithoutAReceive_A_51) {
  const unsigned retries = GetParam();
  Pair p;
  p.options[0].rnr_retry = static_cast<std::uint8_t>(retries);
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        ASSERT_EQ(e.send(1, 0, 100), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_RNR_RETRY_EXC_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        e.meet("failed");
      },
      [](End& e) {
        e.meet("failed");
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      });
  const auto attempts = p.sent(server_qpn, {kSendOnly});
  ASSERT_EQ(attempts.size(), 1 + retries);
  for (std::size_t i = 1; i < attempts.size(); ++i)
    EXPECT_GE(attempts[i].t - attempts[i - 1].t, 640_us) << "timer code 12";
}
INSTANTIATE_TEST_SUITE_P(Rc, RnrRetry, testing::Values(0u, 1u, 3u, 6u), testing::PrintToStringParamName());

TEST(Errors, RnrRetrySevenWaitsForTheReceive_A_51) {
  Pair p;
  p.options[0].rnr_retry = 7;
  p.run(
      [](End& e) {
        ASSERT_EQ(e.send(1, 0, 3000), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        pause(e, 20_ms);
        ASSERT_EQ(e.receive(1, 0, 4096), 0);
        EXPECT_EQ(e.wait(1)[0].byte_len, 3000u);
      });
  EXPECT_GE(p.counter("host1.hca.responder.rnr_naks_sent"), 10u);
}

struct Access {
  const char* name;
  std::int64_t va = 0;  // distance from the start of the region
  std::uint32_t n = 64, rkey = 0;
  int mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  int qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  bool read = false;
  ibv_wc_status status = IBV_WC_REM_ACCESS_ERR;
};
void PrintTo(const Access& a, std::ostream* out) { *out << a.name; }
class RemoteAccess : public testing::TestWithParam<Access> {};
TEST_P(RemoteAccess, IsRefusedAndEndsBothQps_A_52_A_53) {
  const Access& a = GetParam();
  Pair p;
  p.options[1].mr_access = a.mr_access;
  p.options[1].qp_access = a.qp_access;
  p.run(
      [&](End& e) {
        const std::uint64_t remote = e.peer.va + static_cast<std::uint64_t>(a.va);
        if (a.read) ASSERT_EQ(e.read(1, 0, a.n, remote, e.peer.rkey + a.rkey), 0);
        else ASSERT_EQ(e.write(1, 0, a.n, remote, e.peer.rkey + a.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{a.status}));
        EXPECT_EQ(e.state(), a.status == IBV_WC_SUCCESS ? IBV_QPS_RTS : IBV_QPS_ERR);
        e.meet("failed");
      },
      [&](End& e) {
        e.meet("failed");
        pause(e, 100_us);
        const bool fails = a.status != IBV_WC_SUCCESS;
        EXPECT_EQ(e.state(), fails ? IBV_QPS_ERR : IBV_QPS_RTS);
        const auto events = e.events();
        EXPECT_EQ(std::count(events.begin(), events.end(), IBV_EVENT_QP_ACCESS_ERR), fails ? 1 : 0);
      });
}
constexpr int kNoRemoteWrite = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr int kNoRemoteRead = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
INSTANTIATE_TEST_SUITE_P(Rc, RemoteAccess,
                         testing::Values(Access{.name = "first_bytes", .status = IBV_WC_SUCCESS},
                                         Access{.name = "last_bytes", .va = (64 << 10) - 64, .status = IBV_WC_SUCCESS},
                                         Access{.name = "wrong_key", .rkey = 1},
                                         Access{.name = "unknown_key", .rkey = 0x4000'00},
                                         Access{.name = "a_byte_before", .va = -1},
                                         Access{.name = "a_byte_beyond", .va = (64 << 10) - 63},
                                         Access{.name = "long_write_a_byte_beyond", .va = 1, .n = 64 << 10},
                                         Access{.name = "no_write_on_region", .mr_access = kNoRemoteWrite},
                                         Access{.name = "no_read_on_region", .mr_access = kNoRemoteRead, .read = true},
                                         Access{.name = "read_a_byte_beyond", .va = (64 << 10) - 63, .read = true},
                                         Access{.name = "no_write_on_qp",
                                                .qp_access = IBV_ACCESS_REMOTE_READ,
                                                .status = IBV_WC_REM_INV_REQ_ERR},
                                         Access{.name = "no_read_on_qp",
                                                .qp_access = IBV_ACCESS_REMOTE_WRITE,
                                                .read = true,
                                                .status = IBV_WC_REM_INV_REQ_ERR}),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(Errors, BadLkeyInTheSecondOfFourSends_A_56) {
  Pair p;
  p.run(
      [](End& e) {
        pause(e, 50_us);
        for (std::uint64_t i = 0; i < 4; ++i) {
          ibv_sge s = e.sge(0, 64);
          if (i == 1) s.lkey += 1;
          ASSERT_EQ(e.send(i, {s}), 0);
        }
        EXPECT_EQ(e.statuses(4),
                  (Statuses{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        e.meet("failed");
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("failed");
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      });
}

TEST(Errors, UnsignaledFailureIsReportedAndUnsignaledSuccessIsNot_A_57) {
  Pair p;
  p.run(
      [](End& e) {
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, 64, 0), 0);
        ibv_sge s = e.sge(0, 64);
        s.addr += e.o.bytes;  // beyond the region
        ASSERT_EQ(e.send(2, {s}, 0), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].wr_id, 2u);
        EXPECT_EQ(wc[0].status, IBV_WC_LOC_PROT_ERR);
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

// timeout 10: T = 4.096 us * 1024. Each transmission waits T from its end; the rest is a few microseconds of work.
TEST(Errors, SilentPeerIsGivenUpAfterRetryCntTimeouts_A_50) {
  Pair p;
  p.options[0].timeout = 10;
  p.options[0].retry = 3;
  p.options[1].connect = false;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        const Picos start = e.thread().now();
        ASSERT_EQ(e.send(1, 0, 64), 0);
        ASSERT_EQ(e.send(2, 0, 64), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR}));
        const Picos took = e.thread().now() - start;
        const Picos T{4'096'000LL << 10};
        EXPECT_GE(took, T * 4);
        EXPECT_LT(took, T * 4 + 20_us);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
      },
      [](End& e) { EXPECT_EQ(e.state(), IBV_QPS_RESET); });
  const auto sends = p.sent(server_qpn, {kSendOnly});
  EXPECT_EQ(std::count_if(sends.begin(), sends.end(), [](const SentFrame& f) { return f.psn == kPsn; }), 4);
}

TEST(Errors, LaterSendsDoNotPostponeTheTimeout_A_50) {
  Pair p;
  p.options[0].timeout = 10;
  p.options[0].retry = 1;
  p.options[1].connect = false;
  p.run(
      [&](End& e) {
        const Picos start = e.thread().now();
        for (std::uint64_t i = 0; i < 14; ++i) {
          ASSERT_EQ(e.send(i, 0, 64), 0);
          pause(e, 1_ms);
        }
        const auto wc = e.wait(14);
        EXPECT_EQ(wc[0].status, IBV_WC_RETRY_EXC_ERR);
        EXPECT_LT(e.thread().now() - start, 15_ms);
      },
      nothing);
  EXPECT_EQ(p.counter("host0.hca.requester.timeouts"), 2u);
}

TEST(Errors, TimeoutZeroWaitsForEver_A_50) {
  Pair p;
  p.options[0].timeout = 0;
  p.options[1].connect = false;
  p.run(
      [&](End& e) {
        ASSERT_EQ(e.send(1, 0, 64), 0);
        pause(e, 500_ms);
        ibv_wc wc{};
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      },
      nothing);
}

// Segmentation and PSNs on the wire.
class Segmentation : public testing::TestWithParam<std::uint32_t> {};
TEST_P(Segmentation, OpcodesPsnsAndPads_A_45) {
  const std::uint32_t n = GetParam(), mtu = 1024;
  Pair p;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.fill(5);
        pause(e, 50_us);
        ASSERT_EQ(e.send(1, 0, n), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [&](End& e) {
        ASSERT_EQ(e.receive(1, 8192, 8192), 0);
        EXPECT_EQ(e.wait(1)[0].byte_len, n);
        EXPECT_TRUE(e.holds(8192, n, 5, 0));
      });
  const auto frames = p.sent(server_qpn, kSends);
  const std::size_t packets = n == 0 ? 1 : (n + mtu - 1) / mtu;
  ASSERT_EQ(frames.size(), packets);
  for (std::size_t i = 0; i < packets; ++i) {
    const bool first = i == 0, last = i + 1 == packets;
    const std::uint32_t bytes = last ? n - static_cast<std::uint32_t>(i) * mtu : mtu, pad = (4 - bytes % 4) % 4;
    EXPECT_EQ(frames[i].opcode, first && last ? kSendOnly : first ? kSendFirst : last ? kSendLast : kSendMiddle);
    EXPECT_EQ(frames[i].psn, kPsn + i);
    EXPECT_EQ(frames[i].pad, pad);
    EXPECT_EQ(frames[i].length, 14 + 20 + 8 + 12 + bytes + pad + 4);
    EXPECT_EQ(frames[i].ack_req, last);
  }
}
INSTANTIATE_TEST_SUITE_P(Rc, Segmentation, testing::Values(0u, 1u, 1023u, 1024u, 1025u, 2048u, 4096u, 4097u),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace sys::test
