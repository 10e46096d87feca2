// SPDX-License-Identifier: Apache-2.0
// Every diagnosis looks at the result by itself; this file asks them all, orders what they found, and writes it down. No
// cause is told without a figure.
#include "experiment/explain.h"

#include <algorithm>
#include <limits>

#include "experiment/explain_parts.h"

namespace experiment {
namespace {

using sim::Json;

/// What a person sees of a value: strings without quotes.
std::string plain(const Json& j) { return j.is_string() ? j.string() : j.is_null() ? "not set" : j.compact(); }

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

/// Lines of at most `width` columns, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width = 118) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    if (column + word.size() + 1 > width && column > indent) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = space + 1;
  }
  return out;
}

constexpr std::size_t kLabel = 16;
constexpr std::size_t kChangesShown = 4;

std::string row(const std::string& label, const std::string& text) {
  return "     " + label + std::string(kLabel - 5 - label.size(), ' ') + wrapped(text, kLabel) + "\n";
}

std::string text_of(const Diagnosis& d, std::size_t number) {
  std::string out = "  " + std::to_string(number) + ". " + wrapped(d.id + ": " + d.what, 5) + "\n";
  if (!d.who.empty()) out += row("who", d.who);
  if (d.when_ns) out += row("when", time_text(*d.when_ns));
  if (!d.rules.empty()) out += row("rule", joined(d.rules));
  for (const Evidence& e : d.evidence)
    out += row(&e == &d.evidence.front() ? "evidence" : "",
               plain(e.value) + " " + e.says + (e.at.empty() ? "" : " [" + e.at + "]"));
  for (const Advice& a : d.advice) {
    std::string changes;
    std::size_t shown = 0;
    for (const Change& c : a.changes)
      if (++shown <= kChangesShown)
        changes += (shown > 1 ? ", and " : "") + c.path + " from " + plain(c.from) + " to " + plain(c.to);
    if (shown > kChangesShown) changes += ", and " + std::to_string(shown - kChangesShown) + " more alike";
    out += row(&a == &d.advice.front() ? "turn" : "or", changes + ": " + a.why);
  }
  return out;
}

Json json_of(const Diagnosis& d) {
  Json j = Json::object();
  j["id"] = d.id;
  j["severity"] = name_of(d.severity);
  j["what"] = d.what;
  j["who"] = d.who;
  j["when_ns"] = d.when_ns ? Json(*d.when_ns) : Json{};
  Json& rules = j["rules"] = Json::array();
  for (const std::string& r : d.rules) rules.push_back(r);
  Json& evidence = j["evidence"] = Json::array();
  for (const Evidence& e : d.evidence) {
    Json item = Json::object();
    item["at"] = e.at.empty() ? Json{} : Json(e.at);
    item["value"] = e.value;
    item["says"] = e.says;
    evidence.push_back(std::move(item));
  }
  Json& advice = j["advice"] = Json::array();
  for (const Advice& a : d.advice) {
    Json item = Json::object();
    Json& changes = item["changes"] = Json::array();
    for (const Change& c : a.changes) {
      Json change = Json::object();
      change["path"] = c.path;
      change["from"] = c.from;
      change["to"] = c.to;
      change["set"] = c.set();
      changes.push_back(std::move(change));
    }
    item["why"] = a.why;
    advice.push_back(std::move(item));
  }
  return j;
}

Json json_of(const std::vector<Diagnosis>& all) {
  Json out = Json::array();
  for (const Diagnosis& d : all) out.push_back(json_of(d));
  return out;
}

/// A figure that is not there shows nothing, and a diagnosis without figures is not told.
void keep_what_is_shown(const Json& result, std::vector<Diagnosis>& all) {
  const Facts f(result);
  for (Diagnosis& d : all)
    std::erase_if(d.evidence, [&](const Evidence& e) { return !e.at.empty() && f.at(e.at) == nullptr; });
  std::erase_if(all, [](const Diagnosis& d) { return d.evidence.empty(); });
}

double order_of_time(const Diagnosis& d) { return d.when_ns.value_or(std::numeric_limits<double>::max()); }

}  // namespace

std::string Change::set() const { return path + "=" + (to.is_string() ? to.string() : to.compact()); }

std::string_view name_of(Severity s) {
  constexpr std::string_view kNames[] = {"hang", "error", "stall", "loss", "limit", "note"};
  return kNames[static_cast<std::size_t>(s)];
}

Explanation explain(const Json& result) {
  const Facts f(result);
  Explanation e;
  e.scenario = result.find("scenario")->string();
  e.version = result.find("version")->string();
  e.verdict = f.verdict();
  e.sim_time_ns = f.number("/sim_time_ns");

  find_hangs(f, e.faults);
  find_ends(f, e.faults);
  find_errors(f, e.faults);
  find_events(f, e.faults);
  find_retries(f, e.faults);
  std::ranges::stable_sort(e.faults, [](const Diagnosis& a, const Diagnosis& b) {
    return std::make_pair(a.severity, order_of_time(a)) < std::make_pair(b.severity, order_of_time(b));
  });

  for (std::size_t w = 0; w < f.workloads().size(); ++w) find_limits(f, w, e.limits);
  find_program_limits(f, e.limits);

  for (auto* all : {&e.faults, &e.limits}) keep_what_is_shown(result, *all);
  return e;
}

Json to_json(const Explanation& e) {
  Json j = Json::object();
  j["schema"] = kExplainSchema;
  j["scenario"] = e.scenario;
  j["version"] = e.version;
  j["verdict"] = e.verdict;
  j["sim_time_ns"] = e.sim_time_ns;
  j["faults"] = json_of(e.faults);
  j["limits"] = json_of(e.limits);
  return j;
}

std::string to_text(const Explanation& e) {
  std::string out =
      e.scenario + ": verdict " + e.verdict + ", " + time_text(e.sim_time_ns) + " simulated\n\nwhat went wrong\n";
  std::size_t n = 0;
  for (const Diagnosis& d : e.faults) out += text_of(d, ++n);
  if (e.faults.empty()) out += "  nothing\n";
  out += "\nwhat limits it\n";
  n = 0;
  for (const Diagnosis& d : e.limits) out += text_of(d, ++n);
  if (e.limits.empty()) out += "  nothing was delivered that a limit could be told of\n";
  return out;
}

}  // namespace experiment
