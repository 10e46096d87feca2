// SPDX-License-Identifier: Apache-2.0
// The software end of a trace: verbs calls on the lanes of their threads, occupancy of queues, states of QPs and threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/system/run_workload.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Picos;
using testing::ElementsAre;

/// Everything that the tests look at.
struct Seen {
  std::map<std::uint32_t, sim::trace::Track> tracks;
  std::vector<sim::trace::Span> spans;
  std::vector<sim::trace::Instant> instants;
  std::vector<sim::trace::Level> levels;
  std::vector<sim::trace::State> states;

  std::vector<sim::trace::Span> of(std::string_view point, int host = -1) const {
    std::vector<sim::trace::Span> found;
    for (const auto& s : spans)
      if (s.point->name == point && (host < 0 || tracks.at(s.track).host == host)) found.push_back(s);
    return found;
  }
  /// Values of the level on the lane `path`, in the order of recording, and that their times never fall.
  std::vector<std::int64_t> level(const std::string& path) const {
    std::vector<std::int64_t> values;
    Picos last{0};
    for (const auto& l : levels) {
      if (tracks.at(l.track).path != path) continue;
      EXPECT_GE(l.t, last);
      last = l.t;
      values.push_back(l.value);
    }
    return values;
  }
  std::vector<std::string> states_of(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& s : states)
      if (tracks.at(s.track).path == path) names.push_back(tracks.at(s.track).states.at(s.value));
    return names;
  }
};

class Recorder final : public sim::trace::Sink {
 public:
  explicit Recorder(Seen& out) : out_(out) {}
  using Sink::on;
  void on(const sim::trace::Track& t) override { out_.tracks[t.id] = t; }
  void on(const sim::trace::Span& s) override { out_.spans.push_back(s); }
  void on(const sim::trace::Instant& i) override { out_.instants.push_back(i); }
  void on(const sim::trace::Level& l) override { out_.levels.push_back(l); }
  void on(const sim::trace::State& s) override { out_.states.push_back(s); }
  void close(Picos) override {}

 private:
  Seen& out_;
};

std::uint64_t sum(const std::vector<sim::trace::Span>& spans, std::size_t arg) {
  std::uint64_t n = 0;
  for (const auto& s : spans) n += s.args[arg];
  return n;
}
std::string queue(const End& e, int host, const char* which) {
  return "host" + std::to_string(host) + ".verbs.qp" + std::to_string(e.qp->qp_num) + which;
}

struct VerbsTrace : testing::Test {
  VerbsTrace() { p.sinks.push_back(std::make_unique<Recorder>(seen)); }
  Seen seen;
  Pair p;
};

/// Sends of 100 bytes: a list of three (the last signaled), one more, and one for which there is no room.
void five_sends(End& e) {
  ibv_sge sge = e.sge(0, 100);
  ibv_send_wr wrs[3]{}, *bad = nullptr;
  for (int i = 0; i < 3; ++i) {
    wrs[i].wr_id = static_cast<std::uint64_t>(i);
    wrs[i].opcode = IBV_WR_SEND;
    wrs[i].sg_list = &sge;
    wrs[i].num_sge = 1;
    wrs[i].next = i < 2 ? &wrs[i + 1] : nullptr;
    wrs[i].send_flags = i == 2 ? unsigned{IBV_SEND_SIGNALED} : 0U;
  }
  ASSERT_EQ(ibv_post_send(e.qp, wrs, &bad), 0);
  ASSERT_EQ(e.send(3, 0, 100), 0);
}

TEST_F(VerbsTrace, PostsAndPollsAddUpAndCauseWhatFollows) {
  p.run(
      [](End& e) {
        five_sends(e);
        for (const ibv_wc& wc : e.wait(2)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      },
      [](End& e) {
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 100), 0);
        e.wait(4);
      });
  const auto posts = seen.of("verbs.post_send", 0);
  ASSERT_EQ(posts.size(), 2u);
  EXPECT_EQ(posts[0].args[1], 3u);
  EXPECT_EQ(posts[1].args[1], 1u);
  EXPECT_EQ(posts[0].msg, 1u);
  EXPECT_EQ(posts[1].msg, 4u) << "the fourth message";
  EXPECT_EQ(seen.tracks.at(posts[0].track).path, "host0.thread.client");
  EXPECT_EQ(sum(seen.of("verbs.post_recv", 1), 1), 4u);
  EXPECT_EQ(sum(seen.of("verbs.poll_cq", 0), 1), 2u);
  EXPECT_EQ(sum(seen.of("verbs.poll_cq", 1), 1), 4u);
  EXPECT_EQ(sum(seen.of("verbs.poll_cq"), 3), 0u) << "none failed";
  EXPECT_EQ(seen.of("verbs.poll_cq", 1).back().args[2], 4u) << "consumer index";
  std::set<std::uint64_t> flushed;  // the doorbells that left the core because of a post
  for (const auto& s : seen.of("cpu.wc_flush", 0))
    for (const auto& post : posts)
      if (s.parent == post.id && s.msg == post.msg) {
        flushed.insert(post.id);
        EXPECT_GE(s.start, post.start);
        EXPECT_LE(s.start, post.end);
      }
  EXPECT_EQ(flushed.size(), 2u);
}

TEST_F(VerbsTrace, ARefusedPostTellsItsErrno) {
  p.options[0].send_wr = 2;
  p.options[0].connect = false;  // nothing is taken in RESET
  p.run([](End& e) { EXPECT_EQ(e.send(1, 0, 8), ENOMEM); }, [](End&) {});
  const auto posts = seen.of("verbs.post_send", 0);
  ASSERT_EQ(posts.size(), 1u);
  EXPECT_EQ(posts[0].args[1], 0u);
  EXPECT_EQ(posts[0].args[2], static_cast<std::uint64_t>(ENOMEM));
  EXPECT_TRUE(posts[0].point->marked(posts[0].args));
}

TEST_F(VerbsTrace, OccupancyIsWhatIsPostedAndNotGivenBack) {
  std::string sq, rq, unseen;
  p.run(
      [&](End& e) {
        sq = queue(e, 0, ".sq");
        five_sends(e);
        e.wait(2);
      },
      [&](End& e) {
        rq = queue(e, 1, ".rq");
        unseen = "host1.hca.cq" + std::to_string(seen.of("verbs.create_cq", 1).at(0).args[0]) + ".unseen";
        for (std::uint64_t i = 0; i < 4; ++i) ASSERT_EQ(e.receive(i, 0, 100), 0);
        e.thread().sleep(200_us);
        e.wait(4);
      });
  EXPECT_THAT(seen.level(sq), ElementsAre(0, 3, 4, 1, 0));
  EXPECT_THAT(seen.level(rq), ElementsAre(0, 1, 2, 3, 4, 3, 2, 1, 0));
  EXPECT_THAT(seen.level(unseen), ElementsAre(0, 1, 2, 3, 4, 3, 2, 1, 0)) << "the server looks when all have come";
}

TEST_F(VerbsTrace, TheLevelsOfAResetQueuePairAreZero) {
  std::string sq, rq;
  p.options[0].timeout = 0;
  p.scenario.fabric.link.impairment.drop = 1;
  p.run(
      [&](End& e) {
        sq = queue(e, 0, ".sq"), rq = queue(e, 0, ".rq");
        ASSERT_EQ(e.send(1, 0, 8), 0);
        ASSERT_EQ(e.receive(1, 0, 8), 0);
        ibv_qp_attr a{};
        a.qp_state = IBV_QPS_RESET;
        ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
      },
      [](End&) {});
  EXPECT_THAT(seen.level(sq), ElementsAre(0, 1, 0));
  EXPECT_THAT(seen.level(rq), ElementsAre(0, 1, 0));
}

// What the device has written before it went can still be polled.
TEST_F(VerbsTrace, CqesOfADeviceThatIsGoneAreCountedUntilTheyArePolled) {
  for (HostConfig& h : p.scenario.hosts) h.kernel.device.hotplug_delay = 20_us;
  std::string unseen;
  p.run(
      [](End& e) {
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.send(i, 0, 8), 0);
        e.wait(2);
      },
      [&](End& e) {
        unseen = "host1.hca.cq" + std::to_string(seen.of("verbs.create_cq", 1).at(0).args[0]) + ".unseen";
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 8), 0);
        e.thread().sleep(200_us);
        Host& host = p.cluster->host(1);
        host.create_thread(host.create_process(), 1, "hand", [&] { host.remove_device(false); })
            .start(cpu::current().now());
        e.thread().sleep(50_ms);
        EXPECT_EQ(seen.level(unseen), (std::vector<std::int64_t>{0, 1, 2}));
        ibv_wc wc[4];
        EXPECT_EQ(ibv_poll_cq(e.cq, 4, wc), 2);
      });
  EXPECT_THAT(seen.level(unseen), ElementsAre(0, 1, 2, 1, 0));
}

TEST_F(VerbsTrace, AnSrqCountsItsWqes) {
  std::uint64_t srqn = 0;
  p.run([](End&) {},
        [&](End& e) {
          ibv_srq_init_attr init{nullptr, {8, 1, 0}};
          ibv_srq* srq = ibv_create_srq(e.pd, &init);
          ASSERT_NE(srq, nullptr);
          ibv_sge sge = e.sge(0, 64);
          ibv_recv_wr second{2, nullptr, &sge, 1}, first{1, &second, &sge, 1}, *bad = nullptr;
          ASSERT_EQ(ibv_post_srq_recv(srq, &first, &bad), 0);
          ASSERT_EQ(ibv_destroy_srq(srq), 0);
          srqn = seen.of("verbs.create_srq").at(0).args[0];
        });
  ASSERT_EQ(seen.of("verbs.post_srq_recv").size(), 1u);
  EXPECT_EQ(seen.of("verbs.post_srq_recv")[0].args[0], srqn);
  EXPECT_THAT(seen.level("host1.verbs.srq" + std::to_string(srqn)), ElementsAre(0, 2, 0));
}

TEST_F(VerbsTrace, QueuePairsHaveStates) {
  std::string state;
  p.options[0].rnr_retry = 0;
  p.run(
      [&](End& e) {
        state = "host0.hca.qp" + std::to_string(e.qp->qp_num) + ".state";
        ASSERT_EQ(e.send(1, 0, 8), 0);
        EXPECT_EQ(e.statuses(1).at(0), IBV_WC_RNR_RETRY_EXC_ERR);
        e.meet("failed");
      },
      [](End& e) { e.meet("failed"); });
  EXPECT_THAT(seen.states_of(state), ElementsAre("RESET", "INIT", "RTR", "RTS", "ERR"));
  const auto changes = seen.of("verbs.modify_qp", 0);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].args[2], IBV_QPS_INIT);
  EXPECT_EQ(changes[2].args[2], IBV_QPS_RTS);
  const auto polls = seen.of("verbs.poll_cq", 0);
  ASSERT_EQ(polls.size(), 1u);
  EXPECT_EQ(polls[0].args[3], 1u) << "one completion with an error";
  EXPECT_EQ(polls[0].msg, 1u);
}

TEST_F(VerbsTrace, ControlCallsCauseTheCommandsOfTheDevice) {
  p.run([](End&) {}, [](End&) {});
  std::map<std::uint64_t, const sim::trace::Span*> by_id;
  for (const auto& s : seen.spans) by_id[s.id] = &s;
  int found = 0;
  for (const auto& command : seen.of("kernel.command", 0)) {
    const auto system_call = by_id.find(command.parent);
    if (system_call == by_id.end() || system_call->second->point->name != std::string_view("kernel.uverbs_command"))
      continue;
    const auto call = by_id.find(system_call->second->parent);
    ASSERT_NE(call, by_id.end());
    if (call->second->point->name == std::string_view("verbs.create_qp")) ++found;
    EXPECT_LE(call->second->start, command.start);
    EXPECT_GE(call->second->end, command.end);
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(seen.of("verbs.reg_mr").size(), 2u);
  EXPECT_EQ(seen.of("verbs.open_device").size(), 2u);
}

TEST_F(VerbsTrace, AThreadThatSleepsIsAsleepThatLong) {
  Picos from{0}, until{0};
  p.run(
      [&](End& e) {
        e.thread().compute(1_us);  // away from the end of the exchange
        from = e.thread().now();
        e.thread().sleep(70_us);
        until = e.thread().now();
      },
      [](End&) {});
  EXPECT_GE(until, from + 70_us);
  std::vector<std::pair<std::string, Picos>> changes;
  for (const auto& s : seen.states)
    if (const auto& track = seen.tracks.at(s.track); track.path == "host0.thread.client.state" && s.t >= from)
      changes.emplace_back(track.states.at(s.value), s.t);
  ASSERT_GE(changes.size(), 3u);
  EXPECT_EQ(changes[0], std::make_pair(std::string("asleep"), from));
  EXPECT_EQ(changes[1], std::make_pair(std::string("running"), until));
  EXPECT_EQ(changes.back().first, "ended");
}

TEST_F(VerbsTrace, LanesOfAHostBeginWithIt) {
  p.run([](End& e) { EXPECT_NE(ibv_create_comp_channel(e.context), nullptr); }, [](End&) {});
  EXPECT_FALSE(seen.tracks.empty());
  for (const auto& [id, track] : seen.tracks) {
    if (track.host < 0) continue;
    EXPECT_TRUE(track.path.starts_with("host" + std::to_string(track.host) + ".")) << track.path;
  }
}

// A kernel module's calls are on the lane of the thread that makes them.
TEST(KernelVerbsTrace, PostsAndPollsAddUp) {
  ScenarioConfig s = one_workload(Op::send_lat, 64, 16);
  s.workloads[0].consumer = ConsumerKind::kernel;
  Simulation run(s);
  Seen seen;
  run.context.tracer.add_sink(std::make_unique<Recorder>(seen));
  run.context.tracer.open({});
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  EXPECT_EQ(sum(seen.of("kernel.post_send"), 1), 32u);
  std::uint64_t posted = sum(seen.of("kernel.post_recv"), 1);
  EXPECT_GE(posted, 32u);
  EXPECT_GE(sum(seen.of("kernel.poll_cq"), 1), 64u) << "each message completes on both sides";
  std::map<std::string, std::int64_t> least, last, most;
  for (const auto& l : seen.levels) {
    const std::string& path = seen.tracks.at(l.track).path;
    least[path] = std::min(least[path], l.value);
    most[path] = std::max(most[path], l.value);
    last[path] = l.value;
  }
  int queues = 0;
  for (const auto& [path, value] : last) {
    if (!path.ends_with(".sq") && !path.ends_with(".rq") && !path.ends_with(".unseen")) continue;
    if (path.find(".kernel.qp") != std::string::npos) ++queues;
    EXPECT_EQ(value, 0) << path;
    EXPECT_GE(least[path], 0) << path;
  }
  EXPECT_EQ(queues, 4);
  for (const sim::Journey& j : run.journeys.all) {
    EXPECT_NE(j.poster.qpn, 0u);
    EXPECT_EQ(j.poster.host, j.id % 2 == 1 ? 0 : 1) << "the client begins";
  }
}

}  // namespace
}  // namespace sys::test
