// SPDX-License-Identifier: Apache-2.0
#include "experiment/sweep_metric.h"

#include "experiment/sweep_value.h"

namespace experiment {
namespace {

using sim::Json;

/// Whether `text` is `pattern`, in which each "*" stands for any text.
bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t i = star; i <= text.size(); ++i)
    if (matches(rest, text.substr(i))) return true;
  return false;
}

std::string unescaped(std::string_view raw) {
  std::string out;
  for (std::size_t i = 0; i < raw.size(); ++i)
    out += raw[i] == '~' && i + 1 < raw.size() ? (raw[++i] == '1' ? '/' : '~') : raw[i];
  return out;
}

/// Adds up the numbers at `pointer`; true when there is any.
bool add_up(const Json& from, std::string_view pointer, double& sum) {
  if (pointer.empty()) {
    if (!from.is_number()) return false;
    sum += from.number();
    return true;
  }
  pointer.remove_prefix(1);
  const std::string_view raw = pointer.substr(0, pointer.find('/'));
  const std::string_view rest = pointer.substr(raw.size());
  if (raw.find('*') == std::string_view::npos) {
    const Json* next = from.at("/" + std::string(raw));
    return next != nullptr && add_up(*next, rest, sum);
  }
  const std::string pattern = unescaped(raw);
  bool any = false;
  if (from.is_object())
    for (const Json::Member& m : from.members())
      if (matches(pattern, m.key)) any |= add_up(m.value, rest, sum);
  if (from.is_array())
    for (std::size_t i = 0; i < from.items().size(); ++i)
      if (matches(pattern, std::to_string(i))) any |= add_up(from.items()[i], rest, sum);
  return any;
}

std::optional<double> value_at(const Json& result, const std::string& pointer) {
  double sum = 0;
  if (!add_up(result, pointer, sum)) return std::nullopt;
  return sum;
}

/// A name that is a JSON pointer segment.
std::string segment(const std::string& name) {
  std::string out;
  for (const char c : name) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

void add_latency(std::vector<SweepMetric>& out, const std::string& prefix, const std::string& at) {
  out.push_back({prefix + "latency_p50_ns", at + "/latency_ns/p50", {}, {}, 1});
  out.push_back({prefix + "latency_p99_ns", at + "/latency_ns/p99", {}, {}, 1});
}

}  // namespace

std::string SweepMetric::text() const {
  return at + (minus.empty() ? "" : " minus " + minus) + (per.empty() ? "" : " per " + per) +
         (factor == 1 ? "" : " x " + Json(factor).compact());
}

std::optional<double> SweepMetric::of(const Json& result) const {
  auto value = value_at(result, at);
  if (!minus.empty()) {
    const auto less = value_at(result, minus);
    value = value && less ? std::optional(*value - *less) : std::nullopt;
  }
  if (!per.empty()) {
    const auto divisor = value_at(result, per);
    value = value && divisor && *divisor != 0 ? std::optional(*value / *divisor) : std::nullopt;
  }
  return value ? std::optional(*value * factor) : std::nullopt;
}

sim::Parsed<SweepMetric> parse_metric(const std::string& name, std::string_view text) {
  const auto wrong = [&](const std::string& why) {
    return sim::Parsed<SweepMetric>{
        {}, why + "; expected POINTER [minus POINTER] [per POINTER] [x FACTOR], got \"" + std::string(text) + "\""};
  };
  SweepMetric m;
  m.name = name;
  std::string_view rest = text;
  const auto tail = [&](std::string_view word) -> std::optional<std::string> {  // takes what stands behind `word`
    const std::size_t at = rest.rfind(word);
    if (at == std::string_view::npos) return std::nullopt;
    std::string out(rest.substr(at + word.size()));
    rest = rest.substr(0, at);
    return out;
  };
  if (const auto x = tail(" x ")) {
    const SweepValue factor = parse_sweep_value(*x);
    if (factor.kind != SweepValue::Kind::integer && factor.kind != SweepValue::Kind::real)
      return wrong("the factor is not a number");
    m.factor = factor.number();
  }
  const auto per = tail(" per "), minus = tail(" minus ");
  m.per = per.value_or("");
  m.minus = minus.value_or("");
  m.at = rest;
  for (const auto& pointer : {std::optional(m.at), minus, per}) {
    if (!pointer) continue;
    const std::string error = pointer->empty() ? "a JSON pointer starts with \"/\"" : Json::pointer_error(*pointer);
    if (!error.empty()) return wrong(error);
  }
  return {std::move(m), {}};
}

std::vector<SweepMetric> default_metrics(const sys::ScenarioConfig& config) {
  std::vector<SweepMetric> out;
  const bool several = config.workloads.size() + config.programs.size() > 1;
  for (std::size_t i = 0; i < config.workloads.size(); ++i) {
    const sys::WorkloadConfig& w = config.workloads[i];
    const std::string at = "/workloads/" + std::to_string(i);
    const std::string prefix =
        !several ? "" : (w.name.empty() ? std::string(sim::enum_name(w.op)) + std::to_string(i) : w.name) + "_";
    out.push_back({prefix + "message_rate_mpps", at + "/message_rate_mpps", {}, {}, 1});
    out.push_back({prefix + "bandwidth_gbps", at + "/bandwidth_gbps", {}, {}, 1});
    add_latency(out, prefix, at);
    out.push_back({prefix + "client_cpu_ns_per_message", at + "/cpu_ns/client/on_cpu", {}, at + "/messages", 1});
    out.push_back({prefix + "server_cpu_ns_per_message", at + "/cpu_ns/server/on_cpu", {}, at + "/messages", 1});
    for (std::size_t h = 0; h < config.hosts.size(); ++h)
      out.push_back({prefix + config.host_name(h) + "_pcie_bytes_per_message",
                     "/counters/" + segment(config.host_name(h)) + ".pcie.*.wire_bytes",
                     {},
                     at + "/messages",
                     1});
  }
  for (const auto& [name, p] : config.programs) {
    const std::string at = "/programs/" + segment(name), prefix = several ? name + "_" : "";
    out.push_back({prefix + "message_rate_mpps", at + "/message_rate_mpps", {}, {}, 1});
    add_latency(out, prefix, at);
    out.push_back({prefix + "cpu_ns_per_message", at + "/cpu_ns/on_cpu", {}, at + "/messages", 1});
  }
  return out;
}

}  // namespace experiment
