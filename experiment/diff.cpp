// SPDX-License-Identifier: Apache-2.0
// The comparison itself; experiment/diff_report.cpp writes it down. The stages of a latency sum to its mean in each result,
// so their differences sum to the difference of the means, and each has a share of it.
#include "experiment/diff.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/config_json.h"

namespace experiment {
namespace {

using sim::Json;

struct Metric {
  const char *name, *pointer;
  bool higher_is_better, judged;
};
/// Of a workload or a program; what one of them lacks is null.
constexpr Metric kMetrics[] = {{"bandwidth_gbps", "/bandwidth_gbps", true, true},
                               {"message_rate_mpps", "/message_rate_mpps", true, true},
                               {"messages", "/messages", true, false},
                               {"latency_min_ns", "/latency_ns/min", false, false},
                               {"latency_mean_ns", "/latency_ns/mean", false, false},
                               {"latency_p50_ns", "/latency_ns/p50", false, true},
                               {"latency_p99_ns", "/latency_ns/p99", false, true},
                               {"latency_p999_ns", "/latency_ns/p999", false, false},
                               {"latency_max_ns", "/latency_ns/max", false, false},
                               {"half_round_trip_p50_ns", "/half_round_trip_ns/p50", false, false},
                               {"client_cpu_ns", "/cpu_ns/client/on_cpu", false, false},
                               {"server_cpu_ns", "/cpu_ns/server/on_cpu", false, false},
                               {"cpu_ns", "/cpu_ns/on_cpu", false, false},
                               {"ended_ns", "/ended_ns", false, false}};

Json value(const Json& j, const char* pointer) {
  const Json* v = j.at(pointer);
  return v != nullptr && v->is_number() ? *v : Json{};
}

bool is_worse(const DiffMetric& m, double threshold) {
  if (m.a.is_null()) return false;
  if (m.b.is_null()) return true;  // nothing was delivered any more
  const double delta = m.higher_is_better ? m.a.number() - m.b.number() : m.b.number() - m.a.number();
  return delta > threshold * std::abs(m.a.number());
}

std::vector<DiffMetric> metrics_of(const Json& a, const Json& b, const DiffOptions& options) {
  std::vector<DiffMetric> out;
  for (const Metric& m : kMetrics) {
    DiffMetric d;
    d.name = m.name;
    d.a = value(a, m.pointer);
    d.b = value(b, m.pointer);
    if (d.a.is_null() && d.b.is_null()) continue;
    d.higher_is_better = m.higher_is_better;
    d.worse = options.threshold && std::ranges::find(options.metrics, d.name) != options.metrics.end() &&
              is_worse(d, *options.threshold);
    out.push_back(std::move(d));
  }
  return out;
}

/// Means of the stages, in the order of the first result that has them.
std::vector<DiffStage> stages_of(const Json& a, const Json& b, const DiffValue& mean) {
  std::vector<DiffStage> out;
  const auto add = [&](const Json& flow, bool first) {
    const Json* all = flow.find("breakdown_ns");
    if (all == nullptr) return;
    for (const Json& s : all->items()) {
      const std::string& name = s.find("stage")->string();
      auto at = std::ranges::find(out, name, &DiffStage::name);
      if (at == out.end()) {
        out.push_back({{name, Json(0), Json(0)}, {}});
        at = out.end() - 1;
      }
      (first ? at->a : at->b) = *s.find("mean");
    }
  };
  add(a, true);
  add(b, false);
  std::erase_if(out, [](const DiffStage& s) { return s.a.number() == 0 && s.b.number() == 0; });
  const double total = mean.delta().value_or(0);
  for (DiffStage& s : out)
    if (total != 0) s.share = *s.delta() / total;
  return out;
}

DiffFlow flow_of(const std::string& name, const Json& a, const Json& b, const DiffOptions& options) {
  DiffFlow f;
  f.name = name;
  f.metrics = metrics_of(a, b, options);
  f.mean = {"latency_mean_ns", value(a, "/latency_ns/mean"), value(b, "/latency_ns/mean")};
  f.stages = stages_of(a, b, f.mean);
  return f;
}

using Flows = std::vector<std::pair<std::string, const Json*>>;

/// Workloads and programs under their names; equal names of workloads are numbered.
Flows flows_of(const Json& result) {
  Flows out;
  std::map<std::string, int> seen;
  for (const Json& w : result.find("workloads")->items()) {
    std::string name = w.find("name")->string();
    if (const int n = seen[name]++; n > 0) name += "#" + std::to_string(n + 1);
    out.emplace_back("workload " + name, &w);
  }
  for (const auto& p : result.find("programs")->members()) out.emplace_back("program " + p.key, &p.value);
  return out;
}

void flatten(const Json& j, const std::string& path, std::map<std::string, Json>& out) {
  if (j.is_object() && !j.members().empty()) {
    for (const auto& m : j.members()) flatten(m.value, sim::join_path(path, m.key), out);
  } else if (j.is_array() && !j.items().empty()) {
    for (std::size_t i = 0; i < j.items().size(); ++i)
      flatten(j.items()[i], sim::join_path(path, std::to_string(i)), out);
  } else {
    out[path] = j;
  }
}

/// Every leaf that differs or that one of them lacks. What a scenario says about itself is no configuration.
std::vector<DiffValue> config_of(const Json& a, const Json& b) {
  std::map<std::string, Json> left, right;
  flatten(*a.find("config"), "", left);
  flatten(*b.find("config"), "", right);
  std::vector<DiffValue> out;
  const auto about_itself = [](const std::string& path) {
    return path == "description" || path == "teaches" || path.starts_with("expect.") || path.starts_with("explore.");
  };
  for (const auto& [path, v] : left) {
    const auto other = right.find(path);
    if (about_itself(path) || (other != right.end() && other->second == v)) continue;
    out.push_back({path, v, other != right.end() ? other->second : Json{}});
  }
  for (const auto& [path, v] : right)
    if (!left.contains(path) && !about_itself(path)) out.push_back({path, Json{}, v});
  std::ranges::stable_sort(out, {}, &DiffValue::name);
  return out;
}

/// Members of two maps of numbers that differ by more than `far` says.
template <class Far>
std::vector<DiffValue> maps_of(const Json& a, const Json& b, const char* map, Far far) {
  std::vector<DiffValue> out;
  const Json &left = *a.find(map), &right = *b.find(map);
  for (const auto& m : left.members()) {
    const Json* other = right.find(m.key);
    if (far(m.value.number(), other != nullptr ? other->number() : 0))
      out.push_back({m.key, m.value, other != nullptr ? *other : Json{}});
  }
  for (const auto& m : right.members())
    if (left.find(m.key) == nullptr && far(0, m.value.number())) out.push_back({m.key, Json{}, m.value});
  std::ranges::stable_sort(out, {}, &DiffValue::name);
  return out;
}

/// By name; workloads that are left over on both sides are the same ones under new names if they are as many.
void match(const Flows& left, Flows right, Diff& d) {
  Flows alone;
  for (const auto& [name, flow] : left) {
    const auto other = std::ranges::find(right, name, &Flows::value_type::first);
    if (other == right.end()) {
      alone.emplace_back(name, flow);
      continue;
    }
    d.flows.push_back(flow_of(name, *flow, *other->second, d.options));
    right.erase(other);
  }
  const auto workload = [](const Flows::value_type& f) { return f.first.starts_with("workload "); };
  if (alone.size() == right.size() && std::ranges::all_of(alone, workload) && std::ranges::all_of(right, workload)) {
    for (std::size_t i = 0; i < alone.size(); ++i)
      d.flows.push_back(
          flow_of(alone[i].first + " / " + right[i].first.substr(9), *alone[i].second, *right[i].second, d.options));
    return;
  }
  for (const auto& f : alone) d.only_a.push_back(f.first);
  for (const auto& f : right) d.only_b.push_back(f.first);
}

Diff::Side side_of(const Json& r) {
  return {r.find("scenario")->string(), r.find("version")->string(), r.find("verdict")->string(),
          r.find("seed")->as_uint64().value_or(0)};
}

}  // namespace

std::vector<std::string> diff_metrics() {
  std::vector<std::string> out;
  for (const Metric& m : kMetrics) out.emplace_back(m.name);
  return out;
}

std::vector<std::string> judged_metrics() {
  std::vector<std::string> out;
  for (const Metric& m : kMetrics)
    if (m.judged) out.emplace_back(m.name);
  return out;
}

std::optional<double> DiffValue::delta() const {
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  return b.number() - a.number();
}

std::optional<double> DiffValue::relative() const {
  const auto d = delta();
  if (!d || a.number() == 0) return std::nullopt;
  return *d / a.number();
}

bool Diff::worse() const {
  return verdict_worse ||
         std::ranges::any_of(flows,
                             [](const DiffFlow& f) { return std::ranges::any_of(f.metrics, &DiffMetric::worse); }) ||
         (options.threshold && !only_a.empty());
}

Diff diff(const Json& a, const Json& b, const DiffOptions& options) {
  Diff d;
  d.options = options;
  d.a = side_of(a);
  d.b = side_of(b);
  d.verdict_worse = options.threshold && d.a.verdict == "ok" && d.b.verdict != "ok";
  d.config = config_of(a, b);
  match(flows_of(a), flows_of(b), d);
  d.counters = maps_of(a, b, "counters", [&](double x, double y) {
    return std::abs(x - y) > options.tolerance * std::max(std::abs(x), std::abs(y));
  });
  d.utilisation = maps_of(a, b, "utilisation", [&](double x, double y) { return std::abs(x - y) > options.tolerance; });
  return d;
}

}  // namespace experiment
