// SPDX-License-Identifier: Apache-2.0
// The two forms of a comparison. Numbers of the text are rounded; those of the JSON are the results' own.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "experiment/diff.h"
#include "experiment/explain_facts.h"

namespace experiment {
namespace {

using sim::Json;

constexpr std::size_t kCountersShown = 40;

std::string plain(const Json& j) {
  if (j.is_null()) return "-";
  if (j.is_string()) return j.string();
  return j.is_number() ? number_text(j.number(), 9) : j.compact();
}

std::string signed_text(std::optional<double> v, int digits) {
  if (!v) return "-";
  return (*v > 0 ? "+" : *v < 0 ? "-" : "") + number_text(std::abs(*v), digits);
}
std::string percent_text(std::optional<double> v) {
  if (!v) return "";
  return signed_text(*v * 100, 4) + " %";
}

std::string cell(const std::string& text, int width) {
  char out[160];
  std::snprintf(out, sizeof out, "%*s", width, text.c_str());
  return out;
}

/// A table whose first column is as wide as its longest name.
class Table {
 public:
  void add(const std::string& name, std::vector<std::string> cells) { rows_.emplace_back(name, std::move(cells)); }
  std::string text() const {
    std::size_t width = 0;
    for (const auto& [name, cells] : rows_) width = std::max(width, name.size());
    std::string out;
    for (const auto& [name, cells] : rows_) {
      std::string line = "  " + name + std::string(width - name.size(), ' ');
      for (const std::string& c : cells) line += "  " + cell(c, 14);
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> rows_;
};

std::string side_text(const char* which, const Diff::Side& s) {
  return std::string(which) + "  " + s.scenario + ", seed " + std::to_string(s.seed) + ", verdict " + s.verdict +
         ", rdmasim " + s.version + "\n";
}

std::string config_text(const Diff& d) {
  std::string out = "\nconfiguration\n";
  if (d.config.empty()) out += "  alike\n";
  for (const DiffValue& v : d.config) out += "  " + v.name + ": " + plain(v.a) + " -> " + plain(v.b) + "\n";
  return out;
}

std::string flow_text(const DiffFlow& f) {
  Table metrics;
  metrics.add("metric", {"A", "B", "B - A", ""});
  for (const DiffMetric& m : f.metrics)
    metrics.add(m.name, {plain(m.a), plain(m.b), signed_text(m.delta(), 6),
                         percent_text(m.relative()) + (m.worse ? "  worse" : "")});
  std::string out = "\n" + f.name + "\n" + metrics.text();
  if (f.stages.empty()) return out;
  Table stages;
  stages.add("stage, mean ns", {"A", "B", "B - A", "of the change"});
  for (const DiffStage& s : f.stages)
    stages.add(s.name, {plain(s.a), plain(s.b), signed_text(s.delta(), 6), percent_text(s.share)});
  const auto total = f.mean.delta();
  stages.add("sum", {plain(f.mean.a), plain(f.mean.b), signed_text(total, 6), total && *total != 0 ? "+100 %" : ""});
  return out + "\n" + stages.text();
}

std::string map_text(const char* title, const std::vector<DiffValue>& all) {
  if (all.empty()) return "";
  Table t;
  t.add(title, {"A", "B", "B - A", ""});
  for (std::size_t i = 0; i < all.size() && i < kCountersShown; ++i)
    t.add(all[i].name,
          {plain(all[i].a), plain(all[i].b), signed_text(all[i].delta(), 6), percent_text(all[i].relative())});
  std::string out = "\n" + t.text();
  if (all.size() > kCountersShown)
    out += "  and " + std::to_string(all.size() - kCountersShown) + " more (--format json has all)\n";
  return out;
}

Json json_of(const DiffValue& v) {
  Json j = Json::object();
  j["name"] = v.name;
  j["a"] = v.a;
  j["b"] = v.b;
  return j;
}
Json number(std::optional<double> v) { return v ? Json(*v) : Json{}; }
Json with_delta(const DiffValue& v) {
  Json j = json_of(v);
  j["delta"] = number(v.delta());
  j["relative"] = number(v.relative());
  return j;
}
Json list(const std::vector<std::string>& words) {
  Json j = Json::array();
  for (const std::string& w : words) j.push_back(w);
  return j;
}
Json list(const std::vector<DiffValue>& values) {
  Json j = Json::array();
  for (const DiffValue& v : values) j.push_back(with_delta(v));
  return j;
}

Json json_of(const Diff::Side& s) {
  Json j = Json::object();
  j["scenario"] = s.scenario;
  j["version"] = s.version;
  j["seed"] = s.seed;
  j["verdict"] = s.verdict;
  return j;
}

Json json_of(const DiffFlow& f) {
  Json j = Json::object();
  j["name"] = f.name;
  Json& metrics = j["metrics"] = Json::array();
  for (const DiffMetric& m : f.metrics) {
    Json item = with_delta(m);
    item["better"] = m.higher_is_better ? "higher" : "lower";
    item["worse"] = m.worse;
    metrics.push_back(std::move(item));
  }
  Json& stages = j["stages"] = Json::array();
  for (const DiffStage& s : f.stages) {
    Json item = with_delta(s);
    item["share"] = number(s.share);
    stages.push_back(std::move(item));
  }
  j["mean"] = with_delta(f.mean);
  return j;
}

}  // namespace

Json to_json(const Diff& d) {
  Json j = Json::object();
  j["schema"] = kDiffSchema;
  j["a"] = json_of(d.a);
  j["b"] = json_of(d.b);
  Json& config = j["config"] = Json::array();
  for (const DiffValue& v : d.config) config.push_back(json_of(v));
  Json& flows = j["flows"] = Json::array();
  for (const DiffFlow& f : d.flows) flows.push_back(json_of(f));
  j["only_a"] = list(d.only_a);
  j["only_b"] = list(d.only_b);
  j["counters"] = list(d.counters);
  j["utilisation"] = list(d.utilisation);
  j["tolerance"] = d.options.tolerance;
  j["threshold"] = number(d.options.threshold);
  j["judged"] = list(d.options.threshold ? d.options.metrics : std::vector<std::string>{});
  j["worse"] = d.worse();
  return j;
}

std::string to_text(const Diff& d) {
  std::string out =
      side_text("A", d.a) + side_text("B", d.b) + (d.verdict_worse ? "the verdict is worse\n" : "") + config_text(d);
  for (const DiffFlow& f : d.flows) out += flow_text(f);
  for (const std::string& name : d.only_a) out += "\n" + name + ": in A only\n";
  for (const std::string& name : d.only_b) out += "\n" + name + ": in B only\n";
  out += map_text("utilisation", d.utilisation) + map_text("counter", d.counters);
  if (d.options.threshold)
    out += "\nthreshold " + percent(*d.options.threshold) + ": " + (d.worse() ? "B is worse" : "B is not worse") + "\n";
  return out;
}

}  // namespace experiment
