// SPDX-License-Identifier: Apache-2.0
// Scenario and profile files: finding them, inheritance, --set, and the binding of the merged document to a struct.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/config_read.h"

namespace sys {

/// What the command line adds to a scenario file.
struct Overrides {
  std::vector<std::string> sets;  ///< "PATH=VALUE", applied in order after everything else
};

/// How the parts of a document relate; properties of the format, not of one file.
struct DocumentRules {
  /// {list, pattern}: each element of the list inherits from the pattern object beside it ({"hosts", "host"}). A document
  /// without the list gets as many elements as `defaults` has.
  std::vector<std::pair<std::string, std::string>> inherit;
  /// What a profile may contain beside "base" and "description".
  std::vector<std::string> profile_sections;
};

/// A scenario after inheritance and overrides, before binding. Each value knows the file or flag that it came from.
struct ScenarioDocument {
  sim::Json root = sim::Json::object();
  std::map<std::string, sim::Json> patterns;  ///< what `rules.inherit` consumed, by key
  std::filesystem::path file;
  std::vector<std::string> profiles;  ///< the scenario's profile, its base, that one's base, …
};

/// A file of the library: name as users write it, path, and what it teaches or describes (empty if it does not say, or
/// cannot be read).
struct LibraryEntry {
  std::string name;
  std::filesystem::path path;
  std::string description;
};

/// Directories with scenarios and, below profiles/, machine profiles: $RDMASIM_DATA, the installed data directory (found
/// from the executable or by its configured path) and the source tree. Only those that exist.
std::vector<std::filesystem::path> scenario_directories();
std::vector<LibraryEntry> list_profiles();
std::vector<LibraryEntry> list_scenarios();

/// Reads `file`, the files that it includes ("include": [PATH, …], each relative to the file that names it; a later one and
/// the file itself go on top), the profiles it inherits from ("profile": NAME, and "base": NAME in a profile), merges them and
/// applies the overrides. A profile NAME is NAME.json in profiles/ beside the scenario, in a directory above it, or in
/// scenario_directories(); a name with a slash is a path relative to the file that names it. `defaults` are the
/// effective values of an empty document, for --set into lists that the document leaves out.
/// Mistakes are collected in `errors`; what could be read is returned all the same. The patterns of `rules.inherit` are
/// moved out of the root.
ScenarioDocument load_document(const std::filesystem::path& file, const Overrides& overrides,
                               const DocumentRules& rules, const sim::Json& defaults, sim::ConfigErrors& errors);

}  // namespace sys
