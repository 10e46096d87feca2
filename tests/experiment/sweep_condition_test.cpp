// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_condition.h"

#include <gtest/gtest.h>

#include <map>

namespace experiment {
namespace {

const std::map<std::string, std::string> kPoint{{"depth", "64"},   {"cq_mod", "16"},    {"mode", "poll"},
                                                {"size", "4 KiB"}, {"delay", "1500ns"}, {"on", "true"},
                                                {"cq.cqe", "7"},   {"share", "0.5"}};

std::optional<SweepValue> lookup(const std::string& name) {
  const auto it = kPoint.find(name);
  return it == kPoint.end() ? std::nullopt : std::optional(parse_sweep_value(it->second));
}
bool holds(const std::string& text) { return Condition::parse(text).holds(&lookup); }
std::string error(const std::string& text) {
  try {
    holds(text);
    return "none";
  } catch (const ConditionError& e) {
    return e.what();
  }
}

TEST(Condition, ComparesAndComputes) {
  EXPECT_TRUE(holds("depth >= cq_mod"));
  EXPECT_TRUE(holds("depth / cq_mod == 4"));
  EXPECT_FALSE(holds("depth - cq_mod * 4 > 0"));
  EXPECT_TRUE(holds("2 + 3 * 4 == 14 and (2 + 3) * 4 == 20"));
  EXPECT_TRUE(holds("10 - 4 - 3 == 3")) << "from the left";
  EXPECT_TRUE(holds("floor(depth / 10) == 6"));
  EXPECT_TRUE(holds("-cq_mod < 0"));
  EXPECT_TRUE(holds("share * 2 == 1"));
  EXPECT_TRUE(holds("cq.cqe != 8"));
}

TEST(Condition, QuantitiesHaveUnits) {
  EXPECT_TRUE(holds("delay == 1.5us"));
  EXPECT_TRUE(holds("delay + 500 ns == 2 us"));
  EXPECT_TRUE(holds("size == 4096 B"));
  EXPECT_TRUE(holds("delay / 1ns == 1500")) << "a ratio is a number";
  EXPECT_TRUE(holds("delay * 2 < 4us"));
}

TEST(Condition, AndBindsTighterThanOr) {
  EXPECT_TRUE(holds("depth == 64 or depth == 1 and depth == 2"));
  EXPECT_FALSE(holds("(depth == 64 or depth == 1) and depth == 2"));
  EXPECT_TRUE(holds("not depth == 1"));
  EXPECT_TRUE(holds("on and not (mode == 'event')"));
  EXPECT_TRUE(holds("mode == \"poll\""));
}

TEST(Condition, WhatAPointLacksComparesFalse) {
  EXPECT_FALSE(holds("missing < 3"));
  EXPECT_FALSE(holds("missing >= 3"));
  EXPECT_FALSE(holds("1 / 0 == 1"));
}

TEST(Condition, MistakesHaveAColumn) {
  EXPECT_EQ(error("depth = 3"), "column 7: equality is written \"==\", got \"= 3\"");
  EXPECT_EQ(error("depth >="), "column 9: expected a value or a name, got the end");
  EXPECT_EQ(error("(depth > 3"), "column 11: expected \")\", got the end");
  EXPECT_EQ(error("depth > 3 size < 4"), "column 11: expected \"and\", \"or\" or the end, got \"size < 4\"");
  EXPECT_EQ(error("mode == 'poll"), "column 9: the text has no closing quote, got \"'poll\"");
  EXPECT_EQ(error("depth > 3xyz"),
            "column 10: expected a unit (ns, KiB, Gbps, …) or an operator behind the number, got \"xyz\"");
  EXPECT_EQ(error("delay > 3"), "column 7: a number and a time do not compare");
  EXPECT_EQ(error("delay > size"), "column 7: a size and a time do not compare");
  EXPECT_EQ(error("mode < 'x'"), "column 6: expected a number or a quantity, got a name");
  EXPECT_EQ(error("depth and on"), "column 1: expected a condition, got a number");
  EXPECT_EQ(error("delay * delay > 1"), "column 7: a product of two quantities");
  EXPECT_EQ(error(""), "column 1: expected a value or a name, got the end");
}

TEST(Condition, TellsItsNames) {
  const Condition c = Condition::parse("cq.cqe >= depth / cq_mod");
  ASSERT_EQ(c.names().size(), 3u);
  EXPECT_EQ(c.names()[1].text, "depth");
  EXPECT_EQ(c.names()[1].column, 11u);
}

}  // namespace
}  // namespace experiment
