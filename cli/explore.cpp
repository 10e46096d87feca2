// SPDX-License-Identifier: Apache-2.0
// `rdmasim explore`: what varies comes from the scenario's `explore` section; options override it.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <thread>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiment/explore.h"
#include "experiment/scenario.h"
#include "sim/units.h"

namespace cli {
namespace po = boost::program_options;
namespace {

Options explore_options() {
  Options o(
      "rdmasim explore FILE [OPTIONS]",
      "Runs a scenario with many delays and seeds and reports the runs that end otherwise.\n"
      "A delay is any time of the scenario (programs.server.steps.3.compute, host.kernel.interrupt.tasklet_delay)\n"
      "or a bound of jitter inside a run (run.jitter.step). Without --scan, --delay and --tries the scenario's\n"
      "`explore` section says what varies.\n\n"
      "exit codes: 0 all runs end as the scenario expects (if it expects nothing: alike), 1 some do not,\n"
      "            2 mistake of the user, 130 interrupted",
      "FILE, the scenario", 1);
  o.add()("scan", po::value<std::string>()->value_name("NAME=FROM..TO[:STEP]"),
          "one run for each value of this delay, as --scan programs.client.steps.1.compute=1us..4us:10ns");
  o.add()("delay", po::value<std::vector<std::string>>()->value_name("NAME=FROM..TO[:STEP]"),
          "draw this delay at random in each run; repeatable");
  o.add()("tries", po::value<std::string>()->value_name("N"), "random runs, each with its own seed");
  o.add()("seed", po::value<std::string>()->value_name("S"), "seed of a scan and of the first random run");
  o.add()("set", po::value<std::vector<std::string>>()->value_name("PATH=VALUE"),
          "override a value in all runs; repeatable");
  o.add()("jobs,j", po::value<std::string>()->value_name("N"),
          "runs at a time; as many as there are processors by default");
  o.add()("json", po::value<std::string>()->value_name("FILE"),
          "write the report as JSON, with every run that differs");
  o.add()("quiet", "no progress, and no report on standard output");
  return o;
}

sim::Picos time_of(const std::string& option, const std::string& text) {
  const auto t = sim::parse_time(text == "0" ? "0 s" : text);
  if (!t || t.value.n < 0) throw UsageError(option + ": expected a time such as 10ns, got \"" + text + "\"");
  return t.value;
}

constexpr std::uint64_t kTries = 100;  // when delays are given and no number of runs

/// NAME=FROM..TO[:STEP].
sys::DelayConfig delay_of(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('='), dots = text.find("..", equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || equals == 0 || dots == std::string::npos)
    throw UsageError(option + ": expected NAME=FROM..TO[:STEP], got \"" + text + "\"");
  sys::DelayConfig d;
  d.delay = text.substr(0, equals);
  d.from = time_of(option, text.substr(equals + 1, dots - equals - 1));
  std::string to = text.substr(dots + 2);
  if (const std::size_t colon = to.find(':'); colon != std::string::npos) {
    d.step = time_of(option, to.substr(colon + 1));
    to.erase(colon);
  }
  d.to = time_of(option, to);
  if (d.step.n <= 0) throw UsageError(option + ": the step has to be more than 0");
  if (d.to < d.from) throw UsageError(option + ": ends before it begins: \"" + text + "\"");
  return d;
}

/// What varies: the options if there are any, else the section.
void take_plan(const Options& o, const sys::ExploreConfig& section, experiment::ExploreOptions& out) {
  const bool random = o.has("delay") || o.has("tries");
  if (o.has("scan")) out.scan = delay_of("--scan", o.get<std::string>("scan"));
  else if (!random) out.scan = section.scan;
  for (const std::string& text : o.all("delay")) out.delays.push_back(delay_of("--delay", text));
  if (!o.has("delay") && !o.has("scan")) out.delays = section.delays;
  if (o.has("tries")) out.tries = number_of(o, "tries", 1, 10'000'000);
  else if (!o.has("scan")) out.tries = section.tries.value_or(out.delays.empty() ? 0 : kTries);
  if (!out.scan && out.tries == 0)
    throw UsageError(
        "nothing varies: the scenario has no `explore` section, and neither --scan, --delay nor --tries is "
        "given");
}

/// Before many runs are made for nothing.
void expect_writable(const std::string& file) {
  std::FILE* f = std::fopen(file.c_str(), "ab");
  if (f == nullptr) throw UsageError("--json " + file + ": cannot be written: " + std::strerror(errno));
  std::fclose(f);
}

void show_progress(std::size_t done, std::size_t total) {
  std::fprintf(stderr, "\r\033[K%zu of %zu runs%s", done, total, done == total ? "\r\033[K" : "");
  std::fflush(stderr);
}

}  // namespace

int explore_command(const Arguments& arguments) {
  Options o = explore_options();
  if (!o.parse(arguments)) return kOk;
  experiment::ExploreOptions options;
  options.file = o.needed_positional().front();
  options.sets = o.all("set");
  if (o.has("seed")) options.seed = number_of(o, "seed", 0, ~0ULL);
  options.jobs = o.has("jobs") ? static_cast<unsigned>(number_of(o, "jobs", 1, 1024))
                               : std::max(1U, std::thread::hardware_concurrency());
  take_plan(o, experiment::load_scenario(options.file, {options.sets}).config.explore, options);
  if (!o.has("quiet") && isatty(STDERR_FILENO) != 0) options.progress = &show_progress;

  if (o.has("json")) expect_writable(o.get<std::string>("json"));

  const experiment::Exploration e = experiment::explore(options);
  if (o.has("json")) write_file(o.get<std::string>("json"), experiment::to_json(e).dump() + "\n");
  if (!o.has("quiet")) std::cout << experiment::to_table(e);
  if (e.interrupted) return kInterrupted;
  return e.differs() ? kUnmet : kOk;
}

}  // namespace cli
