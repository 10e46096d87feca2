// SPDX-License-Identifier: Apache-2.0
// Operators of expectations. A pointer to nothing fails every operator except `exists: false` and `absent: true`. A pointer with
// a "*" makes a list, which may be empty.
#include "experiment/expectation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>

namespace experiment {
namespace {

using sim::Json;

std::string number(double d) { return Json(d).compact(); }

bool contains(const Json& whole, const Json& part) {
  if (whole.is_string()) return part.is_string() && whole.string().find(part.string()) != std::string::npos;
  if (whole.is_object() && part.is_string()) return whole.find(part.string()) != nullptr;
  if (whole.is_object() && part.is_object())
    return std::ranges::all_of(part.members(), [&](const Json::Member& m) {
      const Json* mine = whole.find(m.key);
      return mine != nullptr && (*mine == m.value || (m.value.is_object() && contains(*mine, m.value)));
    });
  if (whole.is_array())
    return std::ranges::any_of(whole.items(), [&](const Json& e) {
      return e == part || (part.is_object() && e.is_object() && contains(e, part));
    });
  return false;
}

/// What is where the pointer stops leading anywhere: "nothing there; /workloads/0 has: name, op".
std::string nothing_at(std::string pointer, const Json& result) {
  const Json* here = nullptr;
  while (here == nullptr && !pointer.empty()) {
    pointer.erase(pointer.rfind('/'));
    here = result.at(pointer);
  }
  std::string out = "nothing is there";
  if (here == nullptr) return out;
  const std::string place = pointer.empty() ? "the result" : pointer;
  if (here->is_array()) return out + "; " + place + " has " + std::to_string(here->items().size()) + " elements";
  if (!here->is_object()) return out + "; " + place + " is " + here->describe();
  out += "; " + place + " has:";
  std::size_t shown = 0;
  for (const Json::Member& m : here->members()) {
    if (++shown > 20) return out + " …";
    out += " " + m.key;
  }
  return here->members().empty() ? out + " no members" : out;
}

/// What a pointer leads to; a segment "*" is every element of a list or member of an object.
std::optional<Json> select(const Json& from, std::string_view pointer) {
  const std::size_t star = (std::string(pointer) + "/").find("/*/");
  if (star == std::string::npos) {
    const Json* found = from.at(pointer);
    return found != nullptr ? std::optional(*found) : std::nullopt;
  }
  const Json* whole = from.at(pointer.substr(0, star));
  if (whole == nullptr || !(whole->is_array() || whole->is_object())) return std::nullopt;
  const std::string_view rest = pointer.substr(std::min(star + 2, pointer.size()));
  Json out = Json::array();
  const auto add = [&](const Json& part) {
    if (auto value = select(part, rest)) {
      if (rest.find("/*") != std::string_view::npos && value->is_array())
        for (Json& v : value->items()) out.push_back(std::move(v));
      else out.push_back(std::move(*value));
    }
  };
  if (whole->is_array())
    for (const Json& e : whole->items()) add(e);
  else
    for (const Json::Member& m : whole->members()) add(m.value);
  return out;
}

/// The value that an expectation speaks about.
std::optional<Json> subject(const sys::ExpectationConfig& e, const Json& result) {
  std::optional<Json> value = select(result, e.at);
  if (value && e.where) {
    if (!value->is_array()) return std::nullopt;
    std::erase_if(value->items(), [&](const Json& item) { return !item.is_object() || !contains(item, *e.where); });
  }
  if (value && !e.minus.empty()) {
    const std::optional<Json> other = select(result, e.minus);
    if (!other || !other->is_number() || !value->is_number()) return std::nullopt;
    // Times have three decimals; what the subtraction adds beyond them is not theirs.
    value = Json(std::round((value->number() - other->number()) * 1e3) / 1e3);
  }
  return value;
}

struct Check {
  std::string expected;
  bool met = true;
  void require(const std::string& text, bool ok) {
    expected += (expected.empty() ? "" : " and ") + text;
    met = met && ok;
  }
};

void check_value(const sys::ExpectationConfig& e, const Json* actual, Check& c) {
  const auto is_number = [&] { return actual != nullptr && actual->is_number(); };
  if (e.equals) c.require(e.equals->compact(), actual != nullptr && *actual == *e.equals);
  if (e.between) {
    const double low = e.between->at(0), high = e.between->at(1);
    c.require("between " + number(low) + " and " + number(high),
              is_number() && actual->number() >= low && actual->number() <= high);
  }
  if (e.at_least) c.require("at least " + number(*e.at_least), is_number() && actual->number() >= *e.at_least);
  if (e.at_most) c.require("at most " + number(*e.at_most), is_number() && actual->number() <= *e.at_most);
  if (e.one_of) {
    Json all = Json::array();
    for (const Json& v : *e.one_of) all.push_back(v);
    c.require("one of " + all.compact(), actual != nullptr && std::ranges::find(*e.one_of, *actual) != e.one_of->end());
  }
  if (e.matches)
    c.require("a string matching /" + *e.matches + "/",
              actual != nullptr && actual->is_string() && std::regex_search(actual->string(), std::regex(*e.matches)));
  if (e.count) {
    const bool listed = actual != nullptr && (actual->is_array() || actual->is_object());
    const std::size_t n = !listed ? 0 : actual->is_array() ? actual->items().size() : actual->members().size();
    c.require(std::to_string(*e.count) + " elements", listed && n == *e.count);
  }
  if (e.contains) c.require("containing " + e.contains->compact(), actual != nullptr && contains(*actual, *e.contains));
}

}  // namespace

ExpectationResult evaluate(const sys::ExpectationConfig& e, const Json& result) {
  const std::optional<Json> value = subject(e, result);
  const Json* actual = value ? &*value : nullptr;
  Check c;
  for (const auto& wanted : {e.exists, e.absent ? std::optional(!*e.absent) : std::nullopt})
    if (wanted) c.require(*wanted ? "something there" : "nothing there", (actual != nullptr) == *wanted);
  check_value(e, actual, c);
  if (!e.differs_from.empty()) {
    const std::optional<Json> other = select(result, e.differs_from);
    c.require("other than " + e.differs_from, actual != nullptr && other && !(*actual == *other));
  }
  ExpectationResult out{e.at, c.expected, {}, e.because, c.met};
  out.actual = actual == nullptr ? nothing_at(e.at, result) : actual->compact();
  if (!c.met && e.count && actual != nullptr && actual->is_array())
    out.actual = std::to_string(actual->items().size()) + " elements: " + out.actual;
  if (actual != nullptr && out.actual.size() > 200) out.actual = actual->describe();
  if (actual != nullptr && actual->is_number() && e.equals && e.equals->is_number() && !c.met) {
    char difference[64];
    std::snprintf(difference, sizeof difference, " (%+.6g)", actual->number() - e.equals->number());
    out.actual += difference;
  }
  return out;
}

void evaluate_all(const std::vector<sys::ExpectationConfig>& expectations, Result& result) {
  result.expectations.clear();
  const Json j = to_json(result);
  for (const sys::ExpectationConfig& e : expectations) result.expectations.push_back(evaluate(e, j));
}

bool verdict_expected(const Result& result) {
  return std::ranges::any_of(result.expectations,
                             [](const ExpectationResult& e) { return e.at == "/verdict" && e.met; });
}

}  // namespace experiment
