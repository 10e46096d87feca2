// SPDX-License-Identifier: Apache-2.0
// What a scenario expects of its result: conditions on values that JSON pointers name.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.h"
#include "sim/json.h"

namespace sys {

/// One condition; all operators that are given have to hold.
struct ExpectationConfig {
  std::string at, minus, differs_from;
  std::optional<sim::Json> where;
  std::optional<std::uint64_t> count;
  std::optional<sim::Json> equals;
  std::optional<std::vector<double>> between;
  std::optional<double> at_least, at_most;
  std::optional<std::vector<sim::Json>> one_of;
  std::optional<std::string> matches;
  std::optional<sim::Json> contains;
  std::optional<bool> exists, absent;
  std::string because;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto none = sim::assumed("");
    v("at", c.at,
      "JSON pointer (RFC 6901) to a value of the result, such as \"/workloads/0/wc_status/SUCCESS\"; a \"*\" in it "
      "stands "
      "for every element or member and makes the value a list: \"/programs/client/completions/*/status\"",
      sim::required());
    v("where", c.where, "only the elements of the list that have these members", none);
    v("minus", c.minus, "JSON pointer to a number that is subtracted first: the time between two events", none);
    v("count", c.count, "the list, or object, has this many elements", none);
    v("differs_from", c.differs_from, "JSON pointer to a value that has to be another one", none);
    v("equals", c.equals, "the value is this; numbers compare by value, objects without regard to order", none);
    v("between", c.between, "[low, high]: a number with low <= value <= high", none);
    v("at_least", c.at_least, "a number not below this", none);
    v("at_most", c.at_most, "a number not above this", none);
    v("one_of", c.one_of, "the value is one of these", none);
    v("matches", c.matches, "a string in which this ECMAScript regular expression is found", none);
    v("contains", c.contains,
      "a string with this part, a list with this element, an object with this key or these members", none);
    v("exists", c.exists, "true: something is there; false: nothing is", none);
    v("absent", c.absent, "true: nothing is there; false: something is", none);
    v("because", c.because, "what the condition shows; printed when it is not met", none);
  }
  template <class F>
  void check(F&& fail) const {
    for (const auto& [field, message] : mistakes()) fail(field, message);
  }
  /// Field and what is wrong with it.
  std::vector<std::pair<std::string, std::string>> mistakes() const;
};

}  // namespace sys
