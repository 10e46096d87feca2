// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config_json.h"

namespace experiment {
namespace {

std::optional<double> value(const std::string& text) {
  sim::ConfigErrors errors;
  const auto result = sim::parse_json(
      R"({"n": 10, "zero": 0, "word": "x", "list": [{"a": 1}, {"a": 2}], "counters": {"h0.up.mwr": 3, "h0.up.mrd": 4, "h1.up.mwr": 5, "a/b": 9}})",
      "t", errors);
  const auto m = parse_metric("m", text);
  EXPECT_TRUE(m) << m.error;
  EXPECT_EQ(m.value.text(), text);
  return m.value.of(*result);
}
std::string error(const std::string& text) { return parse_metric("m", text).error; }

TEST(SweepMetric, IsAPointerWithStarsThatAddUp) {
  EXPECT_EQ(value("/n"), 10);
  EXPECT_EQ(value("/counters/h0.up.mwr"), 3);
  EXPECT_EQ(value("/counters/h*.mwr"), 8);
  EXPECT_EQ(value("/counters/h0.*"), 7);
  EXPECT_EQ(value("/counters/a~1b"), 9);
  EXPECT_EQ(value("/counters/*~1*"), 9);
  EXPECT_EQ(value("/list/*/a"), 3);
  EXPECT_EQ(value("/list/1/a"), 2);
}

TEST(SweepMetric, SubtractsDividesAndMultiplies) {
  EXPECT_EQ(value("/n per /counters/h1.up.mwr"), 2);
  EXPECT_EQ(value("/n minus /counters/h0.up.mwr per /list/1/a x 0.5"), 1.75);
  EXPECT_EQ(value("/n x 0.001"), 0.01);
}

TEST(SweepMetric, IsNothingWhereTheResultHasNothing) {
  EXPECT_EQ(value("/none"), std::nullopt);
  EXPECT_EQ(value("/word"), std::nullopt);
  EXPECT_EQ(value("/counters/x*"), std::nullopt);
  EXPECT_EQ(value("/n per /zero"), std::nullopt);
  EXPECT_EQ(value("/n minus /none"), std::nullopt);
}

TEST(SweepMetric, MistakesAreTold) {
  using testing::HasSubstr;
  EXPECT_THAT(error("n"), HasSubstr("a JSON pointer starts with"));
  EXPECT_THAT(error("/n per n"),
              HasSubstr("expected POINTER [minus POINTER] [per POINTER] [x FACTOR], got \"/n per n\""));
  EXPECT_THAT(error("/n x two"), HasSubstr("the factor is not a number"));
  EXPECT_THAT(error("/n per "), HasSubstr("a JSON pointer starts with"));
}

}  // namespace
}  // namespace experiment
