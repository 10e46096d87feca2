// SPDX-License-Identifier: Apache-2.0
// The report of an exploration, as JSON and for people. A scan is told in ranges, random runs by outcome and the first few.
#include <algorithm>

#include "experiment/explore.h"
#include "experiment/version.h"

namespace experiment {
namespace {

using sim::Json;

constexpr std::size_t kShown = 5;

Json outcome_json(const RunOutcome& o) {
  Json j = Json::object();
  j["outcome"] = o.outcome;
  j["as_expected"] = o.good;
  Json& why = j["why"] = Json::array();
  for (const std::string& line : o.why) why.push_back(line);
  return j;
}

Json run_json(const ExploredRun& r) {
  Json j = outcome_json(r.outcome);
  j["seed"] = r.seed;
  Json& delays = j["delays"] = Json::object();
  for (const auto& [path, t] : r.delays) delays[path] = sim::to_string(t);
  j["command"] = r.command;
  return j;
}

Json delay_json(const sys::DelayConfig& d) {
  Json j = Json::object();
  j["delay"] = d.delay;
  j["from"] = sim::to_string(d.from);
  j["to"] = sim::to_string(d.to);
  j["step"] = sim::to_string(d.step);
  return j;
}

std::string bounds(const sys::DelayConfig& d) {
  return d.delay + " from " + sim::to_string(d.from) + " to " + sim::to_string(d.to) + " by " + sim::to_string(d.step);
}

/// The command, and the first of the reasons.
std::string how(const ExploredRun& r) {
  std::string out;
  for (std::size_t i = 0; i < std::min(r.outcome.why.size(), kShown); ++i) out += "      " + r.outcome.why[i] + "\n";
  return out + "      " + r.command + "\n";
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string scan_table(const Exploration& e) {
  std::string out = "\nscan of " + bounds(*e.scan) + "\n";
  for (const ScanRange& r : e.ranges) {
    const std::string range = sim::to_string(r.from) + (r.runs > 1 ? " .. " + sim::to_string(r.to) : "");
    out += "  " + padded(range, 30) + padded(std::to_string(r.runs) + (r.runs == 1 ? " run" : " runs"), 12) +
           r.first.outcome.outcome + (r.differs ? "   <-- differs" : "") + "\n";
    if (r.differs) out += how(r.first);
  }
  return out;
}

std::string tries_table(const Exploration& e) {
  std::string out = "\n";
  out += std::to_string(e.tries) + " random runs, seeds from " + std::to_string(e.seed) + "\n";
  for (const sys::DelayConfig& d : e.delays) out += "  " + bounds(d) + "\n";
  for (const auto& [outcome, n] : e.outcomes) out += "  " + padded(outcome, 30) + std::to_string(n) + "\n";
  for (const ExploredRun& r : e.reduced)
    out += "  " + r.outcome.outcome + ", with no delay that it does not need:\n" + how(r);
  for (std::size_t i = 0; i < std::min(e.differing.size(), kShown); ++i)
    out += "  seed " + std::to_string(e.differing[i].seed) + ": " + e.differing[i].outcome.outcome + "\n" +
           how(e.differing[i]);
  if (e.differing.size() > kShown)
    out += "  and " + std::to_string(e.differing.size() - kShown) + " more; --json FILE lists them all\n";
  return out;
}

}  // namespace

Json to_json(const Exploration& e) {
  Json j = Json::object();
  j["schema"] = "rdmasim-explore/1";
  j["scenario"] = e.scenario;
  j["version"] = version();
  j["seed"] = e.seed;
  j["runs"] = e.runs;
  j["differs"] = e.differs();
  j["interrupted"] = e.interrupted;
  j["base"] = outcome_json(e.base);
  j["base"]["differs"] = e.base_differs;
  if (e.scan) {
    Json& scan = j["scan"] = delay_json(*e.scan);
    Json& ranges = scan["ranges"] = Json::array();
    for (const ScanRange& r : e.ranges) {
      Json item = Json::object();
      item["from"] = sim::to_string(r.from);
      item["to"] = sim::to_string(r.to);
      item["runs"] = r.runs;
      item["differs"] = r.differs;
      item["first"] = run_json(r.first);
      ranges.push_back(std::move(item));
    }
  }
  if (e.tries > 0) {
    Json& tries = j["tries"] = Json::object();
    tries["tries"] = e.tries;
    Json& delays = tries["delays"] = Json::array();
    for (const sys::DelayConfig& d : e.delays) delays.push_back(delay_json(d));
    Json& outcomes = tries["outcomes"] = Json::object();
    for (const auto& [outcome, n] : e.outcomes) outcomes[outcome] = n;
    Json& reduced = tries["reduced"] = Json::array();
    for (const ExploredRun& r : e.reduced) reduced.push_back(run_json(r));
    Json& differing = tries["differing"] = Json::array();
    for (const ExploredRun& r : e.differing) differing.push_back(run_json(r));
  }
  return j;
}

std::string to_table(const Exploration& e) {
  std::string out = "scenario " + e.scenario + ": as it is, " + (e.base.outcome.empty() ? "not run" : e.base.outcome) +
                    (e.base_differs ? "   <-- differs" : "") + "\n";
  if (e.scan) out += scan_table(e);
  if (e.tries > 0) out += tries_table(e);
  out += "\n";
  out += std::to_string(e.runs) + " runs" + (e.interrupted ? ", then interrupted" : "") + ": " +
         (e.differs() ? "some end otherwise" : "all end as they should") + "\n";
  return out;
}

}  // namespace experiment
