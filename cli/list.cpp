// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "experiment/scenario.h"
#include "experiment/trace_output.h"
#include "sim/config_schema.h"

namespace cli {
namespace {

/// Left-aligned columns, as wide as their widest cell within reason; the last one is not padded.
void print_columns(const std::vector<std::vector<std::string>>& rows) {
  constexpr std::size_t kWidest = 28;
  std::vector<std::size_t> width;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      width.resize(std::max(width.size(), row.size()));
      if (i == 0 || row[i].size() <= kWidest) width[i] = std::max(width[i], row[i].size());
    }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(i + 1 < row.size() ? std::max(width[i], row[i].size()) - row[i].size() + 2 : 0, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << "\n";
  }
}

void list_parameters() {
  std::vector<std::vector<std::string>> rows;
  for (const sim::Parameter& p : sim::list_parameters(experiment::scenario_format()))
    rows.push_back({p.path, p.initial.empty() ? "(required)" : p.initial,
                    p.type + (p.range.empty() ? "" : ", " + p.range), p.doc});
  print_columns(rows);
}

void list_library(const std::vector<sys::LibraryEntry>& entries) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& e : entries) rows.push_back({e.name, e.description});
  print_columns(rows);
}

void list_trace_points() {
  std::vector<std::vector<std::string>> rows;
  for (const auto& p : experiment::trace_points())
    rows.push_back({p.category, p.name, p.kind, p.arguments, p.mark, p.declared_in});
  print_columns(rows);
}

}  // namespace

int list_command(const Arguments& arguments) {
  const std::vector<std::string> topics{"parameters", "scenarios", "profiles", "trace-points"};
  Options o("rdmasim list WHAT", "Lists what there is; WHAT is parameters, scenarios, profiles or trace-points.",
            "WHAT", 1);
  if (!o.parse(arguments)) return kOk;
  const std::string& what = o.needed_positional().front();
  if (what == "parameters") list_parameters();
  else if (what == "scenarios") list_library(sys::list_scenarios());
  else if (what == "profiles") list_library(sys::list_profiles());
  else if (what == "trace-points") list_trace_points();
  else throw UsageError(choose("cannot list", what, topics));
  return kOk;
}

}  // namespace cli
