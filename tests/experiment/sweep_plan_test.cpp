// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/experiment/sweep_files.h"

namespace experiment {
namespace {

using testing::HasSubstr;

struct Plan : SweepFiles {
  SweepRequest request(const std::string& sweep = "{}") const {
    SweepRequest r;
    r.file = scenario(sweep);
    return r;
  }
  static std::string error(const SweepRequest& r) {
    try {
      plan_sweep(r);
      return "none";
    } catch (const sim::ConfigFailure& e) {
      return e.errors.text();
    }
  }
  static std::vector<std::string> rows(const SweepPlan& plan) {
    std::vector<std::string> out;
    for (const SweepPoint& p : plan.points) {
      std::string& row = out.emplace_back();
      for (const SweepValue& v : p.values) row += (row.empty() ? "" : " ") + v.text();
    }
    return out;
  }
};

TEST_F(Plan, AGridVariesTheLastParameterFastest) {
  const SweepPlan plan = plan_sweep(request(R"({"parameters": [
    {"path": "workloads.0.size", "values": "64 B..128 B x2"}, {"path": "workloads.0.cq_mod", "values": [1, 4]}]})"));
  EXPECT_EQ(rows(plan), (std::vector<std::string>{"64 B 1", "64 B 4", "128 B 1", "128 B 4"}));
  EXPECT_EQ(plan.parameters[0].column(), "size_bytes");
  EXPECT_EQ(plan.parameters[1].column(), "cq_mod");
  std::set<std::string> hashes;
  for (const SweepPoint& p : plan.points) hashes.insert(p.config_hash);
  EXPECT_EQ(hashes.size(), 4u);
}

TEST_F(Plan, ConditionsLeavePointsOutAndNumbersStayDense) {
  SweepRequest r = request(R"({"parameters": [{"path": "workloads.0.tx_depth", "values": "1..8 x2"},
                               {"path": "workloads.0.cq_mod", "name": "mod", "values": "1..8 x2"}], "where": ["mod <= tx_depth"]})");
  const SweepPlan plan = plan_sweep(r);
  EXPECT_EQ(plan.points.size(), 10u);
  EXPECT_EQ(plan.left_out, 6u);
  EXPECT_EQ(plan.points.back().number, 9u);
  r.where = {"workloads.0.tx_depth < 2 * workloads.0.qps"};
  EXPECT_EQ(rows(plan_sweep(r)), (std::vector<std::string>{"1 1"})) << "paths of values that do not vary, too";
}

TEST_F(Plan, ZipTakesValuesTogether) {
  SweepRequest r = request();
  r.vary = {"workloads.0.size=64 B,128 B,256 B", "workloads.0.iters=3..5"};
  r.design = sys::Design::zip;
  EXPECT_EQ(rows(plan_sweep(r)), (std::vector<std::string>{"64 B 3", "128 B 4", "256 B 5"}));
  r.vary[1] = "workloads.0.iters=3,4";
  EXPECT_THAT(error(r), HasSubstr("has 2 values; zip needs as many as \"size\" has, 3"));
}

TEST_F(Plan, ReplicationsDifferByTheirSeed) {
  SweepRequest r = request();
  r.vary = {"workloads.0.size=64 B,128 B"};
  r.replications = 3;
  r.seed = 40;
  const SweepPlan plan = plan_sweep(r);
  ASSERT_EQ(plan.points.size(), 6u);
  EXPECT_EQ(plan.points[5].seed, 42u);
  EXPECT_EQ(plan.points[5].combination, 1u);
  EXPECT_EQ(plan.points[5].replication, 2u);
  EXPECT_EQ(plan.points[2].values, plan.points[0].values);
}

TEST_F(Plan, ALatinHypercubeTakesEachStratumOnce) {
  SweepRequest r = request();
  r.vary = {"workloads.0.iters=1..20", "workloads.0.size=1 B..20 B +1 B", "fabric.link.impairment.drop=0.0..0.5"};
  r.design = sys::Design::latin_hypercube;
  r.points = 20;
  const SweepPlan plan = plan_sweep(r);
  for (std::size_t i = 0; i < 3; ++i) {
    std::set<long> strata;
    for (const SweepPoint& p : plan.points)
      strata.insert(std::lround(std::floor(p.values[i].number() * (i == 2 ? 40 : 1) + 1e-9)));
    EXPECT_EQ(strata.size(), 20u) << plan.parameters[i].name;
  }
  EXPECT_EQ(rows(plan_sweep(r)), rows(plan)) << "the seed alone decides";
  r.seed = 2;
  EXPECT_NE(rows(plan_sweep(r)), rows(plan));
}

TEST_F(Plan, ARandomDesignDrawsFromAllOfARange) {
  SweepRequest r = request();
  r.vary = {"workloads.0.loop=0..1us", "workloads.0.verify=true,false"};
  r.design = sys::Design::random;
  r.points = 200;
  std::map<std::string, int> verify;
  double low = 1e9, high = 0;
  for (const SweepPoint& p : plan_sweep(r).points) {
    low = std::min(low, p.values[0].number());
    high = std::max(high, p.values[0].number());
    ++verify[p.values[1].text()];
  }
  EXPECT_LT(low, 50);
  EXPECT_GT(high, 950);
  EXPECT_LE(high, 1000) << "ns";
  EXPECT_GT(verify["true"], 60);
  EXPECT_GT(verify["false"], 60);
  r.points.reset();
  EXPECT_THAT(error(r), HasSubstr("random needs a number of points"));
}

TEST_F(Plan, AFlagReplacesTheValuesOfAParameter) {
  SweepRequest r = request(R"({"parameters": [{"path": "workloads.0.cq_mod", "name": "mod", "values": [1, 2]}]})");
  r.vary = {"mod=8", "workloads.0.qps=1,2"};
  EXPECT_EQ(rows(plan_sweep(r)), (std::vector<std::string>{"8 1", "8 2"}));
  r = request(R"({"parameters": [{"path": "workloads.0.cq_mod", "values": [1, 2]}]})");
  r.vary = {"cq_mod=4"};
  EXPECT_EQ(rows(plan_sweep(r)), (std::vector<std::string>{"4"})) << "by the name that it gets by itself";
}

TEST_F(Plan, SeveralPathsTakeOneValue) {
  const SweepPlan plan = plan_sweep(request(
      R"({"parameters": [{"path": "hosts.0.cores", "also": ["hosts.1.cores"], "name": "cores", "values": [2, 8]}]})"));
  const sys::Overrides o = plan.overrides(plan.points[1]);
  EXPECT_EQ(o.sets, (std::vector<std::string>{"seed=1", "hosts.0.cores=8", "hosts.1.cores=8"}));
}

TEST_F(Plan, EveryMistakeIsToldBeforeAnythingRuns) {
  SweepRequest r = request();
  EXPECT_THAT(error(r), HasSubstr("nothing varies"));
  r.vary = {"workloads.0.cq_mood=1,2", "workload.0.size=1 B", "workloads.3.size=1 B", "seed=1,2", "expect=1",
            "workloads.0.size"};
  const std::string all = error(r);
  EXPECT_THAT(all, HasSubstr("--vary workload.0.size=1 B: workload.0.size: the scenario has no \"workload\"; did you "
                             "mean \"workloads\"?"));
  EXPECT_THAT(all, HasSubstr("workloads has 1 elements; there is no element 3"));
  EXPECT_THAT(all, HasSubstr("is varied by `replications`"));
  EXPECT_THAT(all, HasSubstr("cannot be varied"));
  EXPECT_THAT(all, HasSubstr("expected PATH=VALUES"));
  r.vary = {"workloads.0.cq_mood=1,2"};
  EXPECT_THAT(error(r), HasSubstr("did you mean \"cq_mod\"?"));
  r.vary = {"workloads.0.mtu=1024,1500"};
  EXPECT_THAT(error(r), HasSubstr("must be 256, 512, 1024, 2048 or 4096 (at mtu=1500)"));
  r.vary = {"workloads.0.mtu=1024,512..4096 x2"};
  EXPECT_THAT(error(r), HasSubstr("the value 1024 appears twice"));
  r.vary = {"workloads.0.loop=0..1us"};
  EXPECT_THAT(error(r), HasSubstr("a range needs a step here"));
  r.vary = {"workloads.0.qps=1,2"};
  r.where = {"qbs > 1"};
  EXPECT_THAT(
      error(r),
      HasSubstr("--where qbs > 1: where: column 1: there is no parameter or value \"qbs\"; did you mean \"qps\"?"));
  r.where = {"qps > 1us"};
  EXPECT_THAT(error(r), HasSubstr("a time and a number do not compare"));
  r.where = {"qps > 5"};
  EXPECT_THAT(error(r), HasSubstr("no point meets the conditions"));
  r.where.clear();
  r.metrics = {"rate=workloads/0"};
  EXPECT_THAT(error(r), HasSubstr("a JSON pointer starts with"));
  r.metrics = {"qps=/seed"};
  EXPECT_THAT(error(r), HasSubstr("is the name of another column"));
}

TEST_F(Plan, MistakesOfTheSectionAreShownInTheFile) {
  EXPECT_THAT(error(request("{\"parameters\": [\n{\"path\": \"workloads.0.mtu\", \"values\": \"256..4096 x3\"}]}")),
              HasSubstr("stream.json:2:39: workloads.0.mtu: must be 256"));
  EXPECT_THAT(
      error(request(R"({"parameters": [{"path": "workloads.0.qps", "values": [1, 2]}],
                               "expect": [{"metric": "messagerate_mpps", "along": "qp", "trend": "rising"}]})")),
      testing::AllOf(HasSubstr("did you mean \"message_rate_mpps\"?"), HasSubstr("there is no parameter \"qp\"")));
}

TEST_F(Plan, ThePlanOfOneSweepIsAlwaysTheSame) {
  const std::string sweep = R"({"parameters": [{"path": "workloads.0.qps", "values": [1, 2]}]})";
  const SweepPlan a = plan_sweep(request(sweep)), b = plan_sweep(request(sweep));
  EXPECT_EQ(a.scenario_hash, b.scenario_hash);
  EXPECT_EQ(a.description_json, b.description_json);
  SweepRequest r = request(sweep);
  r.sets = {"workloads.0.size=65 B"};
  EXPECT_NE(plan_sweep(r).scenario_hash, a.scenario_hash);
  EXPECT_EQ(plan_sweep(request(R"({"parameters": [{"path": "workloads.0.qps", "values": [1, 2, 3]}]})")).scenario_hash,
            a.scenario_hash)
      << "the section is not what a run is made of";
}

}  // namespace
}  // namespace experiment
