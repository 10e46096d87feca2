// SPDX-License-Identifier: Apache-2.0
// `rdmasim config`: effective values; with --origins also where each value that is not a default was written. The hidden
// options print what is generated from the format and kept in the tree.
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "experiment/scenario.h"
#include "system/plugin.h"

namespace cli {
namespace po = boost::program_options;
namespace {

void print_origins(const sim::Json& j, const std::string& path) {
  if (j.is_object() && !j.members().empty()) {
    for (const auto& m : j.members()) print_origins(m.value, sim::join_path(path, m.key));
  } else if (j.is_array() && !j.items().empty()) {
    for (std::size_t i = 0; i < j.items().size(); ++i)
      print_origins(j.items()[i], sim::join_path(path, std::to_string(i)));
  } else {
    std::cout << path << " = " << j.compact() << "   (" << j.origin.text() << ")\n";
  }
}

}  // namespace

int config_command(const Arguments& arguments) {
  Options o("rdmasim config FILE [OPTIONS]",
            "Prints every value that a run of the scenario would use: defaults, profile, scenario and --set.",
            "FILE, the scenario", 1);
  o.add()("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"), "override a value; repeatable");
  o.add()("origins", "print the values that are not defaults, each with the file and line or the flag it comes from");
  o.add()("plugin-flags", "print the compiler's options for a program of your own (docs/plugins.md)");
  o.add_hidden()("schema", po::value<std::string>()->implicit_value("scenario"),
                 "print the JSON Schema: scenario or profile");
  o.add_hidden()("reference", "print the parameter reference as Markdown");
  if (!o.parse(arguments)) return kOk;
  if (o.has("schema")) {
    const auto& which = o.get<std::string>("schema");
    if (which != "scenario" && which != "profile")
      throw UsageError(choose("--schema: unknown schema", which, {"scenario", "profile"}));
    std::cout << (which == "scenario" ? experiment::scenario_schema() : experiment::profile_schema()).dump() << "\n";
    return kOk;
  }
  if (o.has("plugin-flags")) {
    std::cout << sys::plugin_flags() << "\n";
    return kOk;
  }
  if (o.has("reference")) {
    std::cout << experiment::parameter_reference();
    return kOk;
  }
  const experiment::Scenario s = experiment::load_scenario(o.needed_positional().front(), {o.all("set")});
  if (o.has("origins")) print_origins(s.document.root, {});
  else std::cout << experiment::effective_config(s).dump() << "\n";
  return kOk;
}

}  // namespace cli
