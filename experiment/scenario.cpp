// SPDX-License-Identifier: Apache-2.0
// The scenario format: ScenarioConfig, and beside `hosts` the pattern `host`, from which every host inherits. A profile holds
// `host` and `fabric`.
#include "experiment/scenario.h"

#include <algorithm>

#include "sim/config_schema.h"
#include "system/steps_check.h"

namespace experiment {
namespace {

const sys::DocumentRules& rules() {
  static const sys::DocumentRules r{{{"hosts", "host"}}, {"host", "fabric"}};
  return r;
}

/// What a profile may say.
struct ProfileConfig {
  sys::HostConfig host;
  sys::FabricConfig fabric;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("host", c.host, "what every host inherits; `hosts` overrides it host by host",
      sim::assumed("the defaults below"));
    v("fabric", c.fabric, "what connects the hosts", sim::assumed("the defaults below"));
  }
};

constexpr const char* kIntroduction =
    "Everything that a scenario may say. Generated from the sources (`rdmasim list parameters` prints the same "
    "list).\n\n"
    "A path is what `--set PATH=VALUE` takes; `[]` stands for the number of an element (`workloads.0.size`). `host` is "
    "what every\n"
    "host inherits; `hosts.0`, `hosts.1` override it host by host with the same members. Times, sizes and rates are "
    "strings with\n"
    "their unit (`\"250 ns\"`, `\"4 KiB\"`, `\"100 Gb/s\"`). Provenance says where a default comes from: measured, "
    "spec (a specification\n"
    "or a documented default), assumed (chosen here), or required (there is no default).";

/// The value at a path of a configuration; null if there is none.
const sim::Json* value_at(const sim::Json& config, const std::string& path) {
  const sim::Json* at = &config;
  for (const std::string& key : sim::split_path(path)) {
    if (at->is_array()) {
      const bool number = !key.empty() && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      const std::size_t i = number ? std::stoul(key) : at->items().size();
      at = i < at->items().size() ? &at->items()[i] : nullptr;
    } else {
      at = at->is_object() ? at->find(key) : nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

/// The delays of the `explore` section are times of this scenario.
void check_explore(const Scenario& s, sim::ConfigErrors& errors) {
  const sys::ExploreConfig& e = s.config.explore;
  const auto check = [&](const sys::DelayConfig& d, const std::string& path) {
    const sim::Json* at = value_at(s.document.root, path);
    check_delay(s, d, at != nullptr ? at->origin : sim::Origin{}, errors);
  };
  if (e.scan) check(*e.scan, "explore.scan.delay");
  for (std::size_t i = 0; i < e.delays.size(); ++i)
    check(e.delays[i], "explore.delays." + std::to_string(i) + ".delay");
}

}  // namespace

std::vector<std::string> Scenario::host_names() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < config.hosts.size(); ++i) out.push_back(config.host_name(i));
  return out;
}

Scenario load_scenario(const std::filesystem::path& file, const sys::Overrides& overrides) {
  sim::ConfigErrors errors;
  Scenario s;
  s.document = sys::load_document(file, overrides, rules(), sim::to_json(s.config), errors);
  const bool complete = errors.empty();
  if (const auto host = s.document.patterns.find("host"); host != s.document.patterns.end()) {
    sys::HostConfig checked;
    sim::read_config(host->second, checked, errors, "host");
  }
  // A document whose files could not all be read lacks values; what is missing then is not a mistake of its own.
  if (complete) sim::read_config(s.document.root, s.config, errors);
  if (errors.empty()) sys::check_programs(s.config, errors);
  if (errors.empty()) check_explore(s, errors);
  if (!errors.empty()) throw sim::ConfigFailure(std::move(errors));
  return s;
}

void check_delay(const Scenario& s, const sys::DelayConfig& d, const sim::Origin& origin, sim::ConfigErrors& errors) {
  // The pattern is part of each host by now.
  const std::string path = d.delay.starts_with("host.") ? "hosts.0" + d.delay.substr(4) : d.delay;
  const sim::Json config = effective_config(s);
  const sim::Json* at = value_at(config, path);
  if (at == nullptr) errors.add(origin, d.delay, "the scenario has no such value");
  else if (!at->is_string() || !sim::parse_time(at->string()))
    errors.add(origin, d.delay, "is not a time, so explore cannot vary it as a delay");
  else if ((d.to - d.from) / d.step >= kMostDelayValues)
    errors.add(origin, d.delay,
               "has more than " + std::to_string(kMostDelayValues) + " values between its bounds; take a larger step");
}

sim::Json effective_config(const Scenario& s) { return sim::to_json(s.config); }

sim::TypeInfo profile_format() { return sim::describe_config<ProfileConfig>(); }

sim::TypeInfo scenario_format() {
  sim::TypeInfo t = sim::describe_config<sys::ScenarioConfig>();
  const auto hosts = std::ranges::find(t.fields, "hosts", &sim::FieldInfo::name);
  sim::TypeInfo like_host;
  like_host.kind = sim::TypeInfo::Kind::structure;
  like_host.like = "host";
  hosts->type.element = std::make_shared<sim::TypeInfo>(std::move(like_host));
  t.fields.insert(hosts, profile_format().fields.front());
  return t;
}

sim::Json scenario_schema() {
  return sim::json_schema(scenario_format(),
                          {"rdmasim scenario",
                           "",
                           true,
                           {{"$schema", "JSON Schema of this file, for editors"},
                            {"include", "files that this one goes on top of, in this order", true},
                            {"profile", "name of the machine profile to start from (rdmasim list profiles)"}}});
}

sim::Json profile_schema() {
  return sim::json_schema(profile_format(), {"rdmasim profile",
                                             "",
                                             true,
                                             {{"$schema", "JSON Schema of this file, for editors"},
                                              {"description", "one line: which machine this is"},
                                              {"base", "name of the profile to start from"}}});
}

std::string parameter_reference() { return sim::markdown_reference(scenario_format(), "Parameters", kIntroduction); }

RunOptions run_options(const Scenario& s) {
  RunOptions o;
  o.scenario = s.name();
  o.description = s.config.description;
  o.seed = s.config.seed;
  if (s.config.run.time_limit.n > 0) o.time_limit = s.config.run.time_limit;
  o.stall_limit = s.config.run.stall_limit;
  o.expectations = s.config.expect;
  o.config = effective_config(s);
  return o;
}

}  // namespace experiment
