// SPDX-License-Identifier: Apache-2.0
#include "system/expect.h"

#include <regex>

namespace sys {

std::vector<std::pair<std::string, std::string>> ExpectationConfig::mistakes() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [field, pointer] : {std::pair{"at", &at}, {"minus", &minus}, {"differs_from", &differs_from}})
    if (const std::string e = sim::Json::pointer_error(*pointer); !e.empty()) out.emplace_back(field, e);
  if (where && !where->is_object()) out.emplace_back("where", "expected an object with the members to look for");
  if (!minus.empty() && (where || count)) out.emplace_back("minus", "is for numbers, not for lists");
  const bool any = count || !differs_from.empty() || equals || between || at_least || at_most || one_of || matches ||
                   contains || exists || absent;
  if (!any)
    out.emplace_back(
        "at",
        "says nothing about the value; add equals, count, between, at_least, at_most, one_of, matches, contains, "
        "differs_from, exists or absent");
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
