// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_sample.h"

#include "experiment/run_pool.h"
#include "experiment/version.h"
#include "sim/config_json.h"
#include "sim/journey.h"

namespace experiment {
namespace {

using sim::Json;
using Flow = SweepSample::Flow;

void add_flow(SweepSample& s, const std::string& name, std::uint64_t messages,
              const std::optional<LatencyStats>& latency, const std::optional<Breakdown>& breakdown,
              const std::optional<Quantiles>& quantiles) {
  if (!latency || !breakdown || !quantiles) return;
  Flow& f = s.flows.emplace_back();
  f.name = name;
  f.messages = messages;
  f.mean_ns = latency->mean_ps / 1e3;
  for (std::size_t i = 0; i < sim::kStages; ++i) {
    const double mean = breakdown->mean_ps[i] / 1e3, median = breakdown->median[i].ns();
    if (mean > 0 || median > 0)
      f.stages.push_back({std::string(sim::name_of(static_cast<sim::Stage>(i))), mean, median});
  }
  for (std::size_t i = 0; i < kQuantiles.size(); ++i)
    f.quantiles.emplace_back(kQuantiles[i] / 1e3, (*quantiles)[i].ns());
}

bool overran(const Result& r) {
  for (const auto& [path, n] : r.counters)
    if (n > 0 && path.ends_with(".completions.cq_overruns")) return true;
  return false;
}

Json flow_json(const Flow& f) {
  Json j = Json::object();
  j["name"] = f.name;
  j["messages"] = f.messages;
  j["mean_ns"] = f.mean_ns;
  Json& stages = j["stages"] = Json::array();
  for (const Flow::Stage& s : f.stages) {
    Json item = Json::array();
    item.push_back(s.name);
    item.push_back(s.mean_ns);
    item.push_back(s.p50_ns);
    stages.push_back(std::move(item));
  }
  Json& quantiles = j["quantiles"] = Json::array();
  for (const auto& [share, ns] : f.quantiles) {
    Json item = Json::array();
    item.push_back(share);
    item.push_back(ns);
    quantiles.push_back(std::move(item));
  }
  return j;
}

Flow flow_of(const Json& j) {
  Flow f;
  f.name = j.find("name")->string();
  f.messages = j.find("messages")->as_uint64().value_or(0);
  f.mean_ns = j.find("mean_ns")->number();
  for (const Json& s : j.find("stages")->items())
    f.stages.push_back({s.items()[0].string(), s.items()[1].number(), s.items()[2].number()});
  for (const Json& q : j.find("quantiles")->items())
    f.quantiles.emplace_back(q.items()[0].number(), q.items()[1].number());
  return f;
}

SweepSample sample_of_json(const Json& j) {
  SweepSample s;
  s.verdict = j.find("verdict")->string();
  s.as_expected = j.find("as_expected")->boolean();
  for (const Json& line : j.find("why")->items()) s.why.push_back(line.string());
  s.config_hash = j.find("config_hash")->string();
  if (const Json& t = *j.find("sim_time_ns"); t.is_number()) s.sim_time_ns = t.number();
  for (const Json& m : j.find("metrics")->items())
    s.metrics.push_back(m.is_number() ? std::optional(m.number()) : std::nullopt);
  for (const Json& f : j.find("flows")->items()) s.flows.push_back(flow_of(f));
  s.wall_s = j.find("wall_s")->number();
  return s;
}

}  // namespace

SweepSample sample_of(const Result& r, const std::vector<SweepMetric>& metrics) {
  const RunOutcome outcome = outcome_of(r);
  SweepSample s;
  s.verdict = overran(r) ? "cq_overrun" : outcome.outcome;
  s.as_expected = outcome.good;
  s.why = outcome.why;
  s.sim_time_ns = r.sim_time.ns();
  const Json result = to_json(r);
  for (const SweepMetric& m : metrics) s.metrics.push_back(m.of(result));
  for (const WorkloadResult& w : r.workloads) add_flow(s, w.name, w.messages, w.latency, w.breakdown, w.quantiles);
  for (const ProgramResult& p : r.programs) add_flow(s, p.name, p.messages, p.latency, p.breakdown, p.quantiles);
  return s;
}

SweepSample run_point(const SweepPlan& plan, const SweepPoint& point) {
  SweepSample s;
  std::string hash = "unreadable";  // the plan has loaded this point before: its file is another one now
  try {
    const Scenario scenario = load_scenario(plan.file, plan.overrides(point));
    hash = config_hash(effective_config(scenario));
    RunOptions options = run_options(scenario);
    options.version = version();
    s = sample_of(run(std::move(options), machine_factory(scenario)), plan.metrics);
  } catch (...) {
    const RunOutcome o = outcome_of_failure(std::current_exception());
    s.verdict = o.outcome;
    s.why = o.why;
  }
  s.config_hash = hash;
  return s;
}

std::string to_text(const SweepSample& s) {
  Json j = Json::object();
  j["verdict"] = s.verdict;
  j["as_expected"] = s.as_expected;
  Json& why = j["why"] = Json::array();
  for (const std::string& line : s.why) why.push_back(line);
  j["config_hash"] = s.config_hash;
  j["sim_time_ns"] = s.sim_time_ns ? Json(*s.sim_time_ns) : Json{};
  Json& metrics = j["metrics"] = Json::array();
  for (const auto& m : s.metrics) metrics.push_back(m ? Json(*m) : Json{});
  j["wall_s"] = s.wall_s;
  Json& flows = j["flows"] = Json::array();
  for (const Flow& f : s.flows) flows.push_back(flow_json(f));
  return j.compact();
}

std::optional<SweepSample> sample_from(const std::string& text) {
  sim::ConfigErrors quiet;
  const auto j = sim::parse_json(text, "point", quiet);
  if (!j || j->find("flows") == nullptr) return std::nullopt;
  return sample_of_json(*j);
}

SweepSample sample_of(const JobEnd& end, double limit_s) {
  const auto whole = end.finished() ? sample_from(end.text) : std::nullopt;
  SweepSample s;
  if (whole) {
    s = *whole;
  } else if (end.time_limit) {
    s.verdict = "wall_limit";
    s.why.push_back("took more than " + Json(limit_s).compact() + " s and was ended");
  } else {
    s.verdict = "crashed";
    s.why.push_back("the simulator was ended by " + end.how());
  }
  s.wall_s = end.wall_s;
  return s;
}

}  // namespace experiment
