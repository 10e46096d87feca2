// SPDX-License-Identifier: Apache-2.0
// A run over a machine of one program: result JSON, verdicts, exit codes, utilisation, determinism, table.
#include "experiment/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "experiment/progress.h"
#include "experiment/table.h"
#include "sim/check.h"

namespace {

using namespace sim::literals;
using experiment::Result;
using experiment::Verdict;
using sim::Json;
using testing::HasSubstr;

/// One program that sends `messages` messages of 4096 bytes; each takes 300, 200 and (number % 10) * 1 ns.
class TinyMachine : public experiment::Machine {
 public:
  struct Plan {
    int messages = 100;
    sim::Picos tear_down{0};
    int park_after = -1, interrupt_after = -1, bug_after = -1;
  };
  TinyMachine(sim::Context& context, sim::EngineMode mode, Plan plan)
      : context_(context), plan_(plan), engine_("engine", context.scheduler, mode) {}

  sim::Engine& engine() override { return engine_; }
  std::uint64_t expected_messages() const override { return static_cast<std::uint64_t>(plan_.messages); }
  std::vector<std::string> hosts() const override { return {"a", "b"}; }
  std::size_t workloads() const override { return 1; }
  void on_measurement(std::function<void()> begin) override { begin_ = std::move(begin); }
  void start() override {
    thread_ = &engine_.spawn("sender", 0, [this] { send(); });
    thread_->start(0_ps);
  }
  bool finished() const override { return thread_->finished(); }
  void collect(Result& r) override {
    experiment::WorkloadResult w;
    w.name = "ping";
    w.op = "send_lat";
    w.wc_status["SUCCESS"] = context_.stats.counter("a.sent").value;
    r.workloads.push_back(w);
    r.summary.emplace_back("hosts", "a, b");
    if (!finished()) r.outstanding.emplace_back("sender waits for nothing");
  }

 private:
  void send() {
    thread_->charge(1_us);  // set-up
    context_.stats.busy("a.link").add(1_us);
    thread_->sync();
    begin_();
    for (int i = 0; i < plan_.messages; ++i) {
      const sim::MsgId id = context_.journeys.begin(thread_->now(), 0, 0, 4096);
      step(id, sim::Stage::cpu_post, 300_ns);
      context_.stats.busy("a.link").add(200_ns);
      step(id, sim::Stage::wire, 200_ns);
      thread_->charge(sim::Picos{(i % 10) * 1000 + 1});
      thread_->sync();
      context_.journeys.finish(id, sim::Stage::poll, thread_->now());
      context_.stats.counter("a.sent").add();
      if (i == plan_.park_after) thread_->park();
      if (i == plan_.interrupt_after) std::raise(SIGINT);
      if (i == plan_.bug_after) SIM_CHECK(false, "made up");
    }
    thread_->charge(plan_.tear_down);
    context_.stats.busy("a.link").add(plan_.tear_down);
    thread_->sync();
  }
  void step(sim::MsgId id, sim::Stage stage, sim::Picos d) {
    thread_->charge(d);
    thread_->sync();
    context_.journeys.mark(id, stage, thread_->now());
  }

  sim::Context& context_;
  Plan plan_;
  sim::Engine engine_;
  sim::ProgramThread* thread_ = nullptr;
  std::function<void()> begin_ = [] {};
};

Result run(TinyMachine::Plan plan, std::vector<sys::ExpectationConfig> expectations = {},
           sim::Picos limit = sim::kNever) {
  experiment::RunOptions options;
  options.scenario = "tiny";
  options.version = "test";
  options.seed = 9;
  options.time_limit = limit;
  options.expectations = std::move(expectations);
  return experiment::run(std::move(options),
                         [&](sim::Context& c, sim::EngineMode m) { return std::make_unique<TinyMachine>(c, m, plan); });
}
sys::ExpectationConfig expect(const std::string& at, Json equals) {
  sys::ExpectationConfig e;
  e.at = at;
  e.equals = std::move(equals);
  return e;
}

TEST(Run, TheResultHasEveryDocumentedField) {
  const Result r = run({}, {expect("/workloads/0/wc_status/SUCCESS", 100)});
  const Json j = experiment::to_json(r);
  for (const char* at : {"/schema",
                         "/scenario",
                         "/version",
                         "/seed",
                         "/sim_time_ns",
                         "/verdict",
                         "/workloads/0/name",
                         "/workloads/0/op",
                         "/workloads/0/messages",
                         "/workloads/0/bytes",
                         "/workloads/0/latency_ns/min",
                         "/workloads/0/latency_ns/mean",
                         "/workloads/0/latency_ns/p50",
                         "/workloads/0/latency_ns/p99",
                         "/workloads/0/latency_ns/p999",
                         "/workloads/0/latency_ns/max",
                         "/workloads/0/bandwidth_gbps",
                         "/workloads/0/message_rate_mpps",
                         "/workloads/0/wc_status/SUCCESS",
                         "/workloads/0/breakdown_ns/0/stage",
                         "/workloads/0/breakdown_ns/0/mean",
                         "/workloads/0/breakdown_ns/0/p50",
                         "/workloads/0/errors",
                         "/workloads/0/slowest_message/posted_ns",
                         "/async_events",
                         "/stuck",
                         "/config",
                         "/counters",
                         "/utilisation",
                         "/bottleneck/resource",
                         "/expectations/0/met",
                         "/simulator/events",
                         "/simulator/wall_s",
                         "/simulator/cpu_s",
                         "/simulator/messages_per_cpu_s",
                         "/simulator/peak_rss_bytes"})
    EXPECT_NE(j.at(at), nullptr) << at;
  EXPECT_EQ(*j.at("/schema"), Json("rdmasim-result/1"));
  EXPECT_EQ(*j.at("/verdict"), Json("ok"));
  EXPECT_EQ(*j.at("/seed"), Json(9));
  EXPECT_EQ(*j.at("/workloads/0/messages"), Json(100));
  EXPECT_EQ(*j.at("/workloads/0/bytes"), Json(409600));
  EXPECT_EQ(*j.at("/workloads/0/latency_ns/min"), Json(500.001));
  EXPECT_EQ(*j.at("/workloads/0/latency_ns/p50"), Json(504.001));
  EXPECT_EQ(*j.at("/workloads/0/latency_ns/mean"), Json(504.501));
  EXPECT_EQ(*j.at("/workloads/0/latency_ns/max"), Json(509.001));
  EXPECT_EQ(*j.at("/workloads/0/latency_quantiles/0/latency_ns"), Json(500.001));
  EXPECT_EQ(*j.at("/workloads/0/latency_quantiles/9/share"), Json(0.5));
  EXPECT_EQ(*j.at("/workloads/0/latency_quantiles/9/latency_ns"), Json(504.001));
  EXPECT_EQ(*j.at("/workloads/0/latency_quantiles/22/latency_ns"), Json(509.001));
  EXPECT_EQ(*j.at("/sim_time_ns"), Json(1000 + 50450.1));
  EXPECT_EQ(*j.at("/workloads/0/first_post_ns"), Json(1000));
  EXPECT_EQ(experiment::exit_code(r), 0);
}

TEST(Run, TheStagesOfTheMedianMessageSumToItsLatency) {
  const Json j = experiment::to_json(run({}));
  std::int64_t sum = 0;
  for (const Json& stage : j.at("/workloads/0/breakdown_ns")->items()) sum += *stage.find("p50_ps")->as_int64();
  EXPECT_EQ(sum, 504'001);
  EXPECT_EQ(*j.at("/workloads/0/median_message/latency_ps"), Json(sum));
  EXPECT_EQ(j.at("/workloads/0/breakdown_ns")->items().size(), sim::kStages);
}

TEST(Run, RatesReferToTheSpanFromFirstPostToLastDelivery) {
  const Result r = run({});
  EXPECT_NEAR(r.workloads[0].bandwidth_gbps(), 409600 * 8 / 50450.1, 1e-9);
  EXPECT_NEAR(r.workloads[0].message_rate_mpps(), 100 / 50.4501, 1e-9);
}

TEST(Run, UtilisationLeavesOutSetUpAndTearDown) {
  const Result r = run({.tear_down = 7_us});
  EXPECT_NEAR(r.utilisation.at("a.link"), 100 * 200 / 50450.1, 1e-9);
  EXPECT_EQ(experiment::bottleneck_of(r.utilisation).resource, "a.link");
  EXPECT_FALSE(experiment::bottleneck_of(r.utilisation).saturated());
}

TEST(Run, AnUnmetExpectationExitsOne) {
  const Result r = run({}, {expect("/workloads/0/messages", 101)});
  EXPECT_FALSE(r.expectations.at(0).met);
  EXPECT_EQ(experiment::exit_code(r), 1);
  EXPECT_THAT(experiment::to_table(r),
              HasSubstr("NOT MET           /workloads/0/messages: expected 101, got 100 (-1)"));
}

TEST(Run, ADeadlockExitsFourUnlessExpected) {
  Result r = run({.park_after = 10});
  EXPECT_EQ(r.verdict, Verdict::deadlock);
  EXPECT_EQ(r.workloads[0].messages, 11u);
  EXPECT_EQ(experiment::exit_code(r), 4);
  EXPECT_THAT(experiment::to_table(r),
              HasSubstr("waiting           no event is left\n                    sender waits for nothing"));
  r.expectations.push_back({"/verdict", "\"deadlock\"", "\"deadlock\"", "", true});
  EXPECT_EQ(experiment::exit_code(r), 0);
}

TEST(Run, TheTimeLimitIsAVerdict) {
  const Result r = run({}, {}, 10_us);
  EXPECT_EQ(r.verdict, Verdict::time_limit);
  EXPECT_LT(r.workloads[0].messages, 20u);
  EXPECT_EQ(experiment::exit_code(r), 0);
}

TEST(Run, AnInterruptKeepsPartialResultsAndChecksNothing) {
  const Result r = run({.interrupt_after = 41}, {expect("/workloads/0/messages", 100)});
  EXPECT_EQ(r.verdict, Verdict::interrupted);
  EXPECT_EQ(r.workloads[0].messages, 42u);
  EXPECT_TRUE(r.expectations.empty());
  EXPECT_EQ(experiment::exit_code(r), 130);
  EXPECT_THAT(experiment::to_table(r), HasSubstr("verdict           interrupted"));
}

TEST(Run, ASimulatorBugTellsTimeAndPlace) {
  try {
    run({.bug_after = 0});
    FAIL();
  } catch (const sim::SimulatorBug& e) {
    EXPECT_THAT(e.what(), HasSubstr("made up"));
    EXPECT_THAT(e.what(), HasSubstr("at simulated time 1500.001 ns"));
  }
}

TEST(Run, TheCostSectionIsTheOnlyOneThatCanBeLeftOut) {
  const Result r = run({});
  const Json without = experiment::to_json(r, false);
  EXPECT_EQ(without.find("simulator"), nullptr);
  Json stripped = experiment::to_json(r);
  stripped.erase("simulator");
  EXPECT_EQ(stripped.dump(), without.dump());
}

TEST(Table, ShowsLatencyRatesStatusesAndTheSumOfTheBreakdown) {
  const std::string t = experiment::to_table(run({}));
  EXPECT_THAT(t, HasSubstr("hosts             a, b\n"));
  EXPECT_THAT(t, HasSubstr("WC statuses       SUCCESS 100\n"));
  EXPECT_THAT(t, HasSubstr("one way                    500.001       504.501       504.001       509.001       509.001 "
                           "      509.001\n"));
  EXPECT_THAT(t,
              HasSubstr("cpu_post                  300.000   59.5%       300.000  ##############################\n"));
  EXPECT_THAT(t, HasSubstr("sum                       504.001  100.0%       504.501\n"));
  EXPECT_EQ(t.find(" \n"), std::string::npos);
}

TEST(Progress, ShowsShareAndTimeLeft) {
  EXPECT_EQ(experiment::progress_text(1250_us, 500, 1000, 3.0),
            "[##########..........]  50 %  1.250 ms simulated, 500 of 1000 messages, 3 s left");
  EXPECT_EQ(experiment::progress_text(0_ps, 0, 1000, 3.0),
            "[....................]   0 %  0.000 ms simulated, 0 of 1000 messages");
  EXPECT_EQ(experiment::progress_text(1_ms, 7, 0, 3.0), "1.000 ms simulated, 7 messages");
}

}  // namespace
