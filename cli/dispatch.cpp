// SPDX-License-Identifier: Apache-2.0
// Finds the command and turns what is thrown into messages and exit codes.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <iostream>

#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/options.h"
#include "experiment/version.h"
#include "sim/check.h"
#include "sim/config_json.h"

namespace cli {
namespace {

struct Command {
  const char *name, *summary;
  int (*run)(const Arguments&);
};
constexpr Command kCommands[] = {
    {"run", "run a scenario and report its result", &run_command},
    {"report", "make a page with plots of a sweep or a run", &report_command},
    {"explore", "run it with many delays and seeds, and report the runs that end otherwise", &explore_command},
    {"sweep", "run it at many points: grids, ranges and other designs of its parameters", &sweep_command},
    {"merge", "make one sweep of its shards", &merge_command},
    {"diff", "compare two results stage by stage", &diff_command},
    {"explain", "say what went wrong in a run, what limits it and what to turn", &explain_command},
    {"view", "make an HTML page that shows a trace, or two side by side", &view_command},
    {"validate", "check scenario files without running them", &validate_command},
    {"config", "print the effective configuration of a scenario", &config_command},
    {"list", "list parameters, scenarios, profiles or trace-points", &list_command},
};

void print_help() {
  std::cout << "usage: rdmasim COMMAND [OPTIONS]\n\nSimulates the RDMA stack, from ibv_post_send to the peer's "
               "ibv_poll_cq.\n\n";
  for (const Command& c : kCommands)
    std::cout << "  " << c.name << std::string(12 - std::string(c.name).size(), ' ') << c.summary << "\n";
  std::cout << "\n  --version   version, git id, build type, compiler, SystemC\n"
               "  --help      this text; `rdmasim COMMAND --help` tells more\n"
               "  --man, --bash-completion\n"
               "              print the manual page, the completion of bash\n\n"
               "exit codes: 0 fine, 1 an expectation of the scenario is not met, 2 mistake of the user,\n"
               "            3 bug of the simulator, 4 unexpected deadlock, 130 interrupted\n";
}

std::vector<CommandSummary> summaries() {
  std::vector<CommandSummary> out;
  for (const Command& c : kCommands) out.push_back({c.name, c.summary});
  return out;
}

void print_man_page() {
  std::cout << man_head(experiment::version(), summaries());
  for (const Command& c : kCommands) c.run({std::string(kManPart)});
  std::cout << man_tail();
}

void print_completion() {
  std::cout << completion_head(summaries());
  for (const Command& c : kCommands) c.run({std::string(kCompletionPart)});
  std::cout << completion_tail();
}

int dispatch_checked(const Arguments& arguments) {
  if (arguments.empty()) throw UsageError("missing command (rdmasim --help lists them)");
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") return print_help(), kOk;
  if (first == "--version" || first == "version") return std::cout << experiment::version_line() << "\n", kOk;
  if (first == "--man") return print_man_page(), kOk;
  if (first == "--bash-completion") return print_completion(), kOk;
  std::vector<std::string> names;
  for (const Command& c : kCommands) {
    if (first == c.name) return c.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(c.name);
  }
  if (first.starts_with("-"))
    throw UsageError("unknown option " + first + "; the command comes first, as in `rdmasim run FILE " + first + "`");
  throw UsageError(choose("unknown command", first, names));
}

int report(const std::string& message, int code) {
  std::cout.flush();
  std::cerr << message;
  return code;
}

}  // namespace

int dispatch(const Arguments& arguments) {
  return guarded([&] { return dispatch_checked(arguments); });
}

int guarded(const std::function<int()>& command) {
  auto log = spdlog::stderr_color_st("rdmasim");
  log->set_pattern("rdmasim: %^%l%$: %v");
  spdlog::set_default_logger(std::move(log));
  try {
    const int code = command();
    std::cout.flush();
    if (!std::cout) return report("rdmasim: standard output could not be written completely\n", kUserError);
    return code;
  } catch (const sim::ConfigFailure& e) {
    return report(e.errors.text(), kUserError);
  } catch (const std::runtime_error& e) {  // UsageError, and files that cannot be written
    return report(std::string("rdmasim: ") + e.what() + "\n", kUserError);
  } catch (const sim::SimulatorBug& e) {
    return report(std::string("rdmasim: bug of the simulator: ") + e.what() +
                      "\nPlease report it with the scenario and the seed.\n",
                  kBug);
  } catch (const std::bad_alloc&) {
    return report("rdmasim: out of memory\n", kUserError);
  } catch (const std::exception& e) {
    return report(std::string("rdmasim: bug of the simulator: ") + e.what() + "\n", kBug);
  }
}

}  // namespace cli
