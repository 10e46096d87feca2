// SPDX-License-Identifier: Apache-2.0
// rdmasim explain and rdmasim diff as users call them: what they take, exit codes, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/cli/cli_fixture.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kScenarios = RDMASIM_SOURCE_DIR "/scenarios/";

class ExplainDiff : public Cli {
 protected:
  /// `arguments` as a shell reads them.
  Finished rdmasim(const std::string& arguments) {
    const std::string command = std::string(RDMASIM_BINARY) + " " + arguments + " > " + (dir_ / "out.txt").string() +
                                " 2> " + (dir_ / "err.txt").string();
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000, slurp(dir_ / "out.txt"), slurp(dir_ / "err.txt")};
  }
  /// The directory with the result of a scenario.
  std::string result_of(const std::string& scenario, const std::string& name) {
    const std::string out = (dir_ / name).string();
    rdmasim("run " + kScenarios + scenario + " --quiet --out " + out);
    return out;
  }
  std::string write(const std::string& text) { return Cli::write("file.json", text).string(); }
};

TEST_F(ExplainDiff, ResultDirectoryAndScenarioAreExplainedAlike) {
  const std::string out = result_of("cases/cq_16_overruns.json", "overrun");
  const Finished directory = rdmasim("explain " + out), file = rdmasim("explain " + out + "/result.json"),
                 scenario = rdmasim("explain " + kScenarios + "cases/cq_16_overruns.json");
  EXPECT_EQ(directory.code, 0) << directory.err;
  EXPECT_THAT(directory.out, AllOf(HasSubstr("cq_overrun: "), HasSubstr("client.cq on host0"), HasSubstr("S-OVR-1"),
                                   HasSubstr("programs.client.cq.cq.cqe from 16 to 64")));
  EXPECT_EQ(directory.out, file.out);
  EXPECT_EQ(directory.out, scenario.out) << "nothing was sent again that a run would know the time of";
}

TEST_F(ExplainDiff, AScenarioTakesOverridesAndAResultDoesNot) {
  const std::string file = kScenarios + "rc_write_bw.json";
  EXPECT_THAT(rdmasim("explain " + file).out, HasSubstr("wire: "));
  EXPECT_THAT(rdmasim("explain " + file + " --set workloads.0.tx_depth=2 --set workloads.0.size='4 KiB'").out,
              HasSubstr("tx_depth: nothing is saturated"));
  const Finished refused = rdmasim("explain " + result_of("rc_write_bw.json", "bw") + " --seed 3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is a result: --set and --seed are for a scenario"));
}

TEST_F(ExplainDiff, JsonIsVersioned) {
  const Finished f = rdmasim("explain " + kScenarios + "cases/read_with_1_outstanding.json --format json");
  EXPECT_EQ(f.code, 0);
  const sim::Json j = parsed(f.out);
  EXPECT_EQ(j.find("schema")->string(), "rdmasim-explain/1");
  EXPECT_EQ(j.at("/limits/0/id")->string(), "max_rd_atomic");
  EXPECT_EQ(j.at("/limits/0/advice/0/changes/0/set")->string(), "workloads.0.max_rd_atomic=4");
}

TEST_F(ExplainDiff, ADeadlockIsExplainedAndNotAFailure) {
  const Finished f = rdmasim("explain " + kScenarios + "cases/all_unsignaled_and_a_poll_for_ever.json");
  EXPECT_EQ(f.code, 0);
  EXPECT_THAT(f.out, HasSubstr("unsignaled_send_queue: "));
}

TEST_F(ExplainDiff, WhatIsNoResultIsRefusedWithFileAndPointer) {
  const std::string good = result_of("rc_write_lat.json", "good");
  for (const std::string& command : {std::string("explain "), "diff " + good + " "}) {
    const Finished missing = rdmasim(command + "/nowhere/result.json");
    EXPECT_EQ(missing.code, 2);
    EXPECT_THAT(missing.err, HasSubstr("/nowhere/result.json"));
    const Finished broken = rdmasim(command + write("{\"schema\": "));
    EXPECT_EQ(broken.code, 2);
    EXPECT_THAT(broken.err, HasSubstr("file.json:1:"));
    const Finished other = rdmasim(command + write("{\"schema\": \"rdmasim-result/7\"}"));
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.err, AllOf(HasSubstr("file.json:1:12: /schema"), HasSubstr("rdmasim-result/1")));
    const Finished cut = rdmasim(command + write("{\"schema\": \"rdmasim-result/1\"}"));
    EXPECT_EQ(cut.code, 2);
    EXPECT_THAT(cut.err, HasSubstr("/counters: is missing"));
    EXPECT_EQ(cut.out, "");
  }
  const Finished scenario = rdmasim("diff " + good + " " + kScenarios + "rc_write_lat.json");
  EXPECT_EQ(scenario.code, 2);
  EXPECT_THAT(scenario.err, HasSubstr("is not a result of a run"));
}

TEST_F(ExplainDiff, AThresholdSetsTheExitCode) {
  const std::string one = result_of("cases/read_with_1_outstanding.json", "one"),
                    many = result_of("cases/read_with_16_outstanding.json", "many");
  const Finished plain = rdmasim("diff " + many + " " + one);
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, AllOf(HasSubstr("workloads.0.max_rd_atomic: 16 -> 1"), HasSubstr("doorbell_context")));
  EXPECT_EQ(rdmasim("diff " + many + " " + one + " --threshold 5").code, 1);
  EXPECT_EQ(rdmasim("diff " + one + " " + many + " --threshold 5").code, 0);
  EXPECT_EQ(rdmasim("diff " + many + " " + one + " --threshold 5 --metric messages").code, 0);
  const sim::Json j = parsed(rdmasim("diff " + many + " " + one + " --threshold 5 --format json").out);
  EXPECT_EQ(j.find("schema")->string(), "rdmasim-diff/1");
  EXPECT_TRUE(j.find("worse")->boolean());
}

TEST_F(ExplainDiff, MistakesOfTheCommandLineAreTold) {
  const auto mistake = [&](const std::string& arguments) {
    const Finished f = rdmasim(arguments);
    EXPECT_EQ(f.code, 2) << arguments;
    EXPECT_EQ(f.out, "");
    return f.err;
  };
  EXPECT_THAT(mistake("explain"), HasSubstr("missing RESULT"));
  EXPECT_THAT(mistake("explain a --format yaml"), HasSubstr("unknown format \"yaml\""));
  EXPECT_THAT(mistake("diff a"), HasSubstr("missing B"));
  EXPECT_THAT(mistake("diff a b c"), HasSubstr("unexpected argument \"c\""));
  EXPECT_THAT(mistake("diff a b --threshold much"), HasSubstr("expected a percentage"));
  EXPECT_THAT(mistake("diff a b --threshold 5 --metric latency_p99"), HasSubstr("did you mean \"latency_p99_ns\"?"));
  EXPECT_THAT(mistake("diff a b --metric messages"), HasSubstr("--threshold"));
  for (const char* command : {"explain", "diff"})
    EXPECT_THAT(rdmasim(std::string(command) + " --help").out, HasSubstr(std::string("usage: rdmasim ") + command));
}

}  // namespace
