// SPDX-License-Identifier: Apache-2.0
// Programs as lists of steps: what they do, what is refused, what a step that goes wrong looks like.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "experiment/run.h"
#include "experiment/scenario.h"
#include "experiment/table.h"

namespace {

namespace fs = std::filesystem;
using experiment::Result;
using experiment::Verdict;
using testing::HasSubstr;

class Programs : public testing::Test {
 protected:
  void SetUp() override { file_ = fs::temp_directory_path() / ("programs_" + std::to_string(getpid()) + ".json"); }
  void TearDown() override { fs::remove(file_); }

  experiment::Scenario load(const std::string& text) {
    std::ofstream(file_) << text;
    return experiment::load_scenario(file_, {});
  }
  std::string mistakes(const std::string& text) {
    try {
      load(text);
      return "";
    } catch (const sim::ConfigFailure& f) {
      return f.what();
    }
  }
  Result run(const std::string& text) {
    scenario_ = load(text);
    return experiment::run(experiment::run_options(scenario_), experiment::machine_factory(scenario_));
  }
  /// Two connected programs with one QP, CQ and MR each.
  static std::string pair(const std::string& client, const std::string& server, const std::string& qp = "") {
    return R"({"programs": {
"client": {"mr": {"buf": {"size": "8 KiB", "pattern": 1}}, "cq": {"cq": {"cqe": 63}}, "qp": {"qp": {"peer": "server.qp")" +
           qp + R"(}},
"steps": [
)" + client +
           R"(
]},
"server": {"host": "host1", "mr": {"buf": {"size": "8 KiB"}}, "cq": {"cq": {"cqe": 63}}, "qp": {"qp": {"peer": "client.qp"}},
"steps": [
)" + server +
           R"(
]}}})";
  }

  fs::path file_;
  experiment::Scenario scenario_;
};

TEST_F(Programs, ExchangeMessagesThroughTheVerbsApi) {
  const Result r = run(pair(R"(
{"post_send": {"wr": [{"opcode": "SEND_WITH_IMM", "imm_data": 77, "send_flags": ["SIGNALED"], "sge": [{"length": 100}]}]}},
{"poll": {"wc": [{"wr_id": 0, "opcode": "SEND", "qp": "qp"}]}},
{"post_send": {"wr": [{"opcode": "RDMA_READ", "send_flags": ["SIGNALED"], "sge": [{"offset": 4096, "length": 100}], "remote": {"mr": "server.buf"}}]}},
{"poll": {"wc": [{"wr_id": 1, "opcode": "RDMA_READ", "byte_len": 100}]}},
{"assert": {"memory": {"offset": 4096, "length": 100, "pattern": 1}}},
{"mark": "done"})",
                            R"(
{"post_recv": {"wr": [{"wr_id": 9, "sge": [{"length": 128}]}]}},
{"poll": {"wc": [{"wr_id": 9, "opcode": "RECV", "byte_len": 100, "imm_data": 77}]}},
{"assert": {"memory": {"length": 100, "pattern": 1}}})"));
  EXPECT_EQ(r.verdict, Verdict::ok) << to_table(r);
  ASSERT_EQ(r.programs.size(), 2U);
  EXPECT_EQ(r.programs[0].name, "client");
  EXPECT_EQ(r.programs[0].steps, 6U);
  EXPECT_EQ(r.programs[0].wc_status.at("SUCCESS"), 2U);
  EXPECT_GT(r.programs[0].marks.at("done"), r.programs[0].started);
  EXPECT_EQ(r.programs[1].completions.items().at(0).find("imm_data")->number(), 77);
}

TEST_F(Programs, AStepThatGoesWrongFailsTheRunWithItsPlace) {
  const Result r = run(pair(R"({"compute": "1 ns"},
  {"post_send": {"wr": [{"sge": [{}, {}]}]}},
{"mark": "never"})",
                            ""));
  EXPECT_EQ(r.verdict, Verdict::failed);
  EXPECT_EQ(experiment::exit_code(r), 1);
  ASSERT_EQ(r.programs[0].failures.size(), 1U);
  EXPECT_EQ(r.programs[0].failures[0].at, file_.string() + ":5:3");
  EXPECT_EQ(r.programs[0].failures[0].step, "programs.client.steps.1");
  EXPECT_EQ(r.programs[0].failures[0].message, "post_send: expected success, got ENOMEM");  // S-PS-6
  EXPECT_TRUE(r.programs[0].marks.empty());
  EXPECT_THAT(to_table(r), HasSubstr("FAILED"));
}

TEST_F(Programs, ASuccessThatWasToBeAnErrorFailsToo) {
  const Result r = run(pair(R"({"arm": {}, "expect": "EINVAL"})", ""));
  EXPECT_EQ(r.verdict, Verdict::failed);
  EXPECT_EQ(r.programs[0].failures.at(0).message, "arm: expected EINVAL, got success");
}

TEST_F(Programs, AWaitForFilesSaysWhichOneIsNotReady) {
  const std::string program = R"({"programs": {"client": {"channel": {"one": {}, "two": {}}, "steps": [
{"wait_events": {"timeout": "5 us", "files": [{"channel": "one"}, {"async_events": true}]}, "expect": "ETIMEDOUT"},
{"address": {"add": "10.1.2.3"}}, {"sleep": "50 us"},
{"wait_events": {"by": "epoll", "files": [{"channel": "two", "ready": true}, {"async_events": true, "ready": true}]}}],
"async_events": "steps"}}})";
  const Result r = run(program);
  EXPECT_EQ(r.verdict, Verdict::failed);
  EXPECT_EQ(r.programs[0].failures.at(0).step, "programs.client.steps.3");
  EXPECT_EQ(r.programs[0].failures.at(0).message, "wait_events: channel \"two\" is not ready");
}

TEST_F(Programs, WaitsThatMakeNoSenseAreRefused) {
  const auto step = [](const std::string& s) {
    return R"({"programs": {"client": {"channel": {"one": {}}, "steps": [)" + s + "]}}}";
  };
  EXPECT_THAT(mistakes(step(R"({"wait_events": {"files": []}})")), HasSubstr("nothing to wait for"));
  EXPECT_THAT(mistakes(step(R"({"wait_events": {"files": [{}]}})")), HasSubstr("a channel or for asynchronous events"));
  EXPECT_THAT(mistakes(step(R"({"wait_events": {"files": [{"channel": "three"}]}})")), HasSubstr("three"));
  EXPECT_THAT(mistakes(step(R"({"wait_events": {"by": "select", "files": [{"channel": "one"}]}})")),
              HasSubstr("epoll_edge"));
  EXPECT_THAT(mistakes(step(R"({"address": {}})")), HasSubstr("one address is added or removed"));
}

TEST_F(Programs, CompletionsAndMemoryAreCompared) {
  const std::string post =
      R"({"post_send": {"wr": [{"opcode": "RDMA_WRITE", "send_flags": ["SIGNALED"], "sge": [{"length": 8}], "remote": {"mr": "server.buf"}}]}},)";
  Result r = run(pair(post + R"({"poll": {"wc": [{"status": "REM_ACCESS_ERR"}]}})", ""));
  EXPECT_THAT(r.programs[0].failures.at(0).message, HasSubstr("expected status REM_ACCESS_ERR, got SUCCESS"));
}

TEST_F(Programs, WrongMemoryNamesTheByte) {
  const Result r = run(pair(R"({"assert": {"memory": {"offset": 16, "length": 4, "byte": 9}}})", ""));
  EXPECT_EQ(r.programs[0].failures.at(0).message, "assert: byte 16 of the MR is 113, expected 9");  // 7 * 16 + 1
}

TEST_F(Programs, AWaitThatRunsOutOfTimeIsETIMEDOUT) {
  const Result r = run(pair(R"({"mark": "a"}, {"poll": {"timeout": "20 us"}, "expect": "ETIMEDOUT"}, {"mark": "b"},
{"wait": {"memory": {"u32": 5}, "timeout": "10 us"}, "expect": "ETIMEDOUT"},
{"wait": {"label": "server.far", "timeout": "10 us"}, "expect": "ETIMEDOUT"})",
                            R"({"sleep": "1 ms"}, {"label": "far"})"));
  EXPECT_EQ(r.verdict, Verdict::ok) << to_table(r);
  const sim::Picos took = r.programs[0].marks.at("b") - r.programs[0].marks.at("a");
  EXPECT_GE(took.n, 20'000'000);
  EXPECT_LT(took.n, 25'000'000);
}

TEST_F(Programs, MeetAndWaitForEachOther) {
  const Result r = run(
      pair(R"({"sleep": "50 us"}, {"meet": "here"}, {"label": "go"}, {"wait": {"label": "server.gone", "times": 2}})",
           R"({"meet": "here"}, {"mark": "met"}, {"wait": {"label": "client.go"}}, {"times": 2, "label": "gone"})"));
  EXPECT_EQ(r.verdict, Verdict::ok) << to_table(r);
  EXPECT_GE(r.programs[1].marks.at("met") - r.programs[1].started, sim::Picos{50'000'000});
}

TEST_F(Programs, AThreadSharesTheObjectsOfItsProcess) {
  const Result r = run(R"({"programs": {
"main": {"channel": {"ch": {}}, "cq": {"cq": {"channel": "ch"}}, "qp": {"qp": {"peer": "other.qp"}}, "mr": {"buf": {}},
 "steps": [{"arm": {}}, {"post_send": {"wr": [{"send_flags": ["SIGNALED"], "sge": [{"length": 8}]}]}}, {"get_event": {}}, {"label": "read"}, {"destroy": "qp"}, {"destroy": "cq"}, {"mark": "destroyed"}]},
"acker": {"thread_of": "main", "steps": [{"wait": {"label": "main.read"}}, {"sleep": "1 ms"}, {"mark": "acked"}, {"ack": {}}]},
"other": {"host": "host1", "cq": {"cq": {}}, "mr": {"buf": {}}, "qp": {"qp": {"peer": "main.qp"}},
 "steps": [{"post_recv": {"wr": [{"sge": [{}]}]}}, {"poll": {}}]}}})");
  EXPECT_EQ(r.verdict, Verdict::ok) << to_table(r);
  // destroy_cq waits until the event is acknowledged (A-36)
  EXPECT_GE(r.programs[1].marks.at("destroyed"), r.programs[0].marks.at("acked"));
}

TEST_F(Programs, ADeadlockNamesTheWork) {
  const std::string write =
      R"("post_send": {"wr": [{"opcode": "RDMA_WRITE", "sge": [{"length": 8}], "remote": {"mr": "server.buf"}}]})";
  const Result r = run(pair(R"({"times": 4, )" + write + R"(}, {)" + write + R"(, "expect": "ENOMEM"}, {"poll": {}})",
                            "", R"(, "max_send_wr": 4)"));
  EXPECT_EQ(r.verdict, Verdict::deadlock);
  ASSERT_GE(r.outstanding.size(), 3U);
  EXPECT_EQ(r.outstanding[0], "no event is left");
  EXPECT_EQ(r.outstanding[1], "client on host0 waits for polling memory at programs.client.steps.2 (poll)");
  EXPECT_THAT(
      r.outstanding[2],
      testing::AllOf(
          HasSubstr("client.qp (QP 0x"),
          HasSubstr("4 send WRs outstanding (wr_id 0 to 3), the send queue is full, nothing signaled since wr_id 0")));
}

TEST_F(Programs, RetriesWithoutEndAreADeadlockAfterTheStallLimit) {
  const std::string text =
      pair(R"({"post_send": {"wr": [{"send_flags": ["SIGNALED"], "sge": [{"length": 8}]}]}}, {"poll": {}})", "");
  const Result r = run(text);
  EXPECT_EQ(r.verdict, Verdict::deadlock);
  EXPECT_GE(r.sim_time, sim::Picos{10'000'000'000'000});
  EXPECT_LT(r.sim_time, sim::Picos{40'000'000'000'000});
  ASSERT_GE(r.outstanding.size(), 3U);
  EXPECT_EQ(r.outstanding[0], "only retries without end are left; no program has moved for 10 s");
  EXPECT_THAT(r.outstanding[2], HasSubstr("asked again for ever (rnr_retry 7)"));
}

TEST_F(Programs, AFiniteWaitIsNoStall) {
  // timeout 19 is 2.15 s: three of them are longer than the stall limit of 3 s, and end (S-RC-44)
  const Result r = run(
      R"({"run": {"stall_limit": "3 s"}, )" +
      pair(
          R"({"wait": {"label": "server.deaf"}}, {"post_send": {"wr": [{"sge": [{"length": 8}]}]}}, {"poll": {"status": "RETRY_EXC_ERR"}})",
          R"({"modify_qp": {"qp_state": "RESET"}}, {"label": "deaf"})", R"(, "attr": {"timeout": 19, "retry_cnt": 2})")
          .substr(1));
  EXPECT_EQ(r.verdict, Verdict::ok) << to_table(r);
  EXPECT_GE(r.programs[0].ended - r.programs[0].started, sim::Picos{6'400'000'000'000});
}

TEST_F(Programs, MistakesAreShownWhereTheyStand) {
  const std::string text = mistakes(pair(R"({"poll": {"cq": "qc"}},
{"post_send": {"wr": [{"opcode": "RDMA_WRITE", "sge": [{"mr": "bfu"}]}]}},
{"post_send": {"wr": [{"opcode": "RDMA_READ", "remote": {"mr": "sever.buf"}}]}},
{"wait": {"label": "server.startd"}}, {"destroy": "qp2"}, {"ack": {"cq": "qp"}})",
                                         R"({"label": "started"})"));
  EXPECT_THAT(text, HasSubstr(":4:17: programs.client.steps.0.poll.cq: there is no cq \"qc\"; did you mean \"cq\"?"));
  EXPECT_THAT(text, HasSubstr("sge.0.mr: there is no mr \"bfu\"; did you mean \"buf\"?"));
  EXPECT_THAT(text, HasSubstr("programs.client.steps.1.post_send.wr.0.remote: is missing"));
  EXPECT_THAT(text, HasSubstr("there is no program \"sever\"; did you mean \"server\"?"));
  EXPECT_THAT(text, HasSubstr("there is no label \"startd\"; did you mean \"started\"?"));
  EXPECT_THAT(text, HasSubstr("there is no object \"qp2\""));
  EXPECT_THAT(text, HasSubstr("\"qp\" is not a cq; there is cq"));
}

TEST_F(Programs, AStepHasExactlyOneAction) {
  EXPECT_THAT(mistakes(pair(R"({"arm": {}, "poll": {}})", R"({"times": 2})")),
              testing::AllOf(
                  HasSubstr("programs.client.steps.0: a step has one action; this one has several"),
                  HasSubstr("programs.server.steps.0: a step has one action (post_send, poll, …); this one has none")));
  EXPECT_THAT(mistakes(pair(R"({"post_sned": {}})", "")), HasSubstr("did you mean \"post_send\"?"));
  EXPECT_THAT(mistakes(pair(R"({"arm": {}, "expect": "ENOMEN"})", "")), HasSubstr("did you mean \"ENOMEM\"?"));
}

TEST_F(Programs, TheExampleOfTheReferenceRuns) {
  std::ifstream in(RDMASIM_SOURCE_DIR "/docs/scenario.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t from = text.find("```json\n{") + 8;  // the first whole scenario
  const Result r = run(text.substr(from, text.find("```", from) - from));
  EXPECT_EQ(experiment::exit_code(r), 0) << to_table(r);
}

TEST_F(Programs, TheEffectiveConfigurationReadsBack) {
  const experiment::Scenario s = load(pair(R"({"loop": {"count": 2, "steps": [{"poll": {"until": "once"}}]}})", ""));
  const std::string first = experiment::effective_config(s).dump();
  const experiment::Scenario again = load(first);
  EXPECT_EQ(experiment::effective_config(again).dump(), first);
}

TEST_F(Programs, ABarrierTakesItsInstructionsTimeAndWaitsForTheStores) {
  const Result r = run(pair(
      R"({"sleep": "1 us"}, {"mark": "a"}, {"barrier": "rmb"}, {"mark": "b"}, {"store": {"byte": 1}}, {"mark": "c"},
         {"barrier": "wmb"}, {"mark": "d"})",
      ""));
  const auto& marks = r.programs[0].marks;
  const cpu::CoreConfig core;
  EXPECT_EQ(marks.at("b") - marks.at("a"), core.lfence_cost);
  EXPECT_GT(marks.at("d") - marks.at("c"), core.sfence_cost) << "128 lines are in the store buffer";
}

TEST_F(Programs, PostUntilTheSendQueueIsFullAndSignalEveryNthWr) {
  const Result r = run(pair(
      R"({"post_send": {"until": "full", "cq_mod": 3, "wr": [{"opcode": "RDMA_WRITE", "sge": [{"length": 8}], "remote": {"mr": "server.buf"}}]}},
         {"poll": {"count": 2}}, {"poll": {"until": "empty"}},
         {"post_send": {"until": "full", "cq_mod": 3, "wr": [{"opcode": "RDMA_WRITE", "sge": [{"length": 8}], "remote": {"mr": "server.buf"}}]}},
         {"poll": {"count": 2}})",
      "", R"(, "max_send_wr": 8)"));
  ASSERT_EQ(r.verdict, Verdict::ok);
  std::vector<std::uint64_t> signaled;
  for (const sim::Json& c : r.programs[0].completions.items()) signaled.push_back(*c.find("wr_id")->as_uint64());
  EXPECT_EQ(signaled, (std::vector<std::uint64_t>{2, 5, 8, 11}))
      << "of a queue of 8, and of the 6 that its completions freed";
  EXPECT_GT(r.programs[0].message_rate_mpps(), 0);
}

TEST_F(Programs, SignallingIsSaidOnce) {
  EXPECT_THAT(mistakes(pair(R"({"post_send": {"cq_mod": 2, "wr": [{"send_flags": ["SIGNALED"], "sge": [{}]}]}})", "")),
              HasSubstr("says which WRs are signaled; send_flags says so too"));
  EXPECT_THAT(mistakes(pair(R"({"post_send": {"until": "full", "bad_wr": 0, "wr": [{"sge": [{}]}]}})", "")),
              HasSubstr("is for one call that fails"));
}

}  // namespace
