// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_value.h"

#include <gtest/gtest.h>

#include "sim/config_json.h"

namespace experiment {
namespace {

using Texts = std::vector<std::string>;

Texts texts(const std::string& list) {
  const auto v = SweepValues::parse(list);
  EXPECT_TRUE(v) << v.error;
  Texts out;
  for (std::uint64_t i = 0; i < v.value.size(); ++i) out.push_back(v.value.at(i).text());
  return out;
}
std::string error(const std::string& list) { return SweepValues::parse(list).error; }

TEST(SweepValues, AreListsInTheirOrder) {
  EXPECT_EQ(texts("4, 1,2"), (Texts{"4", "1", "2"}));
  EXPECT_EQ(texts("poll,event"), (Texts{"poll", "event"}));
  EXPECT_EQ(texts("true,false"), (Texts{"true", "false"}));
  EXPECT_EQ(texts("64 B, 4KiB"), (Texts{"64 B", "4 KiB"}));
  EXPECT_EQ(texts("[0, 1],[2]"), (Texts{"[0, 1]", "[2]"})) << "a comma in brackets does not part values";
}

TEST(SweepValues, GeometricRangesKeepTheirEnd) {
  EXPECT_EQ(texts("16..4096 x2"), (Texts{"16", "32", "64", "128", "256", "512", "1024", "2048", "4096"}));
  EXPECT_EQ(texts("1..20 x3"), (Texts{"1", "3", "9"}));
  EXPECT_EQ(texts("64 B..1 KiB x4"), (Texts{"64 B", "256 B", "1 KiB"}));
  EXPECT_EQ(texts("1us..1ms x10"), (Texts{"1 us", "10 us", "100 us", "1 ms"}));
  EXPECT_EQ(texts("0.001..0.1 x10").size(), 3u);
}

TEST(SweepValues, ArithmeticRangesAreExact) {
  EXPECT_EQ(texts("0..10us +2.5us"), (Texts{"0 ps", "2.5 us", "5 us", "7.5 us", "10 us"}));
  EXPECT_EQ(texts("1..4"), (Texts{"1", "2", "3", "4"}));
  EXPECT_EQ(texts("0..0.3 +0.1").size(), 4u) << "the end counts although 3 * 0.1 is not 0.3";
  EXPECT_EQ(texts("1,2,4..16 x2"), (Texts{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(texts("10 Gb/s..40 Gb/s +10Gb/s"), (Texts{"10 Gb/s", "20 Gb/s", "30 Gb/s", "40 Gb/s"}));
}

TEST(SweepValues, WithoutAStepAreForRandomDesigns) {
  EXPECT_TRUE(SweepValues::parse("0..10us").value.free());
  EXPECT_EQ(SweepValues::parse("0..10us").value.size(), 10'000'001u) << "every picosecond";
  EXPECT_TRUE(SweepValues::parse("0.0..0.5").value.free());
  EXPECT_FALSE(SweepValues::parse("1..10").value.free());
}

TEST(SweepValues, MistakesAreShownWhereTheyAre) {
  EXPECT_EQ(error("1,,2"), "column 3: expected a value or a range such as \"16..4096 x2\"");
  EXPECT_EQ(error("1..4 x1"), "column 7: the factor has to be more than 1");
  EXPECT_EQ(error("0..4 x2"), "column 6: a range with a factor begins above 0");
  EXPECT_EQ(error("8..4 x2"), "column 4: the range ends before it begins");
  EXPECT_EQ(error("1..4 +0"), "column 7: the step has to be more than 0");
  EXPECT_EQ(error("1us..4 KiB +1us"), "column 6: 1 us and 4 KiB are of different kinds and make no range");
  EXPECT_EQ(error("1us..4us +1"), "column 11: the step is of another kind than the range");
  EXPECT_EQ(error("a..b"), "column 1: a range begins with a number or a quantity, not with \"a\"");
  EXPECT_EQ(error("3..9 x1.01"), "column 6: the factor is too small to reach another value");
}

TEST(SweepValues, OfAScenarioAreTakenAsTheyAre) {
  sim::ConfigErrors errors;
  const auto list = SweepValues::from_json(*sim::parse_json(R"(["16..64 x2", 3, true, "2 us"])", "t", errors));
  ASSERT_TRUE(list);
  EXPECT_EQ(list.value.size(), 4u) << "a string in a list is a value, not a range";
  EXPECT_EQ(list.value.at(3).number(), 2000.0) << "ns";
  EXPECT_EQ(SweepValues::from_json(sim::Json("16..64 x2")).value.size(), 3u);
  EXPECT_EQ(SweepValues::from_json(sim::Json(5)).error,
            "expected a list of values or a string such as \"16..4096 x2\", got the number 5");
  EXPECT_EQ(SweepValues::from_json(sim::Json::array()).error, "is empty: there is no value to take");
}

}  // namespace
}  // namespace experiment
