// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <memory>

#include "fixture.h"

namespace fabric {
namespace {

using namespace sim::literals;
using hca::wire::ParseError;
using sim::Picos;

struct Bench {
  explicit Bench(const ImpairmentConfig& impairment, std::uint64_t seed = 1)
      : context(seed), link("link", context, with(impairment), "fabric.a_to_b"), far("far", context) {
    link.out(far);
  }
  static LinkConfig with(const ImpairmentConfig& i) {
    LinkConfig c;
    c.impairment = i;
    return c;
  }
  void send(std::uint32_t psn, std::uint32_t length = 100) {
    PacketPtr p = link.make_packet();
    fill(*p, context, psn, length);
    link.send(std::move(p));
  }
  void send_to(std::uint32_t qpn, std::uint32_t psn) {
    PacketPtr p = link.make_packet();
    fill(*p, context, psn, 100, qpn);
    link.send(std::move(p));
  }
  std::uint64_t count(const char* what) { return context.stats.counter(std::string("fabric.a_to_b.") + what).value; }
  sim::Context context;
  Link link;
  Receiver far;
};

ImpairmentConfig one(ImpairmentType type, std::uint32_t psn) {
  ImpairmentConfig c;
  c.events.emplace_back();
  c.events[0].qpn = 0x77;
  c.events[0].psn = psn;
  c.events[0].type = type;
  return c;
}

ParseError verdict(const Packet& p) {
  hca::wire::Parsed parsed;
  return hca::wire::parse(p, parsed);
}

TEST(Impairment, a_dropped_packet_takes_its_slot_and_never_arrives) {
  Bench b(one(ImpairmentType::drop, 1));
  for (std::uint32_t i = 0; i < 3; ++i) b.send(i);
  run(b.context);
  EXPECT_EQ(b.far.psns(), (std::vector<std::uint32_t>{0, 2}));
  EXPECT_EQ(b.far.arrivals[1].first - b.far.arrivals[0].first, 80_ps * 2 * (8 + 58 + 100 + 4 + 12));
  EXPECT_EQ(b.count("dropped"), 1U);
  EXPECT_EQ(b.context.pools.of<Packet>("packet").live(), 2U);
}

TEST(Impairment, iter_names_the_transmission_and_count_how_many) {
  ImpairmentConfig c = one(ImpairmentType::drop, 5);
  c.events[0].iter = 2;
  c.events[0].count = 2;
  Bench b(c);
  for (int i = 0; i < 5; ++i) b.send(5);
  run(b.context);
  EXPECT_EQ(b.far.arrivals.size(), 3U);
  EXPECT_EQ(b.count("dropped"), 2U);
}

TEST(Impairment, selectors_must_all_match) {
  ImpairmentConfig c = one(ImpairmentType::drop, 5);
  c.events[0].opcode = hca::wire::kAcknowledge;
  Bench b(c);
  b.send(5);
  run(b.context);
  EXPECT_EQ(b.far.arrivals.size(), 1U);
}

TEST(Impairment, without_selectors_iter_counts_the_packets_of_the_link) {
  ImpairmentConfig c;
  c.events.emplace_back();
  c.events[0].iter = 3;
  Bench b(c);
  for (std::uint32_t i = 10; i < 15; ++i) b.send(i);
  run(b.context);
  EXPECT_EQ(b.far.psns(), (std::vector<std::uint32_t>{10, 11, 13, 14}));
}

TEST(Impairment, corruption_flips_one_bit_of_this_packet_only) {
  Bench b(one(ImpairmentType::corrupt, 1));
  PacketPtr first = b.link.make_packet(), second = b.link.make_packet();
  fill(*first, b.context, 1, 2000);
  const sim::BufferRef shared = first->payload;
  const std::uint32_t frame_length = first->frame_length();
  std::vector<std::byte> before(frame_length);
  first->write_to(before);
  fill(*second, b.context, 2, 2000);
  second->payload = shared;
  b.link.send(std::move(first));
  b.link.send(std::move(second));
  run(b.context);
  ASSERT_EQ(b.far.arrivals.size(), 2U);
  EXPECT_EQ(verdict(*b.far.arrivals[0].second), ParseError::icrc);
  EXPECT_EQ(verdict(*b.far.arrivals[1].second), ParseError::none);
  std::vector<std::byte> after(frame_length);
  b.far.arrivals[0].second->write_to(after);
  int bits = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    bits += std::popcount(std::to_integer<unsigned>(before[i] ^ after[i]));
  EXPECT_EQ(bits, 1);
  for (unsigned i = 0; i < 2000; ++i) ASSERT_EQ(shared.data()[i], static_cast<std::byte>(i));
}

TEST(Impairment, every_corrupted_packet_fails_its_icrc) {
  ImpairmentConfig c;
  c.corrupt = 1;
  Bench b(c);
  for (std::uint32_t i = 0; i < 2000; ++i) b.send(i, i % 9);
  run(b.context);
  for (const auto& [t, p] : b.far.arrivals) EXPECT_EQ(verdict(*p), ParseError::icrc);
  EXPECT_EQ(b.count("corrupted"), 2000U);
}

TEST(Impairment, a_duplicate_is_a_second_whole_packet_right_behind) {
  Bench b(one(ImpairmentType::duplicate, 1));
  for (std::uint32_t i = 0; i < 3; ++i) b.send(i);
  run(b.context);
  EXPECT_EQ(b.far.psns(), (std::vector<std::uint32_t>{0, 1, 1, 2}));
  EXPECT_EQ(b.far.arrivals[2].first - b.far.arrivals[1].first, 80_ps * (8 + 58 + 100 + 4 + 12));
  for (const auto& [t, p] : b.far.arrivals) EXPECT_EQ(verdict(*p), ParseError::none);
}

TEST(Impairment, delay_holds_the_packets_behind_back) {
  ImpairmentConfig c = one(ImpairmentType::delay, 0);
  c.events[0].time = 1_us;
  Bench b(c);
  for (std::uint32_t i = 0; i < 3; ++i) b.send(i);
  run(b.context);
  EXPECT_EQ(b.far.psns(), (std::vector<std::uint32_t>{0, 1, 2}));
  const Picos expected = b.link.flight_time(158) + 1_us;
  for (const auto& [t, p] : b.far.arrivals) EXPECT_EQ(t, expected);
}

TEST(Impairment, reorder_lets_the_packets_behind_overtake) {
  ImpairmentConfig c = one(ImpairmentType::reorder, 0);
  c.events[0].time = 20_ns;
  Bench b(c);
  for (std::uint32_t i = 0; i < 3; ++i) b.send(i);
  run(b.context);
  EXPECT_EQ(b.far.psns(), (std::vector<std::uint32_t>{1, 0, 2}));  // 14.56 ns apart
  EXPECT_EQ(b.far.arrivals[1].first, b.link.flight_time(158) + 20_ns);
}

TEST(Impairment, relative_numbers_count_qps_in_their_order_and_psns_from_the_first) {
  ImpairmentConfig c;
  c.events.resize(2);
  c.events[0].relative = c.events[1].relative = true;
  c.events[0].qpn = 2;
  c.events[0].psn = 1;
  c.events[1].qpn = 1;
  c.events[1].psn = 3;
  Bench b(c);
  for (const std::uint32_t psn : {0xFFFFFEU, 0xFFFFFFU, 0U, 1U}) b.send(psn);  // the third is dropped
  b.send_to(0x78, 70);                                                         // and the first of the second QP
  b.send_to(0x78, 71);
  run(b.context);
  EXPECT_EQ(b.far.psns(), (std::vector<std::uint32_t>{0xFFFFFE, 0xFFFFFF, 1, 71}));
}

TEST(Impairment, answers_to_a_qp_have_psns_of_their_own) {
  for (const bool answers : {false, true}) {
    ImpairmentConfig c;
    c.events.emplace_back();
    c.events[0].relative = true;
    c.events[0].qpn = 1;
    c.events[0].psn = 2;
    if (answers) c.events[0].of = PacketStream::responses;
    Impairment i(c, sim::Rng(1, "test"));
    const auto lost = [&](std::uint8_t opcode, std::uint32_t psn) {
      return i.judge({true, 42, opcode, 0x77, psn}, Picos{0}).drop;
    };
    EXPECT_FALSE(lost(hca::wire::kSendOnly, 100));
    EXPECT_FALSE(lost(hca::wire::kAcknowledge, 500));
    EXPECT_EQ(lost(hca::wire::kSendOnly, 101), !answers);
    EXPECT_EQ(lost(hca::wire::kAcknowledge, 501), answers);
  }
}

TEST(Impairment, events_may_be_bound_to_a_time) {
  ImpairmentConfig c;
  c.events.emplace_back();
  c.events[0].after = 1_us;
  c.events[0].until = 2_us;
  c.events[0].count = 10;
  Impairment i(c, sim::Rng(1, "test"));
  std::vector<bool> lost;
  for (const Picos t : {999_ns, 1_us, 1999_ns, 2_us}) lost.push_back(i.judge({}, t).drop);
  EXPECT_EQ(lost, (std::vector<bool>{false, true, true, false}));
}

TEST(Impairment, contradictions_are_refused) {
  const auto mistakes = [](const ImpairmentConfig& c) {
    std::vector<std::string> out;
    const auto fail = [&](std::string_view field, const std::string&) { out.emplace_back(field); };
    for (const ImpairmentEventConfig& e : c.events) e.check(fail);
    c.check(fail);
    return out;
  };
  ImpairmentConfig c = one(ImpairmentType::drop, 5);
  EXPECT_TRUE(mistakes(c).empty());
  c.events.push_back(c.events[0]);
  c.events[1].type = ImpairmentType::duplicate;
  EXPECT_EQ(mistakes(c), (std::vector<std::string>{"events"}));
  c.events[1].iter = 2;  // the retransmission
  EXPECT_TRUE(mistakes(c).empty());
  c.events[0].time = 1_us;
  EXPECT_EQ(mistakes(c), (std::vector<std::string>{"time"}));
  c = one(ImpairmentType::drop, 0);
  c.events[0].qpn.reset();
  c.events[0].relative = true;
  c.events[0].after = c.events[0].until = 1_us;
  EXPECT_EQ(mistakes(c), (std::vector<std::string>{"relative", "psn", "until"}));
  c = {};
  c.drop = 1;
  c.delay = 0.5;
  EXPECT_EQ(mistakes(c), (std::vector<std::string>{"drop"}));
}

TEST(Impairment, rates_are_met_and_depend_on_the_seed_alone) {
  ImpairmentConfig c;
  c.drop = 0.1;
  c.duplicate = 0.05;
  c.reorder = 0.05;
  c.delay = 0.02;
  std::vector<std::vector<std::uint32_t>> runs;
  for (const std::uint64_t seed : {1U, 1U, 2U}) {
    auto b = std::make_unique<Bench>(c, seed);
    for (std::uint32_t i = 0; i < 10'000; ++i) b->send(i, 0);
    run(b->context);
    EXPECT_NEAR(static_cast<double>(b->count("dropped")), 1000, 100);
    EXPECT_NEAR(static_cast<double>(b->count("duplicated")), 500, 80);
    EXPECT_NEAR(static_cast<double>(b->count("delayed")), 200, 60);
    EXPECT_EQ(b->far.arrivals.size(), 10'000 - b->count("dropped") + b->count("duplicated"));
    runs.push_back(b->far.psns());
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

}  // namespace
}  // namespace fabric
