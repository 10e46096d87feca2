// SPDX-License-Identifier: Apache-2.0
// CQEs and EQEs as bytes, ownership over ring wraps, overrun, arming.
#include "hca/completion/completion_unit.h"
#include "tests/hca/scripted_endpoint.h"

namespace hca::test {
namespace {

using namespace sim::literals;
using sim::Picos;

constexpr std::uint64_t kCqRing = 0x200000, kEqRing = 0x300000, kAsyncRing = 0x310000, kRecord = 0x400000;

struct Completion : testing::Test, CqFailureSink {
  explicit Completion(const CompletionConfig& c = {}) : config(c) {
    units.bind(*this);
    bench.endpoint.answer = true;
    icm.give({0x100000});
    std::uint32_t n = 0;
    eq = eqs.create(n);
    eq->eqn = n;
    eq->buffer.pages = {{kEqRing}};
    eq->log_size = 2;
    eq->vector = 3;
    async = eqs.create(n);
    async->eqn = n;
    async->buffer.pages = {{kAsyncRing}};
    async->log_size = 4;
    async->event_mask = 1ULL << prm::kEventCqError;
    cq = cqs.create(n);
    cq->cqn = n;
    cq->buffer.pages = {{kCqRing}};
    cq->log_size = 2;
    cq->eqn = eq->eqn;
    cq->dbr = {kRecord};
    EXPECT_TRUE(icm.reserve(IcmTable::cqc, n));
    units.cqc().install(n);
    consume(0);
  }
  void cq_failed(std::uint32_t qpn) override { failed.push_back(qpn); }
  void consume(std::uint32_t ci) { bench.endpoint.set32(kRecord + prm::kCqSetCi, ci); }
  void post(std::uint8_t opcode = MLX5_CQE_REQ, bool solicited = false, std::uint32_t qpn = 0x101) {
    PendingCqe c;
    reinterpret_cast<mlx5_cqe64*>(c.bytes.data())->op_own = static_cast<std::uint8_t>(opcode << 4);
    c.qpn = qpn;
    c.solicited = solicited;
    units.post(cq->cqn, std::move(c));
    bench.run();
  }
  void arm(std::uint32_t ci, bool solicited = false, std::uint32_t sn = 0) {
    units.arm(sn << 28 | (solicited ? 1U << 24 : 0U) | ci, cq->cqn);
    bench.run();
  }
  std::vector<ScriptedEndpoint::Write> writes_in(std::uint64_t ring) const {
    std::vector<ScriptedEndpoint::Write> found;
    for (const auto& w : bench.endpoint.writes)
      if (w.address >= ring && w.address < ring + 0x1000) found.push_back(w);
    return found;
  }
  std::size_t events() const { return writes_in(kEqRing).size(); }

  const CompletionConfig config;
  const ContextConfig context_config;
  DmaBench bench;
  Icm icm;
  ObjectTable<Cq> cqs{1, 100};
  ObjectTable<Eq> eqs{1, 100};
  EventUnit event_unit{bench.context, config, bench.dma, eqs, 0, "events"};
  CompletionUnit units{bench.context, config, context_config, bench.dma, icm, cqs, event_unit, 0, "completions"};
  Cq* cq = nullptr;
  Eq* eq = nullptr;
  Eq* async = nullptr;
  std::vector<std::uint32_t> failed;
};

TEST_F(Completion, OwnerBitFlipsWithEachPassOfAFourEntryRing_A_26) {
  std::vector<int> owners, slots;
  for (std::uint32_t i = 0; i < 9; ++i) {
    post();
    consume(i + 1);
  }
  for (const auto& w : writes_in(kCqRing)) {
    ASSERT_EQ(w.bytes.size(), 64u);
    owners.push_back(static_cast<int>(w.bytes[63]) & 1);
    slots.push_back(static_cast<int>((w.address - kCqRing) / 64));
  }
  EXPECT_EQ(owners, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(slots, (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3, 0}));
}

TEST_F(Completion, TimeStampCountsTheDeviceClock) {
  post();
  const auto w = writes_in(kCqRing)[0];
  // The CQE is built after look-up and build time; it leaves the DMA engine at once.
  EXPECT_EQ(w.t, 5_ns + 20_ns);
  EXPECT_EQ(prm::get64(w.bytes.data(), 48), 25u) << "ticks of 1 ns";
}

TEST_F(Completion, AnErrorCqeKeepsSyndromeAndQpn_A_25) {
  PendingCqe c;
  auto* e = reinterpret_cast<mlx5_err_cqe*>(c.bytes.data());
  e->vendor_err_synd = 0x88;
  e->syndrome = prm::kSynRemoteAccess;
  e->s_wqe_opcode_qpn = prm::be32(0x0a000101);
  e->wqe_counter = prm::be16(7);
  e->op_own = MLX5_CQE_REQ_ERR << 4;
  units.post(cq->cqn, std::move(c));
  bench.run();
  const auto w = writes_in(kCqRing)[0];
  std::vector<std::byte> tail(w.bytes.begin() + 32, w.bytes.end());
  const std::uint8_t expected[32] = {0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    0,    0,    0,    0,    0, 0,
                                     0, 0, 0, 0, 0, 0, 0x88, 0x13, 0x0a, 0x00, 0x01, 0x01, 0x00, 0x07, 0, 0xd0};
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(static_cast<std::uint8_t>(tail[i]), expected[i]) << 32 + i;
}

TEST_F(Completion, OverrunIsReportedOnceAndFailsEveryQpThatComes_A_41) {
  for (int i = 0; i < 4; ++i) post();
  EXPECT_TRUE(failed.empty());
  post(MLX5_CQE_REQ, false, 0x101);
  EXPECT_EQ(failed, (std::vector<std::uint32_t>{0x101}));
  post(MLX5_CQE_REQ, false, 0x102);  // another QP of the CQ
  EXPECT_EQ(failed, (std::vector<std::uint32_t>{0x101, 0x102}));
  consume(4);
  post();
  EXPECT_EQ(writes_in(kCqRing).size(), 4u) << "the error stays";
  const auto e = writes_in(kAsyncRing);
  ASSERT_EQ(e.size(), 1u);
  EXPECT_EQ(static_cast<int>(e[0].bytes[1]), 0x04);
  EXPECT_EQ(prm::get(e[0].bytes.data(), {32, 0, 24}), cq->cqn);
  EXPECT_EQ(static_cast<int>(e[0].bytes[43]), 1);
}

TEST_F(Completion, AFullRingIsReadAgainBeforeItCountsAsOverrun) {
  for (int i = 0; i < 4; ++i) post();
  consume(1);
  post();
  EXPECT_TRUE(failed.empty());
  EXPECT_EQ(writes_in(kCqRing).size(), 5u);
}

// The ring looks full and the record that would tell cannot be read.
TEST_F(Completion, AnUnreadableRecordIsAnAccessViolation_S_OVR_2) {
  for (int i = 0; i < 4; ++i) post();
  bench.endpoint.answer = false;
  post();
  bench.endpoint.complete(bench.endpoint.reads.size() - 1, 0, ~0U, pcie::CplStatus::UR);
  bench.run();
  EXPECT_EQ(failed, (std::vector<std::uint32_t>{0x101}));
  const auto e = writes_in(kAsyncRing);
  ASSERT_EQ(e.size(), 1u);
  EXPECT_EQ(static_cast<int>(e[0].bytes[43]), 2);
}

TEST_F(Completion, IgnoredOverrunWritesOverOldCqes_A_43) {
  cq->ignore_overrun = true;
  for (int i = 0; i < 10; ++i) post();
  EXPECT_TRUE(failed.empty());
  EXPECT_EQ(writes_in(kCqRing).size(), 10u);
  EXPECT_TRUE(writes_in(kAsyncRing).empty());
}

TEST_F(Completion, WithoutAnArmThereIsNoEventAndAnArmGivesOne_A_33) {
  post();
  consume(1);
  EXPECT_EQ(events(), 0u);
  arm(1);
  for (std::uint32_t i = 1; i < 4; ++i) {
    post();
    consume(i + 1);
  }
  EXPECT_EQ(events(), 1u);
  const auto e = writes_in(kEqRing)[0].bytes;
  std::vector<std::byte> expected(64);
  expected[59] = static_cast<std::byte>(cq->cqn);
  EXPECT_EQ(e, expected);
}

TEST_F(Completion, SolicitedArmWaitsForASolicitedCqe_A_34) {
  arm(0, true);
  post();
  EXPECT_EQ(events(), 0u);
  post(MLX5_CQE_RESP_SEND, true);
  EXPECT_EQ(events(), 1u);
}

TEST_F(Completion, AnyWinsOverSolicited) {
  arm(0, true);
  arm(0, false);
  arm(0, true);
  post();
  EXPECT_EQ(events(), 1u);
}

TEST_F(Completion, AnArmThatCrossedItsEventIsIgnored_A_40) {
  arm(0, false, 0);
  post();
  ASSERT_EQ(events(), 1u);
  arm(0, false, 0);  // same sequence number: sent before software saw the event
  EXPECT_EQ(events(), 1u);
  post();
  EXPECT_EQ(events(), 1u);
  arm(2, false, 1);
  post();
  EXPECT_EQ(events(), 2u);
}

TEST_F(Completion, AnArmBehindTheProducerFiresAtOnce) {
  post();
  arm(0);
  EXPECT_EQ(events(), 1u);
  arm(1, false, 1);
  EXPECT_EQ(events(), 1u) << "nothing newer than the consumer index";
}

TEST_F(Completion, ASolicitedArmBehindUnsolicitedCqesWaits) {
  post();
  arm(0, true);
  EXPECT_EQ(events(), 0u);
}

TEST_F(Completion, AnArmWithAStaleConsumerIndexIsSpuriousAtMost_S_CE_5_S_CE_22) {
  post();
  post();
  arm(1, false, 0);  // the program had consumed one when it armed; it has polled the other since
  EXPECT_EQ(events(), 1u) << "an event that finds nothing";
  post();
  EXPECT_EQ(events(), 1u);
}

TEST_F(Completion, AnArmAheadOfTheProducerWaitsForTheNextCqe_S_CE_5) {
  post();
  arm(3);
  EXPECT_EQ(events(), 0u);
  post();
  EXPECT_EQ(events(), 1u) << "two CQEs short of the index, and told all the same";
}

TEST_F(Completion, IndicesAreComparedIn24Bits_S_CE_5) {
  cq->producer = cq->consumer = 0x1000001;
  arm(1);
  EXPECT_EQ(events(), 0u);
  cq->arm = ArmState::fired;
  arm(0xFFFFFF, false, 1);
  EXPECT_EQ(events(), 1u) << "two behind, across the wrap";
}

TEST_F(Completion, RearmingInOneCycleKeepsTheArm_S_CE_6) {
  arm(0);
  arm(0);
  post();
  EXPECT_EQ(events(), 1u);
  post();
  EXPECT_EQ(events(), 1u) << "two arms without an event between them are one";
}

struct NextCqe : Completion {
  static CompletionConfig next() {
    CompletionConfig c;
    c.arm_rule = ArmRule::next_cqe;
    return c;
  }
  NextCqe() : Completion(next()) {}
  /// Queues 4 KiB of payload and a CQE behind it.
  void post_behind_payload() {
    bench.dma.write({0x500000}, 4096, bench.context.buffers.make(4096), 0, {});
    PendingCqe c;
    reinterpret_cast<mlx5_cqe64*>(c.bytes.data())->op_own = MLX5_CQE_REQ << 4;
    c.qpn = 0x101;
    units.post(cq->cqn, std::move(c));
  }
};
TEST_F(NextCqe, FiresForACqeThatHasNotLeftWhenTheArmArrives_S_CE_21) {
  post_behind_payload();
  bench.run(30_ns);
  ASSERT_EQ(cq->producer, 1u);
  ASSERT_TRUE(writes_in(kCqRing).empty()) << "still behind the payload";
  arm(0);
  EXPECT_EQ(events(), 1u);
}
TEST_F(NextCqe, IsSilentOnceTheCqeHasLeft_S_CE_21) {
  post_behind_payload();
  while (writes_in(kCqRing).empty()) ASSERT_TRUE(bench.context.scheduler.run_one(sim::kNever));
  arm(0);
  EXPECT_EQ(events(), 0u);
}
TEST_F(NextCqe, LosesTheWakeUpOfWhatCameBeforeTheArm_S_CE_21) {
  post();
  arm(0);
  EXPECT_EQ(events(), 0u);
  post();
  EXPECT_EQ(events(), 1u);
}

TEST_F(Completion, EventsFollowTheirCqeAndInterruptOnce_A_32) {
  event_unit.doorbell(eq->eqn << 24 | 0, true);
  arm(0);
  post();
  EXPECT_EQ(bench.endpoint.order, "wwi") << "CQE, EQE, MSI-X";
  EXPECT_EQ(bench.endpoint.interrupts[0].second, 3);
  // One-shot: eight more events, no interrupt until the next arm; the owner bit flips every four entries.
  for (std::uint32_t i = 1; i < 9; ++i) {
    consume(i);
    event_unit.doorbell(eq->eqn << 24 | i, false);
    arm(i, false, i & 3);
    post();
  }
  EXPECT_EQ(bench.endpoint.interrupts.size(), 1u);
  std::vector<int> owners;
  for (const auto& w : writes_in(kEqRing)) owners.push_back(static_cast<int>(w.bytes[63]));
  EXPECT_EQ(owners, (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 0}));
  event_unit.doorbell(eq->eqn << 24 | 8, true);
  bench.run();
  EXPECT_EQ(bench.endpoint.interrupts.size(), 2u) << "an arm that leaves entries unconsumed fires at once";
  event_unit.doorbell(eq->eqn << 24 | 9, true);
  bench.run();
  EXPECT_EQ(bench.endpoint.interrupts.size(), 2u);
}

TEST_F(Completion, AFullEventQueueLosesAndCounts) {
  for (std::uint32_t i = 0; i < 6; ++i) event_unit.completion(eq->eqn, cq->cqn, {});
  bench.run();
  EXPECT_EQ(events(), 4u);
  EXPECT_EQ(bench.context.stats.counter("events.eq_overruns").value, 2u);
}

}  // namespace
}  // namespace hca::test
