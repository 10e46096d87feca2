// SPDX-License-Identifier: Apache-2.0
// One direction of a link between a scripted sender and a scripted receiver.
#include "pcie/link.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>

#include "sim/engine.h"

namespace {

using namespace sim::literals;
using pcie::TlpType;
using sim::Picos;

struct Receiver final : pcie::TlpSink {
  struct Got {
    Picos t;
    TlpType type;
    std::uint16_t tag;
  };
  explicit Receiver(sim::Context& c) : context(c) {}
  void receive(pcie::TlpPtr tlp) override {
    if (hold.count(tlp->tag) != 0) tlp->held->hold_until(hold[tlp->tag]);
    got.push_back({context.now(), tlp->type, tlp->tag});
  }
  std::vector<std::uint16_t> tags() const {
    std::vector<std::uint16_t> v;
    for (const Got& g : got) v.push_back(g.tag);
    return v;
  }
  sim::Context& context;
  std::map<std::uint16_t, Picos> hold;  // by tag
  std::vector<Got> got;
};

struct Bench {
  explicit Bench(const pcie::CreditConfig& credits, pcie::LinkConfig link_config = {})
      : config(link_config),
        engine("engine", context.scheduler, sim::EngineMode::run_ahead),
        receiver(context),
        link("link", context, config, credits, 256, pcie::Direction::up, 0, "host0.pcie") {
    link.out.bind(receiver);
    engine.run();
  }
  void send(TlpType type, std::uint16_t tag, std::uint32_t length, bool relaxed = false) {
    pcie::TlpPtr tlp = context.pools.of<pcie::Tlp>("TLP").make();
    tlp->type = type;
    tlp->tag = tag;
    tlp->length = length;
    tlp->address = 0x1'0000'0000;
    tlp->relaxed_ordering = relaxed;
    if (length > 64) tlp->buffer = context.buffers.make(length);
    link.receive(std::move(tlp));
  }
  Picos ser(std::uint64_t n) const { return pcie::serialisation(config, 256, {n}); }
  /// Delivery until the sender may use the credits again.
  Picos credit_loop() const { return config.credit_processing + config.update_fc_latency; }
  std::uint64_t count(const std::string& name) { return context.stats.counter("host0.pcie.up." + name).value; }

  pcie::LinkConfig config;
  sim::Context context;
  sim::Engine engine;
  Receiver receiver;
  pcie::Link link;
};

TEST(Link, IdleLatencyIsSerialisationPlusLatency) {
  Bench b({});
  b.send(TlpType::MWr, 1, 64);
  b.engine.run();
  ASSERT_EQ(b.receiver.got.size(), 1U);
  EXPECT_EQ(b.receiver.got[0].t, b.ser(88) + b.config.latency);
  EXPECT_EQ(b.context.stats.busy("host0.pcie.link.up").busy, b.ser(88));
  EXPECT_EQ(b.count("mwr"), 1U);
  EXPECT_EQ(b.count("mwr_bytes"), 64U);
  EXPECT_EQ(b.count("wire_bytes"), 88U);
}

TEST(Link, BackToBackTlpsTakeExactlyTheirBytesAtTheTlpRate) {
  pcie::CreditConfig infinite{0, 0, 0, 0, 0};
  Bench b(infinite);
  for (std::uint16_t i = 0; i < 1000; ++i) b.send(TlpType::MWr, i, 256);
  b.engine.run();
  ASSERT_EQ(b.receiver.got.size(), 1000U);
  EXPECT_EQ(b.receiver.got.back().t, b.ser(1000ULL * 280) + b.config.latency);
  EXPECT_EQ(b.count("credit_stalls"), 0U);
}

TEST(Link, AnIdlePauseForgetsTheFractionOfAPicosecond) {
  Bench b({});
  for (int i = 0; i < 5; ++i) {
    b.send(TlpType::MWr, 1, 12);
    const Picos sent = b.context.now();
    b.engine.run();
    EXPECT_EQ(b.receiver.got.back().t - sent, b.ser(36) + b.config.latency);
  }
}

TEST(Link, EcrcCostsFourBytesPerTlp) {
  pcie::LinkConfig config;
  config.ecrc = true;
  Bench b({}, config);
  b.send(TlpType::MRd, 1, 512);
  b.engine.run();
  EXPECT_EQ(b.receiver.got[0].t, b.ser(28) + b.config.latency);
}

TEST(Link, HeaderCreditsBlockUntilUpdateFc) {
  pcie::CreditConfig credits;
  credits.posted_headers = 2;
  Bench b(credits);
  for (std::uint16_t i = 0; i < 5; ++i) b.send(TlpType::MWr, i, 64);
  EXPECT_EQ(b.link.waiting(), 3U);
  b.engine.run();
  ASSERT_EQ(b.receiver.got.size(), 5U);
  const Picos s = b.ser(88);
  const Picos two = b.ser(176);
  EXPECT_EQ(b.receiver.got[1].t, two + b.config.latency);
  const Picos first_return = s + b.config.latency + b.credit_loop();
  EXPECT_EQ(b.receiver.got[2].t, first_return + s + b.config.latency);
  // The fourth follows the second's credit, which comes while the third is on the wire or just after it.
  EXPECT_EQ(b.receiver.got[3].t,
            max(first_return + s, two + b.config.latency + b.credit_loop()) + s + b.config.latency);
  EXPECT_EQ(b.count("credit_stalls"), 3U);
  EXPECT_EQ(b.link.waiting(), 0U);
}

using Levels = std::vector<std::pair<Picos, std::int64_t>>;
struct LevelLog : sim::trace::Sink {
  explicit LevelLog(std::map<std::string, Levels>& out) : levels(out) {}
  using sim::trace::Sink::on;
  void on(const sim::trace::Track& t) override { tracks[t.id] = t.path; }
  void on(const sim::trace::Level& l) override { levels[tracks[l.track]].emplace_back(l.t, l.value); }
  void close(Picos) override {}
  std::map<std::string, Levels>& levels;
  std::map<std::uint32_t, std::string> tracks;
};

TEST(Link, RecordsCreditsAndBytesAtTheirTimes) {
  pcie::CreditConfig credits;
  credits.posted_headers = 2;
  credits.posted_data = 0;
  Bench b(credits);
  std::map<std::string, Levels> levels;
  b.context.tracer.add_sink(std::make_unique<LevelLog>(levels));
  b.context.tracer.open({});
  for (std::uint16_t i = 0; i < 3; ++i) b.send(TlpType::MWr, i, 64);
  b.engine.run();
  const Picos one = b.ser(88), two = b.ser(176), back = b.config.latency + b.credit_loop();
  EXPECT_EQ(levels["host0.pcie.up.credits.ph"],
            (Levels{{0_ps, 1}, {one, 0}, {one + back, 1}, {one + back, 0}, {two + back, 1}}))
      << "two start, the third with the first one's credit; the third's comes back after all records";
  EXPECT_EQ(levels.count("host0.pcie.up.credits.pd"), 0U) << "infinite";
  EXPECT_EQ(levels["host0.pcie.up.waiting"], (Levels{{0_ps, 1}, {one + back, 0}}));
  EXPECT_EQ(levels["host0.pcie.up.wire_bytes"], (Levels{{one, 88}, {two, 176}, {one + back + one, 264}}));
}

TEST(Link, DataCreditsBlockInUnitsOf16Bytes) {
  pcie::CreditConfig credits;
  credits.posted_data = 17;
  Bench b(credits);
  b.send(TlpType::MWr, 0, 256);  // 16 units
  b.send(TlpType::MWr, 1, 16);   // the 17th
  b.send(TlpType::MWr, 2, 1);    // none left
  EXPECT_EQ(b.link.waiting(), 1U);
  b.engine.run();
  EXPECT_EQ(b.receiver.got[2].t, b.ser(280) + b.config.latency + b.credit_loop() + b.ser(28) + b.config.latency);
}

TEST(Link, CreditsReturnOnlyAfterTheReceiverLetsGo) {
  pcie::CreditConfig credits;
  credits.non_posted_headers = 1;
  Bench b(credits);
  b.receiver.hold[0] = 5_us;
  b.send(TlpType::MRd, 0, 64);
  b.send(TlpType::MRd, 1, 64);
  b.engine.run();
  EXPECT_EQ(b.receiver.got[1].t, 5_us + b.credit_loop() + b.ser(24) + b.config.latency);
}

TEST(Link, CreditsThatReturnWhileTheWireIsBusyCostNoWait) {
  pcie::CreditConfig credits;
  credits.non_posted_headers = 1;
  credits.posted_headers = 0;
  credits.posted_data = 0;
  Bench b(credits);
  b.send(TlpType::MRd, 0, 64);
  for (std::uint16_t i = 1; i <= 100; ++i) b.send(TlpType::MWr, i, 256);
  b.engine.run(b.ser(24) + b.config.latency);  // the read has been delivered, its credit is on the way
  b.send(TlpType::MRd, 101, 64);
  EXPECT_EQ(b.link.waiting(), 0U) << "the credit is back before the wire is free";
  b.engine.run();
  EXPECT_EQ(b.receiver.tags().back(), 101);
}

// The receiver has one credit of the blocked class; tag 1 waits, what comes after may or may not pass.
struct OrderingCase {
  const char* name;
  TlpType blocked, later;
  bool relaxed;
  bool passes;
  friend std::ostream& operator<<(std::ostream& out, const OrderingCase& c) { return out << c.name; }
};
class LinkOrdering : public testing::TestWithParam<OrderingCase> {};

TEST_P(LinkOrdering, FollowsTheTableOfTheSpecification) {
  const OrderingCase& c = GetParam();
  Bench b(pcie::CreditConfig{1, 100, 1, 1, 100});
  b.receiver.hold[0] = 10_us;
  b.send(c.blocked, 0, 64);
  b.send(c.blocked, 1, 64);
  b.send(c.later, 2, 64, c.relaxed);
  b.engine.run();
  using V = std::vector<std::uint16_t>;
  EXPECT_EQ(b.receiver.tags(), (c.passes ? V{0, 2, 1} : V{0, 1, 2}));
}
INSTANTIATE_TEST_SUITE_P(
    Table, LinkOrdering,
    testing::Values(OrderingCase{"PostedPassesRead", TlpType::MRd, TlpType::MWr, false, true},
                    OrderingCase{"PostedPassesCompletion", TlpType::CplD, TlpType::MWr, false, true},
                    OrderingCase{"CompletionPassesRead", TlpType::MRd, TlpType::CplD, false, true},
                    OrderingCase{"ReadPassesCompletion", TlpType::CplD, TlpType::MRd, false, true},
                    OrderingCase{"ReadDoesNotPassPosted", TlpType::MWr, TlpType::MRd, false, false},
                    OrderingCase{"RelaxedReadDoesNotPassPosted", TlpType::MWr, TlpType::MRd, true, false},
                    OrderingCase{"CompletionDoesNotPassPosted", TlpType::MWr, TlpType::CplD, false, false},
                    OrderingCase{"RelaxedCompletionPassesPosted", TlpType::MWr, TlpType::CplD, true, true},
                    OrderingCase{"PostedDoesNotPassPosted", TlpType::MWr, TlpType::MWr, false, false},
                    OrderingCase{"ReadDoesNotPassRead", TlpType::MRd, TlpType::MRd, false, false}),
    [](const auto& param) { return param.param.name; });

TEST(Link, ReadFollowsTheLastPostedWriteThatCameBeforeIt) {
  pcie::CreditConfig credits;
  credits.posted_headers = 1;
  Bench b(credits);
  b.send(TlpType::MWr, 0, 64);
  b.send(TlpType::MWr, 1, 64);
  b.send(TlpType::MWr, 2, 64);
  b.send(TlpType::MRd, 3, 64);
  b.send(TlpType::MWr, 4, 64);
  b.engine.run();
  EXPECT_EQ(b.receiver.tags(), (std::vector<std::uint16_t>{0, 1, 2, 3, 4}));
  // The read leaves behind write 2 without a credit wait of its own; write 4 needs another credit.
  EXPECT_EQ(b.receiver.got[3].t - b.receiver.got[2].t, b.ser(88 + 24) - b.ser(88));
  EXPECT_GE(b.receiver.got[4].t - b.receiver.got[2].t, b.credit_loop());
}

TEST(Link, ManyTlpsWithFewCreditsAllArriveInClassOrder) {
  Bench b(pcie::CreditConfig{3, 40, 2, 2, 20});
  std::array<std::uint16_t, 3> next{};
  unsigned x = 1;
  for (int i = 0; i < 3000; ++i) {
    x = x * 1664525U + 1013904223U;
    const TlpType type = std::array{TlpType::MWr, TlpType::MRd, TlpType::CplD}[x >> 16 & 3 ? (x >> 18) % 3 : 0];
    const auto c = static_cast<std::size_t>(type == TlpType::MWr ? 0 : type == TlpType::MRd ? 1 : 2);
    b.send(type, next[c]++, 1 + (x >> 20) % 256);
  }
  b.engine.run();
  EXPECT_EQ(b.receiver.got.size(), 3000U);
  std::array<std::uint16_t, 3> seen{};
  for (const auto& g : b.receiver.got) {
    const auto c = static_cast<std::size_t>(g.type == TlpType::MWr ? 0 : g.type == TlpType::MRd ? 1 : 2);
    ASSERT_EQ(g.tag, seen[c]++);
  }
  EXPECT_EQ(b.context.pools.of<pcie::Tlp>("TLP").live(), 0U);
}

}  // namespace
