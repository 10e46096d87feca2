// SPDX-License-Identifier: Apache-2.0
// What `rdmasim sweep` varies, which points it makes of that, what it measures and what the whole has to show.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/json.h"
#include "sim/located.h"

namespace sys {

/// How points are made of the values of the parameters.
enum class Design : std::uint8_t { grid, zip, random, latin_hypercube };

/// A value of the scenario that varies from point to point.
struct SweepParameterConfig {
  std::string path, name;
  std::vector<std::string> also;
  sim::Json values;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("path", c.path, "path of a value in this scenario, as --set takes it", sim::required());
    v("name", c.name, "name in conditions, tables and plots", sim::assumed("the last part of the path"));
    v("also", c.also, "further paths that take the same value", sim::assumed("none"));
    v("values", c.values,
      "a list of values, or a string: values and ranges with commas between them, as \"1, 2, 16..4096 x2\" or "
      "\"0..10us +1us\"",
      sim::required());
  }
};

/// How a metric goes along a parameter.
enum class Trend : std::uint8_t { rising, falling, not_rising, not_falling };

/// A condition on all points of a sweep: each on its own (`holds`), or neighbours along a parameter (`metric`).
struct SweepExpectationConfig {
  sim::Located where, holds;
  std::string metric, along, because;
  std::optional<Trend> trend;
  double tolerance = 0;
  std::optional<double> by;
  sim::Origin origin;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("where", c.where, "the points that are meant: a condition on parameters, metrics and `verdict`",
      sim::assumed("all"));
    v("holds", c.holds, "a condition that each of them has to meet, such as \"verdict == 'deadlock'\"",
      sim::assumed("none"));
    v("metric", c.metric, "name of a metric", sim::assumed("none"));
    v("along", c.along, "name of the parameter along which it goes, all others being equal", sim::assumed("none"));
    v("trend", c.trend, "how it goes from each value of the parameter to the next", sim::assumed("none"));
    v("tolerance", c.tolerance, "share by which a step may go against the trend", sim::assumed("none"),
      sim::Range{0, 1});
    v("by", c.by, "least ratio of its last to its first value (of the first to the last if it falls)",
      sim::assumed("any"), sim::Range{1, 1e12});
    v("because", c.because, "what the condition shows; printed when it is not met", sim::assumed(""));
  }
  template <class F>
  void check(F&& fail) const {
    if (holds.empty() == metric.empty()) fail("", "says `holds`, or `metric`, `along` and `trend`");
    if (!metric.empty() && (along.empty() || !trend)) fail("metric", "needs `along` and `trend`");
    if (metric.empty() && (!along.empty() || trend || by || tolerance != 0))
      fail("", "`along`, `trend`, `by` and `tolerance` go with `metric`");
  }
};

struct SweepConfig {
  Design design = Design::grid;
  std::vector<SweepParameterConfig> parameters;
  std::optional<std::uint64_t> points, seed;
  std::uint32_t replications = 1;
  std::vector<sim::Located> where;
  std::map<std::string, sim::Located> metrics;
  std::vector<SweepExpectationConfig> expect;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("design", c.design,
      "grid: every combination of the values; zip: the first values together, the second, …; random: values drawn; "
      "latin_hypercube: drawn, each part of each range equally often",
      sim::assumed("grid"));
    v("parameters", c.parameters, "what varies; the last one fastest (--vary)", sim::assumed("given by the scenario"));
    v("points", c.points, "how many points a random design or a Latin hypercube draws, conditions apart",
      sim::assumed("none"), sim::Range{1, 1e7});
    v("seed", c.seed, "seed of the draws", sim::assumed("the seed of the scenario"));
    v("replications", c.replications, "runs of each point, with seeds S, S + 1, …", sim::assumed("one"),
      sim::Range{1, 1e6});
    v("where", c.where, "conditions between parameters; a point that does not meet them is left out",
      sim::assumed("none"));
    v("metrics", c.metrics,
      "name → \"POINTER [minus POINTER] [per POINTER] [x FACTOR]\", JSON pointers into the result; a \"*\" in a "
      "pointer adds up what matches",
      sim::assumed("rate, latency and CPU time of the workloads and programs"));
    v("expect", c.expect, "what the whole sweep has to show", sim::assumed("none"));
  }
};

}  // namespace sys

template <>
struct sim::EnumNames<sys::Design> {
  static constexpr std::array<std::pair<sys::Design, std::string_view>, 4> values{
      {{sys::Design::grid, "grid"},
       {sys::Design::zip, "zip"},
       {sys::Design::random, "random"},
       {sys::Design::latin_hypercube, "latin_hypercube"}}};
};
template <>
struct sim::EnumNames<sys::Trend> {
  static constexpr std::array<std::pair<sys::Trend, std::string_view>, 4> values{
      {{sys::Trend::rising, "rising"},
       {sys::Trend::falling, "falling"},
       {sys::Trend::not_rising, "not_rising"},
       {sys::Trend::not_falling, "not_falling"}}};
};
