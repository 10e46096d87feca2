// SPDX-License-Identifier: Apache-2.0
// The tables come from the view `result`, so that a file and a query show the same.
#include "experiment/sweep_export.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/config_json.h"

namespace experiment {
namespace {

using sim::Json;

constexpr const char* kFinished = "SELECT * FROM result WHERE verdict IS NOT NULL ORDER BY point";

std::vector<std::string> columns(Database& db) {
  std::vector<std::string> out;
  Statement s(db, "SELECT name FROM pragma_table_info('result') ORDER BY cid");
  while (s.step()) out.push_back(s.text(0));
  return out;
}

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// A cell: a whole number without a point, a decimal one as its shortest text.
Json cell(const Statement& s, int column) {
  if (s.is_null(column)) return {};
  if (!s.is_numeric(column)) return Json(s.text(column));
  const double d = s.real(column);
  if (d == std::trunc(d) && std::abs(d) < 9e15) return Json(static_cast<std::int64_t>(d));
  return Json(d);
}

std::string text_of(const Json& cell) {
  return cell.is_null() ? "" : cell.is_string() ? cell.string() : cell.compact();
}

std::string fact(Database& db, const char* key) {
  Statement s(db, "SELECT value FROM sweep WHERE key = ?");
  s.bind(1, std::string_view(key));
  return s.step() ? s.text(0) : std::string{};
}

std::string values_of(const SweepPlan& plan, const SweepPoint& p) {
  std::string out;
  for (std::size_t i = 0; i < p.values.size(); ++i)
    out += (i == 0 ? "" : ", ") + plan.parameters[i].name + "=" + p.values[i].text();
  return out;
}

}  // namespace

std::string sweep_csv(Database& db) {
  const std::vector<std::string> names = columns(db);
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : ",") + field(names[i]);
  out += "\r\n";
  Statement rows(db, kFinished);
  while (rows.step()) {
    for (std::size_t i = 0; i < names.size(); ++i)
      out += (i == 0 ? "" : ",") + field(text_of(cell(rows, static_cast<int>(i))));
    out += "\r\n";
  }
  return out;
}

Json sweep_json(Database& db, const std::vector<SweepExpectationResult>& expectations) {
  Json j = Json::object();
  for (const char* key : {"schema", "scenario", "description", "teaches", "version", "scenario_hash"})
    j[key] = fact(db, key);
  sim::ConfigErrors quiet;
  j["design"] = sim::parse_json(fact(db, "design"), "design", quiet).value_or(Json{});
  const std::vector<std::string> names = columns(db);
  Json& points = j["points"] = Json::array();
  Statement rows(db, kFinished);
  while (rows.step()) {
    Json row = Json::object();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = cell(rows, static_cast<int>(i));
    points.push_back(std::move(row));
  }
  Json& missing = j["missing"] = Json::array();
  Statement none(db, "SELECT point FROM point WHERE verdict IS NULL ORDER BY point");
  while (none.step()) missing.push_back(none.integer(0));
  Json& conditions = j["expectations"] = Json::array();
  for (const SweepExpectationResult& e : expectations) {
    Json item = Json::object();
    item["condition"] = e.text;
    item["met"] = e.met;
    if (!e.because.empty()) item["because"] = e.because;
    Json& failures = item["failures"] = Json::array();
    for (const std::string& f : e.failures) failures.push_back(f);
    conditions.push_back(std::move(item));
  }
  return j;
}

std::string sweep_table(const SweepPlan& plan, const std::vector<SweepRow>& rows,
                        const std::vector<SweepExpectationResult>& expectations) {
  std::map<std::string, std::vector<const SweepRow*>> by_verdict;
  for (const SweepRow& r : rows) by_verdict[r.verdict].push_back(&r);
  std::string out = "sweep of " + plan.scenario + ": " + std::to_string(rows.size()) + " points, " +
                    std::string(sim::enum_name(plan.design)) + " of " + std::to_string(plan.parameters.size()) +
                    (plan.parameters.size() == 1 ? " parameter\n" : " parameters\n");
  for (const auto& [verdict, some] : by_verdict) {
    std::string name = verdict.empty() ? "not run" : verdict;
    name.resize(std::max<std::size_t>(name.size() + 1, 16), ' ');
    out += "  " + name + std::to_string(some.size()) + "\n";
    if (verdict.empty() || verdict == "ok") continue;
    const SweepRow& first = *some.front();
    const SweepPoint& point = plan.points[first.number];
    out += "    first: point " + std::to_string(first.number) + " (" + values_of(plan, point) + ")\n";
    if (!first.why.empty()) out += "      " + first.why.substr(0, first.why.find('\n')) + "\n";
    out += "      " + plan.command(point) + "\n";
  }
  std::size_t met = 0;
  for (const SweepExpectationResult& e : expectations) {
    met += e.met ? 1 : 0;
    if (e.met) continue;
    out += "  not met: " + e.text + (e.because.empty() ? "" : " (" + e.because + ")") + "\n";
    for (const std::string& f : e.failures) out += "    " + f + "\n";
  }
  if (!expectations.empty())
    out += "  expectations    " + std::to_string(met) + " of " + std::to_string(expectations.size()) + " met\n";
  return out;
}

std::string sweep_listing(const SweepPlan& plan) {
  std::string out;
  for (const SweepPoint& p : plan.points)
    out += std::to_string(p.number) + "  " + values_of(plan, p) + ", seed " + std::to_string(p.seed) + "\n";
  out += std::to_string(plan.points.size()) + " points" +
         (plan.left_out > 0 ? ", and " + std::to_string(plan.left_out) + " left out by conditions" : "") + "\n";
  return out;
}

}  // namespace experiment
