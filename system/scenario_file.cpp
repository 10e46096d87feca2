// SPDX-License-Identifier: Apache-2.0
// Inheritance works on trees, before any struct is filled: base profile, profile, scenario and flags are merged in that
// order, and each value keeps its origin, so a mistake is shown in the file that made it.
#include "system/scenario_file.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

namespace sys {
namespace fs = std::filesystem;
namespace {

constexpr int kParentsSearched = 4;

std::vector<fs::path> profile_directories(const fs::path& file) {
  std::vector<fs::path> out;
  std::error_code ignore;
  fs::path dir = fs::absolute(file, ignore).lexically_normal().parent_path();
  for (int i = 0; i <= kParentsSearched && !dir.empty(); ++i, dir = dir.parent_path()) {
    out.push_back(dir.filename() == "profiles" ? dir : dir / "profiles");
    out.push_back(dir / "scenarios" / "profiles");
    if (dir == dir.root_path()) break;
  }
  for (const fs::path& d : scenario_directories()) out.push_back(d / "profiles");
  std::erase_if(out, [&](const fs::path& d) { return !fs::is_directory(d, ignore); });
  return out;
}

std::vector<std::string> names_in(const std::vector<fs::path>& directories) {
  std::vector<std::string> out;
  std::error_code ignore;
  for (const fs::path& d : directories)
    for (const auto& entry : fs::directory_iterator(d, ignore))
      if (entry.path().extension() == ".json") out.push_back(entry.path().stem().string());
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Follows the chain of profiles from a file on.
class ProfileChain {
 public:
  ProfileChain(ScenarioDocument& document, const DocumentRules& rules, sim::ConfigErrors& errors)
      : document_(document), rules_(rules), errors_(errors) {}

  /// The merged profile that `name` names in `from`; an empty object after a mistake.
  sim::Json load(const sim::Json& name, const char* key, const fs::path& from) {
    sim::Json none = sim::Json::object();
    if (!name.is_string()) {
      errors_.add(name.origin, key, "expected the name of a profile, got " + name.describe());
      return none;
    }
    const fs::path path = find(name, key, from);
    if (path.empty()) return none;
    std::error_code ignore;
    const fs::path identity = fs::weakly_canonical(path, ignore);
    const bool cycle = std::ranges::find(visited_, identity) != visited_.end();
    visited_.push_back(identity);
    document_.profiles.push_back(name.string());
    if (cycle) {
      std::string chain;
      for (const std::string& p : document_.profiles) chain += (chain.empty() ? "" : " -> ") + p;
      errors_.add(name.origin, key, "profiles inherit from each other in a circle: " + chain);
      return none;
    }
    std::optional<sim::Json> profile = sim::load_json(path, errors_);
    if (!profile) return none;
    if (!profile->is_object()) {
      errors_.add(profile->origin, {}, "expected an object with the sections of a machine, got " + profile->describe());
      return none;
    }
    sim::Json merged = none;
    if (const sim::Json* base = profile->find("base")) merged = load(*base, "base", path);
    for (const char* k : {"base", "description", "$schema"}) profile->erase(k);
    refuse_foreign_sections(*profile);
    sim::merge(merged, *profile);
    return merged;
  }

 private:
  fs::path find(const sim::Json& name, const char* key, const fs::path& from) {
    const std::string& text = name.string();
    std::error_code ignore;
    if (text.find('/') != std::string::npos) {
      const fs::path path = from.parent_path() / text;
      if (fs::exists(path, ignore)) return path;
      errors_.add(name.origin, key, "there is no file " + path.lexically_normal().string());
      return {};
    }
    const std::vector<fs::path> directories = profile_directories(from);
    for (const fs::path& d : directories)
      if (fs::exists(d / (text + ".json"), ignore)) return d / (text + ".json");
    const std::vector<std::string> known = names_in(directories);
    std::string message = "there is no profile \"" + text + "\"" + sim::did_you_mean(text, known);
    if (!known.empty()) {
      message += " (known:";
      for (const std::string& k : known) message += " " + k;
      message += ")";
    } else {
      message += " (no profiles/ directory beside or above the file, nor in the installed data)";
    }
    errors_.add(name.origin, key, message);
    return {};
  }

  /// Takes out the members that are not sections of a profile.
  void refuse_foreign_sections(sim::Json& profile) {
    const auto known = [&](const sim::Json::Member& m) {
      return std::ranges::find(rules_.profile_sections, m.key) != rules_.profile_sections.end();
    };
    for (const sim::Json::Member& m : profile.members())
      if (!known(m))
        errors_.add(m.key_origin, {},
                    "a profile has no section \"" + m.key + "\"" + sim::did_you_mean(m.key, rules_.profile_sections) +
                        " (it describes a machine: " + sim::quoted_list(rules_.profile_sections) + ")");
    std::erase_if(profile.members(), [&](const sim::Json::Member& m) { return !known(m); });
  }

  ScenarioDocument& document_;
  const DocumentRules& rules_;
  sim::ConfigErrors& errors_;
  std::vector<fs::path> visited_;
};

/// A file on top of the files that it includes.
class IncludeTree {
 public:
  explicit IncludeTree(sim::ConfigErrors& errors) : errors_(errors) {}

  /// The merged file; nothing when it cannot be read.
  std::optional<sim::Json> load(const fs::path& file) {
    std::optional<sim::Json> document = sim::load_json(file, errors_);
    if (!document) return document;
    if (!document->is_object()) {
      errors_.add(document->origin, {}, "expected an object, got " + document->describe());
      return std::nullopt;
    }
    document->erase("$schema");
    const sim::Json* const names = document->find("include");
    if (names == nullptr) return document;
    sim::Json merged = sim::Json::object();
    merged.origin = document->origin;
    open_.push_back(file.lexically_normal());
    if (!names->is_array()) errors_.add(names->origin, "include", "expected a list of files, got " + names->describe());
    else
      for (const sim::Json& name : names->items()) add(merged, name, file);
    open_.pop_back();
    document->erase("include");
    sim::merge(merged, *document);
    return merged;
  }

 private:
  void add(sim::Json& merged, const sim::Json& name, const fs::path& from) {
    if (!name.is_string()) return errors_.add(name.origin, "include", "expected a file name, got " + name.describe());
    const fs::path file = (from.parent_path() / name.string()).lexically_normal();
    std::error_code ignore;
    if (!fs::exists(file, ignore)) return errors_.add(name.origin, "include", "there is no file " + file.string());
    if (std::ranges::find(open_, file) != open_.end())
      return errors_.add(name.origin, "include", "files include each other in a circle: " + circle(file));
    if (const auto part = load(file)) sim::merge(merged, *part);
  }
  std::string circle(const fs::path& file) const {
    std::string out;
    for (const fs::path& f : open_) out += f.filename().string() + " -> ";
    return out + file.filename().string();
  }

  sim::ConfigErrors& errors_;
  std::vector<fs::path> open_;  // from the scenario to the file under way
};

/// The file in which a value stands; `otherwise` when it comes from a flag.
fs::path file_of(const sim::Json& value, const fs::path& otherwise) {
  return value.origin.source != nullptr && value.origin.line != 0 ? fs::path(*value.origin.source) : otherwise;
}

/// Gives the document the lists it leaves out, with empty elements, so that flags can reach into them.
void add_missing_lists(sim::Json& root, const DocumentRules& rules, const sim::Json& defaults) {
  for (const auto& [list, pattern] : rules.inherit) {
    const sim::Json* standard = defaults.find(list);
    if (root.find(list) != nullptr || standard == nullptr || !standard->is_array()) continue;
    sim::Json elements = sim::Json::array();
    elements.origin = root.origin;
    for (std::size_t i = 0; i < standard->items().size(); ++i) {
      elements.push_back(sim::Json::object());
      elements.items().back().origin = root.origin;
    }
    root[list] = std::move(elements);
  }
}

void inherit_elements(ScenarioDocument& document, const DocumentRules& rules) {
  for (const auto& [list, pattern] : rules.inherit) {
    const sim::Json* base = document.root.find(pattern);
    if (base == nullptr) continue;
    sim::Json* elements = document.root.find(list);
    if (base->is_object() && elements != nullptr && elements->is_array()) {
      for (sim::Json& element : elements->items()) {
        if (!element.is_object()) continue;
        sim::Json merged = *base;
        sim::merge(merged, element);
        element = std::move(merged);
      }
    }
    document.patterns[pattern] = *base;
    document.root.erase(pattern);
  }
}

/// What one learns from a scenario, if it says so; else what it shows.
std::string description_of(const fs::path& file) {
  sim::ConfigErrors ignored;
  const auto j = sim::load_json(file, ignored);
  for (const char* key : {"teaches", "description"})
    if (const sim::Json* d = j ? j->find(key) : nullptr; d != nullptr && d->is_string()) return d->string();
  return {};
}

bool is_set_of(const std::string& assignment, std::string_view key) {
  return assignment.substr(0, assignment.find('=')) == key;
}

}  // namespace

std::vector<fs::path> scenario_directories() {
  std::vector<fs::path> out;
  if (const char* d = std::getenv("RDMASIM_DATA")) out.emplace_back(d);
  std::error_code ignore;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignore);
  if (!self.empty()) out.push_back(self.parent_path().parent_path() / "share/rdmasim/scenarios");
  out.emplace_back(RDMASIM_INSTALLED_SCENARIOS);
  out.emplace_back(RDMASIM_SOURCE_SCENARIOS);
  std::erase_if(out, [&](const fs::path& d) { return !fs::is_directory(d, ignore); });
  return out;
}

std::vector<LibraryEntry> list_profiles() {
  std::vector<LibraryEntry> out;
  std::error_code ignore;
  for (const fs::path& d : scenario_directories())
    for (const std::string& name : names_in({d / "profiles"}))
      if (std::ranges::none_of(out, [&](const LibraryEntry& e) { return e.name == name; }))
        out.push_back({name, d / "profiles" / (name + ".json"), description_of(d / "profiles" / (name + ".json"))});
  std::ranges::sort(out, {}, &LibraryEntry::name);
  return out;
}

std::vector<LibraryEntry> list_scenarios() {
  std::vector<LibraryEntry> out;
  std::error_code ignore;
  for (const fs::path& d : scenario_directories()) {
    for (auto it = fs::recursive_directory_iterator(d, ignore); it != fs::recursive_directory_iterator();
         it.increment(ignore)) {
      const fs::path name = it->path().lexically_relative(d);
      const std::string top = name.begin()->string();
      if (it->path().extension() != ".json" || top == "profiles" || top == "schema" || top == "parts") continue;
      if (std::ranges::none_of(out, [&](const LibraryEntry& e) { return e.name == name.string(); }))
        out.push_back({name.string(), it->path(), description_of(it->path())});
    }
  }
  std::ranges::sort(out, {}, &LibraryEntry::name);
  return out;
}

ScenarioDocument load_document(const fs::path& file, const Overrides& overrides, const DocumentRules& rules,
                               const sim::Json& defaults, sim::ConfigErrors& errors) {
  ScenarioDocument out;
  out.file = file;
  std::optional<sim::Json> scenario = IncludeTree(errors).load(file);
  if (!scenario) return out;
  for (const std::string& s : overrides.sets)
    if (is_set_of(s, "profile")) sim::apply_set(*scenario, s, defaults, errors);
  if (const sim::Json* profile = scenario->find("profile"))
    out.root = ProfileChain(out, rules, errors).load(*profile, "profile", file_of(*profile, file));
  scenario->erase("profile");
  sim::merge(out.root, *scenario);
  add_missing_lists(out.root, rules, defaults);
  for (const std::string& s : overrides.sets)
    if (!is_set_of(s, "profile")) sim::apply_set(out.root, s, defaults, errors);
  inherit_elements(out, rules);
  return out;
}

}  // namespace sys
