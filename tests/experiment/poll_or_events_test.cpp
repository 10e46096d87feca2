// SPDX-License-Identifier: Apache-2.0
// The facts of docs/poll_or_events.md, and the mixes of S37: who sleeps pays a fixed time per message and the stages of the
// event; who polls pays the whole run.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/experiment/child_result.h"

namespace experiment {
namespace {

const std::filesystem::path kEvents = std::filesystem::path(RDMASIM_SOURCE_DIR) / "scenarios" / "events";
const std::set<std::string> kEventStages{"eqe_write", "msix",    "irq_entry",     "irq_handler",
                                         "tasklet",   "wake_up", "syscall_return"};

struct Load {
  explicit Load(const sim::Json& j) {
    const auto number = [&](const std::string& at) { return j.at(at)->number(); };
    const double n = number("/workloads/0/messages");
    for (const char* side : {"client", "server"}) {
      const std::string at = std::string("/workloads/0/cpu_ns/") + side;
      EXPECT_DOUBLE_EQ(number(at + "/on_cpu") + number(at + "/asleep") + number(at + "/interrupted"),
                       number(at + "/span"));
    }
    on_cpu = number("/workloads/0/cpu_ns/server/on_cpu") / n;
    asleep = number("/workloads/0/cpu_ns/server/asleep") / n;
    kernel = number("/cores/host1.cpu0/kernel_ns") / n;
    p50_ps = static_cast<std::int64_t>(number("/workloads/0/median_message/latency_ps"));
    for (const sim::Json& stage : j.at("/workloads/0/breakdown_ns")->items()) {
      stages[stage.find("stage")->string()] = static_cast<std::int64_t>(stage.find("p50_ps")->number());
      sum_ps += static_cast<std::int64_t>(stage.find("p50_ps")->number());
    }
  }
  double on_cpu = 0, asleep = 0, kernel = 0;  ///< of the receiver, ns per message
  std::int64_t p50_ps = 0, sum_ps = 0;
  std::map<std::string, std::int64_t> stages;  ///< of the median message, ps
};

Load at_rate(const char* completion, int rate) {
  return Load(result_of(kEvents / "poll_or_events.json", {std::string("workloads.0.completion=") + completion,
                                                          "workloads.0.rate_limit=" + std::to_string(rate)}));
}

TEST(PollOrEvents, APollerTakesItsCoreForTheWholeRun) {
  for (const int rate : {5'000, 50'000, 200'000}) {
    const Load l = at_rate("poll", rate);
    EXPECT_EQ(l.asleep, 0);
    EXPECT_EQ(l.kernel, 0);
    EXPECT_NEAR(l.on_cpu * rate, 1e9, 1e9 / 500) << "one over the rate";
  }
}

TEST(PollOrEvents, AnEventTakesTheSameTimeAtEveryRateUntilEventsMerge) {
  const Load slow = at_rate("event", 5'000);
  for (const int rate : {20'000, 100'000}) {
    const Load l = at_rate("event", rate);
    EXPECT_NEAR(l.on_cpu, slow.on_cpu, slow.on_cpu / 100);
    EXPECT_NEAR(l.kernel, slow.kernel, slow.kernel / 100);
    EXPECT_EQ(l.p50_ps, slow.p50_ps);
  }
  const Load merged = at_rate("event", 400'000);
  EXPECT_LT(merged.on_cpu + merged.kernel, (slow.on_cpu + slow.kernel) * 0.6) << "one event for several messages";
}

TEST(PollOrEvents, LatencyDiffersByTheStagesOfTheEvent) {
  const Load poll = at_rate("poll", 20'000), event = at_rate("event", 20'000);
  EXPECT_EQ(poll.sum_ps, poll.p50_ps);
  EXPECT_EQ(event.sum_ps, event.p50_ps);
  std::int64_t of_event = 0;
  for (const auto& [stage, t] : event.stages) {
    if (kEventStages.contains(stage)) {
      of_event += t;
      EXPECT_EQ(poll.stages.at(stage), 0) << stage;
    } else if (stage != "poll") {
      EXPECT_EQ(poll.stages.at(stage), t) << stage;
    }
  }
  EXPECT_GT(of_event, 4'000'000);
  EXPECT_EQ(event.p50_ps - poll.p50_ps, of_event + event.stages.at("poll") - poll.stages.at("poll"));
  EXPECT_LT(std::abs(event.stages.at("poll") - poll.stages.at("poll")), 50'000) << "one turn of the polling loop";
}

TEST(PollOrEvents, TheCostsCrossAtOneOverTheTimeOfAnEvent) {
  const Load event = at_rate("event", 5'000);
  const double crossing = 1e9 / (event.on_cpu + event.kernel);
  EXPECT_GT(crossing, 300'000);
  for (const double rate : {crossing / 10, crossing / 4}) {
    const Load e = at_rate("event", static_cast<int>(rate)), p = at_rate("poll", static_cast<int>(rate));
    EXPECT_LT(e.on_cpu + e.kernel, p.on_cpu) << rate;
    EXPECT_NEAR((e.on_cpu + e.kernel) / p.on_cpu, rate / crossing, rate / crossing / 20);
  }
}

TEST(WhoSleeps, EachDirectionPaysForItsReceiver_S37) {
  const auto half = [](const char* file) {
    const sim::Json j = result_of(kEvents / file);
    const Load l(j);  // its parts sum
    EXPECT_EQ(l.sum_ps, l.p50_ps) << file;
    return j.at("/workloads/0/half_round_trip_ns/p50")->number();
  };
  const double nobody = half("client_polls_server_polls.json"), server = half("client_polls_server_sleeps.json"),
               client = half("client_sleeps_server_polls.json"), both = half("client_sleeps_server_sleeps.json");
  EXPECT_GT(server, nobody + 1500);
  EXPECT_GT(client, nobody + 1500);
  EXPECT_NEAR(both - nobody, (server - nobody) + (client - nobody), 400)
      << "half a round trip has half of each direction";
}

}  // namespace
}  // namespace experiment
