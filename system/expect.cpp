// SPDX-License-Identifier: Apache-2.0
#include "system/expect.h"

#include <regex>

namespace sys {

std::vector<std::pair<std::string, std::string>> ExpectationConfig::mistakes() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (const std::string e = sim::Json::pointer_error(at); !e.empty()) out.emplace_back("at", e);
  const bool any = equals || between || at_least || at_most || one_of || matches || contains || exists || absent;
  if (!any)
    out.emplace_back("at",
                     "says nothing about the value; add equals, between, at_least, at_most, one_of, matches, contains, "
                     "exists or absent");
  if (between && (between->size() != 2 || (*between)[0] > (*between)[1]))
    out.emplace_back("between", "expected two numbers [low, high] with low <= high");
  if (matches) {
    try {
      const std::regex parsed(*matches);
    } catch (const std::regex_error& e) {
      out.emplace_back("matches", std::string("not a regular expression: ") + e.what());
    }
  }
  return out;
}

}  // namespace sys
