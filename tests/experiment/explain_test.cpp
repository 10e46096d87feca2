// SPDX-License-Identifier: Apache-2.0
// What explain says about every scenario of the tree: the faults are those that its result has, no figure is made up, no
// advice names a parameter that is not there, and no rule is one that nobody has written down.
#include "experiment/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "experiment/explain_facts.h"
#include "experiment/run.h"
#include "experiment/scenario.h"
#include "experiment/trouble_log.h"
#include "tests/experiment/child_result.h"

namespace {

namespace fs = std::filesystem;
using experiment::Diagnosis;
using experiment::Explanation;
using Ids = std::vector<std::string>;

const fs::path& root() {
  static const fs::path r = fs::path(RDMASIM_SOURCE_DIR) / "scenarios";
  return r;
}

std::vector<std::string> scenario_files() {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(root())) {
    const fs::path name = entry.path().lexically_relative(root());
    const std::string top = name.begin()->string();
    if (name.extension() == ".json" && (top == "cases" || top == "events" || name == top)) out.push_back(name.string());
  }
  std::ranges::sort(out);
  return out;
}

/// The faults of the scenarios that have any. Every other scenario must have none.
const std::map<std::string, Ids>& faults_of_scenarios() {
  static const std::map<std::string, Ids> all{
      {"cases/adaptive_retransmission_beats_the_timer", {"ack_timeout", "packet_loss"}},
      {"cases/all_unsignaled_and_a_poll_for_ever", {"unsignaled_send_queue"}},
      {"cases/atomics_and_what_they_need", {"rem_inv_req_err", "rem_inv_req_err", "rem_access_err"}},
      {"cases/bad_rkey_fails_one_and_flushes_all", {"rem_access_err"}},
      {"cases/completion_crosses_the_arm", {"lost_wake_up"}},
      {"cases/cq_16_overruns", {"cq_overrun", "qp_fatal", "rx_dropped"}},
      {"cases/cq_overrun_fails_only_who_needs_it", {"cq_overrun", "qp_fatal", "qp_fatal"}},
      {"cases/dead_peer_costs_all_retries", {"retry_exc_err", "rx_dropped"}},
      {"cases/device_pulled_out_under_a_blocked_reader", {"device_fatal", "retry_exc_err", "rx_dropped"}},
      {"cases/drain_before_you_destroy", {"flushed", "rx_dropped"}},
      {"cases/driver_unbound_under_traffic", {"device_fatal", "retry_exc_err", "rx_dropped", "rx_dropped"}},
      {"cases/immediate_takes_a_receive", {"rnr_retry_exc_err"}},
      {"cases/killed_in_the_midst_of_a_transfer", {"retry_exc_err", "rx_dropped", "rx_dropped"}},
      {"cases/link_flaps_for_a_millisecond", {"ack_timeout", "link_down"}},
      {"cases/lost_packet_in_a_read", {"packet_loss"}},
      {"cases/lost_packet_waits_for_the_ack_timeout", {"ack_timeout", "packet_loss"}},
      {"cases/lost_wakeup_without_a_second_poll", {"lost_wake_up"}},
      {"cases/rdma_cm_leaves_the_rnr_timer_at_0", {"rnr_wait"}},
      {"cases/remote_access_errors", {"rem_access_err", "rem_access_err", "rem_access_err", "rem_inv_req_err"}},
      {"cases/rnr_retry_0_fails_at_once", {"rnr_retry_exc_err"}},
      {"cases/rnr_retry_7_waits_for_ever", {"rnr_for_ever"}},
      {"cases/rnr_timer_code_0_stalls_655_ms", {"rnr_wait", "rx_dropped", "gap"}},
      {"cases/rnr_timer_code_13_stalls_1_ms", {"rnr_wait", "rx_dropped", "gap"}},
      {"cases/rnr_timer_gates_the_ack_timer", {"rnr_wait"}},
      {"cases/srq_limit_and_an_empty_srq", {"rnr_wait"}},
      {"cases/the_same_packet_lost_twice", {"ack_timeout", "gap", "packet_loss"}},
      {"cases/ud_receive_needs_40_bytes_more", {"loc_len_err", "rx_dropped"}},
      {"cases/unacked_event_blocks_destroy_cq", {"unacknowledged_events"}},
      {"cases/zero_length_receive", {"loc_len_err", "rem_inv_req_err"}},
      {"events/ranks_empty_their_srq", {"rnr_wait"}}};
  return all;
}

/// The first limit of each workload scenario.
const std::map<std::string, std::string>& limit_of_scenarios() {
  static const std::map<std::string, std::string> all{
      {"rc_write_bw", "wire"},
      {"rc_send_bw", "wire"},
      {"rc_read_bw", "wire"},
      {"rc_send_pingpong", "latency"},
      {"rc_write_lat", "latency"},
      {"rc_read_lat", "latency"},
      {"rc_send_lat_event", "interrupt_latency"},
      {"cases/read_with_1_outstanding", "max_rd_atomic"},
      {"cases/read_with_16_outstanding", "wire"},
      {"cases/kernel_consumer_skips_the_wake_up", "interrupt_latency"},
      {"cases/rnr_timer_code_0_stalls_655_ms", "rnr_timer"},
      {"cases/lost_packet_waits_for_the_ack_timeout", "ack_timeout_waits"},
      {"events/client_polls_server_polls", "rate_limit"},
      {"events/poll_or_events", "rate_limit"},
      {"events/dim_on", "program_work"}};
  return all;
}

Ids ids_of(const std::vector<Diagnosis>& all) {
  Ids out;
  for (const Diagnosis& d : all) out.push_back(d.id);
  return out;
}

/// Rule ids of docs/conformance.md.
const std::vector<std::string>& known_rules() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> out;
    std::ifstream file(fs::path(RDMASIM_SOURCE_DIR) / "docs/conformance.md");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with("| ")) out.push_back(line.substr(2, line.find(' ', 2) - 2));
    return out;
  }();
  return all;
}

const std::string& explain_page() {
  static const std::string text = [] {
    std::ostringstream s;
    s << std::ifstream(fs::path(RDMASIM_SOURCE_DIR) / "docs/explain.md").rdbuf();
    return s.str();
  }();
  return text;
}

/// What holds for any diagnosis of any run.
void check_diagnosis(const Diagnosis& d, const sim::Json& result, const fs::path& file) {
  const experiment::Facts facts(result);
  EXPECT_FALSE(d.what.empty()) << d.id;
  EXPECT_THAT(explain_page(), testing::HasSubstr("`" + d.id + "`")) << "docs/explain.md lists every diagnosis";
  ASSERT_FALSE(d.evidence.empty()) << d.id;
  for (const auto& e : d.evidence) {
    EXPECT_FALSE(e.says.empty()) << d.id;
    if (e.at.empty()) continue;
    const sim::Json* there = result.at(e.at);
    ASSERT_NE(there, nullptr) << d.id << ": " << e.at;
    EXPECT_EQ(*there, e.value) << d.id << ": " << e.at;
  }
  for (const std::string& rule : d.rules)
    EXPECT_THAT(known_rules(), testing::Contains(rule)) << d.id << ": no such rule in docs/conformance.md";
  for (const auto& a : d.advice) {
    EXPECT_FALSE(a.why.empty()) << d.id;
    ASSERT_FALSE(a.changes.empty()) << d.id;
    std::vector<std::string> sets;
    for (const auto& c : a.changes) {
      const sim::Json* present = facts.config(c.path);
      EXPECT_EQ(c.from, present != nullptr ? *present : sim::Json{}) << d.id << ": " << c.path;
      EXPECT_FALSE(c.from == c.to) << d.id << ": " << c.path << " changes nothing";
      sets.push_back(c.set());
    }
    EXPECT_NO_THROW(experiment::load_scenario(file, {sets})) << d.id << ": " << sets.front();
  }
}

class ExplainScenarios : public testing::TestWithParam<std::string> {};

TEST_P(ExplainScenarios, FindsTheFaultsThatAreThereAndNoOthers) {
  const fs::path file = root() / GetParam();
  const experiment::Scenario s = experiment::load_scenario(file, {});
  const experiment::Result r = experiment::run(experiment::run_options(s), experiment::machine_factory(s));
  const sim::Json result = experiment::to_json(r, false);
  const Explanation e = experiment::explain(result);
  EXPECT_EQ(e.verdict, experiment::name_of(r.verdict));
  if (r.verdict == experiment::Verdict::deadlock) {
    EXPECT_EQ(r.stuck.items().size() + 1, r.outstanding.size());
  }
  EXPECT_FALSE(e.faults.empty() && e.limits.empty()) << "something can be said of every run";

  const std::string name = GetParam().substr(0, GetParam().rfind('.'));
  const auto wanted = faults_of_scenarios().find(name);
  EXPECT_EQ(ids_of(e.faults), wanted != faults_of_scenarios().end() ? wanted->second : Ids{});
  if (const auto limit = limit_of_scenarios().find(name); limit != limit_of_scenarios().end()) {
    ASSERT_FALSE(e.limits.empty());
    EXPECT_EQ(e.limits.front().id, limit->second);
  }
  for (const auto* all : {&e.faults, &e.limits})
    for (const Diagnosis& d : *all) check_diagnosis(d, result, file);
  for (const Diagnosis& d : e.faults) EXPECT_TRUE(d.is_fault()) << d.id;
  for (const Diagnosis& d : e.limits) EXPECT_FALSE(d.is_fault()) << d.id;

  const std::string text = experiment::to_text(e);
  EXPECT_THAT(text, testing::HasSubstr("verdict " + e.verdict));
  for (const auto& d : e.faults) EXPECT_THAT(text, testing::HasSubstr(d.id + ": "));
  EXPECT_EQ(experiment::to_json(e).find("schema")->string(), "rdmasim-explain/1");
  EXPECT_EQ(experiment::to_json(e).find("faults")->items().size(), e.faults.size());
}

INSTANTIATE_TEST_SUITE_P(Tree, ExplainScenarios, testing::ValuesIn(scenario_files()), [](const auto& i) {
  std::string name = i.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

Explanation explained(const char* file) { return experiment::explain(experiment::result_of(root() / file)); }

TEST(Explain, ADeadlockNamesQueueAndWorkRequests) {
  const Explanation e = explained("cases/all_unsignaled_and_a_poll_for_ever.json");
  ASSERT_EQ(e.faults.size(), 1U);
  const Diagnosis& d = e.faults[0];
  EXPECT_EQ(d.severity, experiment::Severity::hang);
  EXPECT_EQ(d.who, "client.qp on host0, WR 0 to 7");
  ASSERT_TRUE(d.when_ns.has_value());
  EXPECT_GT(*d.when_ns, 0);
  EXPECT_LT(*d.when_ns, 1e6) << "the poll that never ends began within the first millisecond";
  EXPECT_THAT(d.rules, testing::Contains("S-PS-42"));
}

TEST(Explain, AnErrorNamesTheWorkRequestItsTimeAndItsPlaceInTheScenario) {
  const sim::Json result = experiment::result_of(root() / "cases/bad_rkey_fails_one_and_flushes_all.json");
  const Explanation e = experiment::explain(result);
  ASSERT_EQ(e.faults.size(), 1U);
  EXPECT_EQ(e.faults[0].who, "client.qp on host0, WR 2 (programs.client.steps.1.post_send.wr.2)");
  EXPECT_EQ(e.faults[0].when_ns, result.at("/programs/client/completions/1/time_ns")->number());
  ASSERT_EQ(e.faults[0].advice.size(), 1U);
  EXPECT_EQ(e.faults[0].advice[0].changes[0].set(), "programs.client.steps.1.post_send.wr.2.remote.rkey_plus=0");
}

TEST(Explain, AWorkloadNamesTheWorkRequestThatFailed) {
  const sim::Json result =
      experiment::result_of(root() / "rc_send_bw.json", {"workloads.0.rx_depth=1", "workloads.0.rnr_retry=0"});
  const sim::Json* first = result.at("/workloads/0/errors/0");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->find("status")->string(), "RNR_RETRY_EXC_ERR");
  const Explanation e = experiment::explain(result);
  const auto d = std::ranges::find(e.faults, "rnr_retry_exc_err", &Diagnosis::id);
  ASSERT_NE(d, e.faults.end()) << experiment::to_text(e);
  EXPECT_EQ(d->who, "send_bw.client on host0, WR " + first->find("wr_id")->compact());
  EXPECT_EQ(d->when_ns, first->find("time_ns")->number());
  EXPECT_EQ(d->advice.at(0).changes.at(0).set(), "workloads.0.rnr_retry=6");
}

TEST(Explain, AClientThatSpinsUntilItMayPostIsNotShortOfTime) {
  const Explanation e = experiment::explain(
      experiment::result_of(root() / "events/poll_or_events.json", {"workloads.0.completion=poll"}));
  EXPECT_EQ(e.limits.front().id, "rate_limit");
  EXPECT_THAT(ids_of(e.limits), testing::Not(testing::Contains("cpu_client")));
}

TEST(Explain, AStallNamesTheMessageThatWaited) {
  const sim::Json result = experiment::result_of(root() / "cases/rnr_timer_code_0_stalls_655_ms.json");
  const Explanation e = experiment::explain(result);
  ASSERT_EQ(e.faults.at(0).id, "rnr_wait");
  EXPECT_EQ(e.faults[0].when_ns, result.at("/programs/client/slowest_message/posted_ns")->number());
  const double wr = result.at("/programs/client/slowest_message/wr_id")->number();
  EXPECT_GE(wr, 256) << "the first 256 found a receive each";
  EXPECT_GT(result.at("/programs/client/slowest_message/latency_ns")->number(), 655.36e6);
}

TEST(Explain, WithoutTheConfigurationItSaysLessAndStillTheTruth) {
  sim::Json result = experiment::result_of(root() / "cases/cq_16_overruns.json");
  result["config"] = sim::Json::object();
  const Explanation e = experiment::explain(result);
  EXPECT_THAT(ids_of(e.faults), testing::IsSupersetOf({"cq_overrun", "qp_fatal"}));
  for (const Diagnosis& d : e.faults)
    for (const auto& v : d.evidence) {
      if (!v.at.empty()) {
        EXPECT_NE(result.at(v.at), nullptr) << v.at;
      }
    }
}

TEST(Explain, FaultsComeBySeverityAndThenByTime) {
  const Explanation e = explained("cases/driver_unbound_under_traffic.json");
  for (std::size_t i = 1; i < e.faults.size(); ++i) EXPECT_LE(e.faults[i - 1].severity, e.faults[i].severity);
  EXPECT_LT(*e.faults[0].when_ns, *e.faults[1].when_ns) << "the device goes before the peer gives up";
}

TEST(Explain, LittlesLawGivesTheDepth) {
  const sim::Json result =
      experiment::result_of(root() / "rc_write_bw.json", {"workloads.0.tx_depth=2", "workloads.0.size=4 KiB"});
  const Explanation e = experiment::explain(result);
  ASSERT_EQ(e.limits.front().id, "tx_depth");
  const auto law = std::ranges::find_if(e.limits.front().evidence,
                                        [](const auto& v) { return v.says.find("Little") != std::string::npos; });
  ASSERT_NE(law, e.limits.front().evidence.end());
  EXPECT_NEAR(law->value.number(), 2, 0.05);
}

TEST(Explain, ARunOfTheScenarioKnowsWhenTheFirstRetryCame) {
  const fs::path file = root() / "cases/lost_packet_waits_for_the_ack_timeout.json";
  const experiment::Scenario s = experiment::load_scenario(file, {});
  experiment::RunOptions options = experiment::run_options(s);
  sim::Json troubles;
  options.sinks.push_back(std::make_unique<experiment::TroubleLog>(troubles));
  options.trace_categories = experiment::kTroubleCategories;
  sim::Json result = experiment::to_json(experiment::run(std::move(options), experiment::machine_factory(s)), false);
  for (const char* point : {"fabric.drop", "hca.ack_timeout", "hca.retransmit"})
    EXPECT_EQ(
        std::ranges::count(troubles.items(), sim::Json(point), [](const sim::Json& t) { return *t.find("point"); }), 1)
        << point;
  result["troubles"] = troubles;
  const Explanation e = experiment::explain(result);
  ASSERT_EQ(ids_of(e.faults), (Ids{"ack_timeout", "packet_loss"}));
  ASSERT_TRUE(e.faults[0].when_ns && e.faults[1].when_ns);
  EXPECT_NEAR(*e.faults[0].when_ns - *e.faults[1].when_ns, 4096.0 * (1 << 18), 1000) << "one timeout of 1.07 s apart";
  EXPECT_THAT(e.faults[1].who, testing::HasSubstr("PSN 256"));
}

TEST(ExplainFacts, RnrTimerCodesAreThoseOfTheSpecification_S_PKT_11) {
  constexpr double kMilliseconds[] = {655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,  0.32,
                                      0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
                                      20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};
  for (unsigned code = 0; code < 32; ++code)
    EXPECT_NEAR(experiment::rnr_timer_ns(code), kMilliseconds[code] * 1e6, 1e-3) << code;
  EXPECT_EQ(experiment::ack_timeout_ns(14), 67'108'864);
  EXPECT_EQ(experiment::ack_timeout_ns(0), 0);
}

TEST(ExplainFacts, NumbersAreShort) {
  EXPECT_EQ(experiment::time_text(655'360'000), "655.36 ms");
  EXPECT_EQ(experiment::time_text(1.5), "1.5 ns");
  EXPECT_EQ(experiment::number_text(0.000123456, 3), "0.000123");
  EXPECT_EQ(experiment::number_text(1234567, 4), "1234567");
  EXPECT_EQ(experiment::percent(0.9994), "99.9 %");
}

}  // namespace
