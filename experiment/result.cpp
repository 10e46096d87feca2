// SPDX-License-Identifier: Apache-2.0
// Times leave as nanoseconds with picosecond decimals: a 64-bit count divided once, printed as the shortest text that
// reads back, so the digits are exact up to 2^53 ps (2.5 simulated hours).
#include "experiment/result.h"

#include <algorithm>
#include <cmath>

namespace experiment {
namespace {

using sim::Json;

Json ns(sim::Picos t) { return t.n % 1000 == 0 ? Json(t.n / 1000) : Json(static_cast<double>(t.n) / 1000.0); }
/// A mean, to the millionth of a nanosecond.
Json ns(double ps) { return Json(std::round(ps * 1000.0) / 1e6); }
Json rounded(double v, double steps) { return Json(std::round(v * steps) / steps); }

Json latency_json(const LatencyStats& s) {
  Json j = Json::object();
  j["min"] = ns(s.min);
  j["mean"] = ns(s.mean_ps);
  j["p50"] = ns(s.p50);
  j["p99"] = ns(s.p99);
  j["p999"] = ns(s.p999);
  j["max"] = ns(s.max);
  return j;
}

Json breakdown_json(const Breakdown& b) {
  Json out = Json::array();
  for (std::size_t i = 0; i < sim::kStages; ++i) {
    Json j = Json::object();
    j["stage"] = sim::name_of(static_cast<sim::Stage>(i));
    j["mean"] = ns(b.mean_ps[i]);
    j["p50"] = ns(b.median[i]);
    j["p50_ps"] = b.median[i].n;
    out.push_back(std::move(j));
  }
  return out;
}

Json slowest_json(const std::optional<sim::Journey>& slowest) {
  if (!slowest) return {};
  Json j = Json::object();
  j["id"] = slowest->id;
  j["host"] = slowest->poster.host;
  j["qpn"] = slowest->poster.qpn;
  j["wr_id"] = slowest->poster.wr_id;
  j["posted_ns"] = ns(slowest->start);
  j["latency_ns"] = ns(slowest->total());
  return j;
}

Json quantiles_json(const Quantiles& q) {
  Json out = Json::array();
  for (std::size_t i = 0; i < q.size(); ++i) {
    Json j = Json::object();
    j["share"] = static_cast<double>(kQuantiles[i]) / 1000.0;
    j["latency_ns"] = ns(q[i]);
    out.push_back(std::move(j));
  }
  return out;
}

Json cpu_json(const sys::CpuTime& t) {
  Json j = Json::object();
  j["span"] = ns(t.span);
  j["on_cpu"] = ns(t.on_cpu);
  j["asleep"] = ns(t.asleep);
  j["interrupted"] = ns(t.interrupted);
  return j;
}

Json error_json(const sys::WorkloadError& e) {
  Json j = Json::object();
  j["time_ns"] = ns(e.time);
  j["side"] = e.client ? "client" : "server";
  j["qpn"] = e.qpn;
  j["wr_id"] = e.wr_id;
  j["status"] = e.status;
  j["vendor_err"] = e.vendor_err;
  return j;
}

Json workload_json(const WorkloadResult& w) {
  Json j = Json::object();
  j["name"] = w.name;
  j["op"] = w.op;
  j["messages"] = w.messages;
  j["bytes"] = w.bytes;
  j["first_post_ns"] = ns(w.first_post);
  j["last_done_ns"] = ns(w.last_done);
  j["latency_ns"] = w.latency ? latency_json(*w.latency) : Json{};
  j["latency_quantiles"] = w.quantiles ? quantiles_json(*w.quantiles) : Json::array();
  j["half_round_trip_ns"] = w.half_round_trip ? latency_json(*w.half_round_trip) : Json{};
  j["percentiles"] = w.percentiles_exact ? "exact" : "sampled";
  j["bandwidth_gbps"] = rounded(w.bandwidth_gbps(), 1e6);
  j["message_rate_mpps"] = rounded(w.message_rate_mpps(), 1e6);
  Json& statuses = j["wc_status"] = Json::object();
  for (const auto& [name, count] : w.wc_status) statuses[name] = count;
  Json& errors = j["errors"] = Json::array();
  for (const sys::WorkloadError& e : w.errors) errors.push_back(error_json(e));
  j["corrupted"] = w.corrupted;
  Json& cpu = j["cpu_ns"] = Json::object();
  cpu["client"] = cpu_json(w.client_cpu);
  cpu["server"] = cpu_json(w.server_cpu);
  Json median{};
  if (w.breakdown) {
    median["id"] = w.breakdown->median_id;
    median["latency_ps"] = w.breakdown->median_total.n;
  }
  j["median_message"] = std::move(median);
  j["slowest_message"] = slowest_json(w.slowest);
  j["breakdown_ns"] = w.breakdown ? breakdown_json(*w.breakdown) : Json::array();
  return j;
}

Json program_json(const ProgramResult& p) {
  Json j = Json::object();
  j["host"] = p.host;
  j["finished"] = p.finished;
  j["killed"] = p.killed;
  j["at"] = p.finished ? Json{} : Json(p.at);
  j["steps"] = p.steps;
  j["started_ns"] = ns(p.started);
  j["ended_ns"] = ns(p.ended);
  j["messages"] = p.messages;
  j["message_rate_mpps"] = rounded(p.message_rate_mpps(), 1e6);
  j["latency_ns"] = p.latency ? latency_json(*p.latency) : Json{};
  j["slowest_message"] = slowest_json(p.slowest);
  j["cpu_ns"] = cpu_json(p.cpu);
  Json& statuses = j["wc_status"] = Json::object();
  for (const auto& [name, count] : p.wc_status) statuses[name] = count;
  j["completions"] = p.completions;
  j["events"] = p.events;
  Json& marks = j["marks_ns"] = Json::object();
  for (const auto& [name, t] : p.marks) marks[name] = ns(t);
  j["mr"] = p.mr;
  if (!p.plugin.empty()) {
    j["plugin"] = p.plugin;
    j["exit_code"] = p.exit_code ? Json(*p.exit_code) : Json();
  }
  Json& failures = j["failures"] = Json::array();
  for (const ProgramResult::Failure& f : p.failures) {
    Json item = Json::object();
    item["at"] = f.at;
    item["step"] = f.step;
    item["message"] = f.message;
    failures.push_back(std::move(item));
  }
  return j;
}

Json cost_json(const Result& r) {
  Json j = Json::object();
  j["events"] = r.simulator.events;
  j["wall_s"] = rounded(r.simulator.wall_s, 1e6);
  j["cpu_s"] = rounded(r.simulator.cpu_s, 1e6);
  j["messages_per_cpu_s"] =
      rounded(r.simulator.cpu_s > 0 ? static_cast<double>(r.messages()) / r.simulator.cpu_s : 0, 1);
  j["peak_rss_bytes"] = r.simulator.peak_rss_bytes;
  return j;
}

double per_ps(double amount, sim::Picos span) { return span.n > 0 ? amount / static_cast<double>(span.n) : 0; }

}  // namespace

std::string_view name_of(Verdict v) {
  switch (v) {
    case Verdict::ok:
      return "ok";
    case Verdict::failed:
      return "failed";
    case Verdict::deadlock:
      return "deadlock";
    case Verdict::time_limit:
      return "time_limit";
    case Verdict::interrupted:
      return "interrupted";
  }
  return "?";
}

double WorkloadResult::bandwidth_gbps() const {
  return per_ps(static_cast<double>(bytes) * 8 * 1e3, last_done - first_post);
}
double WorkloadResult::message_rate_mpps() const {
  return per_ps(static_cast<double>(messages) * 1e6, last_done - first_post);
}

double ProgramResult::message_rate_mpps() const {
  return per_ps(static_cast<double>(messages) * 1e6, last_done - first_post);
}

Bottleneck bottleneck_of(const std::map<std::string, double>& utilisation) {
  Bottleneck b;
  for (const auto& [path, u] : utilisation)
    if (u > b.utilisation) b = {path, u};
  return b;
}

std::uint64_t Result::messages() const {
  std::uint64_t n = 0;
  for (const WorkloadResult& w : workloads) n += w.messages;
  for (const ProgramResult& p : programs) n += p.messages;
  return n;
}

bool Result::expectations_met() const { return std::ranges::all_of(expectations, &ExpectationResult::met); }

Json to_json(const Result& r, bool with_cost) {
  Json j = Json::object();
  j["schema"] = kResultSchema;
  j["scenario"] = r.scenario;
  j["version"] = r.version;
  j["seed"] = r.seed;
  j["sim_time_ns"] = ns(r.sim_time);
  j["verdict"] = name_of(r.verdict);
  Json& workloads = j["workloads"] = Json::array();
  for (const WorkloadResult& w : r.workloads) workloads.push_back(workload_json(w));
  Json& programs = j["programs"] = Json::object();
  for (const ProgramResult& p : r.programs) programs[p.name] = program_json(p);
  Json& events = j["async_events"] = Json::array();
  for (const AsyncEvent& e : r.async_events) {
    Json item = Json::object();
    item["time_ns"] = ns(e.time);
    item["host"] = e.host;
    item["type"] = e.type;
    item["object"] = e.object;
    events.push_back(std::move(item));
  }
  Json& counters = j["counters"] = Json::object();
  for (const auto& [path, value] : r.counters) counters.members().push_back({path, Json(value), {}});
  Json& utilisation = j["utilisation"] = Json::object();
  for (const auto& [path, value] : r.utilisation) utilisation.members().push_back({path, rounded(value, 1e6), {}});
  Json& cores = j["cores"] = Json::object();
  for (const auto& [path, time] : r.kernel_time) {
    Json item = Json::object();
    item["kernel_ns"] = ns(time);
    cores.members().push_back({path, std::move(item), {}});
  }
  const Bottleneck b = bottleneck_of(r.utilisation);
  Json& bottleneck = j["bottleneck"] = Json::object();
  bottleneck["resource"] = b.resource.empty() ? Json{} : Json(b.resource);
  bottleneck["utilisation"] = rounded(b.utilisation, 1e6);
  bottleneck["saturated"] = b.saturated();
  Json& outstanding = j["outstanding"] = Json::array();
  for (const std::string& s : r.outstanding) outstanding.push_back(s);
  j["stuck"] = r.stuck;
  j["resources"] = r.resources;
  if (!r.resources_at.empty()) {
    Json& snapshots = j["resources_at"] = Json::array();
    for (const auto& [time, resources] : r.resources_at) {
      Json item = Json::object();
      item["time_ns"] = ns(time);
      item["resources"] = resources;
      snapshots.push_back(std::move(item));
    }
  }
  Json& expectations = j["expectations"] = Json::array();
  for (const ExpectationResult& e : r.expectations) {
    Json item = Json::object();
    item["at"] = e.at;
    item["expected"] = e.expected;
    item["actual"] = e.actual;
    item["met"] = e.met;
    if (!e.because.empty()) item["because"] = e.because;
    expectations.push_back(std::move(item));
  }
  j["config"] = r.config;
  if (with_cost) j["simulator"] = cost_json(r);
  return j;
}

}  // namespace experiment
