// SPDX-License-Identifier: Apache-2.0
// From JSON text to a tree with positions, and the errors that users see. Comments (// and /* */) are allowed in files.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/json.h"

namespace sim {

/// One mistake of the user: where it was written, which value it concerns (dotted path, may be empty), what is wrong
/// and what was expected.
struct ConfigError {
  Origin origin;
  std::string path, message;
  /// "scenario.json:3:14: hosts.0.hca.mtu: expected …".
  std::string text() const;
};

/// All mistakes of a load; nothing stops at the first.
class ConfigErrors {
 public:
  void add(Origin origin, std::string path, std::string message) {
    all_.push_back({std::move(origin), std::move(path), std::move(message)});
  }
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  const std::vector<ConfigError>& all() const { return all_; }
  /// One line per error, those of one file together and in the order of its text. A mistake in a value that several parts
  /// inherit is told once, with the path under which it was found first.
  std::string text() const;

 private:
  std::vector<ConfigError> all_;
};

/// Carries collected errors to whoever reports them (exit code 2).
struct ConfigFailure : std::runtime_error {
  explicit ConfigFailure(ConfigErrors e) : std::runtime_error(e.text()), errors(std::move(e)) {}
  ConfigErrors errors;
};

/// Largest configuration file that is read.
inline constexpr std::uint64_t kMaxConfigFile = 64ULL << 20;
/// Deepest nesting of lists and objects that is read.
inline constexpr std::size_t kMaxConfigDepth = 100;

/// Parses `text`; `source` names it in errors. Syntax errors, bytes that are not UTF-8, duplicate keys and too deep
/// nesting are reported with line and column; nothing is returned when the text has no usable tree.
std::optional<Json> parse_json(std::string_view text, const std::string& source, ConfigErrors& errors);
/// The same for a file. Missing, unreadable, empty or over-large files and directories are reported with the path,
/// before anything of a large file is read.
std::optional<Json> load_json(const std::filesystem::path& file, ConfigErrors& errors);
/// The text of a regular file or pipe within kMaxConfigFile.
std::optional<std::string> read_text(const std::filesystem::path& file, ConfigErrors& errors);

/// "hosts.0.hca.mtu" or "hosts[0].hca.mtu" as its parts; a dot inside a key is written "\.". Empty when malformed.
std::vector<std::string> split_path(std::string_view path);
/// Parent path and key as one path.
std::string join_path(std::string_view parent, std::string_view key);

/// Applies one `--set PATH=VALUE`: the value is JSON if it parses as JSON, else a string. Objects on the way are made;
/// lists must have the element, in the document or in `defaults` (the tree of default values; may be null).
void apply_set(Json& root, const std::string& assignment, const Json& defaults, ConfigErrors& errors);

}  // namespace sim
