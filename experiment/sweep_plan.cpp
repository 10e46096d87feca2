// SPDX-License-Identifier: Apache-2.0
// Parameters first (section, then flags), then the rows of the design, then conditions and replications, then every point is
// loaded as its run will load it. Draws depend on the seed and the parameter alone.
#include "experiment/sweep_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "experiment/shell.h"
#include "experiment/sweep_expectation.h"
#include "sim/rng.h"

namespace experiment {
namespace {

using sim::Json;
using sim::Origin;

constexpr std::uint64_t kMostRows = 10'000'000;      // before conditions
constexpr std::uint64_t kMostListedValues = 10'000;  // written out in the description of a design
constexpr std::size_t kMostErrors = 20;

Origin flag(const std::string& text) {
  Origin o;
  o.source = std::make_shared<const std::string>(text);
  return o;
}

/// As effective_config() has it: what `host` says is part of each host.
std::string effective_path(const std::string& path) {
  return path.starts_with("host.") ? "hosts.0" + path.substr(4) : path;
}

std::string last_part(const std::string& path) {
  const std::vector<std::string> parts = sim::split_path(path);
  return parts.empty() ? path : parts.back();
}

/// The planner; its steps are in plan().
class Planner {
 public:
  explicit Planner(const SweepRequest& request) : request_(request) {}

  SweepPlan plan() {
    load();
    take_parameters();
    take_conditions();
    take_metrics();
    stop_if_wrong();
    make_rows();
    stop_if_wrong();
    load_points();
    stop_if_wrong();
    check_expectations(plan_, errors_);
    stop_if_wrong();
    describe();
    return std::move(plan_);
  }

 private:
  struct Row {
    std::vector<std::uint64_t> index;  // into the values of each parameter
  };

  void stop_if_wrong() {
    if (!errors_.empty()) throw sim::ConfigFailure(std::move(errors_));
  }

  void load() {
    plan_.file = request_.file;
    plan_.sets = request_.sets;
    const Scenario s = load_scenario(request_.file, {request_.sets});
    section_ = s.config.sweep;
    config_ = s.config;
    plan_.scenario = s.name();
    plan_.description = s.config.description;
    plan_.teaches = s.config.teaches;
    plan_.config = effective_config(s);
    plan_.scenario_hash = config_hash(plan_.config);
    plan_.design = request_.design.value_or(section_.design);
    plan_.expect = section_.expect;
    seed_ = request_.seed.value_or(s.config.seed);
    replications_ = request_.replications.value_or(section_.replications);
  }

  // Parameters

  void take_parameters() {
    for (const sys::SweepParameterConfig& p : section_.parameters) {
      SweepParameter out{p.name, {p.path}, {}, {}};
      out.paths.insert(out.paths.end(), p.also.begin(), p.also.end());
      add_parameter(std::move(out), SweepValues::from_json(p.values),
                    p.values.origin.source != nullptr ? p.values.origin : p.origin);
    }
    for (const std::string& text : request_.vary) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0) {
        errors_.add(flag("--vary " + text), {},
                    "expected PATH=VALUES, such as --vary workloads.0.size=\"64 B..4 KiB x2\"");
        continue;
      }
      vary(text.substr(0, equals), text.substr(equals + 1), flag("--vary " + text));
    }
    if (plan_.parameters.empty() && errors_.empty())
      errors_.add({}, request_.file.string(),
                  "nothing varies: the scenario has no `sweep` section with parameters, and no --vary is given");
    name_parameters();
  }

  /// A flag gives new values to the parameter of that name or path, or makes one.
  void vary(const std::string& what, const std::string& values, const Origin& origin) {
    const auto known = std::ranges::find_if(plan_.parameters, [&](const SweepParameter& p) {
      return p.paths.front() == what || (p.name.empty() ? last_part(p.paths.front()) : p.name) == what;
    });
    if (known == plan_.parameters.end()) return add_parameter({{}, {what}, {}, {}}, SweepValues::parse(values), origin);
    const auto parsed = SweepValues::parse(values);
    if (!parsed) return errors_.add(origin, what, parsed.error);
    known->values = parsed.value;
    origins_[static_cast<std::size_t>(known - plan_.parameters.begin())] = origin;
  }

  void add_parameter(SweepParameter p, sim::Parsed<SweepValues> values, const Origin& origin) {
    if (!values) return errors_.add(origin, p.paths.front(), values.error);
    for (const std::string& path : p.paths) check_path(path, origin);
    p.values = std::move(values.value);
    plan_.parameters.push_back(std::move(p));
    origins_.push_back(origin);
  }

  /// Everything on the way to the value has to be there; whether the value itself may be is seen when it is set.
  void check_path(const std::string& path, const Origin& origin) {
    if (path == "profile") return;
    const std::vector<std::string> parts = sim::split_path(effective_path(path));
    if (parts.empty()) return errors_.add(origin, path, "is not a path such as workloads.0.size");
    for (const char* other : {"sweep", "explore", "expect", "description", "teaches"})
      if (parts.front() == other) return errors_.add(origin, path, "is not what a run is made of and cannot be varied");
    if (path == "seed") return errors_.add(origin, path, "is varied by `replications` (--replications N)");
    if (parts.size() == 1 && plan_.config.find(parts.front()) == nullptr)
      return errors_.add(origin, path, missing(plan_.config, {}, parts.front()));
    const Json* here = &plan_.config;
    std::string walked;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const Json* next = here->at("/" + escaped(parts[i]));
      if (next == nullptr) return errors_.add(origin, path, missing(*here, walked, parts[i]));
      here = next;
      walked = sim::join_path(walked, parts[i]);
    }
  }
  static std::string escaped(const std::string& key) {
    std::string out;
    for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
  }
  static std::string missing(const Json& here, const std::string& walked, const std::string& part) {
    const std::string place = walked.empty() ? "the scenario" : walked;
    if (here.is_array())
      return place + " has " + std::to_string(here.items().size()) + " elements; there is no element " + part;
    std::vector<std::string> keys;
    if (here.is_object())
      for (const Json::Member& m : here.members()) keys.push_back(m.key);
    return place + " has no \"" + part + "\"" + sim::did_you_mean(part, keys);
  }

  /// Names that were not given: the last part of the path if that is unique, else the path; kinds; repeated values.
  void name_parameters() {
    std::vector<bool> given;
    for (SweepParameter& p : plan_.parameters) {
      given.push_back(!p.name.empty());
      if (p.name.empty()) p.name = last_part(p.paths.front());
    }
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      const auto same = [&](const SweepParameter& p) { return p.name == plan_.parameters[i].name; };
      if (!given[i] && std::ranges::count_if(plan_.parameters, same) > 1)
        plan_.parameters[i].name = plan_.parameters[i].paths.front();
    }
    std::set<std::string> names, paths;
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
      SweepParameter& p = plan_.parameters[i];
      if (is_reserved(p.name))
        errors_.add(origins_[i], p.paths.front(), "\"" + p.name + "\" is a column of its own; give another name");
      if (!names.insert(p.name).second)
        errors_.add(origins_[i], p.paths.front(), "two parameters are named \"" + p.name + "\"");
      for (const std::string& path : p.paths)
        if (!paths.insert(path).second) errors_.add(origins_[i], path, "is varied twice");
      check_values(p, origins_[i]);
    }
  }

  void check_values(SweepParameter& p, const Origin& origin) {
    const bool drawn = plan_.design == sys::Design::random || plan_.design == sys::Design::latin_hypercube;
    if (p.values.free() && !drawn)
      return errors_.add(origin, p.paths.front(),
                         "a range needs a step here, +STEP or xFACTOR; only random designs draw from all of it");
    p.kind = p.values.at(0).kind;
    if (p.values.size() > kMostRows) return;
    std::set<std::string> seen;
    for (std::uint64_t i = 0; i < p.values.size(); ++i) {
      const SweepValue v = p.values.at(i);
      if (v.kind != p.kind) p.kind = SweepValue::Kind::text;
      if (!drawn && !seen.insert(v.json().compact()).second)
        return errors_.add(origin, p.paths.front(), "the value " + v.text() + " appears twice");
    }
  }

  // Conditions and metrics

  void take_conditions() {
    for (const sim::Located& w : section_.where) add_condition(w.text, w.origin);
    for (const std::string& w : request_.where) add_condition(w, flag("--where " + w));
  }

  void add_condition(const std::string& text, const Origin& origin) {
    try {
      Condition c = Condition::parse(text);
      for (const Condition::Name& n : c.names())
        if (!parameter_of(n.text) && constant(n.text) == nullptr)
          errors_.add(origin, "where",
                      "column " + std::to_string(n.column) + ": there is no parameter or value \"" + n.text + "\"" +
                          sim::did_you_mean(n.text, parameter_names()));
      plan_.where.push_back(std::move(c));
      condition_origins_.push_back(origin);
    } catch (const ConditionError& e) {
      errors_.add(origin, "where", e.what());
    }
  }

  std::vector<std::string> parameter_names() const {
    std::vector<std::string> out;
    for (const SweepParameter& p : plan_.parameters) out.push_back(p.name);
    return out;
  }
  std::optional<std::size_t> parameter_of(const std::string& name) const {
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
      if (plan_.parameters[i].name == name ||
          std::ranges::find(plan_.parameters[i].paths, name) != plan_.parameters[i].paths.end())
        return i;
    return std::nullopt;
  }
  const Json* constant(const std::string& path) const {
    const Json* here = &plan_.config;
    const std::vector<std::string> parts = sim::split_path(effective_path(path));
    for (const std::string& part : parts) {
      here = here->at("/" + escaped(part));
      if (here == nullptr) return nullptr;
    }
    return parts.empty() || here->is_object() || here->is_array() ? nullptr : here;
  }

  void take_metrics() {
    if (section_.metrics.empty()) plan_.metrics = default_metrics(config_);
    for (const auto& [name, m] : section_.metrics) add_metric(name, m.text, m.origin);
    for (const std::string& text : request_.metrics) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0)
        errors_.add(flag("--metric " + text), {},
                    "expected NAME=POINTER, such as --metric messages=/workloads/0/messages");
      else add_metric(text.substr(0, equals), text.substr(equals + 1), flag("--metric " + text));
    }
  }

  void add_metric(const std::string& name, const std::string& text, const Origin& origin) {
    auto m = parse_metric(name, text);
    if (!m) return errors_.add(origin, "metrics." + name, m.error);
    if (is_reserved(name) || parameter_of(name))
      return errors_.add(origin, "metrics." + name, "is the name of another column");
    const auto known = std::ranges::find(plan_.metrics, name, &SweepMetric::name);
    if (known != plan_.metrics.end()) *known = std::move(m.value);
    else plan_.metrics.push_back(std::move(m.value));
  }

  // Rows

  void make_rows() {
    const bool drawn = plan_.design == sys::Design::random || plan_.design == sys::Design::latin_hypercube;
    const auto points = request_.points ? request_.points : section_.points;
    if (drawn && !points)
      return errors_.add({}, "sweep.points",
                         std::string(sim::enum_name(plan_.design)) + " needs a number of points (--points N)");
    if (!drawn && points)
      return errors_.add({}, "sweep.points",
                         "is for random and latin_hypercube; the values themselves are the points of this design");
    const std::uint64_t rows = drawn ? *points : plan_.design == sys::Design::zip ? zip_size() : grid_size();
    if (!errors_.empty()) return;
    const std::vector<std::vector<std::uint64_t>> draws =
        drawn ? draw(rows) : std::vector<std::vector<std::uint64_t>>{};
    for (std::uint64_t r = 0; r < rows; ++r) {
      std::vector<SweepValue> values;
      std::uint64_t rest = r, below = rows;
      for (std::size_t i = 0; i < plan_.parameters.size(); ++i) {
        const SweepValues& v = plan_.parameters[i].values;
        std::uint64_t index = r;
        if (drawn) index = draws[i][r];
        else if (plan_.design == sys::Design::grid) below /= v.size(), index = rest / below, rest %= below;
        values.push_back(v.at(index));
      }
      add_points(std::move(values));
      if (!errors_.empty()) return;
    }
    if (plan_.points.empty()) errors_.add({}, "sweep.where", "no point meets the conditions");
  }

  std::uint64_t grid_size() {
    std::uint64_t n = 1;
    for (const SweepParameter& p : plan_.parameters) {
      if (p.values.size() > kMostRows / n) {
        errors_.add({}, "sweep.parameters", "the grid has more than " + std::to_string(kMostRows) + " points");
        return 0;
      }
      n *= p.values.size();
    }
    return n;
  }

  std::uint64_t zip_size() {
    const std::uint64_t n = plan_.parameters.front().values.size();
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
      if (plan_.parameters[i].values.size() != n)
        errors_.add(origins_[i], plan_.parameters[i].paths.front(),
                    "has " + std::to_string(plan_.parameters[i].values.size()) + " values; zip needs as many as \"" +
                        plan_.parameters.front().name + "\" has, " + std::to_string(n));
    return n;
  }

  /// For each parameter the index of its value in each row.
  std::vector<std::vector<std::uint64_t>> draw(std::uint64_t rows) {
    const std::uint64_t seed = section_.seed.value_or(seed_);
    std::vector<std::vector<std::uint64_t>> out;
    for (const SweepParameter& p : plan_.parameters) {
      sim::Rng rng(seed, "sweep." + p.paths.front());
      // 53 bits, so that long ranges are reached everywhere.
      const auto uniform = [&] { return (static_cast<double>(rng.next()) * 0x1p21 + (rng.next() >> 11)) * 0x1p-53; };
      std::vector<std::uint64_t> stratum(rows);
      std::iota(stratum.begin(), stratum.end(), 0);
      const bool latin = plan_.design == sys::Design::latin_hypercube;
      if (latin)
        for (std::uint64_t i = rows; i > 1; --i)
          std::swap(stratum[i - 1], stratum[rng.below(static_cast<std::uint32_t>(i))]);
      std::vector<std::uint64_t>& mine = out.emplace_back();
      for (std::uint64_t r = 0; r < rows; ++r) {
        const double u = latin ? (static_cast<double>(stratum[r]) + uniform()) / static_cast<double>(rows) : uniform();
        const auto i = static_cast<std::uint64_t>(u * static_cast<double>(p.values.size()));
        mine.push_back(std::min(i, p.values.size() - 1));
      }
    }
    return out;
  }

  void add_points(std::vector<SweepValue> values) {
    const Condition::Lookup lookup = [&](const std::string& name) -> std::optional<SweepValue> {
      if (const auto i = parameter_of(name)) return values[*i];
      return value_of(*constant(name));
    };
    for (std::size_t i = 0; i < plan_.where.size(); ++i) {
      try {
        if (!plan_.where[i].holds(lookup)) {
          plan_.left_out += replications_;
          return;
        }
      } catch (const ConditionError& e) {
        return errors_.add(condition_origins_[i], "where", e.what());
      }
    }
    for (std::uint32_t k = 0; k < replications_; ++k) {
      SweepPoint p;
      p.number = plan_.points.size();
      p.combination = combinations_;
      p.replication = k;
      p.seed = seed_ + k;
      p.values = values;
      plan_.points.push_back(std::move(p));
    }
    ++combinations_;
    if (plan_.points.size() > kMostSweepPoints)
      errors_.add({}, "sweep", "has more than " + std::to_string(kMostSweepPoints) + " points");
  }

  // Points

  void load_points() {
    std::set<std::string> told;
    for (SweepPoint& p : plan_.points) {
      try {
        p.config_hash = config_hash(effective_config(load_scenario(plan_.file, plan_.overrides(p))));
      } catch (const sim::ConfigFailure& failure) {
        for (const sim::ConfigError& e : failure.errors.all())
          if (told.insert(e.path + e.message).second) errors_.add(origin_of(e.origin), e.path, e.message + in_point(p));
        if (errors_.size() >= kMostErrors) return;
      }
    }
  }

  /// Where the user wrote the value that the planner put into a --set.
  Origin origin_of(const Origin& origin) const {
    if (origin.source == nullptr) return origin;
    for (std::size_t i = 0; i < plan_.parameters.size(); ++i)
      for (const std::string& path : plan_.parameters[i].paths)
        if (origin.source->starts_with("--set " + path + "=")) return origins_[i];
    return origin;
  }
  std::string in_point(const SweepPoint& p) const {
    std::string out = " (at";
    for (std::size_t i = 0; i < p.values.size(); ++i)
      out += (i == 0 ? " " : ", ") + plan_.parameters[i].name + "=" + p.values[i].text();
    return out + (p.values.size() > 1 ? "; a condition can leave such points out)" : ")");
  }

  void describe() {
    Json& d = plan_.description_json = Json::object();
    d["design"] = sim::enum_name(plan_.design);
    Json& parameters = d["parameters"] = Json::array();
    for (const SweepParameter& p : plan_.parameters) {
      Json j = Json::object();
      j["name"] = p.name;
      Json& paths = j["paths"] = Json::array();
      for (const std::string& path : p.paths) paths.push_back(path);
      Json& values = j["values"] = Json::array();
      const std::uint64_t n = p.values.size();
      if (n <= kMostListedValues) {
        for (std::uint64_t i = 0; i < n; ++i) values.push_back(p.values.at(i).text());
      } else {
        values.push_back(p.values.at(0).text() + ".." + p.values.at(n - 1).text() + ", " + std::to_string(n) +
                         " values");
      }
      parameters.push_back(std::move(j));
    }
    Json& where = d["where"] = Json::array();
    for (const Condition& c : plan_.where) where.push_back(c.text());
    d["points"] = plan_.points.size();
    d["replications"] = replications_;
    d["seed"] = seed_;
    if (plan_.design == sys::Design::random || plan_.design == sys::Design::latin_hypercube)
      d["draw_seed"] = section_.seed.value_or(seed_);
    Json& metrics = d["metrics"] = Json::object();
    for (const SweepMetric& m : plan_.metrics) metrics[m.name] = m.text();
  }

  const SweepRequest& request_;
  SweepPlan plan_;
  sys::SweepConfig section_;
  sys::ScenarioConfig config_;
  sim::ConfigErrors errors_;
  std::vector<Origin> origins_, condition_origins_;
  std::uint64_t seed_ = 1, replications_ = 1, combinations_ = 0;
};

}  // namespace

std::string SweepParameter::column() const {
  const std::string_view unit = unit_of(kind);
  return unit.empty() || name.ends_with("_" + std::string(unit)) ? name : name + "_" + std::string(unit);
}

sys::Overrides SweepPlan::overrides(const SweepPoint& p) const {
  sys::Overrides o{sets};
  o.sets.push_back("seed=" + std::to_string(p.seed));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    for (const std::string& path : parameters[i].paths) o.sets.push_back(path + "=" + p.values[i].json().compact());
  return o;
}

std::string SweepPlan::command(const SweepPoint& p) const {
  std::string out = "rdmasim run " + shell_word(file.string());
  for (const std::string& set : overrides(p).sets) out += " --set " + shell_word(set);
  return out;
}

std::string config_hash(const Json& effective) {
  Json j = effective;
  for (const char* key : {"sweep", "explore", "description", "teaches"}) j.erase(key);
  std::uint64_t h = 0xcbf29ce484222325ULL;  // FNV-1a, 64 bits
  for (const char c : j.compact()) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; h >>= 4) out[i] = kHex[h & 15];
  return out;
}

SweepPlan plan_sweep(const SweepRequest& request) { return Planner(request).plan(); }

}  // namespace experiment
