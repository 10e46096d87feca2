// SPDX-License-Identifier: Apache-2.0
#include "experiment/expectation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config_read.h"

namespace {

using sim::Json;
using testing::HasSubstr;

Json parsed(const std::string& text) {
  sim::ConfigErrors errors;
  return sim::parse_json(text, "t", errors).value();
}
sys::ExpectationConfig bound(const std::string& text, std::string* mistakes = nullptr) {
  sim::ConfigErrors errors;
  sys::ExpectationConfig e;
  sim::read_config(parsed(text), e, errors, "expect.0");
  if (mistakes != nullptr) *mistakes = errors.text();
  else EXPECT_TRUE(errors.empty()) << errors.text();
  return e;
}

const Json& result() {
  static const Json j =
      parsed(R"({"verdict": "ok", "workloads": [{"name": "lat", "messages": 4000, "wc_status": {"SUCCESS": 4000}}],
    "async_events": [{"type": "CQ_ERR", "host": "a"}, {"type": "QP_FATAL", "host": "b"}], "counters": {"a/b": 3}})");
  return j;
}
bool met(const std::string& text) { return experiment::evaluate(bound(text), result()).met; }
std::string actual(const std::string& text) {
  const auto r = experiment::evaluate(bound(text), result());
  EXPECT_FALSE(r.met);
  return r.actual;
}

TEST(Expectation, AStarMakesAList) {
  EXPECT_TRUE(met(R"({"at": "/async_events/*/type", "equals": ["CQ_ERR", "QP_FATAL"]})"));
  EXPECT_FALSE(met(R"({"at": "/async_events/*/type", "equals": ["QP_FATAL", "CQ_ERR"]})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/*/wc_status/*", "equals": [4000]})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/wc_status/*", "equals": [4000]})"));
  EXPECT_TRUE(met(R"({"at": "/async_events/*/nothing", "equals": []})"));
  EXPECT_FALSE(met(R"({"at": "/verdict/*", "exists": true})"));
}

TEST(Expectation, WhereAndCountSpeakAboutLists) {
  EXPECT_TRUE(met(R"({"at": "/async_events", "count": 2})"));
  EXPECT_TRUE(met(R"({"at": "/async_events", "where": {"type": "CQ_ERR"}, "count": 1})"));
  EXPECT_TRUE(met(R"({"at": "/async_events", "where": {"type": "CQ_ERR", "host": "b"}, "count": 0})"));
  EXPECT_FALSE(met(R"({"at": "/async_events", "where": {"host": "a"}, "count": 2})"));
  EXPECT_FALSE(met(R"({"at": "/verdict", "count": 0})"));
  EXPECT_FALSE(met(R"({"at": "/nothing", "count": 0})"));
  EXPECT_THAT(actual(R"({"at": "/async_events", "count": 3})"), HasSubstr("2 elements"));
}

TEST(Expectation, MinusAndDiffersFromCompareTwoValues) {
  EXPECT_TRUE(met(R"({"at": "/workloads/0/messages", "minus": "/counters/a~1b", "equals": 3997})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/0/messages", "minus": "/verdict", "at_least": 0})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/messages", "differs_from": "/counters/a~1b"})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/0/messages", "differs_from": "/workloads/0/wc_status/SUCCESS"})"));
  std::string mistakes;
  bound(R"({"at": "/a", "minus": "b", "equals": 1})", &mistakes);
  EXPECT_THAT(mistakes, HasSubstr("expect.0.minus"));
  bound(R"({"at": "/a", "where": 3, "count": 1})", &mistakes);
  EXPECT_THAT(mistakes, HasSubstr("expect.0.where"));
}

TEST(Expectation, EveryOperatorHoldsAndFails) {
  EXPECT_TRUE(met(R"({"at": "/workloads/0/wc_status/SUCCESS", "equals": 4000})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/wc_status/SUCCESS", "equals": 4000.0})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/0/wc_status/SUCCESS", "equals": "4000"})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/wc_status", "equals": {"SUCCESS": 4000}})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/messages", "between": [4000, 4000]})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/0/messages", "between": [1, 3999.5]})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/messages", "at_least": 4000, "at_most": 4000})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/0/messages", "at_least": 4000.5})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/0/messages", "at_most": 3999})"));
  EXPECT_FALSE(met(R"({"at": "/verdict", "at_least": 0})"));
  EXPECT_TRUE(met(R"({"at": "/verdict", "one_of": ["deadlock", "ok"]})"));
  EXPECT_FALSE(met(R"({"at": "/verdict", "one_of": []})"));
  EXPECT_TRUE(met(R"({"at": "/verdict", "matches": "^o.$"})"));
  EXPECT_FALSE(met(R"({"at": "/verdict", "matches": "^k"})"));
  EXPECT_TRUE(met(R"({"at": "/verdict", "contains": "k"})"));
  EXPECT_TRUE(met(R"({"at": "/async_events", "contains": {"type": "CQ_ERR"}})"));
  EXPECT_FALSE(met(R"({"at": "/async_events", "contains": {"type": "CQ_ERR", "host": "b"}})"));
  EXPECT_TRUE(met(R"({"at": "/workloads/0/wc_status", "contains": "SUCCESS"})"));
  EXPECT_TRUE(met(R"({"at": "/counters/a~1b", "exists": true})"));
  EXPECT_FALSE(met(R"({"at": "/counters/c", "exists": true})"));
  EXPECT_TRUE(met(R"({"at": "/counters/c", "exists": false})"));
  EXPECT_TRUE(met(R"({"at": "/counters/c", "absent": true})"));
  EXPECT_FALSE(met(R"({"at": "/verdict", "absent": true})"));
  EXPECT_FALSE(met(R"({"at": "/workloads/1/messages", "at_most": 9})"));
}

TEST(Expectation, TheDifferenceIsToldInWords) {
  EXPECT_EQ(actual(R"({"at": "/workloads/0/messages", "equals": 3990})"), "4000 (+10)");
  EXPECT_EQ(actual(R"({"at": "/workloads/1/messages", "equals": 1})"), "nothing is there; /workloads has 1 elements");
  EXPECT_EQ(actual(R"({"at": "/workloads/0/wc/X", "equals": 1})"),
            "nothing is there; /workloads/0 has: name messages wc_status");
  const auto r =
      experiment::evaluate(bound(R"({"at": "/workloads/0/messages", "at_least": 5000, "at_most": 6000})"), result());
  EXPECT_EQ(r.expected, "at least 5000 and at most 6000");
}

TEST(Expectation, MistakesAreConfigErrors) {
  const auto mistakes = [](const std::string& text) {
    std::string m;
    bound(text, &m);
    return m;
  };
  EXPECT_THAT(mistakes(R"({"at": "verdict", "equals": 1})"),
              HasSubstr("expect.0.at: a JSON pointer starts with \"/\""));
  EXPECT_THAT(mistakes(R"({"at": "/a~", "equals": 1})"), HasSubstr("expect.0.at: \"~\""));
  EXPECT_THAT(mistakes(R"({"at": "/a"})"), HasSubstr("says nothing about the value; add equals"));
  EXPECT_THAT(mistakes(R"({"equals": 1})"), HasSubstr("expect.0.at: is missing"));
  EXPECT_THAT(mistakes(R"({"at": "/a", "equal": 1})"), HasSubstr("unknown key \"equal\"; did you mean \"equals\"?"));
  EXPECT_THAT(mistakes(R"({"at": "/a", "between": [3]})"), HasSubstr("t:1:25: expect.0.between: expected two numbers"));
  EXPECT_THAT(mistakes(R"({"at": "/a", "between": [3, 2]})"), HasSubstr("low <= high"));
  EXPECT_THAT(mistakes(R"({"at": "/a", "matches": "("})"), HasSubstr("expect.0.matches: not a regular expression"));
  EXPECT_THAT(mistakes(R"({"at": "/a", "at_least": "2 us"})"), HasSubstr("expect.0.at_least: expected a number"));
}

}  // namespace
