// SPDX-License-Identifier: Apache-2.0
// Rules of the reliable transport that show on the cable: order and fences, duplicates and ghosts, acknowledgements, RNR,
// and packets that are not for this QP.
#include <gtest/gtest.h>

#include <ostream>

#include "tests/system/inject.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Picos;
using Statuses = std::vector<ibv_wc_status>;
namespace wire = hca::wire;

constexpr std::uint32_t kPsn = 0x100;
const std::vector<std::uint8_t> kSends{wire::kSendFirst, wire::kSendMiddle, wire::kSendLast, wire::kSendOnly};

void nothing(End&) {}

// Order and fences -----------------------------------------------------------------------------------------------------

// The READ's last bytes are fetched after the WRITE behind it has landed, unless the WRITE waits for them.
class ReadThenWrite : public testing::TestWithParam<bool> {};
TEST_P(ReadThenWrite, OnlyAFenceKeepsTheOldValue_A_59) {
  const bool fence = GetParam();
  static constexpr std::uint32_t kBytes = 32768;
  Pair p;
  for (EndOptions& o : p.options) o.inline_bytes = 64;  // the WRITE follows at once
  p.run(
      [&](End& e) {
        e.fill(2);
        ASSERT_EQ(e.read(1, 0, kBytes, e.peer.va, e.peer.rkey), 0);
        const unsigned flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE | (fence ? unsigned{IBV_SEND_FENCE} : 0U);
        ASSERT_EQ(e.write(2, 32768, 64, e.peer.va + kBytes - 64, e.peer.rkey, flags), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(0, kBytes - 64, 1, 0));
        if (fence) EXPECT_TRUE(e.holds(kBytes - 64, 64, 1, kBytes - 64)) << "the old value";
        else EXPECT_TRUE(e.holds(kBytes - 64, 64, 2, 32768)) << "the new value";
      },
      nothing, [](End& e) { e.fill(1); });
}
INSTANTIATE_TEST_SUITE_P(Rc, ReadThenWrite, testing::Bool(),
                         [](const auto& i) { return i.param ? "with_fence" : "without_fence"; });

TEST(Fence, DoesNotWaitForWrites_S_RC_32) {
  Pair p;
  std::uint32_t client_qpn = 0, server_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        server_qpn = e.peer.qpn;
        ASSERT_EQ(e.write(1, 0, 64, e.peer.va, e.peer.rkey), 0);
        ASSERT_EQ(e.write(2, 0, 64, e.peer.va, e.peer.rkey, IBV_SEND_SIGNALED | IBV_SEND_FENCE), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      nothing);
  const auto writes = p.sent(server_qpn, {wire::kWriteOnly});
  const auto acks = p.sent(client_qpn, {wire::kAcknowledge});
  ASSERT_EQ(writes.size(), 2u);
  ASSERT_GE(acks.size(), 1u);
  EXPECT_LT(writes[1].t, acks[0].t);
}

TEST(ReadWindow, OneReadAtATimeAndTheSendBehindThem_A_58) {
  Pair p;
  for (EndOptions& o : p.options) o.rd_atomic = 1;
  std::uint32_t client_qpn = 0, server_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        server_qpn = e.peer.qpn;
        e.thread().sleep(50_us);
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.read(i, i * 64, 64, e.peer.va, e.peer.rkey), 0);
        ASSERT_EQ(e.send(4, 0, 64), 0);
        EXPECT_EQ(e.statuses(5), Statuses(5, IBV_WC_SUCCESS));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
  int outstanding = 0, requests = 0;
  for (const SentFrame& f : p.frames) {
    if (f.qpn == server_qpn && f.opcode == wire::kReadRequest) {
      ++requests;
      EXPECT_EQ(++outstanding, 1);
    }
    if (f.qpn == client_qpn && f.opcode == wire::kReadResponseOnly) --outstanding;
    if (f.qpn == server_qpn && f.opcode == wire::kSendOnly) {
      EXPECT_EQ(requests, 4);
      EXPECT_EQ(outstanding, 1) << "it waits for its turn in the queue, not for the last READ's data";
    }
  }
  EXPECT_EQ(requests, 4);
}

TEST(Solicited, OnlyTheLastPacketOfAMessageCarriesIt_S_RC_5) {
  Pair p;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, 3000, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
        ASSERT_EQ(e.write(2, 0, 3000, e.peer.va, e.peer.rkey, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 8192, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
  const auto sends = p.sent(server_qpn, kSends);
  ASSERT_EQ(sends.size(), 3u);
  for (const SentFrame& f : sends) EXPECT_EQ(f.solicited, f.opcode == wire::kSendLast);
  const auto writes = p.sent(server_qpn, {wire::kWriteFirst, wire::kWriteMiddle, wire::kWriteLast});
  ASSERT_EQ(writes.size(), 3u);
  for (const SentFrame& f : writes) EXPECT_FALSE(f.solicited) << "a WRITE without immediate asks nobody";
}

TEST(ReadOfNothing, IsAnsweredByOneEmptyPacketWhateverItsKey_S_RC_25_S_RC_17) {
  Pair p;
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        ASSERT_EQ(e.read(1, 0, 0, e.peer.va, e.peer.rkey + 1), 0);
        ASSERT_EQ(e.write(2, 0, 0, e.peer.va, e.peer.rkey + 1), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      nothing);
  const auto answers = p.sent(client_qpn, {wire::kReadResponseFirst, wire::kReadResponseMiddle, wire::kReadResponseLast,
                                           wire::kReadResponseOnly});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].opcode, wire::kReadResponseOnly);
  EXPECT_EQ(answers[0].length, 14u + 20 + 8 + 12 + 4 + 4) << "headers, AETH and ICRC";
}

// The program may not touch the buffer of a send before its completion: what is sent again is what lies there then.
TEST(SentAgain, ThePayloadIsReadFromMemoryAnew_S_RC_38) {
  Pair p;
  p.options[0].timeout = 8;  // 1.05 ms
  p.lose(wire::kSendOnly);
  p.run(
      [](End& e) {
        e.fill(1);
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, 512), 0);
        e.thread().sleep(100_us);
        e.fill(2);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 8192, 4096), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(8192, 512, 2, 0));
      });
}

// A WQE that fails behind a lost one waits until the lost one has been repaired, and is reported then.
TEST(LocalError, BehindALostPacketIsReportedAfterItsRepair_S_PS_43) {
  Pair p;
  p.options[0].timeout = 8;
  p.lose(wire::kSendOnly);
  p.run(
      [](End& e) {
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, 64), 0);
        ibv_sge bad = e.sge(0, 64);
        ++bad.lkey;
        ASSERT_EQ(e.send(2, {bad}), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR}));
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
}

// Duplicates and ghosts ------------------------------------------------------------------------------------------------

struct Repeat {
  const char* name;
  std::int64_t va;
  std::uint32_t psn, length;
  bool answered;
};
void PrintTo(const Repeat& r, std::ostream* out) { *out << r.name; }
class DuplicateRead : public testing::TestWithParam<Repeat> {};
TEST_P(DuplicateRead, MustLieInsideAnEarlierOne_S_RC_23) {
  const Repeat& r = GetParam();
  Pair p;
  Injector inject(p);
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        ASSERT_EQ(e.read(1, 0, 3000, e.peer.va + 4096, e.peer.rkey), 0);  // PSNs kPsn … kPsn + 2
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        p.frames.clear();
        wire::Headers h = rc_headers(wire::kReadRequest, e.peer.qpn, r.psn);
        h.reth = {e.peer.va + 4096 + static_cast<std::uint64_t>(r.va), e.peer.rkey, r.length};
        inject.send(1, h);
        e.thread().sleep(20_us);
        ASSERT_EQ(e.read(2, 0, 64, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS})) << "ghosts do no harm, S-RC-36";
      },
      nothing);
  std::size_t ghosts = 0;
  for (const SentFrame& f : p.sent(client_qpn, {wire::kReadResponseFirst, wire::kReadResponseMiddle,
                                                wire::kReadResponseLast, wire::kReadResponseOnly}))
    ghosts += f.psn < kPsn + 3;
  EXPECT_EQ(ghosts > 0, r.answered);
  EXPECT_EQ(p.counter("host0.hca.requester.stale_responses"), ghosts);
}
INSTANTIATE_TEST_SUITE_P(
    Rc, DuplicateRead,
    testing::Values(Repeat{"the_same", 0, kPsn, 3000, true}, Repeat{"its_rest", 1024, kPsn + 1, 1976, true},
                    Repeat{"a_part_of_its_rest", 1024, kPsn + 1, 500, true},
                    Repeat{"another_address", 64, kPsn, 100, false}, Repeat{"before_it", -64, kPsn, 64, false},
                    Repeat{"longer", 0, kPsn, 3001, false}, Repeat{"older_than_all", 0, kPsn - 5, 64, false}),
    [](const auto& i) { return std::string(i.param.name); });

// The only request is lost; an acknowledgement for a PSN that was never sent changes nothing.
TEST(Acknowledgement, OfWhatWasNotSentIsIgnored_S_RC_34) {
  Pair p;
  p.options[0].timeout = 8;
  p.lose(wire::kSendOnly);
  Injector inject(p);
  p.run(
      [&](End& e) {
        e.thread().sleep(50_us);
        ASSERT_EQ(e.send(1, 0, 64), 0);
        e.thread().sleep(20_us);
        for (const std::uint32_t ahead : {1U, 3U, 0x7FFFFFU}) {
          wire::Headers h = rc_headers(wire::kAcknowledge, e.qp->qp_num, kPsn + ahead);
          h.aeth = {wire::ack_syndrome(), 1};
          inject.send(0, h);
        }
        const Picos start = e.thread().now();
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_GT(e.thread().now() - start, 900_us) << "the timeout repairs the loss";
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      });
  EXPECT_EQ(p.counter("host0.hca.requester.stale_responses"), 3u);
}

TEST(Acknowledgement, ReadDataStandForTheAcknowledgementsBeforeThem_S_RC_33) {
  Pair p;
  p.lose(wire::kAcknowledge);
  p.run(
      [](End& e) {
        ASSERT_EQ(e.write(1, 0, 64, e.peer.va, e.peer.rkey), 0);
        ASSERT_EQ(e.read(2, 64, 64, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      nothing);
  EXPECT_EQ(p.counter("host0.hca.requester.retransmitted_packets"), 0u);
}

// Acknowledgements -----------------------------------------------------------------------------------------------------

TEST(Acknowledgement, CountsTheMessages_S_RC_19) {
  Pair p;
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        for (const std::uint32_t n : {64U, 3000U, 0U}) {
          ASSERT_EQ(e.write(n, 0, n, e.peer.va, e.peer.rkey), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
        ASSERT_EQ(e.read(1, 0, 5000, e.peer.va, e.peer.rkey), 0);
        ASSERT_EQ(e.write(2, 0, 64, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
      },
      nothing);
  std::vector<std::uint32_t> msns;
  for (const SentFrame& f : p.sent(client_qpn, {wire::kAcknowledge})) msns.push_back(f.msn);
  EXPECT_EQ(msns, (std::vector<std::uint32_t>{1, 2, 3, 5})) << "a message counts once, and a READ when it is accepted";
}

TEST(Acknowledgement, IsAskedForInsideALongMessage_S_RC_6) {
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.kernel.driver.log_ack_req_freq = 2;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        ASSERT_EQ(e.write(1, 0, 10 * 1024, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      nothing);
  std::vector<std::uint32_t> asked;
  for (const SentFrame& f : p.sent(server_qpn, {wire::kWriteFirst, wire::kWriteMiddle, wire::kWriteLast}))
    if (f.ack_req) asked.push_back(f.psn - kPsn);
  EXPECT_EQ(asked, (std::vector<std::uint32_t>{3, 7, 9}));
}

TEST(Acknowledgement, OneStandsForThoseThatGathered_S_RC_20) {
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.transport.ack_coalescing = 20_us;
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        for (std::uint64_t i = 0; i < 8; ++i) ASSERT_EQ(e.write(i, 0, 64, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(8), Statuses(8, IBV_WC_SUCCESS));
      },
      nothing);
  const auto acks = p.sent(client_qpn, {wire::kAcknowledge});
  ASSERT_EQ(acks.size(), 1u);
  EXPECT_EQ(acks[0].psn, kPsn + 7);
  EXPECT_EQ(acks[0].msn, 8u);
  EXPECT_EQ(p.counter("host1.hca.responder.acks_coalesced"), 7u);
}

// Retries --------------------------------------------------------------------------------------------------------------

TEST(Retries, AreRestoredByProgress_S_RC_43) {
  Pair p;
  p.options[0].retry = 1;
  p.options[0].timeout = 8;
  // Each is lost when the message is on its way for the first, second, third time.
  std::uint32_t pass = 0;
  for (const std::uint32_t lost : {3U, 7U, 12U}) p.lose(wire::kWriteMiddle, kPsn + lost, ++pass);
  p.run(
      [](End& e) {
        e.fill(3);
        ASSERT_EQ(e.write(1, 0, 20 * 1024, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        e.meet("done");
      },
      [](End& e) {
        e.meet("done");
        EXPECT_TRUE(e.holds(0, 20 * 1024, 3, 0));
      });
  EXPECT_EQ(p.counter("host0.hca.requester.sequence_naks_received"), 3u);
}

// A packet is lost twice: its first repetition costs a retry for the NAK, its second one for the timeout.
class LostTwice : public testing::TestWithParam<unsigned> {};
TEST_P(LostTwice, NaksAndTimeoutsShareTheRetries_S_RC_46) {
  const unsigned retries = GetParam();
  Pair p;
  p.options[0].retry = static_cast<std::uint8_t>(retries);
  p.options[0].timeout = 8;
  for (const std::uint32_t iter : {1U, 2U}) p.lose(wire::kWriteMiddle, kPsn + 3, iter);
  p.run(
      [&](End& e) {
        ASSERT_EQ(e.write(1, 0, 10 * 1024, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{retries < 2 ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS}));
      },
      nothing);
}
INSTANTIATE_TEST_SUITE_P(Rc, LostTwice, testing::Values(1U, 2U), testing::PrintToStringParamName());

TEST(Retries, OfRnrAreRestoredByProgress_S_RC_53) {
  Pair p;
  p.options[0].rnr_retry = 1;
  p.options[1].min_rnr_timer = 18;  // 5.12 ms
  p.run(
      [](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) {
          ASSERT_EQ(e.send(i, 0, 64), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 3; ++i) {
          e.thread().sleep(1_ms);  // the message is there, and has been turned away once
          ASSERT_EQ(e.receive(i, 0, 64), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
      });
  EXPECT_EQ(p.counter("host1.hca.responder.rnr_naks_sent"), 3u);
}

// Receiver not ready ---------------------------------------------------------------------------------------------------

class AfterRnrNak : public testing::TestWithParam<bool> {};
TEST_P(AfterRnrNak, TheRestOfTheBurstIsSilentOrEarnsOneNak_S_RC_15) {
  const bool silent = GetParam();
  Pair p;
  for (HostConfig& h : p.scenario.hosts) h.hca.transport.silent_after_rnr_nak = silent;
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        ibv_sge s = e.sge(0, 64);
        ibv_send_wr wr[3]{}, *bad = nullptr;
        for (std::size_t i = 0; i < 3; ++i) {
          wr[i].wr_id = i;
          wr[i].opcode = IBV_WR_SEND;
          wr[i].sg_list = &s;
          wr[i].num_sge = 1;
          wr[i].send_flags = IBV_SEND_SIGNALED;
          wr[i].next = i < 2 ? &wr[i + 1] : nullptr;
        }
        ASSERT_EQ(ibv_post_send(e.qp, wr, &bad), 0);
        EXPECT_EQ(e.statuses(3), Statuses(3, IBV_WC_SUCCESS));
      },
      [](End& e) {
        e.thread().sleep(300_us);
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(e.receive(i, 0, 64), 0);
        EXPECT_EQ(e.statuses(3), Statuses(3, IBV_WC_SUCCESS));
      });
  const auto answers = p.sent(client_qpn, {wire::kAcknowledge});
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(),
                          [](const SentFrame& f) { return f.syndrome == wire::kNakPsnSequence; }),
            silent ? 0 : 1);
  EXPECT_EQ(answers.at(0).syndrome, wire::rnr_syndrome(12));
}
INSTANTIATE_TEST_SUITE_P(Rc, AfterRnrNak, testing::Bool(),
                         [](const auto& i) { return i.param ? "silent" : "sequence_nak"; });

// The packets before the last stay executed; only the last one comes again.
TEST(WriteWithImmediate, NeedsItsReceiveAtTheLastPacket_S_RC_14) {
  Pair p;
  std::uint32_t server_qpn = 0;
  p.run(
      [&](End& e) {
        server_qpn = e.peer.qpn;
        e.fill(4);
        ibv_sge s = e.sge(0, 3000);
        ibv_send_wr wr{}, *bad = nullptr;
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.sg_list = &s;
        wr.num_sge = 1;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.imm_data = 0x12345678;
        wr.wr.rdma.remote_addr = e.peer.va;
        wr.wr.rdma.rkey = e.peer.rkey;
        ASSERT_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
      },
      [](End& e) {
        e.thread().sleep(300_us);
        EXPECT_TRUE(e.holds(0, 2048, 4, 0));
        ASSERT_EQ(e.receive(1, {}), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        EXPECT_EQ(wc[0].byte_len, 3000u);
        EXPECT_EQ(wc[0].imm_data, 0x12345678u);
        EXPECT_TRUE(e.holds(0, 3000, 4, 0));
      });
  EXPECT_EQ(p.sent(server_qpn, {wire::kWriteFirst, wire::kWriteMiddle}).size(), 2u);
  EXPECT_EQ(p.sent(server_qpn, {wire::kWriteLastImm}).size(), 2u);
}

// Packets that are not for this QP ---------------------------------------------------------------------------------------

TEST(Stranger, IsDroppedSilently_S_PKT_13) {
  Pair p;
  Injector inject(p);
  std::uint32_t client_qpn = 0;
  p.run(
      [&](End& e) {
        client_qpn = e.qp->qp_num;
        e.thread().sleep(50_us);
        const auto packet = [&](std::uint32_t qpn, std::uint16_t pkey) {
          wire::Headers h = rc_headers(wire::kSendOnly, qpn, kPsn);
          h.bth.pkey = pkey;
          return h;
        };
        inject.send(1, packet(e.peer.qpn, 0x9234), 64);
        inject.send(1, packet(e.peer.qpn + 77, 0xFFFF), 64);
        inject.send_from(5, 1, packet(e.peer.qpn, 0xFFFF), 64);
        e.thread().sleep(20_us);
        EXPECT_TRUE(p.frames.empty());
        inject.send(1, packet(e.peer.qpn, 0x7FFF), 64);  // a limited member talks to a full one
        e.meet("done");
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        e.meet("done");
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_EQ(e.state(), IBV_QPS_RTS);
      });
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.pkey_mismatch"), 1u);
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.unknown_qp"), 1u);
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.wrong_source"), 1u);
}

}  // namespace
}  // namespace sys::test
