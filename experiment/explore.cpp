// SPDX-License-Identifier: Apache-2.0
// Runs are planned first, made in any order, and looked at in the order of the plan: the report does not depend on how many
// run at a time.
#include "experiment/explore.h"

#include <algorithm>

#include "experiment/scenario.h"
#include "experiment/shell.h"
#include "sim/rng.h"

namespace experiment {
namespace {

using sim::Picos;

/// The overrides of a run, and the command that repeats it.
sys::Overrides overrides_of(const ExploreOptions& options, ExploredRun& run) {
  sys::Overrides o{options.sets};
  o.sets.push_back("seed=" + std::to_string(run.seed));
  run.command = "rdmasim run " + shell_word(options.file.string());
  for (const std::string& set : options.sets) run.command += " --set " + shell_word(set);
  run.command += " --seed " + std::to_string(run.seed);
  for (const auto& [path, t] : run.delays) {
    o.sets.push_back(path + "=" + sim::to_string(t));
    run.command += " --set " + shell_word(o.sets.back());
  }
  return o;
}

std::vector<ExploredRun> plan_scan(const sys::DelayConfig& scan, std::uint64_t seed) {
  std::vector<ExploredRun> out;
  for (Picos t = scan.from; t <= scan.to; t += scan.step) out.push_back({seed, {{scan.delay, t}}, {}, {}});
  return out;
}

/// Values depend on the seed of the run and the path alone.
std::vector<ExploredRun> plan_tries(const ExploreOptions& options, std::uint64_t seed) {
  std::vector<ExploredRun> out;
  for (std::uint64_t n = 0; n < options.tries; ++n) {
    ExploredRun& run = out.emplace_back();
    run.seed = seed + n;
    for (const sys::DelayConfig& d : options.delays) {
      const double steps = static_cast<double>((d.to - d.from) / d.step + 1);
      sim::Rng rng(run.seed, "explore." + d.delay);
      run.delays.emplace_back(d.delay, d.from + d.step * static_cast<std::int64_t>(rng.uniform() * steps));
    }
  }
  return out;
}

/// Makes the planned runs, or what an interrupt leaves of them.
class Explorer {
 public:
  Explorer(const ExploreOptions& options, Exploration& e) : options_(options), e_(e) {}

  void make(std::vector<ExploredRun>& runs, std::size_t total) {
    std::vector<sys::Overrides> overrides;
    for (ExploredRun& r : runs) overrides.push_back(overrides_of(options_, r));
    const auto progress = [&](std::size_t done) {
      if (options_.progress) options_.progress(e_.runs + done, std::max<std::size_t>(total, e_.runs + done));
    };
    bool interrupted = false;
    std::vector<RunOutcome> outcomes = run_all(options_.file, overrides, options_.jobs, progress, interrupted);
    e_.interrupted |= interrupted;
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].outcome = std::move(outcomes[i]);
    std::erase_if(runs, [](const ExploredRun& r) { return r.outcome.outcome.empty(); });
    e_.runs += runs.size();
  }

 private:
  const ExploreOptions& options_;
  Exploration& e_;
};

void merge_ranges(const std::vector<ExploredRun>& runs, const std::function<bool(const RunOutcome&)>& differs,
                  std::vector<ScanRange>& out) {
  for (const ExploredRun& r : runs) {
    const Picos t = r.delays.front().second;
    if (out.empty() || out.back().first.outcome.outcome != r.outcome.outcome ||
        out.back().differs != differs(r.outcome))
      out.push_back({t, t, 0, differs(r.outcome), r});
    out.back().to = t;
    ++out.back().runs;
  }
}

/// Leaves out one delay after the other for as long as the outcome stays.
ExploredRun reduce(Explorer& explorer, ExploredRun run) {
  for (std::size_t i = 0; i < run.delays.size();) {
    std::vector<ExploredRun> less{run};
    less[0].delays.erase(less[0].delays.begin() + static_cast<std::ptrdiff_t>(i));
    explorer.make(less, 0);
    if (!less.empty() && less[0].outcome.outcome == run.outcome.outcome) run = less[0];
    else ++i;
  }
  return run;
}

/// Refuses what no run could use, before any is made.
void check(const ExploreOptions& options, const Scenario& s) {
  std::vector<sys::DelayConfig> all = options.delays;
  if (options.scan) all.push_back(*options.scan);
  sim::ConfigErrors errors;
  for (const sys::DelayConfig& d : all) {
    check_delay(s, d, {}, errors);
    if (!errors.empty()) throw sim::ConfigFailure(std::move(errors));
    for (const sim::Picos t : {d.from, d.to}) {
      sys::Overrides o{options.sets};
      o.sets.push_back(d.delay + "=" + sim::to_string(t));
      load_scenario(options.file, o);
    }
  }
}

}  // namespace

bool Exploration::differs() const {
  return base_differs || !differing.empty() || std::ranges::any_of(ranges, &ScanRange::differs);
}

Exploration explore(const ExploreOptions& options) {
  const Scenario s = load_scenario(options.file, {options.sets});
  check(options, s);
  Exploration e;
  e.scenario = s.name();
  e.scan = options.scan;
  e.delays = options.delays;
  e.tries = options.tries;
  e.seed = options.seed.value_or(s.config.seed);

  std::vector<ExploredRun> base{{e.seed, {}, {}, {}}};
  std::vector<ExploredRun> scan = options.scan ? plan_scan(*options.scan, e.seed) : std::vector<ExploredRun>{};
  std::vector<ExploredRun> tries = plan_tries(options, e.seed);
  const std::size_t total = base.size() + scan.size() + tries.size();
  Explorer explorer(options, e);
  explorer.make(base, total);
  if (base.empty()) return e;
  e.base = base[0].outcome;
  const auto differs = [&](const RunOutcome& o) {
    return s.config.expect.empty() ? o.outcome != e.base.outcome : !o.good;
  };
  e.base_differs = differs(e.base);
  if (!e.interrupted) explorer.make(scan, total);
  merge_ranges(scan, differs, e.ranges);
  if (!e.interrupted) explorer.make(tries, total);
  for (const ExploredRun& r : tries) {
    if (r.outcome.outcome.empty()) continue;
    const auto same = std::ranges::find(e.outcomes, r.outcome.outcome, &std::pair<std::string, std::uint64_t>::first);
    if (same == e.outcomes.end()) e.outcomes.emplace_back(r.outcome.outcome, 1);
    else ++same->second;
    if (!differs(r.outcome)) continue;
    const bool first =
        std::ranges::none_of(e.differing, [&](const ExploredRun& d) { return d.outcome.outcome == r.outcome.outcome; });
    e.differing.push_back(r);
    if (first && !e.interrupted && !r.delays.empty()) e.reduced.push_back(reduce(explorer, r));
  }
  return e;
}

}  // namespace experiment
