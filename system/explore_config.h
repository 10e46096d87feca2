// SPDX-License-Identifier: Apache-2.0
// What `rdmasim explore` varies from run to run, and how far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/units.h"

namespace sys {

/// A time of the scenario, and the bounds within which it varies.
struct DelayConfig {
  std::string delay;
  sim::Picos from{0}, to{0}, step{10'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("delay", c.delay, "path of a time in this scenario, as --set takes it", sim::required());
    v("from", c.from, "least value", sim::assumed("none"), sim::Range{0, 1e18});
    v("to", c.to, "greatest value", sim::required(), sim::Range{0, 1e18});
    v("step", c.step, "distance of two values of a scan", sim::assumed("the step of a sweep over a race"),
      sim::Range{1, 1e18});
  }
  template <class F>
  void check(F&& fail) const {
    if (to < from) fail("to", "is less than `from`");
  }
};

struct ExploreConfig {
  std::optional<DelayConfig> scan;
  std::vector<DelayConfig> delays;
  std::optional<std::uint64_t> tries;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("scan", c.scan, "the delay that takes each of its values in turn (--scan)", sim::assumed("none"));
    v("delays", c.delays, "delays that are drawn at random between their bounds, with the seed (--delay)",
      sim::assumed("none: the seed alone"));
    v("tries", c.tries, "random runs, each with a seed of its own (--tries)",
      sim::assumed("100 if `delays` are given, else none"), sim::Range{1, 1e7});
  }
};

}  // namespace sys
