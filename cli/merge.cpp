// SPDX-License-Identifier: Apache-2.0
// `rdmasim merge`: the shards of a sweep become one.
#include <filesystem>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "experiment/sweep_export.h"
#include "experiment/sweep_merge.h"

namespace cli {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kShown = 20;

std::string listed(const std::vector<std::uint64_t>& points) {
  std::string out;
  for (std::size_t i = 0; i < std::min(points.size(), kShown); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(points[i]);
  return points.size() > kShown ? out + ", …" : out;
}

}  // namespace

int merge_command(const Arguments& arguments) {
  Options o(
      "rdmasim merge OUT DIR...",
      "Makes one sweep of its shards (rdmasim sweep --shard k/n --out DIR): OUT/sweep.sqlite, results.csv, "
      "results.json.\n"
      "The shards must be of the same scenario and design. `rdmasim sweep FILE --out OUT --resume` then runs what is\n"
      "missing and looks at the expectations of the sweep.\n\n"
      "exit codes: 0 every point is there, 1 some are missing, 2 mistake of the user",
      "OUT and DIR..., directories", -1);
  if (!o.parse(arguments)) return kOk;
  const std::vector<std::string>& names = o.needed_positional();
  if (names.size() < 2) throw UsageError("missing DIR, a directory with a shard (usage: rdmasim merge OUT DIR...)");
  const fs::path out = names.front();
  prepare_output(out);
  const experiment::SweepMerge m = experiment::merge_sweeps(out, {names.begin() + 1, names.end()});
  experiment::Database db(out / experiment::kSweepDatabase, experiment::Database::Mode::read);
  write_file(out / "results.csv", experiment::sweep_csv(db));
  write_file(out / "results.json", experiment::sweep_json(db, {}).dump() + "\n");
  std::cout << out.string() << ": " << m.taken << " of " << m.points << " points\n";
  if (m.repeated > 0) std::cout << "  " << m.repeated << " were in more than one directory; the first one counts\n";
  if (m.missing.empty()) return kOk;
  std::cout << "  missing: " << listed(m.missing) << "\n";
  return kUnmet;
}

}  // namespace cli
