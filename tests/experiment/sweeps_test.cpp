// SPDX-License-Identifier: Apache-2.0
// The sweeps that come with the simulator show what they say, and signalling obeys its rule in every cell of a grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>

#include "experiment/sweep.h"
#include "experiment/sweep_expectation.h"
#include "tests/experiment/sweep_files.h"

namespace experiment {
namespace {

namespace fs = std::filesystem;
const fs::path kSweeps = fs::path(RDMASIM_SOURCE_DIR) / "scenarios/sweeps";

std::vector<std::string> shipped() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(kSweeps)) out.push_back(entry.path().stem().string());
  std::ranges::sort(out);
  return out;
}

std::vector<SweepRow> run(const SweepPlan& plan, const fs::path& dir) {
  SweepStore store = SweepStore::create(dir, plan);
  SweepRunOptions options;
  options.jobs = 2;
  EXPECT_FALSE(run_sweep(plan, store.unfinished(), store, options));
  return store.rows();
}

struct ShippedSweeps : SweepFiles, testing::WithParamInterface<std::string> {};

TEST_P(ShippedSweeps, ShowWhatTheySay) {
  SweepRequest r;
  r.file = kSweeps / (GetParam() + ".json");
  const SweepPlan plan = plan_sweep(r);
  EXPECT_FALSE(plan.description.empty());
  EXPECT_FALSE(plan.teaches.empty());
  EXPECT_GE(plan.expect.size(), 2u) << "a wrong trend has to be noticed";
  for (const SweepExpectationResult& e : evaluate_sweep(plan, run(plan, dir))) {
    EXPECT_TRUE(e.met) << e.text;
    for (const std::string& f : e.failures) ADD_FAILURE() << f;
  }
}

INSTANTIATE_TEST_SUITE_P(Tree, ShippedSweeps, testing::ValuesIn(shipped()), [](const auto& i) { return i.param; });

struct Signalling : SweepFiles {};

// Sizes that the driver rounds up, and ratios that do not divide the depth: more than the shipped grid has.
TEST_F(Signalling, ObeysTheClosedRuleInEveryCell_S_PS_42_S_OVR_1) {
  SweepRequest r;
  r.file = kSweeps / "signalling.json";
  r.sets = {"programs.client.qp.qp.max_send_wr=64", "sweep.expect=[]"};
  r.vary = {"cqe=1,2,3,5,7,8,15,20,31,40,63,100,200", "cq_mod=1,2,3,4,5,7,9,13,16,21,32,33,63,64,65,66,200"};
  const SweepPlan plan = plan_sweep(r);
  std::size_t deadlocks = 0, overruns = 0;
  for (const SweepRow& row : run(plan, dir)) {
    const auto cqe = static_cast<std::uint32_t>(*row.values[0]), cq_mod = static_cast<std::uint32_t>(*row.values[1]);
    const std::uint32_t ring = std::bit_ceil(cqe + 1), in_flight = 64 / cq_mod;
    const std::string rule = cq_mod > 64 ? "deadlock" : in_flight > ring ? "cq_overrun" : "ok";
    EXPECT_EQ(row.verdict, rule) << "cqe " << cqe << ", cq_mod " << cq_mod << ": " << row.why;
    deadlocks += rule == "deadlock";
    overruns += rule == "cq_overrun";
  }
  EXPECT_EQ(plan.points.size(), 221u);
  EXPECT_EQ(deadlocks, 39u);
  EXPECT_GT(overruns, 20u);
}

}  // namespace
}  // namespace experiment
