// SPDX-License-Identifier: Apache-2.0
// One walk over the fields of all programs. A field that is a Name refers to an object by the word that is its key ("cq",
// "send_cq", …); what a name inside `remote`, `ud` and `peer` means belongs to another program. Left out, a name stands for
// the only object of its kind.
#include "system/steps_check.h"

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <set>

#include "sim/config_read.h"

namespace sys {
namespace {

struct Declared {
  std::string name;
  ObjectKind kind;
};

template <class M>
void add(std::vector<Declared>& out, const M& objects, ObjectKind kind) {
  for (const auto& [name, config] : objects) out.push_back({name, kind});
}

std::vector<Declared> declared(const ProgramConfig& p) {
  std::vector<Declared> out;
  add(out, p.pd, ObjectKind::pd);
  if (p.pd.empty()) out.push_back({"pd", ObjectKind::pd});
  add(out, p.mr, ObjectKind::mr);
  add(out, p.channel, ObjectKind::channel);
  add(out, p.cq, ObjectKind::cq);
  add(out, p.srq, ObjectKind::srq);
  add(out, p.qp, ObjectKind::qp);
  add(out, p.ah, ObjectKind::ah);
  add(out, p.mw, ObjectKind::mw);
  return out;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

/// Labels that the steps of a program set.
void collect_labels(const std::vector<StepConfig>& steps, std::vector<std::string>& out) {
  for (const StepConfig& s : steps) {
    if (s.label) out.push_back(s.label->text);
    if (s.loop) collect_labels(s.loop->steps, out);
  }
}

using Kinds = std::vector<ObjectKind>;

class Checker {
 public:
  Checker(const ScenarioConfig& scenario, const std::string& program, const ProgramConfig& config,
          sim::ConfigErrors& errors)
      : scenario_(scenario),
        program_(program),
        config_(config),
        errors_(errors),
        path_(sim::join_path("programs", program)) {}

  void run() {
    origin_ = config_.origin;
    owner_ = process_owner(scenario_, program_);
    if (!config_.thread_of.empty()) {
      if (owner_ == nullptr || !owner_->thread_of.empty() || owner_ == &config_) {
        owner_ = nullptr;
        unknown(config_.thread_of, "thread_of", "program", process_names());
        return;
      }
      if (!declared_here())
        fail(origin_, "thread_of", "the objects of a process are declared by the program that owns it");
      if (!config_.host.empty()) fail(origin_, "host", "a thread runs on the host of its process");
    }
    if (config_.plugin) check_plugin(*config_.plugin);
    check_unique();
    walk(config_);
  }

  /// Visitor of fields().
  template <class T>
  void operator()(const char* key, const T& field, const char*, sim::Provenance, sim::Range = {}) {
    const std::string before = path_;
    path_ = sim::join_path(path_, key);
    visit(key, field);
    path_ = before;
  }

 private:
  template <class T>
  void visit(const char* key, const T& field) {
    if constexpr (std::same_as<T, Name>) {
      reference(key, field);
    } else if constexpr (sim::config::IsOptional<T>::value) {
      if (field) visit(key, *field);
    } else if constexpr (sim::config::Structure<T>) {
      walk(field);
    } else if constexpr (sim::config::IsVector<T>::value) {
      if constexpr (sim::config::Structure<typename T::value_type>)
        for (std::size_t i = 0; i < field.size(); ++i) element(std::to_string(i), field[i]);
    } else if constexpr (sim::config::IsMap<T>::value) {
      for (const auto& [name, value] : field) element(name, value);
    }
  }
  template <class T>
  void element(const std::string& key, const T& value) {
    const std::string before = path_;
    path_ = sim::join_path(path_, key);
    walk(value);
    path_ = before;
  }
  template <class T>
  void walk(const T& part) {
    const sim::Origin before = origin_;
    if constexpr (requires { requires std::same_as<std::remove_cvref_t<decltype(part.origin)>, sim::Origin>; })
      if (part.origin.source != nullptr) origin_ = part.origin;
    const bool remote = remote_, lax = lax_, declaration = declaration_, wait = wait_;
    const std::string_view optional = optional_;
    remote_ = std::same_as<T, RemoteConfig> || std::same_as<T, UdConfig>;
    wait_ = std::same_as<T, WaitStep>;
    optional_ = std::same_as<T, GetEventStep> ? "cq" : std::same_as<T, WcConfig> ? "qp" : "";
    declaration_ = declaration || std::same_as<T, QpConfig> || std::same_as<T, MrConfig> || std::same_as<T, CqConfig>;
    if constexpr (std::same_as<T, SgeConfig>) lax_ = part.addr && part.lkey;
    if constexpr (std::same_as<T, RemoteConfig>) lax_ = part.addr && part.rkey;
    if constexpr (std::same_as<T, UdConfig>) lax_ = part.remote_qpn && part.remote_qkey;
    if constexpr (std::same_as<T, PostRecvStep>) lax_ = !part.srq.empty();
    if constexpr (std::same_as<T, QpConfig>) lax_ = !part.send_cq.empty() && !part.recv_cq.empty();
    T::fields(part, *this);
    if constexpr (std::same_as<T, SendWrConfig>) check_wr(part);
    if constexpr (std::same_as<T, RemoveDeviceStep>) check_host(part.host);
    wait_ = wait;
    optional_ = optional;
    remote_ = remote;
    lax_ = lax;
    declaration_ = declaration;
    origin_ = before;
  }

  // What a Name means, by its key.
  void reference(std::string_view key, const Name& n) {
    if (key == "meet" || key == "mark" || (key == "label" && !wait_)) {
      if (n.empty()) fail(n.origin, "", "needs a name");
    } else if (key == "label") {
      if (!n.empty()) label(n);
    } else if (key == "thread_of" || key == "file") {
      return;  // checked first
    } else if (key == "kill") {
      const ProgramConfig* const victim = process_owner(scenario_, n.text);
      if (victim == nullptr) unknown(n, "", "program", program_names());
      else if (victim == owner_) fail(n.origin, "", "is a program of this process; use \"exit\"");
    } else if (key == "to") {
      if (!n.empty() && process_owner(scenario_, n.text) == nullptr) unknown(n, "", "program", program_names());
    } else if (key == "peer") {
      if (!n.empty()) foreign(n, {ObjectKind::qp});
    } else if (key == "create" || key == "destroy" || key == "ack_async_events") {
      local(n, {}, true);
    } else if (key == "object") {
      local(n, {}, false);
    } else if (key == "invalidate") {
      if (n.text.find('.') != std::string::npos) foreign(n, {ObjectKind::mr, ObjectKind::mw});
      else local(n, {ObjectKind::mr, ObjectKind::mw}, false);
    } else if (remote_ && (key == "mr" || key == "qp")) {
      if (n.empty() && !lax_) fail(origin_, "", "name the other side's object as \"program.name\"");
      else if (!n.empty() && key == "mr") foreign(n, {ObjectKind::mr, ObjectKind::mw});
      else if (!n.empty()) foreign(n, {ObjectKind::qp});
    } else if (key == "memory_of") {
      local(n, {ObjectKind::mr}, false);
    } else if (key == "send_cq" || key == "recv_cq") {
      local(n, {ObjectKind::cq}, false);
    } else {
      static constexpr std::pair<std::string_view, ObjectKind> kKinds[] = {
          {"pd", ObjectKind::pd},   {"mr", ObjectKind::mr}, {"channel", ObjectKind::channel}, {"cq", ObjectKind::cq},
          {"srq", ObjectKind::srq}, {"qp", ObjectKind::qp}, {"ah", ObjectKind::ah},           {"mw", ObjectKind::mw}};
      for (const auto& [word, kind] : kKinds)
        if (word == key) local(n, {kind}, word != optional_ && needed(kind));
    }
  }
  /// Whether a name of this kind that is left out has to stand for the only object.
  bool needed(ObjectKind kind) const {
    if (lax_) return false;
    if (declaration_) return kind == ObjectKind::pd || kind == ObjectKind::cq;
    return kind != ObjectKind::srq || path_.find("_srq") != std::string::npos;
  }

  void local(const Name& n, const Kinds& kinds, bool needed) {
    if (owner_ == nullptr || n.text.find('.') != std::string::npos) {
      if (owner_ != nullptr) fail(n.origin, "", "is an object of this process: a name without a dot");
      return;
    }
    std::vector<std::string> fitting, all;
    for (const Declared& d : declared(*owner_)) {
      all.push_back(d.name);
      if (kinds.empty() || std::ranges::find(kinds, d.kind) != kinds.end()) fitting.push_back(d.name);
    }
    const std::string what = kinds.size() == 1 ? name_of(kinds.front()) : "object";
    if (n.empty()) {
      if (needed && fitting.empty()) fail(origin_, "", "the program declares no " + what);
      if (needed && fitting.size() > 1) fail(origin_, "", "say which " + what + ": " + join(fitting));
      return;
    }
    if (std::ranges::find(fitting, n.text) != fitting.end()) return;
    if (std::ranges::find(all, n.text) != all.end())
      fail(n.origin, "", "\"" + n.text + "\" is not a " + what + "; there is " + join(fitting));
    else unknown(n, "", what, fitting);
  }

  void foreign(const Name& n, const Kinds& kinds) {
    const std::size_t dot = n.text.find('.');
    const ProgramConfig* other = dot == std::string::npos ? nullptr : process_owner(scenario_, n.text.substr(0, dot));
    if (other == nullptr) {
      const std::string program = n.text.substr(0, dot);
      if (dot == std::string::npos) fail(n.origin, "", "is an object of another program: \"program.name\"");
      else unknown({program, n.origin}, "program", program_names());
      return;
    }
    std::vector<std::string> fitting;
    for (const Declared& d : declared(*other))
      if (std::ranges::find(kinds, d.kind) != kinds.end()) fitting.push_back(d.name);
    if (std::ranges::find(fitting, n.text.substr(dot + 1)) == fitting.end())
      unknown({n.text.substr(dot + 1), n.origin}, name_of(kinds.front()), fitting);
  }

  void label(const Name& n) {
    const std::size_t dot = n.text.find('.');
    const auto program = scenario_.programs.find(n.text.substr(0, dot));
    if (dot == std::string::npos || program == scenario_.programs.end()) {
      if (dot == std::string::npos) fail(n.origin, "", "is a label of another program: \"program.label\"");
      else unknown({n.text.substr(0, dot), n.origin}, "program", program_names());
      return;
    }
    std::vector<std::string> labels;
    collect_labels(program->second.steps, labels);
    if (std::ranges::find(labels, n.text.substr(dot + 1)) == labels.end())
      unknown({n.text.substr(dot + 1), n.origin}, "label", labels);
  }

  void check_host(const std::string& host) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < scenario_.hosts.size(); ++i) names.push_back(scenario_.host_name(i));
    if (!host.empty() && std::ranges::find(names, host) == names.end()) unknown({host, origin_}, "host", names);
  }

  /// What an opcode needs beside its gather list.
  void check_wr(const SendWrConfig& w) {
    const auto is = [&](auto... ops) { return ((w.opcode == ops) || ...); };
    const bool atomic = is(IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD);
    const bool rdma = atomic || is(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ);
    const auto need = [&](bool given, bool wanted, const char* field, const char* why) {
      if (wanted && !given) fail(w.origin, field, std::string("is missing: ") + why);
      if (given && !wanted)
        fail(w.origin, field, std::string("has no meaning for ") + std::string(sim::enum_name(w.opcode)));
    };
    need(w.remote.has_value(), rdma, "remote", "the operation accesses remote memory");
    need(w.atomic.has_value(), atomic, "atomic", "the operands of the atomic");
    need(w.bind_mw.has_value(), is(IBV_WR_BIND_MW), "bind_mw", "what is bound");
    need(!w.invalidate.empty() || w.invalidate_rkey, is(IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV), "invalidate",
         "which key");
    if (w.imm_data != 0) need(true, is(IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM), "imm_data", "");
  }

  void check_plugin(const PluginConfig& p) {
    std::error_code ignore;
    const std::filesystem::path file = plugin_path(p);
    if (!std::filesystem::exists(file, ignore)) fail(p.file.origin, "plugin", "there is no file " + file.string());
    if (!config_.thread_of.empty()) fail(origin_, "plugin", "is a process of its own, not a thread of another program");
    if (!declared_here() || !config_.steps.empty())
      fail(origin_, "plugin", "makes its objects itself and has no steps");
    if (config_.async_events == AsyncEvents::steps || config_.at_end == AtEnd::exit)
      fail(origin_, "plugin", "reads its asynchronous events and ends by itself: async_events and at_end are of steps");
  }

  void check_unique() {
    if (owner_ == nullptr) return;
    std::set<std::string> seen;
    for (const Declared& d : declared(config_)) {
      if (!seen.insert(d.name).second) fail(origin_, "", "two objects are called \"" + d.name + "\"");
      if (d.name.empty() || d.name.find('.') != std::string::npos)
        fail(origin_, "", "\"" + d.name + "\" is no name for an object");
    }
  }
  bool declared_here() const {
    const ProgramConfig& c = config_;
    return c.pd.empty() && c.mr.empty() && c.channel.empty() && c.cq.empty() && c.srq.empty() && c.qp.empty() &&
           c.ah.empty() && c.mw.empty();
  }
  std::vector<std::string> program_names() const {
    std::vector<std::string> out;
    for (const auto& [name, config] : scenario_.programs) out.push_back(name);
    return out;
  }
  std::vector<std::string> process_names() const {
    std::vector<std::string> out;
    for (const auto& [name, config] : scenario_.programs)
      if (config.thread_of.empty() && name != program_) out.push_back(name);
    return out;
  }

  void fail(const sim::Origin& where, const std::string& key, const std::string& message) {
    errors_.add(where.source != nullptr ? where : origin_, key.empty() ? path_ : sim::join_path(path_, key), message);
  }
  void unknown(const Name& n, const std::string& key, const std::string& what, const std::vector<std::string>& known) {
    std::string hint = sim::did_you_mean(n.text, known);
    if (hint.empty()) hint = known.empty() ? "; there is none" : "; known: " + join(known);
    fail(n.origin, key, "there is no " + what + " \"" + n.text + "\"" + hint);
  }
  void unknown(const std::pair<std::string, sim::Origin>& n, const std::string& what,
               const std::vector<std::string>& known) {
    Name name(n.first);
    name.origin = n.second;
    unknown(name, "", what, known);
  }

  const ScenarioConfig& scenario_;
  const std::string& program_;
  const ProgramConfig& config_;
  sim::ConfigErrors& errors_;
  const ProgramConfig* owner_ = nullptr;
  std::string path_;
  sim::Origin origin_;
  std::string_view optional_;
  bool remote_ = false, lax_ = false, wait_ = false, declaration_ = false;
};

void collect_tags(const std::vector<StepConfig>& steps, std::set<std::string>& out) {
  for (const StepConfig& s : steps) {
    if (s.meet) out.insert(s.meet->text);
    if (s.loop) collect_tags(s.loop->steps, out);
  }
}

}  // namespace

const char* name_of(ObjectKind k) {
  static constexpr const char* kNames[] = {"pd", "mr", "channel", "cq", "srq", "qp", "ah", "mw"};
  return kNames[static_cast<std::size_t>(k)];
}

const ProgramConfig* process_owner(const ScenarioConfig& scenario, const std::string& name) {
  const auto p = scenario.programs.find(name);
  if (p == scenario.programs.end()) return nullptr;
  if (p->second.thread_of.empty()) return &p->second;
  const auto owner = scenario.programs.find(p->second.thread_of.text);
  return owner == scenario.programs.end() ? nullptr : &owner->second;
}

std::set<std::string> meeting_tags(const ProgramConfig& program) {
  std::set<std::string> out;
  collect_tags(program.steps, out);
  return out;
}

void check_programs(const ScenarioConfig& scenario, sim::ConfigErrors& errors) {
  for (const auto& [name, config] : scenario.programs) {
    if (name.empty() || name.find('.') != std::string::npos)
      errors.add(config.origin, "programs", "\"" + name + "\" is no name for a program: not empty, without a dot");
    else Checker(scenario, name, config, errors).run();
  }
}

}  // namespace sys
