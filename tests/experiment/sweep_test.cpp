// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "experiment/sweep_expectation.h"
#include "experiment/sweep_export.h"
#include "tests/experiment/child_result.h"
#include "tests/experiment/sweep_files.h"

namespace experiment {
namespace {

using testing::HasSubstr;

struct Sweep : SweepFiles {
  SweepPlan plan(const std::string& sweep) const {
    SweepRequest r;
    r.file = scenario(sweep);
    return plan_sweep(r);
  }
  std::vector<SweepRow> run(const SweepPlan& p, unsigned jobs = 2, double limit_s = 0) const {
    std::filesystem::remove(dir / kSweepDatabase);
    SweepStore store = SweepStore::create(dir, p);
    SweepRunOptions options;
    options.jobs = jobs;
    options.limit_s = limit_s;
    EXPECT_FALSE(run_sweep(p, store.unfinished(), store, options));
    return store.rows();
  }
};

TEST_F(Sweep, MetricsAreThoseOfASingleRun) {
  SweepRequest r;
  r.file =
      scenario(R"({"metrics": {"p50_ns": "/workloads/0/latency_ns/p50", "up_bytes": "/counters/host0.pcie.up.m*_bytes",
                                    "per_message": "/counters/host0.pcie.up.mwr_bytes per /workloads/0/messages",
                                    "nothing": "/workloads/7/messages"}})");
  r.vary = {"workloads.0.size=8 B,64 B"};
  const SweepPlan mine = plan_sweep(r);
  const std::vector<SweepRow> rows = run(mine);
  const sim::Json result = result_of(r.file, {"workloads.0.size=64 B"});
  const auto number = [&](const std::string& at) { return result.at(at)->number(); };
  ASSERT_EQ(mine.metrics[1].name, "p50_ns");
  EXPECT_EQ(rows[1].metrics[0], std::nullopt);
  EXPECT_EQ(rows[1].metrics[1], number("/workloads/0/latency_ns/p50"));
  EXPECT_EQ(rows[1].metrics[2], number("/counters/host0.pcie.up.mwr_bytes") / 10);
  double sum = 0;
  for (const char* kind : {"mrd", "mwr", "msg"})
    sum += number(std::string("/counters/host0.pcie.up.") + kind + "_bytes");
  EXPECT_EQ(rows[1].metrics[3], sum);
}

TEST_F(Sweep, TheNumberOfJobsChangesNothing) {
  const SweepPlan p =
      plan(R"({"parameters": [{"path": "workloads.0.size", "values": "1 B..4 KiB x2"}], "replications": 2})");
  std::vector<SweepRow> one = run(p, 1), four = run(p, 4);
  ASSERT_EQ(one.size(), 26u);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].verdict, "ok");
    EXPECT_EQ(one[i].metrics, four[i].metrics);
    EXPECT_EQ(one[i].sim_time_ns, four[i].sim_time_ns);
    EXPECT_EQ(one[i].config_hash, four[i].config_hash);
  }
}

TEST_F(Sweep, StagesAndQuantilesFitTheLatency) {
  const SweepPlan p = plan(R"({"parameters": [{"path": "workloads.0.size", "values": ["8 B", "1 KiB"]}]})");
  run(p);
  SweepStore store = SweepStore::resume(dir, p);
  Statement sums(store.database(),
                 "SELECT sum(b.p50_ns), sum(b.mean_ns), f.mean_ns, (SELECT latency_ns FROM quantile q WHERE q.point = "
                 "f.point AND share = "
                 "0.5), (SELECT count(*) FROM quantile q WHERE q.point = f.point), f.messages, f.name FROM flow f JOIN "
                 "breakdown b USING "
                 "(point, flow) GROUP BY f.point, f.flow");
  int rows = 0;
  for (; sums.step(); ++rows) {
    EXPECT_NEAR(sums.real(0), sums.real(3), 1e-6) << "the stages of the median message sum to the median";
    EXPECT_NEAR(sums.real(1), sums.real(2), 1e-6);
    EXPECT_EQ(sums.integer(4), static_cast<std::int64_t>(kQuantiles.size()));
    EXPECT_EQ(sums.integer(5), 10);
    EXPECT_EQ(sums.text(6), "write_bw");
  }
  EXPECT_EQ(rows, 2);
}

TEST_F(Sweep, APointThatFailsDoesNotStopTheRest) {
  const std::string file = write("all.json", R"({"workloads": [{"op": "write_bw", "iters": 10}],
    "expect": [{"at": "/workloads/0/messages", "at_most": 1000}]})");
  SweepRequest r;
  r.file = file;
  r.vary = {"workloads.0.iters=10,2000,1000000000000,20"};
  const SweepPlan p = plan_sweep(r);
  const std::vector<SweepRow> rows = run(p, 2, 1.0);
  EXPECT_EQ(rows[0].verdict, "ok");
  EXPECT_EQ(rows[1].verdict, "unmet");
  EXPECT_THAT(rows[1].why, HasSubstr("/workloads/0/messages"));
  EXPECT_EQ(rows[2].verdict, "wall_limit");
  EXPECT_GE(*rows[2].wall_s, 1.0);
  EXPECT_EQ(rows[3].verdict, "ok");
}

TEST_F(Sweep, CountsSlotsOfTheSendQueueAndBytesOfCqes) {
  SweepRequest r;
  r.file = scenario(
      R"({"metrics": {"freed": "/counters/host0.verbs.sq_slots_freed", "cqe_bytes": "/counters/host0.hca.completions.cqe_bytes",
    "slot_ps": "/counters/host0.verbs.sq_slot_time_ps", "latency_ns": "/workloads/0/latency_ns/mean", "up": "/counters/host0.pcie.up.mwr_bytes"}})");
  r.vary = {"workloads.0.cq_mod=1,10"};
  const std::vector<SweepRow> rows = run(plan_sweep(r));  // metrics by name: cqe_bytes, freed, latency_ns, slot_ps, up
  EXPECT_EQ(rows[0].metrics[0], 640.0) << "ten CQEs";
  EXPECT_EQ(rows[1].metrics[0], 64.0);
  EXPECT_LE(*rows[1].metrics[0], *rows[1].metrics[4]) << "all of them over PCIe";
  EXPECT_EQ(rows[0].metrics[1], 10.0);
  EXPECT_EQ(rows[1].metrics[1], 10.0) << "one completion frees all ten";
  // A WRITE is delivered when the poll that found its completion returns; its slot is free a little earlier.
  EXPECT_LE(*rows[0].metrics[3] / 1e4, *rows[0].metrics[2]) << "ns";
  EXPECT_GT(*rows[0].metrics[3] / 1e4, 0.9 * *rows[0].metrics[2]);
  EXPECT_GT(*rows[1].metrics[3], *rows[0].metrics[3]) << "slots wait for the one signaled WR";
}

TEST_F(Sweep, AnOverrunIsAVerdict) {
  SweepRequest r;
  r.file = std::string(RDMASIM_SOURCE_DIR) + "/scenarios/cases/cq_16_overruns.json";
  r.vary = {"programs.client.qp.qp.max_send_wr=64,128"};
  EXPECT_EQ(run(plan_sweep(r))[0].verdict, "cq_overrun");
}

TEST_F(Sweep, AProcessThatIsKilledIsACrash) {
  SweepRequest r;
  r.file = scenario("{}");
  r.vary = {"workloads.0.iters=1000000000000,10"};
  const SweepPlan p = plan_sweep(r);
  SweepStore store = SweepStore::create(dir, p);
  SweepRunOptions options;
  options.progress = [&](const SweepProgress& s) {
    if (s.done > 0) return;  // after a second: the long one is still at it
    std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
    for (pid_t pid; children >> pid;) kill(pid, SIGKILL);
  };
  EXPECT_FALSE(run_sweep(p, {0}, store, options));
  EXPECT_EQ(store.rows()[0].verdict, "crashed");
  EXPECT_THAT(store.rows()[0].why, HasSubstr("signal 9"));
  EXPECT_EQ(store.unfinished(), (std::vector<std::uint64_t>{1}));
}

TEST_F(Sweep, AScenarioThatChangesMeanwhileIsNoticed) {
  const SweepPlan p = plan(R"({"parameters": [{"path": "workloads.0.size", "values": ["8 B", "1 KiB"]}]})");
  SweepStore store = SweepStore::create(dir, p);
  write("stream.json", R"({"workloads": [{"op": "write_bw", "iters": 11}]})");
  EXPECT_THROW(run_sweep(p, store.unfinished(), store, {}), std::runtime_error);
  EXPECT_EQ(store.unfinished().size(), 2u);
}

TEST_F(Sweep, ExpectationsLookAtPointsAndTrends) {
  const SweepPlan p = plan(R"({"parameters": [{"path": "workloads.0.size", "values": "64 B..4 KiB x4"},
                                               {"path": "workloads.0.cq_mod", "values": [1, 2]}],
    "expect": [{"holds": "verdict == 'ok'"},
               {"where": "size >= 1 KiB", "holds": "latency_p50_ns > 1"},
               {"metric": "latency_p50_ns", "along": "size", "trend": "rising", "by": 1.1},
               {"metric": "latency_p50_ns", "along": "size", "trend": "falling", "because": "the contrary"},
               {"metric": "latency_p50_ns", "along": "size", "trend": "not_falling", "by": 1000},
               {"where": "size > 1 MiB", "holds": "verdict == 'ok'"},
               {"holds": "message_rate_mpps < 0"}]})");
  const auto results = evaluate_sweep(p, run(p));
  ASSERT_EQ(results.size(), 7u);
  EXPECT_TRUE(results[0].met);
  EXPECT_EQ(results[0].looked_at, 8u);
  EXPECT_TRUE(results[1].met);
  EXPECT_EQ(results[1].looked_at, 4u);
  EXPECT_TRUE(results[2].met) << results[2].failures.front();
  EXPECT_EQ(results[2].looked_at, 6u) << "three steps on each of two lines";
  EXPECT_FALSE(results[3].met);
  EXPECT_EQ(results[3].because, "the contrary");
  EXPECT_THAT(results[3].failures.front(),
              HasSubstr("from point 0 (size=64 B, cq_mod=1) to point 2 (size=256 B, cq_mod=1)"));
  EXPECT_FALSE(results[4].met);
  EXPECT_FALSE(results[5].met) << "looks at nothing";
  EXPECT_FALSE(results[6].met);
  EXPECT_THAT(results[6].failures.front(), HasSubstr("message_rate_mpps is "));
}

TEST_F(Sweep, TablesSayWhatTheDatabaseHas) {
  const SweepPlan p = plan(R"({"parameters": [{"path": "workloads.0.size", "values": ["8 B", "1 KiB"]},
                                               {"path": "workloads.0.completion", "values": ["poll", "event"]}],
                               "metrics": {"rate_mpps": "/workloads/0/message_rate_mpps"}})");
  SweepStore store = SweepStore::create(dir, p);
  EXPECT_FALSE(run_sweep(p, {0, 3}, store, {}));
  const std::string csv = sweep_csv(store.database());
  EXPECT_THAT(
      csv, testing::StartsWith("point,combination,replication,seed,size_bytes,completion,verdict,as_expected,rate_mpps,"
                               "sim_time_ns,wall_s,version,scenario_hash,config_hash,why\r\n0,0,0,1,8,poll,ok,1,"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  const sim::Json j = sweep_json(store.database(), {});
  EXPECT_EQ(*j.at("/points/1/size_bytes"), sim::Json(1024));
  EXPECT_EQ(*j.at("/points/1/rate_mpps"), sim::Json(*store.rows()[3].metrics[0]));
  EXPECT_EQ(j.at("/missing")->compact(), "[1, 2]");
  EXPECT_EQ(*j.at("/design/parameters/0/values/1"), sim::Json("1 KiB"));
  EXPECT_EQ(*j.at("/schema"), sim::Json("rdmasim-sweep/1"));
}

TEST(SweepProgressText, HasABarAndTheTimeLeft) {
  EXPECT_EQ(progress_text({5, 20, 1, 10}), "[#####...............]  25 %  5 of 20 points, 1 not ok, 30 s left");
  EXPECT_EQ(progress_text({20, 20, 0, 10}), "[####################] 100 %  20 of 20 points");
}

}  // namespace
}  // namespace experiment
