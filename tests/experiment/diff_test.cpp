// SPDX-License-Identifier: Apache-2.0
// Two results side by side: the stages explain the whole difference, what was configured otherwise is told, and a threshold
// judges in the right direction.
#include "experiment/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/experiment/child_result.h"

namespace {

namespace fs = std::filesystem;
using experiment::Diff;
using experiment::DiffOptions;
using testing::HasSubstr;

sim::Json run(const char* file, const std::vector<std::string>& sets = {}) {
  return experiment::result_of(fs::path(RDMASIM_SOURCE_DIR) / "scenarios" / file, sets);
}
DiffOptions judged(double threshold) { return {0.01, threshold, experiment::judged_metrics()}; }

const experiment::DiffMetric& metric(const Diff& d, const std::string& name) {
  return *std::ranges::find(d.flows.at(0).metrics, name, &experiment::DiffMetric::name);
}

TEST(Diff, OfARunWithItselfIsEmpty) {
  const sim::Json a = run("rc_send_pingpong.json", {"workloads.0.iters=50"});
  const Diff d = experiment::diff(a, a, judged(0));
  EXPECT_TRUE(d.config.empty() && d.counters.empty() && d.utilisation.empty() && d.only_a.empty() && d.only_b.empty());
  EXPECT_FALSE(d.worse());
  for (const auto& s : d.flows.at(0).stages) {
    EXPECT_EQ(s.delta(), 0.0) << s.name;
    EXPECT_EQ(s.share, std::nullopt);
  }
}

TEST(Diff, TheStagesExplainTheWholeDifferenceOfTheLatency) {
  const sim::Json a = run("rc_send_pingpong.json", {"workloads.0.iters=50", "workloads.0.size=64 B"}),
                  b = run("rc_send_pingpong.json",
                          {"workloads.0.iters=50", "workloads.0.size=64 B", "workloads.0.inline_size=64"});
  const Diff d = experiment::diff(a, b, {});
  ASSERT_EQ(d.config.size(), 1U);
  EXPECT_EQ(d.config[0].name, "workloads.0.inline_size");
  EXPECT_EQ(d.config[0].a.number(), 0);
  EXPECT_EQ(d.config[0].b.number(), 64);
  const auto& flow = d.flows.at(0);
  double sum = 0, shares = 0, largest = 0;
  std::string stage;
  for (const auto& s : flow.stages) {
    sum += *s.delta();
    shares += *s.share;
    if (-*s.delta() > largest) largest = -*s.delta(), stage = s.name;
  }
  EXPECT_NEAR(sum, *flow.mean.delta(), 1e-3) << "means are rounded to the millionth of a nanosecond";
  EXPECT_NEAR(shares, 1, 1e-5);
  EXPECT_EQ(stage, "payload_dma") << "inline data need not be fetched";
}

TEST(Diff, AThresholdJudgesInTheRightDirection) {
  const sim::Json slow = run("cases/read_with_1_outstanding.json"), fast = run("cases/read_with_16_outstanding.json");
  const Diff better = experiment::diff(slow, fast, judged(0.05));
  EXPECT_FALSE(better.worse());
  EXPECT_GT(*metric(better, "bandwidth_gbps").relative(), 3);
  const Diff worse = experiment::diff(fast, slow, judged(0.05));
  EXPECT_TRUE(worse.worse());
  EXPECT_TRUE(metric(worse, "bandwidth_gbps").worse);
  EXPECT_TRUE(metric(worse, "latency_p99_ns").worse);
  EXPECT_FALSE(metric(worse, "latency_max_ns").worse) << "is not among the judged ones";
  EXPECT_FALSE(experiment::diff(fast, slow, judged(10)).worse()) << "the latency is five times as long, not eleven";
  EXPECT_FALSE(experiment::diff(fast, slow, {}).worse()) << "nothing is judged without a threshold";
}

TEST(Diff, CountersBelowTheToleranceAreLeftOut) {
  const sim::Json a = run("rc_write_bw.json", {"workloads.0.iters=100"}),
                  b = run("rc_write_bw.json", {"workloads.0.iters=101"});
  const auto has = [](const Diff& d, const char* name) {
    return std::ranges::find(d.counters, name, &experiment::DiffValue::name) != d.counters.end();
  };
  EXPECT_TRUE(has(experiment::diff(a, b, {0.001, {}, {}}), "host0.hca.requester.wqes"));
  EXPECT_FALSE(has(experiment::diff(a, b, {0.02, {}, {}}), "host0.hca.requester.wqes"));
}

TEST(Diff, AVerdictThatIsNoLongerOkIsWorse) {
  const sim::Json a = run("cases/all_unsignaled_and_a_poll_for_ever.json", {"programs.client.qp.qp.sq_sig_all=true"}),
                  b = run("cases/all_unsignaled_and_a_poll_for_ever.json");
  EXPECT_TRUE(experiment::diff(a, b, judged(0.05)).verdict_worse);
  EXPECT_FALSE(experiment::diff(b, a, judged(0.05)).verdict_worse);
  EXPECT_THAT(experiment::to_text(experiment::diff(a, b, {})), HasSubstr("verdict deadlock"));
}

TEST(Diff, ProgramsAreMatchedByNameAndRenamedWorkloadsByOrder) {
  const sim::Json bw = run("rc_write_bw.json", {"workloads.0.iters=20"}),
                  named = run("rc_write_bw.json", {"workloads.0.iters=20", "workloads.0.name=stream"}),
                  steps = run("cases/zero_length_receive.json");
  const Diff renamed = experiment::diff(bw, named, judged(0.01));
  ASSERT_EQ(renamed.flows.size(), 1U);
  EXPECT_EQ(renamed.flows[0].name, "workload write_bw / stream");
  const Diff other = experiment::diff(bw, steps, judged(0.01));
  EXPECT_EQ(other.only_a, std::vector<std::string>{"workload write_bw"});
  EXPECT_EQ(other.only_b, (std::vector<std::string>{"program client", "program server"}));
  EXPECT_TRUE(other.worse()) << "what A had is gone";
}

TEST(Diff, TheJsonFormHasTheFiguresOfTheResults) {
  const sim::Json a = run("cases/read_with_1_outstanding.json"), b = run("cases/read_with_16_outstanding.json");
  const sim::Json j = experiment::to_json(experiment::diff(a, b, judged(0.05)));
  EXPECT_EQ(j.find("schema")->string(), "rdmasim-diff/1");
  EXPECT_EQ(*j.at("/flows/0/metrics/0/a"), *a.at("/workloads/0/bandwidth_gbps"));
  EXPECT_EQ(j.at("/flows/0/metrics/0/better")->string(), "higher");
  EXPECT_EQ(j.at("/config/0/name")->string(), "workloads.0.max_rd_atomic");
  EXPECT_FALSE(j.find("worse")->boolean());
  const std::string text = experiment::to_text(experiment::diff(a, b, judged(0.05)));
  EXPECT_THAT(text, HasSubstr("workloads.0.max_rd_atomic: 1 -> 16"));
  EXPECT_THAT(text, HasSubstr("threshold 5 %: B is not worse"));
  EXPECT_THAT(text, testing::ContainsRegex("sum +178511.* 35641.* -142870 +\\+100 %"));
}

}  // namespace
