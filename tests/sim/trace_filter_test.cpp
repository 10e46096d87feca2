// SPDX-License-Identifier: Apache-2.0
// What filters and the ring let through.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "made_up_run.h"
#include "sim/trace/filter.h"
#include "sim/trace/ring.h"

namespace sim::trace {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Point kFailure{"test.failure", Category::hca, Kind::instant, {"syndrome"}, Mark::error, 0};

constexpr std::byte kThreeBytes[3]{};

// Everything that arrives behind a filter.
struct Seen {
  std::vector<Span> spans;
  std::vector<Instant> instants;
  std::vector<Level> levels;
  std::vector<State> states;
  std::vector<MsgId> packets, messages;
  std::vector<std::uint64_t> spans_with_bytes;
  std::set<std::int32_t> hosts;
  bool closed = false;
};
struct SeenSink final : Sink {
  explicit SeenSink(Seen& s) : seen(s) {}
  void on(const Track& t) override { seen.hosts.insert(t.host); }
  void on(const Span& s) override { seen.spans.push_back(s); }
  void on(const Instant& i) override { seen.instants.push_back(i); }
  void on(const Level& l) override { seen.levels.push_back(l); }
  void on(const State& s) override { seen.states.push_back(s); }
  void on(const PacketRecord& p) override {
    EXPECT_EQ(p.bytes.size(), 70u);
    seen.packets.push_back(p.msg);
  }
  void on(const BytesRecord& b) override {
    EXPECT_EQ(b.bytes.size(), 3u);
    seen.spans_with_bytes.push_back(b.span);
  }
  void on(const Journey& j) override { seen.messages.push_back(j.id); }
  void close(Picos) override { seen.closed = true; }
  Seen& seen;
};

struct FilterTest : testing::Test {
  std::vector<std::unique_ptr<Sink>> sink() {
    std::vector<std::unique_ptr<Sink>> out;
    out.push_back(std::make_unique<SeenSink>(seen));
    return out;
  }
  void run(const Filter& f, int n) {
    MadeUpRun r(make_filter(f, sink()));
    r.messages(n);
    r.close(n);
    EXPECT_TRUE(seen.closed);
  }
  std::set<MsgId> messages_of_spans() const {
    std::set<MsgId> out;
    for (const Span& s : seen.spans) out.insert(s.msg);
    return out;
  }
  Seen seen;
};

TEST_F(FilterTest, HostsKeepTheirTracks) {
  Filter f;
  f.hosts = {1};
  run(f, 4);
  EXPECT_THAT(seen.spans, IsEmpty());
  EXPECT_THAT(seen.levels, IsEmpty());
  EXPECT_EQ(seen.states.size(), 4u);
  EXPECT_THAT(seen.hosts, ElementsAre(1));
}

TEST_F(FilterTest, MessagesAreKeptWhole) {
  Filter f;
  f.messages = {{2, 2}, {4, 5}};
  run(f, 6);
  EXPECT_THAT(seen.messages, ElementsAre(2, 4, 5));
  EXPECT_THAT(messages_of_spans(), ElementsAre(2, 4, 5));
  EXPECT_EQ(seen.spans.size(), 3u * 5);
  EXPECT_THAT(seen.packets, ElementsAre(2, 4, 5));
  EXPECT_EQ(seen.levels.size(), 6u) << "levels belong to no message";
}

TEST_F(FilterTest, AWindowKeepsWhatOverlapsItAndWhatHeldBefore) {
  Filter f;
  f.from = Picos{3 * 1'000'333LL};
  f.to = f.from + 10_ps;
  run(f, 9);
  EXPECT_THAT(messages_of_spans(), testing::Contains(4));
  EXPECT_THAT(messages_of_spans(), testing::Not(testing::Contains(5)));
  ASSERT_EQ(seen.levels.size(), 2u);
  EXPECT_EQ(seen.levels[0].t, f.from);
  EXPECT_EQ(seen.levels[0].value, 2) << "the level when the window begins";
  EXPECT_EQ(seen.levels[1].value, 3);
}

TEST_F(FilterTest, AQueuePairBringsTheEarlierRecordsOfItsMessages) {
  Filter f;
  f.qps = {{0, 9}};
  MadeUpRun r(make_filter(f, sink()));
  const auto message = [&](MsgId id, std::uint64_t qpn) {
    // Before anybody names the queue pair.
    const auto early = r.dma->span(kSub, {id, 0}, 1_ps, 1_ps, 2_ps);
    r.dma->bytes(early, id, 2_ps, kThreeBytes);
    r.app->span(kWork, {id, 0}, 1_ps, 2_ps, 3_ps, qpn, 64);
    Journey j;
    j.id = id;
    r.context.tracer.emit(j);
  };
  message(1, 9), message(2, 8);
  r.app->instant(kBell, {}, 5_ps, 9);
  r.app->instant(kBell, {}, 6_ps, 8);
  r.close(0);
  ASSERT_EQ(seen.spans.size(), 2u);
  EXPECT_THAT(messages_of_spans(), ElementsAre(1));
  EXPECT_THAT(seen.spans_with_bytes, ElementsAre(seen.spans[0].id));
  EXPECT_THAT(seen.messages, ElementsAre(1));
  EXPECT_EQ(seen.instants.size(), 1u);
}

TEST_F(FilterTest, TheQueuePairOfAnotherHostIsAnother) {
  Filter f;
  f.qps = {{1, 7}};
  run(f, 3);
  EXPECT_THAT(seen.spans, IsEmpty());
  EXPECT_THAT(seen.messages, IsEmpty());
}

TEST_F(FilterTest, TheRingKeepsThePieceBeforeTheFirstError) {
  MadeUpRun r(make_ring(2'500'000_ps, Trigger::error, sink()));
  r.messages(10);
  r.app->instant(kFailure, {10, 0}, Picos{10 * 1'000'333LL}, 0);
  EXPECT_THAT(seen.instants, IsEmpty()) << "a syndrome of zero is no error";
  r.app->instant(kFailure, {10, 0}, Picos{10 * 1'000'333LL}, 5);
  const std::size_t kept = seen.spans.size();
  EXPECT_THAT(messages_of_spans(), testing::Contains(10));
  EXPECT_THAT(messages_of_spans(), testing::Not(testing::Contains(2)));
  const State& first = seen.states.front();
  const std::uint64_t latest = std::min<std::uint64_t>(9, static_cast<std::uint64_t>(first.t.n) / 1'000'333);
  EXPECT_EQ(first.value, latest % 2) << "the state that held when it begins";
  r.messages(5);
  r.close(20);
  EXPECT_EQ(seen.spans.size(), kept) << "nothing after the error";
}

TEST_F(FilterTest, TheRingKeepsBytesWithTheirSpans) {
  MadeUpRun r(make_ring(100_ps, Trigger::end, sink()));
  std::uint64_t last = 0;
  for (const Picos t : {0_ps, 1'000_ps}) {
    last = r.dma->span(kSub, {}, t, t, t + 10_ps);
    r.dma->bytes(last, 0, t + 10_ps, kThreeBytes);
  }
  r.close(0);
  EXPECT_THAT(seen.spans_with_bytes, ElementsAre(last));
}

TEST_F(FilterTest, TheRingGivesTheEndOfARunWithoutErrors) {
  MadeUpRun r(make_ring(1'500'000_ps, Trigger::end, sink()));
  r.messages(100);
  EXPECT_THAT(seen.spans, IsEmpty());
  r.close(100);
  EXPECT_THAT(messages_of_spans(), testing::Contains(100));
  EXPECT_LE(messages_of_spans().size(), 6u);
  EXPECT_TRUE(seen.closed);
}

constexpr Point kCall{"test.call", Category::kernel, Kind::span, {}};

// A program's call at 10 us, then a span of hardware each microsecond.
struct Retries : FilterTest {
  void run(Trigger trigger, bool fails, int n = 100) {
    MadeUpRun r(make_ring(3'000'000_ps, trigger, sink()));
    const auto span = [&](const Point& p, Picos t) { r.app->span(p, {1, 0}, t, t, t + 1_ps, 7); };
    for (int i = 0; i < 10; ++i) span(kCall, Picos{i * 1'000'000LL});
    r.mode->state(kMode, 5'000'000_ps, 1);
    for (int i = 10; i < n; ++i) {
      span(kWork, Picos{i * 1'000'000LL});
      r.mode->state(kMode, Picos{i * 1'000'000LL}, i % 2 == 0 ? 0 : 1);
    }
    if (fails) r.app->instant(kFailure, {1, 0}, Picos{n * 1'000'000LL}, 5);
    Journey j;
    j.id = 1, j.start = 4_us, j.last = Picos{n * 1'000'000LL + 1};
    r.context.tracer.emit(j);
    j.id = 2, j.start = j.last;
    r.context.tracer.emit(j);
    r.close(n);
  }
  std::vector<std::int64_t> starts() const {
    std::vector<std::int64_t> out;
    for (const Span& s : seen.spans) out.push_back(s.start.n / 1'000'000);
    return out;
  }
};

TEST_F(Retries, DoNotMoveThePieceOfADeadlock) {
  run(Trigger::error, false);
  EXPECT_THAT(starts(), ElementsAre(6, 7, 8, 9, 10, 11, 12));
  ASSERT_EQ(seen.states.size(), 4u);
  EXPECT_EQ(seen.states[0].t, 6_us);
  EXPECT_EQ(seen.states[0].value, 1u) << "what held when the piece begins, not what came later";
  EXPECT_THAT(seen.messages, ElementsAre(1)) << "it lived then";
}

TEST_F(Retries, EndInTheErrorWhenThereIsOne) {
  run(Trigger::error, true);
  EXPECT_THAT(starts(), ElementsAre(97, 98, 99));
  EXPECT_EQ(seen.states[0].t, 97_us);
  EXPECT_EQ(seen.states[0].value, 0u) << "of 96";
  EXPECT_EQ(seen.instants.size(), 1u);
  EXPECT_THAT(seen.messages, ElementsAre(1)) << "its end is told after the error";
}

TEST_F(Retries, EndWithTheLastOneOrInNoErrorAsTheTriggerSays) {
  run(Trigger::end, true);
  EXPECT_THAT(starts(), ElementsAre(97, 98, 99));
  seen = {};
  run(Trigger::deadlock, true);
  EXPECT_THAT(starts(), ElementsAre(6, 7, 8, 9, 10, 11, 12));
  EXPECT_THAT(seen.instants, IsEmpty());
}

}  // namespace
}  // namespace sim::trace
