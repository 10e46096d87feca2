// SPDX-License-Identifier: Apache-2.0
// The binary as users call it: exit codes, what goes to stdout and stderr, files, signals.
#include <gmock/gmock.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli_fixture.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Cli, HelpAndVersion) {
  const Finished help = rdmasim({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("validate"), HasSubstr("exit codes: 0 fine")));
  const Finished version = rdmasim({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("rdmasim [0-9.]+ \\(git .+, .+, (GCC|Clang) .+, SystemC 2\\..+\\)\n"));
  EXPECT_EQ(version.err, "");
  for (const char* command : {"run", "report", "explore", "sweep", "merge", "view", "validate", "config", "list"}) {
    const Finished f = rdmasim({command, "--help"});
    EXPECT_EQ(f.code, 0);
    EXPECT_THAT(f.out, HasSubstr(std::string("usage: rdmasim ") + command));
  }
}

TEST_F(Cli, MistakesOfTheCommandLineExitTwoWithAHint) {
  const auto mistake = [&](const std::vector<std::string>& arguments) {
    const Finished f = rdmasim(arguments);
    EXPECT_EQ(f.code, 2);
    EXPECT_EQ(f.out, "");
    return f.err;
  };
  EXPECT_THAT(mistake({}), HasSubstr("missing command"));
  EXPECT_THAT(mistake({"rnu"}), HasSubstr("unknown command \"rnu\"; did you mean \"run\"?"));
  EXPECT_THAT(mistake({"--seed", "3"}), HasSubstr("the command comes first"));
  EXPECT_THAT(mistake({"run"}), HasSubstr("missing FILE"));
  EXPECT_THAT(mistake({"run", "a", "b"}), HasSubstr("unexpected argument \"b\""));
  EXPECT_THAT(mistake({"run", kPingPong, "--sede", "3"}), HasSubstr("unknown option --sede; did you mean \"--seed\"?"));
  EXPECT_THAT(mistake({"run", kPingPong, "--seed", "-3"}), HasSubstr("--seed"));
  EXPECT_THAT(mistake({"run", kPingPong, "--format", "xml"}), HasSubstr("known: \"table\" or \"json\""));
  EXPECT_THAT(mistake({"run", kPingPong, "--engine", "fast"}), HasSubstr("known: \"run_ahead\" or \"tick\""));
  EXPECT_THAT(mistake({"run", kPingPong, "--log-level", "loud"}), HasSubstr("known: \"trace\""));
  EXPECT_THAT(
      mistake({"run", kPingPong, "--trace", "json,jsno", "--out", dir_}),
      HasSubstr(
          "unknown format \"jsno\"; did you mean \"json\"? (known: \"json\", \"perfetto\", \"vcd\" or \"pcap\")"));
  EXPECT_THAT(mistake({"run", kPingPong, "--trace", "json"}), HasSubstr("--trace needs --out DIR"));
  EXPECT_THAT(mistake({"run", kPingPong, "--out", kPingPong}), HasSubstr("is not a directory"));
  EXPECT_THAT(mistake({"run", kPingPong, "--out", "/proc/nothing"}),
              HasSubstr("--out /proc/nothing: cannot be created"));
  EXPECT_THAT(mistake({"list", "parametres"}), HasSubstr("did you mean \"parameters\"?"));
}

TEST_F(Cli, MistakesInFilesExitTwoWithTheirPosition) {
  const auto mistake = [&](const fs::path& file) {
    const Finished f = rdmasim({"run", file});
    EXPECT_EQ(f.code, 2);
    EXPECT_EQ(f.out, "");
    return f.err;
  };
  EXPECT_THAT(mistake("/nonexistent.json"), HasSubstr("/nonexistent.json: cannot be read"));
  EXPECT_THAT(mistake(dir_), HasSubstr(": is a directory"));
  EXPECT_THAT(mistake(write("a.json", "")), HasSubstr("a.json: is empty"));
  EXPECT_THAT(mistake(write("a.json", "{\n  \"a\": }")), HasSubstr("a.json:2:8: broken JSON"));
  EXPECT_THAT(mistake(write("a.json", "{\n  \"workload\": []}")),
              HasSubstr("a.json:2:3: unknown key \"workload\"; did you mean \"workloads\"?"));
  EXPECT_THAT(mistake(write("a.json", "{\n  \"profile\": \"none such\"}")),
              HasSubstr("a.json:2:14: profile: there is no profile"));
  EXPECT_THAT(mistake(write("a.json", "{\"a\": \"\xff\"}")), HasSubstr("a.json:1:8: not UTF-8"));
  const fs::path big = write("big.json", "{}");
  fs::resize_file(big, 100 << 20);
  EXPECT_THAT(mistake(big), HasSubstr("big.json: is 104857600 bytes large"));
}

TEST_F(Cli, ValidateReportsEveryFile) {
  const fs::path bad = write("bad.json", "{\n  \"workload\": [],\n  \"expectt\": []}");
  const Finished f = rdmasim({"validate", kPingPong, bad, kPingPong});
  EXPECT_EQ(f.code, 2);
  EXPECT_EQ(f.out, kPingPong + ": ok\n" + kPingPong + ": ok\n");
  EXPECT_THAT(f.err, AllOf(HasSubstr("bad.json:2:3:"), HasSubstr("bad.json:3:3:"),
                           HasSubstr("bad.json:1:1: workloads: at least one"), HasSubstr("bad.json: 3 errors\n")));
}

TEST_F(Cli, ThePingPongReportsATable) {
  const Finished f = run({});
  EXPECT_EQ(f.code, 0) << f.err;
  EXPECT_EQ(f.err, "");  // no progress bar: stderr is not a terminal
  for (const char* part : {"messages", "latency, ns", "half round trip", "bandwidth", "message rate", "WC statuses",
                           "SUCCESS", "sum", "bottleneck"})
    EXPECT_THAT(f.out, HasSubstr(part));
}

TEST_F(Cli, ResourcesAreListedAtTimesAndAtExit) {
  const Finished r = run({"--resources", "--resources-at", "1ms,10s"});
  EXPECT_EQ(r.code, 0);
  EXPECT_THAT(r.out, HasSubstr("resources at 1 ms:\nhost0 mlx5_0: pd 1 cq 2 qp 1 cm_id 0 mr 1 ctx 1 srq 0\n"));
  EXPECT_THAT(r.out, HasSubstr("type RC state RTS"));
  EXPECT_THAT(r.out, HasSubstr("comm pingpong.client"));
  EXPECT_THAT(r.out, Not(HasSubstr("resources at 10 s"))) << "after the end";
  EXPECT_THAT(r.out, HasSubstr("resources at exit:\nhost0 mlx5_0: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0\n"));
  const Finished json = run({"--format", "json", "--resources-at", "1ms"});
  EXPECT_THAT(json.out, HasSubstr("\"resources_at\": ["));
  EXPECT_THAT(json.out, HasSubstr("\"qp\": []")) << "at the end";
  EXPECT_EQ(run({"--resources-at", "soon"}).code, 2);
}

TEST_F(Cli, JsonGoesToStdoutAndTheSameToTheOutputDirectory) {
  const fs::path out = dir_ / "new" / "out";
  const Finished f = run({"--format", "json", "--seed", "12", "--out", out, "--trace", "perfetto,json"});
  ASSERT_EQ(f.code, 0) << f.err;
  const sim::Json j = parsed(f.out);
  EXPECT_EQ(*j.at("/schema"), sim::Json("rdmasim-result/1"));
  EXPECT_EQ(*j.at("/scenario"), sim::Json("rc_send_pingpong"));
  EXPECT_EQ(*j.at("/seed"), sim::Json(12));
  std::int64_t sum = 0;
  for (const sim::Json& stage : j.at("/workloads/0/breakdown_ns")->items()) sum += *stage.find("p50_ps")->as_int64();
  EXPECT_EQ(sim::Json(sum), *j.at("/workloads/0/median_message/latency_ps"));
  EXPECT_EQ(slurp(out / "result.json"), f.out);
  EXPECT_GT(fs::file_size(out / "trace.jsonl"), 1000u);
  EXPECT_GT(fs::file_size(out / "trace.perfetto.json"), 1000u);
}

TEST_F(Cli, TheSameRunGivesTheSameBytesInBothEngineModes) {
  const auto result = [&](const std::string& mode) {
    const Finished f = run({"--format", "json", "--engine", mode});
    sim::Json j = parsed(f.out);
    j.erase("simulator");
    return j.dump();
  };
  const std::string first = result("run_ahead");
  EXPECT_EQ(result("run_ahead"), first);
  EXPECT_EQ(result("tick"), first);
}

TEST_F(Cli, AnUnmetExpectationExitsOneAndSaysSoEvenWhenQuiet) {
  const Finished f = run({"--quiet", "--set", R"(expect=[{"at": "/workloads/0/messages", "equals": -1}])"});
  EXPECT_EQ(f.code, 1);
  EXPECT_EQ(f.out, "");
  EXPECT_THAT(f.err, HasSubstr("expectation not met: /workloads/0/messages: expected -1, got "));
}

TEST_F(Cli, AnInterruptExits130WithPartialResults) {
  const pid_t pid = spawn({"run", kPingPong, "--format", "json", "--set", "workloads.0.iters=2000000000", "--set",
                           "run.time_limit=100000 s"});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  kill(pid, SIGINT);
  const Finished f = wait(pid);
  EXPECT_EQ(f.code, 130) << f.err;
  const sim::Json j = parsed(f.out);
  EXPECT_EQ(*j.at("/verdict"), sim::Json("interrupted"));
  EXPECT_GT(j.at("/workloads/0/messages")->number(), 0);
}

const std::string kEvents = RDMASIM_SOURCE_DIR "/scenarios/events/";

TEST_F(Cli, ExploreFindsARaceAndTheCommandsThatRepeatIt) {
  const fs::path report = dir_ / "report.json";
  const Finished f = rdmasim({"explore", kEvents + "drain_before_arm.json", "-j2", "--json", report});
  EXPECT_EQ(f.code, 1) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("deadlock   <-- differs"), HasSubstr("1002 runs: some end otherwise")));
  const sim::Json j = parsed(slurp(report));
  EXPECT_EQ(*j.at("/schema"), sim::Json("rdmasim-explore/1"));
  std::size_t differing = 0;
  for (const sim::Json& range : j.at("/scan/ranges")->items()) {
    const std::string command = range.at("/first/command")->string();
    ASSERT_TRUE(command.starts_with("rdmasim run ")) << command;
    const std::string again = std::string(RDMASIM_BINARY) + command.substr(7) + " --format json > " +
                              (dir_ / "again.json").string() + " 2> /dev/null";
    const int status = std::system(again.c_str());
    const bool differs = range.at("/differs")->boolean();
    EXPECT_EQ(WEXITSTATUS(status) != 0, differs) << command;
    EXPECT_EQ(*parsed(slurp(dir_ / "again.json")).at("/verdict"), *range.at("/first/outcome"));
    differing += differs;
  }
  EXPECT_EQ(differing, 1u);
}

TEST_F(Cli, ExploreOfTheRightLoopExitsZeroOverTheSameScan) {
  const Finished f = rdmasim({"explore", kEvents + "arm_then_drain.json", "-j2"});
  EXPECT_EQ(f.code, 0) << f.out << f.err;
  EXPECT_THAT(f.out, HasSubstr("1002 runs: all end as they should"));
  const sim::Json wrong = parsed(slurp(kEvents + "drain_before_arm.json")),
                  right = parsed(slurp(kEvents + "arm_then_drain.json"));
  EXPECT_EQ(*wrong.at("/explore"), *right.at("/explore"));
  EXPECT_EQ(*wrong.at("/host"), *right.at("/host"));
}

TEST_F(Cli, MistakesOfExploreExitTwo) {
  const auto mistake = [&](std::vector<std::string> more, const std::string& file = kPingPong) {
    more.insert(more.begin(), {"explore", file});
    const Finished f = rdmasim(more);
    EXPECT_EQ(f.code, 2);
    EXPECT_EQ(f.out, "");
    return f.err;
  };
  EXPECT_THAT(mistake({}), HasSubstr("nothing varies"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.loop"}), HasSubstr("NAME=FROM..TO[:STEP]"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.loop=1..2"}), HasSubstr("expected a time such as 10ns, got \"1\""));
  EXPECT_THAT(mistake({"--scan", "workloads.0.loop=2us..1us"}), HasSubstr("ends before it begins"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.loop=0..1us:0"}), HasSubstr("more than 0"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.name=0..1us"}), HasSubstr("is not a time"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.lop=0..1us"}), HasSubstr("the scenario has no such value"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.loop=0..1us:1ns", "--json", "/no/where/report.json"}),
              HasSubstr("--json /no/where/report.json: cannot be written"));
  EXPECT_THAT(mistake({"--scan", "workloads.0.loop=0..1ms:1ps"}), HasSubstr("take a larger step"));
  EXPECT_THAT(mistake({}, write("plan.json", R"({"workloads": [{"op": "send_lat"}],
    "explore": {"delays": [{"delay": "workloads.0.size", "to": "1 us"}]}})")),
              AllOf(HasSubstr("plan.json:2:38"), HasSubstr("is not a time")));
  EXPECT_THAT(mistake({"--tries", "0"}), HasSubstr("--tries: expected an integer from 1"));
  EXPECT_THAT(mistake({"--tries", "2", "-j", "0"}), HasSubstr("--jobs: expected an integer from 1"));
  EXPECT_THAT(mistake({"--tries", "2"}, "/no/such/file.json"), HasSubstr("/no/such/file.json"));
}

TEST_F(Cli, ExploreIsInterruptedWithWhatItHas) {
  const pid_t pid = spawn({"explore", kPingPong, "--tries", "5", "-j1", "--set", "workloads.0.iters=2000000000",
                           "--set", "run.time_limit=100000 s"});
  std::this_thread::sleep_for(std::chrono::seconds(1));
  kill(pid, SIGINT);
  const Finished f = wait(pid);
  EXPECT_EQ(f.code, 130) << f.err;
  EXPECT_THAT(f.out, HasSubstr("then interrupted"));
}

TEST_F(Cli, AFullDiskIsAnErrorNotABug) {
  const std::string command =
      std::string(RDMASIM_BINARY) + " config " + kPingPong + " > /dev/full 2> " + (dir_ / "err").string();
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(slurp(dir_ / "err"), HasSubstr("could not be written"));
}

TEST_F(Cli, TheEffectiveConfigurationIsAScenarioWithTheSameResult) {
  const Finished config = rdmasim({"config", kPingPong, "--set", "seed=77"});
  ASSERT_EQ(config.code, 0) << config.err;
  const fs::path file = write("effective.json", config.out);
  EXPECT_EQ(rdmasim({"config", file}).out, config.out);
  const Finished origins = rdmasim({"config", kPingPong, "--origins", "--set", "seed=77"});
  EXPECT_THAT(origins.out, AllOf(HasSubstr("seed = 77   (--set seed=77)\n"), HasSubstr("rc_send_pingpong.json:")));
}

TEST_F(Cli, ListsNameWhatThereIs) {
  EXPECT_THAT(rdmasim({"list", "scenarios"}).out, HasSubstr("rc_send_pingpong.json"));
  EXPECT_THAT(rdmasim({"list", "parameters"}).out, HasSubstr("seed"));
  EXPECT_THAT(rdmasim({"list", "trace-points"}).out, HasSubstr("fabric.wire"));
  const Finished profiles = rdmasim({"list", "profiles"});
  EXPECT_EQ(profiles.code, 0);
  EXPECT_NE(profiles.out, "");
}

TEST_F(Cli, GeneratedFilesInTheTreeAreUpToDate) {
  const std::string root = RDMASIM_SOURCE_DIR;
  const std::string how = "; cmake --build BUILD --target generate writes them again";
  EXPECT_EQ(rdmasim({"config", "--schema", "scenario"}).out, slurp(root + "/scenarios/schema/scenario.schema.json"))
      << how;
  EXPECT_EQ(rdmasim({"config", "--schema", "profile"}).out, slurp(root + "/scenarios/schema/profile.schema.json"))
      << how;
  EXPECT_EQ(rdmasim({"config", "--reference"}).out, slurp(root + "/docs/parameters.md")) << how;
}

}  // namespace
