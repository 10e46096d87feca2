// SPDX-License-Identifier: Apache-2.0
// The --trace options as users give them.
#include <gmock/gmock.h>

#include "cli_fixture.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;

using TraceCli = Cli;

TEST_F(TraceCli, EachFileIsNamedWithHowToLookAtIt) {
  const std::string out = dir_ / "out";
  const Finished f = run({"--trace", "json,perfetto,vcd,pcap", "--out", out});
  ASSERT_EQ(f.code, 0) << f.err;
  EXPECT_THAT(f.err, AllOf(HasSubstr("wrote " + out + "/trace.jsonl: rdmasim view " + out + "\n"),
                           HasSubstr("wrote " + out + "/trace.perfetto.json: open it in https://ui.perfetto.dev\n"),
                           HasSubstr("wrote " + out + "/trace.vcd: gtkwave " + out + "/trace.gtkw\n"),
                           HasSubstr("wrote " + out + "/trace.pcapng: wireshark " + out + "/trace.pcapng\n")));
  EXPECT_EQ(run({"--quiet", "--trace", "json", "--out", out}).err, "");
}

TEST_F(TraceCli, ARefusedOptionSaysWhatItExpects) {
  const auto mistake = [&](std::vector<std::string> more, bool trace = true) {
    if (trace) more.insert(more.end(), {"--trace", "json", "--out", dir_});
    const Finished f = run(more);
    EXPECT_EQ(f.code, 2);
    EXPECT_EQ(f.out, "");
    return f.err;
  };
  EXPECT_THAT(mistake({"--trace-trigger", "errors", "--trace-last", "1us"}),
              HasSubstr("--trace-trigger: unknown trigger \"errors\"; did you mean \"error\"?"));
  EXPECT_THAT(mistake({"--trace-trigger", "error"}), HasSubstr("--trace-trigger needs --trace-last"));
  EXPECT_THAT(mistake({"--trace-trigger", "error", "--trace-last", "1us"}, false), HasSubstr("needs --trace"));
  EXPECT_THAT(mistake({"--trace-last", "0us"}), HasSubstr("--trace-last: expected more than no time"));
  EXPECT_THAT(mistake({"--trace-last", "10"}), HasSubstr("--trace-last: expected a time such as 50us"));
  EXPECT_THAT(mistake({"--trace-window", "10us"}), HasSubstr("--trace-window: expected a window such as 10us..20us"));
  EXPECT_THAT(mistake({"--trace-window", "2us..1us"}), HasSubstr("ends before it begins"));
  EXPECT_THAT(mistake({"--trace-hosts", "host7"}), HasSubstr("--trace-hosts: unknown host \"host7\""));
  EXPECT_THAT(mistake({"--trace-qpn", "host0:0x1000000"}), HasSubstr("--trace-qpn: expected a QPN"));
  EXPECT_THAT(mistake({"--trace-msg", "0"}), HasSubstr("--trace-msg: expected message numbers from 1"));
  EXPECT_THAT(mistake({"--trace-msg", "9..3"}), HasSubstr("--trace-msg: expected message numbers from 1"));
  EXPECT_THAT(mistake({"--trace-categories", "cpu,gpu"}), HasSubstr("--trace-categories: unknown category \"gpu\""));
  EXPECT_THAT(mistake({"--trace-bytes", "-1"}), HasSubstr("--trace-bytes: expected bytes from 0"));
  EXPECT_THAT(mistake({"--pcap-snaplen", "many"}), HasSubstr("--pcap-snaplen: expected bytes from 0"));
}

TEST_F(TraceCli, TheTriggerChoosesThePiece) {
  const auto trace = [&](const std::string& scenario, const std::string& trigger) {
    const Finished f = rdmasim({"run", RDMASIM_SOURCE_DIR "/scenarios/cases/" + scenario, "--quiet", "--trace", "json",
                                "--out", dir_, "--trace-last", "5us", "--trace-trigger", trigger});
    EXPECT_EQ(f.code, 0) << f.err;
    return slurp(dir_ / "trace.jsonl");
  };
  const std::string fails = "bad_rkey_fails_one_and_flushes_all.json", retries = "rnr_retry_7_waits_for_ever.json";
  EXPECT_THAT(trace(fails, "error"), HasSubstr("\"hca.cqe\""));
  EXPECT_THAT(trace(fails, "deadlock"), testing::Not(HasSubstr("\"hca.cqe\"")));
  EXPECT_THAT(trace(retries, "deadlock"), HasSubstr("\"hca.doorbell\""));
  EXPECT_THAT(trace(retries, "end"), testing::Not(HasSubstr("\"hca.doorbell\"")));
}

}  // namespace
