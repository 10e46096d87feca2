// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fabric/trace_points.h"
#include "fixture.h"

namespace fabric {
namespace {

using namespace sim::literals;
using sim::Picos;

struct Bench {
  explicit Bench(const LinkConfig& config = {}) : link("link", context, config, "fabric.a_to_b"), far("far", context) {
    link.out(far);
  }
  void send(std::uint32_t psn, std::uint32_t length) {
    PacketPtr p = link.make_packet();
    fill(*p, context, psn, length);
    link.send(std::move(p));
  }
  sim::Context context;
  Link link;
  Receiver far;
};

// 14 + 20 + 8 + 12 + 4 bytes around the payload.
constexpr std::uint32_t kHeaders = 58;

TEST(Link, idle_latency_is_serialisation_plus_propagation_plus_phy) {
  LinkConfig config;
  config.rate = 100_Gbps;
  config.propagation = 15_ns;
  config.phy_latency = 62_ns;
  Bench b(config);
  b.send(1, 4096);
  run(b.context);
  ASSERT_EQ(b.far.arrivals.size(), 1U);
  // (8 + 58 + 4096 + 4) bytes at 80 ps each.
  const Picos expected = 80_ps * (8 + kHeaders + 4096 + 4) + 77_ns;
  EXPECT_EQ(b.far.arrivals[0].first, expected);
  EXPECT_EQ(b.link.flight_time(kHeaders + 4096), expected);
}

// Down from 10 us to 20 us: what is on the wire at any time of that is lost, and both changes are told.
TEST(Link, loses_what_is_on_the_wire_while_it_is_down) {
  struct Port : Receiver {
    using Receiver::Receiver;
    void link_state(bool up) override { changes.emplace_back(context.now(), up); }
    std::vector<std::pair<Picos, bool>> changes;
  };
  LinkConfig config;
  config.phy_latency = 1_us;
  config.down = {{10_us, 10_us}, {30_us, 1_us}};
  sim::Context context;
  Link link("link", context, config, "fabric.a_to_b");
  Port far("far", context);
  link.out(far);
  const auto send = [&](Picos t, std::uint32_t psn) {
    while (context.scheduler.next_time() < t) context.scheduler.run_one(t);
    context.scheduler.advance_to(t);
    PacketPtr p = link.make_packet();
    fill(*p, context, psn, 64);
    link.send(std::move(p));
  };
  const Picos flight = link.flight_time(kHeaders + 64);
  send(10_us - flight, 1);         // its last bit arrives as the link goes down
  send(10_us - flight + 1_us, 2);  // in flight
  send(15_us, 3);
  send(20_us - 1_ps, 4);
  send(21_us, 5);
  run(context);
  EXPECT_EQ(far.psns(), (std::vector<std::uint32_t>{1, 5}));
  EXPECT_EQ(far.changes,
            (std::vector<std::pair<Picos, bool>>{{10_us, false}, {20_us, true}, {30_us, false}, {31_us, true}}));
  EXPECT_EQ(context.stats.counter("fabric.a_to_b.lost_while_down").value, 3U);
}

TEST(Link, short_frames_take_the_time_of_the_minimum_frame) {
  LinkConfig config;
  config.propagation = config.phy_latency = 0_ps;
  Bench b(config);
  PacketPtr p = b.link.make_packet();
  p->header_length = 20;
  p->header.fill(std::byte{0});
  b.link.send(std::move(p));
  run(b.context);
  EXPECT_EQ(b.far.arrivals.at(0).first, 80_ps * (8 + 64));
}

TEST(Link, back_to_back_frames_are_a_gap_apart_and_in_order) {
  Bench b;
  for (std::uint32_t i = 0; i < 5; ++i) b.send(i, 100);
  EXPECT_EQ(b.link.ready_at(), 80_ps * 5 * (8 + kHeaders + 100 + 4 + 12));
  EXPECT_EQ(b.link.queued_bytes(), 4U * (kHeaders + 100));
  run(b.context);
  ASSERT_EQ(b.far.psns(), (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  for (std::size_t i = 1; i < 5; ++i)
    EXPECT_EQ(b.far.arrivals[i].first - b.far.arrivals[i - 1].first, 80_ps * (8 + kHeaders + 100 + 4 + 12));
  EXPECT_EQ(b.link.queued_bytes(), 0U);
}

TEST(Link, queued_bytes_fall_when_a_first_bit_leaves_not_when_it_arrives) {
  LinkConfig config;
  config.propagation = 10_us;
  Bench b(config);
  b.send(0, 1000);
  b.send(1, 1000);
  const Picos second_start = 80_ps * (8 + kHeaders + 1000 + 4 + 12);
  b.context.scheduler.advance_to(second_start - 1_ps);
  EXPECT_EQ(b.link.queued_bytes(), kHeaders + 1000U);
  b.context.scheduler.advance_to(second_start);
  EXPECT_EQ(b.link.queued_bytes(), 0U);
}

TEST(Link, a_busy_period_is_exact_at_rates_that_do_not_divide_a_picosecond) {
  LinkConfig config;
  config.rate = sim::BitRate{56'000'000'000};  // 142.857… ps per byte
  config.propagation = config.phy_latency = 0_ps;
  Bench b(config);
  constexpr std::int64_t kFrames = 7000, kBytes = 8 + kHeaders + 13 + 3 + 4 + 12;
  for (std::uint32_t i = 0; i < kFrames; ++i) b.send(i, 13);
  EXPECT_EQ(b.link.ready_at().n, kFrames * kBytes * 8'000 / 56);
  run(b.context);
  // Idle again: the next frame starts without a remainder.
  const Picos t = b.link.ready_at() + 5_ps;
  b.context.scheduler.advance_to(t);
  b.send(9, 13);
  run(b.context);
  EXPECT_EQ(b.far.arrivals.back().first - t, b.link.flight_time(kHeaders + 13 + 3));
}

TEST(Link, one_event_per_packet) {
  Bench b;
  for (std::uint32_t i = 0; i < 1000; ++i) b.send(i, 64);
  EXPECT_EQ(b.context.scheduler.pending(), 1U);
  run(b.context);
  EXPECT_EQ(b.context.scheduler.executed(), 1000U);
}

TEST(Link, statistics_count_packets_bytes_and_busy_time) {
  Bench b;
  b.send(0, 100);
  b.send(1, 200);
  run(b.context);
  EXPECT_EQ(b.context.stats.counter("fabric.a_to_b.packets").value, 2U);
  EXPECT_EQ(b.context.stats.counter("fabric.a_to_b.bytes").value, 2U * kHeaders + 300);
  EXPECT_EQ(b.context.stats.busy("fabric.a_to_b").busy, 80_ps * (2 * (8 + kHeaders + 4 + 12) + 300));
}

TEST(Link, packets_return_to_their_pool) {
  Bench b;
  for (std::uint32_t i = 0; i < 10; ++i) b.send(i, 100);
  run(b.context);
  EXPECT_EQ(b.context.pools.of<Packet>("packet").live(), 10U);
  b.far.arrivals.clear();
  EXPECT_EQ(b.context.pools.of<Packet>("packet").live(), 0U);
  EXPECT_EQ(b.context.buffers.live(), 0U);
}

struct Recorder : sim::trace::Sink {
  struct Frame {
    bool transmit;
    Picos t;
    std::vector<std::byte> bytes;
  };
  explicit Recorder(std::vector<sim::trace::Span>& s, std::vector<Frame>& f,
                    std::vector<std::pair<Picos, std::int64_t>>& l, std::vector<std::pair<Picos, std::int64_t>>& c)
      : spans(s), frames(f), levels(l), carried(c) {}
  void on(const sim::trace::Span& s) override { spans.push_back(s); }
  void on(const sim::trace::Level& l) override {
    (l.point == &points::queue ? levels : carried).emplace_back(l.t, l.value);
  }
  void on(const sim::trace::PacketRecord& p) override {
    frames.push_back({p.transmit, p.t, {p.bytes.begin(), p.bytes.end()}});
  }
  void close(Picos) override {}
  using Sink::on;
  std::vector<sim::trace::Span>& spans;
  std::vector<Frame>& frames;
  std::vector<std::pair<Picos, std::int64_t>>& levels;
  std::vector<std::pair<Picos, std::int64_t>>& carried;
};

TEST(Link, traces_the_wire_the_frames_and_the_queue) {
  std::vector<sim::trace::Span> spans;
  std::vector<Recorder::Frame> frames;
  std::vector<std::pair<Picos, std::int64_t>> levels, carried;
  Bench b;
  b.context.tracer.add_sink(std::make_unique<Recorder>(spans, frames, levels, carried));
  b.context.tracer.open({});
  b.send(7, 100);
  b.send(8, 100);
  run(b.context);
  const Picos slot = 80_ps * (8 + kHeaders + 100 + 4 + 12);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[1].enqueued, 0_ps);
  EXPECT_EQ(spans[1].start, slot);
  EXPECT_EQ(spans[1].end, slot + b.link.flight_time(kHeaders + 100));
  EXPECT_EQ(spans[1].args, (std::array<std::uint64_t, 4>{0x77, 8, hca::wire::kSendOnly, kHeaders + 100}));
  EXPECT_EQ(b.far.arrivals[1].second->cause.parent, spans[1].id);
  ASSERT_EQ(frames.size(), 4U);
  EXPECT_TRUE(frames[0].transmit && frames[1].transmit && !frames[2].transmit && !frames[3].transmit);
  EXPECT_EQ(frames[1].t, spans[1].start);
  EXPECT_EQ(frames[3].t, spans[1].end);
  EXPECT_EQ(frames[1].bytes, frames[3].bytes);
  EXPECT_EQ(frames[1].bytes.size(), kHeaders + 100U);
  const std::vector<std::pair<Picos, std::int64_t>> expected{{0_ps, kHeaders + 100}, {slot, 0}};
  EXPECT_EQ(levels, expected);
  const Picos last_bit = 80_ps * (8 + kHeaders + 100 + 4);
  EXPECT_EQ(carried, (std::vector<std::pair<Picos, std::int64_t>>{{last_bit, kHeaders + 100},
                                                                  {slot + last_bit, 2 * (kHeaders + 100)}}));
}

}  // namespace
}  // namespace fabric
