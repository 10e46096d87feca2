// SPDX-License-Identifier: Apache-2.0
// A C program written for verbs, compiled as it is (only malloc and the exchange of addresses are the simulator's), runs as
// two simulated processes on two hosts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/system/run_workload.h"

extern "C" {
int rdmasim_rc_pingpong_main(int argc, char** argv);
int rdmasim_unreliable_pingpong_main(int argc, char** argv);
}

namespace sys::test {
namespace {

// Exit codes of both processes and the journeys that they caused.
struct Outcome {
  int code[2] = {-1, -1};
  std::size_t messages = 0;
  std::uint64_t events = 0, live_qps = 0, live_cqs = 0, live_keys = 0;
};

Outcome run_program(std::vector<std::string> arguments, int (*program)(int, char**) = rdmasim_rc_pingpong_main) {
  ScenarioConfig s;
  Simulation run(s);
  Outcome o;
  run.cluster->on_ready([&](sim::Picos t) {
    for (std::size_t i = 0; i < 2; ++i) {
      Host& host = run.cluster->host(i);
      Process& process = host.create_process();
      host.create_thread(process, 0, "pingpong",
                         [&o, i, arguments, program, &process] {
                           std::vector<std::string> all = arguments;
                           all.insert(all.begin(), "pingpong");
                           std::vector<char*> argv;
                           for (std::string& a : all) argv.push_back(a.data());
                           argv.push_back(nullptr);
                           o.code[i] = program(static_cast<int>(all.size()), argv.data());
                           process.os.exit();
                         })
          .start(t);
    }
  });
  EXPECT_EQ(run.run(), sim::Outcome::quiescent);
  o.messages = run.journeys.all.size();
  for (const auto& [path, c] : run.context.stats.counters())
    if (path.ends_with(".hca.events.eqes")) o.events += c.value;
  for (std::size_t i = 0; i < 2; ++i) {
    const hca::Hca::Census census = run.cluster->host(i).hca().census();
    o.live_qps += census.qps;
    o.live_cqs += census.cqs;
    o.live_keys += census.mkeys;
  }
  return o;
}

void expect_success(const Outcome& o, std::size_t messages) {
  EXPECT_EQ(o.code[0], 0);
  EXPECT_EQ(o.code[1], 0);
  EXPECT_EQ(o.messages, messages);
  EXPECT_EQ(o.live_qps, 0u) << "the programs have destroyed what they made";
  EXPECT_EQ(o.live_cqs, 0u);
  EXPECT_EQ(o.live_keys, 0u);
}

TEST(CProgram, PollsForCompletions) { expect_success(run_program({"-n", "50", "-g", "3", "-c"}), 100); }

TEST(CProgram, SleepsOnTheCompletionChannel) {
  const Outcome o = run_program({"-n", "50", "-g", "3", "-c", "-e"});
  expect_success(o, 100);
  EXPECT_GE(o.events, 100u) << "each message woke somebody";
}

TEST(CProgram, WaitsByPollOnAChannelThatDoesNotBlock_S_CE_11) {
  expect_success(run_program({"-n", "50", "-g", "3", "-c", "-p"}), 100);
}

TEST(CProgram, WaitsByEdgeTriggeredEpoll_S_CE_11) {
  const Outcome o = run_program({"-n", "50", "-g", "3", "-c", "-E"});
  expect_success(o, 100);
  EXPECT_GE(o.events, 100u) << "each message woke somebody";
}

TEST(CProgram, UsesTheBuilders) { expect_success(run_program({"-n", "20", "-g", "3", "-c", "-N"}), 40); }

TEST(CProgram, SendsMessagesOfManyPackets) {
  expect_success(run_program({"-n", "5", "-g", "3", "-c", "-s", "65536", "-m", "1024"}), 10);
}

TEST(CProgram, RunsOverIpv6) { expect_success(run_program({"-n", "5", "-g", "1", "-c"}), 10); }

TEST(CProgram, BouncesOverUc_S_UC_1) {
  expect_success(run_program({"uc", "5000", "20", "3"}, rdmasim_unreliable_pingpong_main), 40);
}

TEST(CProgram, BouncesOverUd_S_UD_1) {
  expect_success(run_program({"ud", "1024", "20", "3"}, rdmasim_unreliable_pingpong_main), 40);
}

TEST(CProgram, BouncesOverUdAndIpv6_S_UD_4) {
  expect_success(run_program({"ud", "64", "5", "1"}, rdmasim_unreliable_pingpong_main), 10);
}

}  // namespace
}  // namespace sys::test
