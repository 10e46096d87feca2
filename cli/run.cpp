// SPDX-License-Identifier: Apache-2.0
// `rdmasim run`: the report goes to stdout; progress, logs and unmet expectations that the report does not show to stderr.
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <charconv>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "experiment/run.h"
#include "experiment/scenario.h"
#include "experiment/table.h"
#include "experiment/trace_output.h"
#include "experiment/version.h"
#include "sim/units.h"
#include "system/resources.h"

namespace cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

Options run_options() {
  Options o("rdmasim run FILE [OPTIONS]", "Runs a scenario and reports its result.", "FILE, the scenario", 1);
  o.add()("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"),
          "override a value, as --set workloads.0.mtu=1024; repeatable");
  o.add()("seed", po::value<std::string>()->value_name("N"), "seed of the random streams");
  o.add()("out", po::value<std::string>()->value_name("DIR"), "write result.json and traces there");
  o.add()("format", po::value<std::string>()->default_value("table")->value_name("table|json"),
          "form of the report on standard output");
  add_trace_options(o);
  o.add()("engine", po::value<std::string>()->default_value("run_ahead")->value_name("run_ahead|tick"),
          "relation to SystemC's clock; both give the same result");
  o.add()("resources", "print the live RDMA objects at the end, as rdma resource show does");
  o.add()("resources-at", po::value<std::string>()->value_name("TIMES"),
          "print them at simulated times, comma separated: 10us,1ms");
  o.add()("quiet", "no report and no progress, only errors and unmet expectations");
  o.add()("log-level", po::value<std::string>()->default_value("info")->value_name("LEVEL"),
          "trace, debug, info, warn, error or off");
  return o;
}

void set_log_level(const Options& o) {
  const std::vector<std::string> levels{"trace", "debug", "info", "warn", "error", "off"};
  const auto& level = o.get<std::string>("log-level");
  if (std::find(levels.begin(), levels.end(), level) == levels.end())
    throw UsageError(choose("--log-level: unknown level", level, levels));
  spdlog::set_level(o.has("quiet") ? spdlog::level::err : spdlog::level::from_str(level));
}

bool wants_json(const Options& o) {
  const auto& format = o.get<std::string>("format");
  if (format != "table" && format != "json")
    throw UsageError(choose("--format: unknown format", format, {"table", "json"}));
  return format == "json";
}

sim::EngineMode engine_mode(const Options& o) {
  const auto& engine = o.get<std::string>("engine");
  if (engine == "run_ahead") return sim::EngineMode::run_ahead;
  if (engine == "tick") return sim::EngineMode::tick;
  throw UsageError(choose("--engine: unknown mode", engine, {"run_ahead", "tick"}));
}

sys::Overrides overrides_of(const Options& o) {
  sys::Overrides out{o.all("set")};
  if (o.has("seed")) {
    const auto& text = o.get<std::string>("seed");
    std::uint64_t seed = 0;
    const auto r = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (r.ec != std::errc{} || r.ptr != text.data() + text.size())
      throw UsageError("--seed: expected an integer from 0 to 18446744073709551615, got \"" + text + "\"");
    out.sets.push_back("seed=" + text);
  }
  return out;
}

std::vector<sim::Picos> resource_times(const Options& o) {
  std::vector<sim::Picos> out;
  if (!o.has("resources-at")) return out;
  std::string rest = o.get<std::string>("resources-at");
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string text = rest.substr(0, comma);
    more = comma != std::string::npos;
    if (more) rest.erase(0, comma + 1);
    const auto t = sim::parse_time(text);
    if (!t || t.value.n < 0) throw UsageError("--resources-at: expected a time such as 10us, got \"" + text + "\"");
    out.push_back(t.value);
  }
  return out;
}

void print_resources(const experiment::Result& r, bool at_exit) {
  for (const auto& [time, resources] : r.resources_at)
    std::cout << "\nresources at " << sim::to_string(time) << ":\n" << sys::resources_text(resources);
  if (at_exit) std::cout << "\nresources at exit:\n" << sys::resources_text(r.resources);
}

void report_unmet(const experiment::Result& r) {
  for (const auto& e : r.expectations)
    if (!e.met)
      std::cerr << "rdmasim: expectation not met: " << e.at << ": expected " << e.expected << ", got " << e.actual
                << "\n";
  for (const auto& p : r.programs)
    for (const auto& f : p.failures) std::cerr << "rdmasim: " << f.at << ": " << f.step << ": " << f.message << "\n";
  if (experiment::exit_code(r) == kDeadlock) {
    std::cerr << "rdmasim: deadlock at " << sim::to_string(r.sim_time) << "\n";
    for (const std::string& s : r.outstanding) std::cerr << "rdmasim: " << s << "\n";
  }
}

/// In the midst of a run: the progress bar gives way and comes again.
void warn(const std::string& text) {
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  spdlog::warn("{}", text);
}

}  // namespace

int run_command(const Arguments& arguments) {
  Options o = run_options();
  if (!o.parse(arguments)) return kOk;
  const std::string& file = o.needed_positional().front();
  set_log_level(o);
  const bool json = wants_json(o), quiet = o.has("quiet");
  const sim::EngineMode mode = engine_mode(o);
  const auto listing_times = resource_times(o);
  const experiment::Scenario scenario = experiment::load_scenario(file, overrides_of(o));
  experiment::TraceOptions traces = trace_options(o, scenario.host_names());
  traces.warn = &warn;
  const fs::path out = o.has("out") ? o.get<std::string>("out") : "";
  if (o.has("out")) prepare_output(out);

  experiment::RunOptions options = experiment::run_options(scenario);
  options.version = experiment::version();
  options.mode = mode;
  options.progress = !quiet && isatty(STDERR_FILENO) != 0;
  options.resources_at = listing_times;
  options.sinks = experiment::make_sinks(traces, out);
  options.trace_categories = traces.categories;
  const experiment::Result result = experiment::run(std::move(options), experiment::machine_factory(scenario));

  const std::string text = experiment::to_json(result).dump() + "\n";
  if (o.has("out")) {
    write_file(out / "result.json", text);
    spdlog::info("wrote {}", (out / "result.json").string());
    for (const auto* t : traces.formats) {
      const fs::path trace = experiment::trace_file(*t, traces, out);
      spdlog::info("wrote {}: {}", trace.string(), t->how(trace));
    }
  }
  if (!quiet) std::cout << (json ? text : experiment::to_table(result));
  if (!quiet && !json) print_resources(result, o.has("resources"));
  if (quiet || json) report_unmet(result);
  if (!result.trace_error.empty()) {
    spdlog::error("the trace is incomplete: {}", result.trace_error);
    return kUserError;
  }
  return experiment::exit_code(result);
}

}  // namespace cli
