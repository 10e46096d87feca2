// SPDX-License-Identifier: Apache-2.0
// Whatever an answer needs may be missing: a scenario does not say everything, and completions are kept up to a limit. What
// is missing gives zero or nothing here, and the diagnoses then say less.
#include "experiment/explain_facts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "sim/config_json.h"
#include "sim/units.h"

namespace experiment {

using sim::Json;

const Json* Facts::at(const std::string& pointer) const {
  return Json::pointer_error(pointer).empty() ? result_.at(pointer) : nullptr;
}

double Facts::number(const std::string& pointer) const {
  const Json* j = at(pointer);
  return j != nullptr && j->is_number() ? j->number() : 0;
}

double Facts::counter_of_hosts(const std::string& name) const {
  double sum = 0;
  for (std::size_t i = 0; i < hosts(); ++i) sum += counter("host" + std::to_string(i) + "." + name);
  return sum;
}

std::size_t Facts::hosts() const {
  const Json* all = config("hosts");
  return all != nullptr && all->is_array() ? all->items().size() : 0;
}

std::string Facts::host_name(std::size_t number) const {
  const std::string name = config_text("hosts." + std::to_string(number) + ".name");
  return name.empty() ? "host" + std::to_string(number) : name;
}

std::size_t Facts::host_number(const std::string& name) const {
  for (std::size_t i = 0; i < hosts(); ++i)
    if (host_name(i) == name) return i;
  return 0;
}

std::size_t Facts::host_of_program(const std::string& program) const {
  for (const auto& p : programs())
    if (p.key == program) return host_number(p.value.find("host")->string());
  return 0;
}

const Json* Facts::config(const std::string& path) const {
  const std::vector<std::string> keys = sim::split_path(path);
  const Json* at = keys.empty() ? nullptr : result_.find("config");
  for (const std::string& key : keys) {
    if (at->is_array()) {
      const bool digits =
          !key.empty() && key.size() < 9 && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      const std::size_t i = digits ? std::stoul(key) : at->items().size();
      at = i < at->items().size() ? &at->items()[i] : nullptr;
    } else {
      at = at->find(key);
    }
    if (at == nullptr) return nullptr;
  }
  return at;
}

double Facts::config_number(const std::string& path, double otherwise) const {
  const Json* j = config(path);
  return j != nullptr && j->is_number() ? j->number() : otherwise;
}

unsigned Facts::config_code(const std::string& path, unsigned otherwise) const {
  return static_cast<unsigned>(std::clamp(config_number(path, otherwise), 0.0, 31.0));
}

unsigned Facts::cores(std::size_t host) const {
  return static_cast<unsigned>(std::clamp(config_number("hosts." + std::to_string(host) + ".cores", 4), 0.0, 128.0));
}

std::string Facts::config_text(const std::string& path) const {
  const Json* j = config(path);
  return j != nullptr && j->is_string() ? j->string() : "";
}

double Facts::config_ns(const std::string& path) const {
  const auto t = sim::parse_time(config_text(path));
  return t ? static_cast<double>(t.value.n) / 1000.0 : 0;
}

bool Facts::config_true(const std::string& path) const {
  const Json* j = config(path);
  return j != nullptr && j->is_bool() && j->boolean();
}

Evidence Facts::counted(const std::string& counter, const std::string& says) const {
  return found("/counters/" + counter, says);
}

Evidence Facts::found(const std::string& pointer, const std::string& says) const {
  const Json* j = at(pointer);
  return {pointer, j != nullptr ? *j : Json{}, says};
}

Evidence Facts::configured(const std::string& path, const std::string& says) const {
  std::string pointer = "/config";
  for (const std::string& key : sim::split_path(path)) pointer += "/" + key;
  return found(pointer, says);
}

Evidence Facts::derived(double value, const std::string& says) {
  return {"", Json(std::round(value * 1e6) / 1e6), says};
}

Advice Facts::turn(const std::string& path, Json to, const std::string& why) const { return turn_all({path}, to, why); }

Advice Facts::turn_all(const std::vector<std::string>& paths, const Json& to, const std::string& why) const {
  Advice a{{}, why};
  for (const std::string& path : paths) {
    const Json* from = config(path);
    a.changes.push_back({path, from != nullptr ? *from : Json{}, to});
  }
  return a;
}

ObjectName Facts::object_name(const std::string& dotted) {
  const std::size_t dot = dotted.find('.');
  return dot == std::string::npos ? ObjectName{} : ObjectName{dotted.substr(0, dot), dotted.substr(dot + 1)};
}

std::string Facts::owner(const std::string& program) const {
  const std::string of = config_text("programs." + program + ".thread_of");
  return of.empty() ? program : of;
}

std::string Facts::qp_path(const ObjectName& qp) {
  return sim::join_path(sim::join_path("programs", qp.program) + ".qp", qp.name);
}

std::vector<std::string> Facts::qp_paths(int host) const {
  std::vector<std::string> out;
  for (const auto& p : programs()) {
    const Json* qps = config("programs." + p.key + ".qp");
    if (qps == nullptr || !qps->is_object()) continue;
    if (host >= 0 && host_number(p.value.find("host")->string()) != static_cast<std::size_t>(host)) continue;
    for (const auto& q : qps->members()) out.push_back(qp_path({p.key, q.key}));
  }
  return out;
}

ObjectName Facts::peer_of(const ObjectName& qp) const {
  const ObjectName named = object_name(config_text(qp_path(qp) + ".peer"));
  if (!named.empty()) return named;
  const std::string me = qp.program + "." + qp.name;
  for (const std::string& path : qp_paths(-1)) {
    if (config_text(path + ".peer") != me) continue;
    const std::vector<std::string> parts = sim::split_path(path);
    return {parts[1], parts[3]};
  }
  return {};
}

void Facts::for_each_step(const std::string& program,
                          const std::function<void(const std::string&, const Json&, double)>& f) const {
  const std::function<void(const std::string&, double)> list = [&](const std::string& path, double times) {
    const Json* steps = config(path);
    if (steps == nullptr || !steps->is_array()) return;
    for (std::size_t i = 0; i < steps->items().size(); ++i) {
      const std::string at = path + "." + std::to_string(i);
      const double often = times * std::max(1.0, config_number(at + ".times", 1));
      if (config(at + ".loop") != nullptr) list(at + ".loop.steps", often * config_number(at + ".loop.count", 1));
      else f(at, steps->items()[i], often);
    }
  };
  list("programs." + program + ".steps", 1);
}

double Facts::posted(const ObjectName& qp, const char* list, bool only_with_receive) const {
  const Json* declared = config("programs." + qp.program + ".qp");
  const bool only = declared != nullptr && declared->is_object() && declared->members().size() == 1;
  double sum = 0;
  for (const auto& p : programs()) {
    if (owner(p.key) != qp.program) continue;
    for_each_step(p.key, [&](const std::string& at, const Json&, double times) {
      const Json* chain = config(at + "." + list + ".wr");
      const std::string on = config_text(at + "." + list + ".qp");
      if (chain == nullptr || !chain->is_array() || (on != qp.name && !(on.empty() && only))) return;
      for (const Json& wr : chain->items()) {
        const Json* opcode = wr.find("opcode");
        const std::string word = opcode != nullptr && opcode->is_string() ? opcode->string() : "";
        if (!only_with_receive || word.starts_with("SEND") || word.ends_with("_WITH_IMM")) sum += times;
      }
    });
  }
  return sum;
}

PostedWr Facts::find_wr(const ObjectName& qp, const char* list, double wr_id) const {
  struct Post {
    std::string path;
    const Json::Array* chain;
    double times;
    bool looped;
  };
  const Json* declared = config("programs." + qp.program + ".qp");
  const bool only = declared != nullptr && declared->is_object() && declared->members().size() == 1;
  std::vector<Post> posts;
  std::size_t posters = 0;
  for (const auto& p : programs()) {
    if (owner(p.key) != qp.program) continue;
    const std::size_t before = posts.size();
    for_each_step(p.key, [&](const std::string& at, const Json&, double times) {
      const Json* chain = config(at + "." + list + ".wr");
      const std::string on = config_text(at + "." + list + ".qp");
      if (chain != nullptr && chain->is_array() && !chain->items().empty() && (on == qp.name || (on.empty() && only)))
        posts.push_back(
            {at + "." + list + ".wr.", &chain->items(), times, at.find(".loop.steps.") != std::string::npos});
    });
    if (posts.size() != before) ++posters;
  }
  // The order in which threads, and the steps of one loop, post is not written down.
  const bool ordered = posters == 1 && (posts.size() == 1 || std::ranges::none_of(posts, &Post::looped));
  double next = 0;  // number of the next WR in its queue, which is its wr_id unless it has one of its own
  for (const Post& p : posts) {
    const auto n = static_cast<double>(p.chain->size());
    for (std::size_t i = 0; i < p.chain->size(); ++i) {
      const Json& wr = (*p.chain)[i];
      const Json* own = wr.find("wr_id");
      const double number = next + static_cast<double>(i);
      const bool numbered = ordered && own == nullptr && wr_id >= number && wr_id < next + n * p.times &&
                            std::fmod(wr_id - number, n) == 0;
      if (numbered || (own != nullptr && own->is_number() && own->number() == wr_id))
        return {p.path + std::to_string(i), &wr};
    }
    next += n * p.times;
  }
  return {};
}

std::size_t Facts::client_host(std::size_t workload) const {
  return host_number(config_text("workloads." + std::to_string(workload) + ".client"));
}

std::size_t Facts::server_host(std::size_t workload) const {
  const std::string named = config_text("workloads." + std::to_string(workload) + ".server");
  return named.empty() ? (hosts() > 1 ? 1 - std::min<std::size_t>(client_host(workload), 1) : 0) : host_number(named);
}

Json whole(double v) {
  constexpr double kMost = 9007199254740992.0;  // 2^53
  return Json(static_cast<std::int64_t>(std::clamp(v, -kMost, kMost)));
}

std::string number_text(double v, int digits) {
  if (v == 0 || !std::isfinite(v)) return "0";
  const int before = static_cast<int>(std::floor(std::log10(std::abs(v)))) + 1;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", std::clamp(digits - before, 0, 9), v);
  std::string out = text;
  if (out.find('.') != std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
    if (out.back() == '.') out.pop_back();
  }
  return out;
}

std::string time_text(double ns) {
  if (ns >= 1e9) return number_text(ns / 1e9, 5) + " s";
  if (ns >= 1e6) return number_text(ns / 1e6, 5) + " ms";
  if (ns >= 1e3) return number_text(ns / 1e3, 5) + " us";
  return number_text(ns, 5) + " ns";
}

std::string percent(double share) { return number_text(100 * share, 3) + " %"; }

double rnr_timer_ns(unsigned code) {
  constexpr double kUnit = 10'000;  // 0.01 ms
  if (code == 0) return 65536 * kUnit;
  if (code == 1) return kUnit;
  return kUnit * std::exp2(code / 2) * (code % 2 == 0 ? 1 : 1.5);
}

double ack_timeout_ns(unsigned exponent) { return exponent == 0 ? 0 : 4096 * std::exp2(exponent); }

}  // namespace experiment
