// SPDX-License-Identifier: Apache-2.0
#include "experiment/explore.h"

#include <gtest/gtest.h>

#include "experiment/scenario.h"

namespace experiment {
namespace {

const std::filesystem::path kEvents = std::filesystem::path(RDMASIM_SOURCE_DIR) / "scenarios" / "events";

ExploreOptions options(const char* file, sim::Picos step) {
  ExploreOptions o;
  o.file = kEvents / file;
  o.scan = load_scenario(o.file, {}).config.explore.scan;
  o.scan->step = step;
  o.jobs = 2;
  return o;
}

/// The outcome of `rdmasim run` with the options of the command, in a process of its own.
std::string repeated(const ExploreOptions& o, const ExploredRun& r) {
  sys::Overrides again{o.sets};
  again.sets.push_back("seed=" + std::to_string(r.seed));
  for (const auto& [path, t] : r.delays) again.sets.push_back(path + "=" + sim::to_string(t));
  bool interrupted = false;
  return run_all(o.file, {again}, 1, {}, interrupted)[0].outcome;
}

TEST(Explore, FindsTheWindowOfALostWakeUp_S_CE_21) {
  const ExploreOptions o = options("drain_before_arm.json", sim::Picos{50'000});
  const Exploration e = explore(o);
  EXPECT_EQ(e.base.outcome, "ok");
  ASSERT_EQ(e.ranges.size(), 3u) << to_table(e);
  EXPECT_FALSE(e.ranges[0].differs);
  EXPECT_TRUE(e.ranges[1].differs);
  EXPECT_EQ(e.ranges[1].first.outcome.outcome, "deadlock");
  EXPECT_FALSE(e.ranges[2].differs);
  EXPECT_GT(e.ranges[1].to, e.ranges[1].from);
  EXPECT_EQ(e.ranges[0].runs + e.ranges[1].runs + e.ranges[2].runs, 201u);
  EXPECT_TRUE(e.differs());
  EXPECT_EQ(repeated(o, e.ranges[1].first), "deadlock");
}

TEST(Explore, TheRightLoopHasNoWindow_S_CE_20) {
  const Exploration e = explore(options("arm_then_drain.json", sim::Picos{50'000}));
  ASSERT_EQ(e.ranges.size(), 1u) << to_table(e);
  EXPECT_FALSE(e.differs());
  EXPECT_EQ(e.runs, 202u);
}

TEST(Explore, APostedArmLeavesAWindowToTheRightLoop_S_CE_21) {
  ExploreOptions o = options("arm_then_drain.json", sim::Picos{50'000});
  o.sets = {"host.verbs.arm_read_back=false"};
  EXPECT_TRUE(explore(o).differs());
  o.sets.emplace_back("host.hca.completion.arm_rule=compare_ci");
  EXPECT_FALSE(explore(o).differs());
}

TEST(Explore, RandomRunsRepeatAndAreReduced) {
  ExploreOptions o = options("drain_before_arm.json", sim::Picos{50'000});
  sys::DelayConfig race = *o.scan, other;
  race.to = sim::Picos{5'000'000};
  other.delay = "run.jitter.tasklet";
  other.to = sim::Picos{1'000'000};
  o.scan.reset();
  o.delays = {other, race};
  o.tries = 60;
  const Exploration e = explore(o);
  ASSERT_FALSE(e.differing.empty()) << to_table(e);
  const Exploration again = explore(o);
  EXPECT_EQ(to_json(e).dump(), to_json(again).dump());
  EXPECT_EQ(repeated(o, e.differing[0]), "deadlock");
  ASSERT_EQ(e.reduced.size(), 1u);
  ASSERT_EQ(e.reduced[0].delays.size(), 1u) << "the tasklet has nothing to do with it";
  EXPECT_EQ(e.reduced[0].delays[0].first, race.delay);
  EXPECT_EQ(repeated(o, e.reduced[0]), "deadlock");
}

TEST(Explore, AScenarioThatEndsOtherwiseAsItIsDiffers) {
  ExploreOptions o = options("arm_then_drain.json", sim::Picos{5'000'000});
  o.sets = {"host.verbs.arm_read_back=false", "programs.client.steps.1.compute=2.3 us"};
  const Exploration e = explore(o);
  EXPECT_EQ(e.base.outcome, "deadlock");
  EXPECT_TRUE(e.base_differs);
  EXPECT_EQ(e.ranges.size(), 1u) << "the scan of three values misses the window";
  EXPECT_TRUE(e.differs());
}

TEST(Explore, RefusesWhatIsNoDelay) {
  ExploreOptions o = options("arm_then_drain.json", sim::Picos{1'000'000});
  for (const char* path : {"seed", "description", "programs.server.steps.99.compute", "no.such.thing"}) {
    o.scan->delay = path;
    EXPECT_THROW(explore(o), sim::ConfigFailure) << path;
  }
  o = options("arm_then_drain.json", sim::Picos{1});
  EXPECT_THROW(explore(o), sim::ConfigFailure) << "ten million runs";
}

}  // namespace
}  // namespace experiment
