// SPDX-License-Identifier: Apache-2.0
// `rdmasim explain`: of a result that is there, or of a scenario that is run for it. A file is a result when it says so by its
// member `schema`.
#include <unistd.h>

#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "experiment/explain.h"
#include "experiment/result_file.h"
#include "experiment/scenario.h"
#include "experiment/trouble_log.h"
#include "experiment/version.h"

namespace cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

Options explain_options() {
  Options o("rdmasim explain RESULT [OPTIONS]",
            "Says what went wrong in a run and what limits it: with the figures of the result that show it, the work\n"
            "request, the time, the rule (docs/conformance.md) and the parameter to turn.\n\n"
            "  rdmasim explain out/                           a directory with a result.json\n"
            "  rdmasim explain out/result.json\n"
            "  rdmasim explain scenarios/rc_read_bw.json      a scenario, which is run first\n\n"
            "exit codes: 0 explained, whatever the verdict, 2 mistake of the user, 130 interrupted",
            "RESULT, a result, a directory with one, or a scenario", 1);
  o.add()("format", po::value<std::string>()->default_value("text")->value_name("text|json"),
          "form of the explanation; json is rdmasim-explain/1");
  o.add()("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"),
          "of a scenario: override a value, as --set workloads.0.mtu=1024; repeatable");
  o.add()("seed", po::value<std::string>()->value_name("N"), "of a scenario: seed of the random streams");
  return o;
}

bool wants_json(const Options& o) {
  const auto& format = o.get<std::string>("format");
  if (format != "text" && format != "json")
    throw UsageError(choose("--format: unknown format", format, {"text", "json"}));
  return format == "json";
}

/// Whether `path` claims to be something that rdmasim wrote.
bool is_written(const fs::path& path) {
  std::error_code ignore;
  if (fs::is_directory(path, ignore)) return true;
  sim::ConfigErrors errors;
  const auto j = sim::load_json(path, errors);
  if (!errors.empty()) throw sim::ConfigFailure(std::move(errors));
  return j->find("schema") != nullptr;
}

sim::Json run_and_note(const fs::path& file, sys::Overrides overrides, bool& interrupted) {
  const experiment::Scenario s = experiment::load_scenario(file, overrides);
  experiment::RunOptions options = experiment::run_options(s);
  options.version = experiment::version();
  options.progress = isatty(STDERR_FILENO) != 0;
  sim::Json troubles;
  options.sinks.push_back(std::make_unique<experiment::TroubleLog>(troubles));
  options.trace_categories = experiment::kTroubleCategories;
  const experiment::Result r = experiment::run(std::move(options), experiment::machine_factory(s));
  interrupted = r.verdict == experiment::Verdict::interrupted;
  sim::Json result = experiment::to_json(r, false);
  result["troubles"] = std::move(troubles);
  return result;
}

}  // namespace

int explain_command(const Arguments& arguments) {
  Options o = explain_options();
  if (!o.parse(arguments)) return kOk;
  const bool json = wants_json(o);
  const fs::path path = o.needed_positional().front();
  sys::Overrides overrides{o.all("set")};
  if (o.has("seed")) overrides.sets.push_back("seed=" + o.get<std::string>("seed"));
  bool interrupted = false;
  sim::Json result;
  if (is_written(path)) {
    if (!overrides.sets.empty())
      throw UsageError(path.string() + " is a result: --set and --seed are for a scenario, which is run");
    result = experiment::load_result(path);
  } else {
    result = run_and_note(path, overrides, interrupted);
  }
  const experiment::Explanation e = experiment::explain(result);
  std::cout << (json ? experiment::to_json(e).dump() + "\n" : experiment::to_text(e));
  return interrupted ? kInterrupted : kOk;
}

}  // namespace cli
