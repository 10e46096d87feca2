// SPDX-License-Identifier: Apache-2.0
// Two results side by side: what was configured otherwise, and what that did to rates, to each stage of the latency and to the
// counters. docs/explain.md describes the two forms of the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/json.h"

namespace experiment {

inline constexpr const char* kDiffSchema = "rdmasim-diff/1";

struct DiffOptions {
  /// Counters that differ by less than this share of the larger one are left out, and utilisations by less than this.
  double tolerance = 0.01;
  /// A metric that is worse by more than this share counts as worse; nothing is judged without it.
  std::optional<double> threshold;
  /// Names out of diff_metrics() that are judged.
  std::vector<std::string> metrics;
};

/// Names of the metrics of a workload or a program, in the order in which they are shown.
std::vector<std::string> diff_metrics();
/// Those that are judged unless the user says otherwise.
std::vector<std::string> judged_metrics();

/// A value of both results; null where a result has none.
struct DiffValue {
  std::string name;
  sim::Json a, b;
  /// b - a; nothing unless both are numbers.
  std::optional<double> delta() const;
  /// delta over a; nothing when a is zero.
  std::optional<double> relative() const;
};

struct DiffMetric : DiffValue {
  bool higher_is_better = false;
  bool worse = false;  ///< beyond the threshold, and judged
};

struct DiffStage : DiffValue {
  std::optional<double> share;  ///< of the difference of the mean latency; nothing when that is zero
};

/// A workload or a program that both results have.
struct DiffFlow {
  std::string name;  ///< "workload read_bw", "program client"
  std::vector<DiffMetric> metrics;
  std::vector<DiffStage> stages;  ///< means in ns; those that are zero in both are left out
  DiffValue mean;                 ///< of the latency: the stages sum to it
};

struct Diff {
  struct Side {
    std::string scenario, version, verdict;
    std::uint64_t seed = 0;
  } a, b;
  std::vector<DiffValue> config;  ///< by path, where the values differ
  std::vector<DiffFlow> flows;
  std::vector<std::string> only_a, only_b;  ///< names of workloads and programs
  std::vector<DiffValue> counters, utilisation;
  DiffOptions options;
  bool verdict_worse = false;  ///< judged, and ok in the first result only
  bool worse() const;
};

/// Compares two results that load_result has accepted. Workloads and programs are matched by name, workloads
/// that are left over by their order.
Diff diff(const sim::Json& a, const sim::Json& b, const DiffOptions& options);

sim::Json to_json(const Diff& d);
std::string to_text(const Diff& d);

}  // namespace experiment
