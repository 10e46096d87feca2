// SPDX-License-Identifier: Apache-2.0
// The members that explain and diff build on, as docs/result.md describes them. A result that lacks one was cut, edited or
// written by an older simulator; it is refused here, so that nobody further on has to ask.
#include "experiment/result_file.h"

#include "experiment/result.h"

namespace experiment {
namespace {

using sim::Json;

enum class Type { string, number, boolean, list, object, object_or_null };

const char* name_of(Type t) {
  constexpr const char* kNames[] = {"a string", "a number",  "true or false",
                                    "a list",   "an object", "an object or null"};
  return kNames[static_cast<std::size_t>(t)];
}

bool is(const Json& j, Type t) {
  switch (t) {
    case Type::string:
      return j.is_string();
    case Type::number:
      return j.is_number();
    case Type::boolean:
      return j.is_bool();
    case Type::list:
      return j.is_array();
    case Type::object:
      return j.is_object();
    case Type::object_or_null:
      return j.is_object() || j.is_null();
  }
  return false;
}

struct Member {
  const char* name;
  Type type;
};
constexpr Member kTop[] = {{"scenario", Type::string},    {"version", Type::string},    {"seed", Type::number},
                           {"sim_time_ns", Type::number}, {"verdict", Type::string},    {"workloads", Type::list},
                           {"programs", Type::object},    {"async_events", Type::list}, {"counters", Type::object},
                           {"utilisation", Type::object}, {"bottleneck", Type::object}, {"outstanding", Type::list},
                           {"stuck", Type::list},         {"expectations", Type::list}, {"config", Type::object}};
constexpr Member kWorkload[] = {{"name", Type::string},
                                {"op", Type::string},
                                {"messages", Type::number},
                                {"bytes", Type::number},
                                {"first_post_ns", Type::number},
                                {"last_done_ns", Type::number},
                                {"latency_ns", Type::object_or_null},
                                {"bandwidth_gbps", Type::number},
                                {"message_rate_mpps", Type::number},
                                {"wc_status", Type::object},
                                {"errors", Type::list},
                                {"corrupted", Type::number},
                                {"cpu_ns", Type::object},
                                {"breakdown_ns", Type::list},
                                {"slowest_message", Type::object_or_null}};
constexpr Member kProgram[] = {{"host", Type::string},
                               {"finished", Type::boolean},
                               {"started_ns", Type::number},
                               {"ended_ns", Type::number},
                               {"messages", Type::number},
                               {"cpu_ns", Type::object},
                               {"latency_ns", Type::object_or_null},
                               {"slowest_message", Type::object_or_null},
                               {"wc_status", Type::object},
                               {"completions", Type::list},
                               {"events", Type::list},
                               {"failures", Type::list}};
constexpr Member kLatency[] = {{"min", Type::number}, {"mean", Type::number}, {"p50", Type::number},
                               {"p99", Type::number}, {"p999", Type::number}, {"max", Type::number}};
constexpr Member kMessage[] = {{"id", Type::number},    {"host", Type::number},      {"qpn", Type::number},
                               {"wr_id", Type::number}, {"posted_ns", Type::number}, {"latency_ns", Type::number}};
constexpr Member kCpu[] = {
    {"span", Type::number}, {"on_cpu", Type::number}, {"asleep", Type::number}, {"interrupted", Type::number}};
constexpr Member kStage[] = {{"stage", Type::string}, {"mean", Type::number}, {"p50", Type::number}};
constexpr Member kCompletion[] = {
    {"time_ns", Type::number}, {"qp", Type::string}, {"wr_id", Type::number}, {"status", Type::string}};
constexpr Member kError[] = {
    {"time_ns", Type::number}, {"side", Type::string}, {"wr_id", Type::number}, {"status", Type::string}};
constexpr Member kEvent[] = {
    {"time_ns", Type::number}, {"host", Type::string}, {"type", Type::string}, {"object", Type::string}};
constexpr Member kFailure[] = {{"at", Type::string}, {"step", Type::string}, {"message", Type::string}};
constexpr Member kExpectation[] = {
    {"at", Type::string}, {"expected", Type::string}, {"actual", Type::string}, {"met", Type::boolean}};
constexpr Member kBottleneck[] = {{"utilisation", Type::number}, {"saturated", Type::boolean}};
constexpr Member kStuck[] = {{"kind", Type::string}, {"host", Type::string}};

class Checker {
 public:
  explicit Checker(sim::ConfigErrors& errors) : errors_(errors) {}

  template <std::size_t N>
  void members(const Json& j, const std::string& at, const Member (&wanted)[N]) {
    if (!expect(j, at, Type::object)) return;
    for (const Member& m : wanted) {
      const Json* value = j.find(m.name);
      if (value == nullptr)
        errors_.add(
            j.origin, at + "/" + m.name,
            std::string("is missing: a result of this version has ") + name_of(m.type) + " \"" + m.name + "\" here");
      else expect(*value, at + "/" + m.name, m.type);
    }
  }
  template <std::size_t N>
  void each(const Json& j, const char* list, const std::string& at, const Member (&wanted)[N]) {
    const Json* all = j.find(list);
    if (all == nullptr || !all->is_array()) return;
    for (std::size_t i = 0; i < all->items().size(); ++i)
      members(all->items()[i], at + "/" + list + "/" + std::to_string(i), wanted);
  }
  void numbers(const Json& j, const char* map, const std::string& at) {
    const Json* all = j.find(map);
    if (all == nullptr || !all->is_object()) return;
    for (const auto& m : all->members()) expect(m.value, at + "/" + map + "/" + m.key, Type::number);
  }
  /// A latency that is there.
  void latency(const Json& j, const std::string& at) {
    if (const Json* l = j.find("latency_ns"); l != nullptr && l->is_object()) members(*l, at + "/latency_ns", kLatency);
  }
  /// A slowest message that is there.
  void slowest(const Json& j, const std::string& at) {
    if (const Json* m = j.find("slowest_message"); m != nullptr && m->is_object())
      members(*m, at + "/slowest_message", kMessage);
  }
  bool expect(const Json& j, const std::string& at, Type type) {
    if (is(j, type)) return true;
    errors_.add(j.origin, at, std::string("expected ") + name_of(type) + ", got " + j.describe());
    return false;
  }

 private:
  sim::ConfigErrors& errors_;
};

void check_workload(const Json& w, const std::string& at, Checker& check) {
  check.members(w, at, kWorkload);
  check.latency(w, at);
  check.slowest(w, at);
  check.numbers(w, "wc_status", at);
  check.each(w, "errors", at, kError);
  check.each(w, "breakdown_ns", at, kStage);
  for (const char* side : {"client", "server"})
    if (const Json* cpu = w.at("/cpu_ns"); cpu != nullptr && cpu->is_object()) {
      const std::string place = at + "/cpu_ns/" + side;
      const Json* times = cpu->find(side);
      check.members(times != nullptr ? *times : Json{}, place, kCpu);
    }
}

void check_program(const Json& p, const std::string& at, Checker& check) {
  check.members(p, at, kProgram);
  check.latency(p, at);
  check.slowest(p, at);
  check.numbers(p, "wc_status", at);
  check.each(p, "completions", at, kCompletion);
  check.each(p, "failures", at, kFailure);
  if (const Json* cpu = p.find("cpu_ns"); cpu != nullptr) check.members(*cpu, at + "/cpu_ns", kCpu);
}

}  // namespace

void check_result(const Json& result, sim::ConfigErrors& errors) {
  const Json* schema = result.find("schema");
  const std::string wanted = std::string("\"") + kResultSchema + "\"";
  if (schema == nullptr)
    return errors.add(result.origin, "/schema",
                      "is not a result of a run: it has no member \"schema\" (" + wanted + ")");
  if (!schema->is_string() || schema->string() != kResultSchema)
    return errors.add(schema->origin, "/schema",
                      "expected " + wanted + ", the version that this rdmasim reads, got " + schema->describe());
  Checker check(errors);
  check.members(result, "", kTop);
  if (const Json* all = result.find("workloads"); all != nullptr && all->is_array())
    for (std::size_t i = 0; i < all->items().size(); ++i)
      check_workload(all->items()[i], "/workloads/" + std::to_string(i), check);
  if (const Json* all = result.find("programs"); all != nullptr && all->is_object())
    for (const auto& m : all->members()) check_program(m.value, "/programs/" + m.key, check);
  check.each(result, "async_events", "", kEvent);
  check.each(result, "expectations", "", kExpectation);
  check.each(result, "stuck", "", kStuck);
  check.numbers(result, "counters", "");
  check.numbers(result, "utilisation", "");
  if (const Json* b = result.find("bottleneck")) check.members(*b, "/bottleneck", kBottleneck);
}

Json load_result(const std::filesystem::path& path) {
  std::error_code ignore;
  const bool directory = std::filesystem::is_directory(path, ignore);
  sim::ConfigErrors errors;
  std::optional<Json> result = sim::load_json(directory ? path / "result.json" : path, errors);
  if (result) check_result(*result, errors);
  if (!errors.empty()) throw sim::ConfigFailure(std::move(errors));
  return std::move(*result);
}

}  // namespace experiment
