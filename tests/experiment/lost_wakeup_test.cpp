// SPDX-License-Identifier: Apache-2.0
// A completion's arrival is swept over poll, arm and sleep of its consumer, the arm being a posted write (S-CE-5, S-CE-20,
// S-CE-21). An adapter that compares the armed consumer index with its producer never loses a wake-up. One that fires for
// later CQEs only loses it without a second poll, and even with one when the CQE and the arm cross on the bus.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "experiment/run.h"
#include "experiment/scenario.h"

namespace {

namespace fs = std::filesystem;

std::string scenario(int delay_ns, bool compares, bool second_poll) {
  return R"({"host": {"hca": {"completion": {"arm_rule": ")" + std::string(compares ? "compare_ci" : "next_cqe") +
         R"("}}},
"programs": {
"client": {"mr": {"buf": {"size": "64 B"}}, "cq": {"cq": {}}, "qp": {"qp": {"peer": "server.qp"}},
 "steps": [{"wait": {"label": "server.go"}}, {"post_send": {"wr": [{"sge": [{}]}]}}, {"sleep": "1 ms"},
  {"post_send": {"wr": [{"send_flags": ["SIGNALED"], "sge": [{}]}]}}, {"poll": {}}]},
"server": {"host": "host1", "mr": {"buf": {"size": "64 B"}}, "channel": {"ch": {}}, "cq": {"cq": {"channel": "ch"}}, "qp": {"qp": {"peer": "client.qp"}},
 "steps": [{"post_recv": {"wr": [{"sge": [{}]}, {"sge": [{}]}]}}, {"label": "go"}, {"mark": "go"}, {"compute": ")" +
         std::to_string(delay_ns) + R"( ns"}, {"poll": {"until": "once"}}, {"arm": {}}, )" +
         (second_poll ? R"({"poll": {"until": "once"}}, )" : "") +
         R"({"get_event": {}}, {"ack": {}}, {"poll": {"until": "empty"}}]}}})";
}

/// Whether the first completion waited for the second one, a millisecond later. In a process of its own: SystemC has one
/// kernel per process.
bool lost(int delay_ns, bool compares, bool second_poll) {
  const pid_t child = fork();
  if (child == 0) {
    const fs::path file = fs::temp_directory_path() / ("lost_wakeup_" + std::to_string(getpid()) + ".json");
    std::ofstream(file) << scenario(delay_ns, compares, second_poll);
    const experiment::Scenario s = experiment::load_scenario(file, {});
    fs::remove(file);
    const experiment::Result r = experiment::run(experiment::run_options(s), experiment::machine_factory(s));
    if (r.verdict != experiment::Verdict::ok) _exit(2);
    const experiment::ProgramResult& server = r.programs.at(1);
    const double first = server.completions.items().at(0).find("time_ns")->number();
    _exit(first - server.marks.at("go").ns() > 500'000 ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << delay_ns;
  return WEXITSTATUS(status) == 1;
}

/// Delays, in steps of 50 ns, with which the wake-up is lost.
std::vector<int> losses(bool compares, bool second_poll) {
  std::vector<int> out;
  for (int delay = 1000; delay <= 4000; delay += 50)
    if (lost(delay, compares, second_poll)) out.push_back(delay);
  return out;
}

TEST(LostWakeup, NeverWhenTheAdapterComparesIndices_S_CE_5) {
  EXPECT_TRUE(losses(true, false).empty());
  EXPECT_TRUE(losses(true, true).empty());
}

TEST(LostWakeup, InOneWindowWithoutTheComparison_S_CE_21) {
  const std::vector<int> without = losses(false, false), with = losses(false, true);
  ASSERT_FALSE(without.empty());
  EXPECT_EQ(without.back() - without.front(), 50 * (static_cast<int>(without.size()) - 1)) << "one window";
  // The second poll finds what has become visible in the meantime; what crosses the arm on the bus it cannot see.
  EXPECT_LE(with.size(), without.size());
  EXPECT_FALSE(with.empty());
}

}  // namespace
