// SPDX-License-Identifier: Apache-2.0
// `rdmasim diff`: two results that are there; nothing is run.
#include <cmath>
#include <iostream>

#include "cli/commands.h"
#include "cli/options.h"
#include "experiment/diff.h"
#include "experiment/result_file.h"

namespace cli {
namespace po = boost::program_options;
namespace {

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

Options diff_options() {
  Options o(
      "rdmasim diff A B [OPTIONS]",
      "Compares two results, each a result.json or a directory with one: configuration, rates, the latency stage by\n"
      "stage, utilisations, counters and verdicts. B is judged by A when --threshold is given.\n\n"
      "exit codes: 0 compared, and not worse, 1 worse beyond the threshold, 2 mistake of the user",
      "A and B, the results", 2);
  o.add()("format", po::value<std::string>()->default_value("text")->value_name("text|json"),
          "form of the comparison; json is rdmasim-diff/1");
  o.add()("threshold", po::value<std::string>()->value_name("PERCENT"),
          "exit 1 when a judged metric of B is worse by more than this, or its verdict is no longer ok");
  o.add()("metric", po::value<std::vector<std::string>>()->value_name("NAME"),
          ("judge this metric, repeatable; without it " + listed(experiment::judged_metrics())).c_str());
  o.add()("tolerance", po::value<std::string>()->value_name("PERCENT"),
          "leave out counters that differ by less, 1 by default");
  return o;
}

double share_of(const Options& o, const char* name) {
  const auto& text = o.get<std::string>(name);
  std::size_t used = 0;
  double v = -1;
  try {
    v = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !std::isfinite(v) || v < 0)
    throw UsageError(std::string("--") + name + ": expected a percentage from 0 on, such as 5, got \"" + text + "\"");
  return v / 100;
}

}  // namespace

int diff_command(const Arguments& arguments) {
  Options o = diff_options();
  if (!o.parse(arguments)) return kOk;
  const auto& files = o.needed_positional();
  if (files.size() < 2)
    throw UsageError("missing B, the result to compare with " + files.front() + " (usage: rdmasim diff A B [OPTIONS])");
  const auto& format = o.get<std::string>("format");
  if (format != "text" && format != "json")
    throw UsageError(choose("--format: unknown format", format, {"text", "json"}));

  experiment::DiffOptions options;
  if (o.has("tolerance")) options.tolerance = share_of(o, "tolerance");
  if (o.has("threshold")) options.threshold = share_of(o, "threshold");
  options.metrics = o.has("metric") ? o.all("metric") : experiment::judged_metrics();
  const auto known = experiment::diff_metrics();
  for (const std::string& m : options.metrics)
    if (std::find(known.begin(), known.end(), m) == known.end())
      throw UsageError(choose("--metric: unknown metric", m, known));
  if (o.has("metric") && !options.threshold) throw UsageError("--metric says what --threshold judges; give that too");

  const sim::Json a = experiment::load_result(files[0]), b = experiment::load_result(files[1]);
  const experiment::Diff d = experiment::diff(a, b, options);
  std::cout << (format == "json" ? experiment::to_json(d).dump() + "\n" : experiment::to_text(d));
  return d.worse() ? kUnmet : kOk;
}

}  // namespace cli
