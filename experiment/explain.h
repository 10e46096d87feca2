// SPDX-License-Identifier: Apache-2.0
// Why a run went as it did: what went wrong in it and what limited it, each with the figures of the result that show it, the
// rule behind it and the parameter to turn. docs/explain.md describes the two forms of the answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/json.h"

namespace experiment {

inline constexpr const char* kExplainSchema = "rdmasim-explain/1";

/// One figure that a diagnosis rests on.
struct Evidence {
  std::string at;    ///< JSON pointer into the result; empty when the figure is worked out from others
  sim::Json value;   ///< what is there, or the figure
  std::string says;  ///< what it means, for people
};

/// One parameter and its values.
struct Change {
  std::string path;
  sim::Json from;  ///< present value; null when the scenario leaves it out
  sim::Json to;
  /// "path=to" as --set takes it.
  std::string set() const;
};

/// What to turn: `rdmasim run FILE --set …`. Usually one parameter; several when turning one of them alone does nothing, as
/// when both hosts are alike.
struct Advice {
  std::vector<Change> changes;
  std::string why;
};

/// In the order of severity. `stall` and above are faults, `limit` is what holds the rate or the latency where it is.
enum class Severity { hang, error, stall, loss, limit, note };
std::string_view name_of(Severity s);

struct Diagnosis {
  std::string id;  ///< stable word, docs/explain.md lists them
  Severity severity = Severity::note;
  std::string what;  ///< one sentence
  std::string who;   ///< program, queue pair, work request, host; empty when the whole run is meant
  std::optional<double> when_ns;
  std::vector<std::string> rules;  ///< ids of docs/conformance.md
  std::vector<Evidence> evidence;  ///< never empty
  std::vector<Advice> advice;      ///< the likeliest first; alternatives, not steps
  bool is_fault() const { return severity < Severity::limit; }
};

struct Explanation {
  std::string scenario, version, verdict;
  double sim_time_ns = 0;
  std::vector<Diagnosis> faults;  ///< by severity, then by time
  std::vector<Diagnosis> limits;  ///< what limits each workload, or the programs, first; then what comes close
};

/// Looks at a result that load_result has accepted; a pure function of it.
Explanation explain(const sim::Json& result);

/// The versioned form.
sim::Json to_json(const Explanation& e);
/// The same for people.
std::string to_text(const Explanation& e);

}  // namespace experiment
