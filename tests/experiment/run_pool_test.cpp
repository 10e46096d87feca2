// SPDX-License-Identifier: Apache-2.0
#include "experiment/run_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

namespace experiment {
namespace {

namespace fs = std::filesystem;

struct RunPool : testing::Test {
  RunPool() : file(fs::temp_directory_path() / ("run_pool_" + std::to_string(getpid()) + ".json")) {
    std::ofstream(file) << R"({"workloads": [{"op": "send_lat", "iters": 10}],
                               "expect": [{"at": "/workloads/0/messages", "equals": 20}]})";
  }
  ~RunPool() override { fs::remove(file); }
  std::vector<RunOutcome> run(const std::vector<sys::Overrides>& runs, unsigned jobs = 2) {
    return run_all(file, runs, jobs, {}, interrupted);
  }
  const fs::path file;
  bool interrupted = false;
};

TEST_F(RunPool, OutcomesComeInTheOrderOfTheRuns) {
  const std::vector<RunOutcome> o =
      run({{{"workloads.0.iters=2000"}}, {}, {{"run.time_limit=1us"}}, {{"workloads.0.qps=0"}}}, 4);
  ASSERT_EQ(o.size(), 4u);
  EXPECT_EQ(o[0].outcome, "unmet");
  EXPECT_FALSE(o[0].good);
  EXPECT_EQ(o[0].why, (std::vector<std::string>{"/workloads/0/messages: expected 20, got 4000 (+3980)"}));
  EXPECT_EQ(o[1], (RunOutcome{"ok", true, {}}));
  EXPECT_EQ(o[2].outcome, "time_limit");
  EXPECT_EQ(o[3].outcome, "refused");
  EXPECT_FALSE(interrupted);
}

TEST_F(RunPool, AProcessThatDiesIsACrash) {
  const rlimit two_seconds{1, 10};
  ASSERT_EQ(setrlimit(RLIMIT_CPU, &two_seconds), 0);
  const std::vector<RunOutcome> o = run({{{"workloads.0.iters=1000000000"}}, {}}, 1);
  EXPECT_EQ(o[0].outcome, "crashed");
  ASSERT_EQ(o[0].why.size(), 1u);
  EXPECT_NE(o[0].why[0].find("signal " + std::to_string(SIGXCPU)), std::string::npos) << o[0].why[0];
  EXPECT_EQ(o[1].outcome, "ok") << "the next one is made all the same";
}

TEST_F(RunPool, ASignalEndsThoseUnderWayAndStartsNoMore) {
  const std::vector<sys::Overrides> endless(50, {{"workloads.0.iters=1000000000"}});
  std::signal(SIGALRM, [](int) { kill(getpid(), SIGINT); });
  alarm(1);
  const std::vector<RunOutcome> o = run(endless);
  EXPECT_TRUE(interrupted);
  for (const RunOutcome& each : o) EXPECT_EQ(each.outcome, "");
}

}  // namespace
}  // namespace experiment
