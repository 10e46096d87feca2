// SPDX-License-Identifier: Apache-2.0
// `rdmasim sweep`: what varies comes from the scenario's `sweep` section and from options. The database is written point by
// point, results.csv and results.json from it at the end, also after an interrupt or a full disk.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/sweep.h"
#include "experiment/sweep_export.h"
#include "experiment/version.h"
#include "sim/units.h"

namespace cli {
namespace po = boost::program_options;
namespace fs = std::filesystem;
namespace {

Options sweep_options() {
  Options o("rdmasim sweep FILE [OPTIONS]",
            "Runs a scenario at many points: all combinations of values of its parameters, or other designs. Each "
            "point is a\n"
            "process of its own. Results go to DIR/sweep.sqlite point by point, and to results.csv and results.json at "
            "the end.\n"
            "The scenario's `sweep` section says what varies; options add to it or replace its values. docs/sweep.md "
            "tells more.\n\n"
            "exit codes: 0 every point ran and the expectations of the sweep are met, 1 an expectation is not met or a "
            "point\n"
            "            failed, 2 mistake of the user, or results that cannot be written, 130 interrupted",
            "FILE, the scenario", 1);
  const auto texts = [] { return po::value<std::vector<std::string>>(); };
  const auto text = [] { return po::value<std::string>(); };
  o.add()("out", text()->value_name("DIR"), "directory of the results");
  o.add()("vary", texts()->value_name("PATH=VALUES"),
          "values of a parameter: 1,2,4 or 16..4096 x2 or 0..10us +1us; repeatable");
  o.add()("design", text()->value_name("grid|zip|random|latin_hypercube"), "how points are made of the values");
  o.add()("points", text()->value_name("N"), "points that a random design or a Latin hypercube draws");
  o.add()("replications", text()->value_name("N"), "runs of each point, with seeds S, S + 1, …");
  o.add()("where", texts()->value_name("CONDITION"),
          "leave out points that do not meet it, as 'cq_depth >= tx_depth'; repeatable");
  o.add()("metric", texts()->value_name("NAME=METRIC"),
          "a number of the result to keep: POINTER [minus POINTER] [per POINTER] [x FACTOR]; repeatable");
  o.add()("set", texts()->value_name("PATH=VALUE"), "override a value in all points; repeatable");
  o.add()("seed", text()->value_name("S"), "seed of the first replication");
  o.add()("jobs,j", text()->value_name("N"), "points at a time; as many as there are processors by default");
  o.add()("wall-limit", text()->value_name("TIME"),
          "end a point that takes longer than this, as 60s; its verdict is wall_limit");
  o.add()("shard", text()->value_name("K/N"),
          "run only every Nth point, from the Kth on (1/4, …, 4/4), for `rdmasim merge`");
  o.add()("resume", "go on with the sweep in DIR: run only what is missing");
  o.add()("dry-run", "list the points and run none");
  o.add()("quiet", "no progress, and no report on standard output");
  return o;
}

experiment::SweepRequest request_of(const Options& o) {
  experiment::SweepRequest r;
  r.file = o.needed_positional().front();
  r.sets = o.all("set");
  r.vary = o.all("vary");
  r.metrics = o.all("metric");
  r.where = o.all("where");
  if (o.has("seed")) r.seed = number_of(o, "seed", 0, ~0ULL);
  if (o.has("points")) r.points = number_of(o, "points", 1, 10'000'000);
  if (o.has("replications")) r.replications = number_of(o, "replications", 1, experiment::kMostSweepPoints);
  if (!o.has("design")) return r;
  const auto& name = o.get<std::string>("design");
  std::vector<std::string> known;
  for (const auto& [design, text] : sim::EnumNames<sys::Design>::values) {
    if (text == name) r.design = design;
    known.emplace_back(text);
  }
  if (!r.design) throw UsageError(choose("--design: unknown design", name, known));
  return r;
}

double limit_of(const Options& o) {
  if (!o.has("wall-limit")) return 0;
  const auto& text = o.get<std::string>("wall-limit");
  const auto t = sim::parse_time(text);
  if (!t || t.value.n <= 0) throw UsageError("--wall-limit: expected a time such as 60s, got \"" + text + "\"");
  return t.value.s();
}

/// K and N of --shard K/N; 1 of 1 when it was not given.
struct Shard {
  std::uint64_t k = 1, n = 1;
};
Shard shard_of(const Options& o) {
  if (!o.has("shard")) return {};
  const auto& text = o.get<std::string>("shard");
  Shard s{0, 0};
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, s.k);
  if (first.ec == std::errc{} && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, s.n);
    if (second.ec == std::errc{} && second.ptr == end && s.k >= 1 && s.k <= s.n) return s;
  }
  throw UsageError("--shard: expected K/N with K from 1 to N, got \"" + text + "\"");
}

/// Points of the shard that have not run.
std::vector<std::uint64_t> to_run(experiment::SweepStore& store, const Shard& shard) {
  std::vector<std::uint64_t> out = store.unfinished();
  std::erase_if(out, [&](std::uint64_t point) { return point % shard.n != shard.k - 1; });
  return out;
}

experiment::SweepStore open_store(const fs::path& directory, const experiment::SweepPlan& plan, bool resume) {
  using experiment::SweepStore;
  if (!SweepStore::exists(directory)) return SweepStore::create(directory, plan);
  if (!resume)
    throw UsageError((directory / experiment::kSweepDatabase).string() +
                     " has a sweep already: --resume goes on with it, another --out starts a new one");
  SweepStore store = SweepStore::resume(directory, plan);
  for (const std::string& v : store.versions())
    if (v != experiment::version())
      std::cerr << "rdmasim: some points were made by version " << v << ", this is " << experiment::version() << "\n";
  return store;
}

/// A bar that is drawn again on a terminal; elsewhere a line for each tenth.
class Progress {
 public:
  explicit Progress(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (!quiet_ && terminal_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const experiment::SweepProgress& p) {
    if (quiet_) return;
    const std::string text = experiment::progress_text(p);
    if (terminal_) {
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
      std::fflush(stderr);
    } else if (p.total > 0 && p.done * 10 / p.total != tenth_) {
      tenth_ = p.done * 10 / p.total;
      std::fprintf(stderr, "rdmasim: %s\n", text.c_str());
    }
  }

 private:
  bool quiet_, terminal_;
  std::uint64_t tenth_ = 0;
};

bool failed(const experiment::SweepRow& r) {
  for (const char* verdict : {"failed", "unmet", "refused", "bug", "crashed", "wall_limit"})
    if (r.verdict == verdict) return true;
  return false;
}

/// Files, report and exit code from what the database has.
int conclude(const experiment::SweepPlan& plan, experiment::SweepStore& store, const Shard& shard, const fs::path& out,
             bool interrupted, bool quiet) {
  const std::vector<experiment::SweepRow> rows = store.rows();
  const bool complete = store.unfinished().empty();
  const auto expectations =
      complete ? experiment::evaluate_sweep(plan, rows) : std::vector<experiment::SweepExpectationResult>{};
  write_file(out / "results.csv", experiment::sweep_csv(store.database()));
  write_file(out / "results.json", experiment::sweep_json(store.database(), expectations).dump() + "\n");
  const bool mine_complete = to_run(store, shard).empty();
  store.settle();
  if (!quiet) std::cout << experiment::sweep_table(plan, rows, expectations);
  if (!quiet) std::cout << "  results in " << out.string() << ": sweep.sqlite, results.csv, results.json\n";
  if (interrupted) {
    std::cerr << "rdmasim: interrupted; --resume runs what is missing\n";
    return kInterrupted;
  }
  if (!mine_complete) return kUnmet;
  const bool met = std::ranges::all_of(expectations, &experiment::SweepExpectationResult::met);
  return met && std::ranges::none_of(rows, &failed) ? kOk : kUnmet;
}

/// mpirun starts this program once per rank: the one that can talk to the others takes over.
void hand_over_to_mpi(const Arguments& arguments) {
  const char* ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (ranks == nullptr || std::string_view(ranks) == "1") return;
  std::error_code ignore;
  const std::string program = (fs::read_symlink("/proc/self/exe", ignore).parent_path() / "rdmasim-mpi").string();
  std::string command = "sweep";
  std::vector<char*> argv{const_cast<char*>(program.c_str()), command.data()};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw UsageError("mpirun has started " + std::string(ranks) + " of this program, and it cannot start " + program +
                   " (" + std::strerror(errno) +
                   "), which is built where Open MPI is found; without it each would sweep alone");
}

}  // namespace

bool SweepDriver::run(const experiment::SweepPlan& plan, const std::vector<std::uint64_t>& points,
                      experiment::SweepStore& store, const experiment::SweepRunOptions& options) {
  return experiment::run_sweep(plan, points, store, options);
}

int sweep_with(const Arguments& arguments, SweepDriver& driver) {
  Options o = sweep_options();
  if (!o.parse(arguments)) return kOk;
  const experiment::SweepRequest request = request_of(o);
  experiment::SweepRunOptions options;
  options.limit_s = limit_of(o);
  const Shard shard = shard_of(o);
  options.jobs = o.has("jobs") ? static_cast<unsigned>(number_of(o, "jobs", 1, 1024))
                               : std::max(1U, std::thread::hardware_concurrency());
  if (!o.has("dry-run") && !o.has("out")) throw UsageError("missing --out DIR, where the results go (or --dry-run)");

  const experiment::SweepPlan plan = experiment::plan_sweep(request);
  if (!driver.owner()) {
    driver.serve(plan, options);
    return kOk;
  }
  if (o.has("dry-run")) {
    std::cout << experiment::sweep_listing(plan);
    return kOk;
  }
  const fs::path out = o.get<std::string>("out");
  prepare_output(out);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of the write, as a full disk is
  const experiment::DirectoryLock lock(out);
  experiment::SweepStore store = open_store(out, plan, o.has("resume"));
  bool interrupted = false;
  {
    Progress bar(o.has("quiet"));
    options.progress = [&](const experiment::SweepProgress& p) { bar.show(p); };
    interrupted = driver.run(plan, to_run(store, shard), store, options);
  }
  return conclude(plan, store, shard, out, interrupted, o.has("quiet"));
}

int sweep_command(const Arguments& arguments) {
  hand_over_to_mpi(arguments);
  SweepDriver here;
  return sweep_with(arguments, here);
}

}  // namespace cli
