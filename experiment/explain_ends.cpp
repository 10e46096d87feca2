// SPDX-License-Identifier: Apache-2.0
// How the run ended when that is no verdict ok: its time limit, steps that went otherwise than their program expects, and
// conditions of the scenario that do not hold.
#include "experiment/explain_parts.h"

namespace experiment {
namespace {

using sim::Json;

void time_limit(const Facts& f, Diagnoses& out) {
  Diagnosis d{"time_limit",
              Severity::error,
              "the time limit of the scenario came before the programs had finished",
              "",
              f.number("/sim_time_ns"),
              {},
              {},
              {}};
  d.evidence.push_back(f.found("/verdict", "how the run ended"));
  d.evidence.push_back(f.configured("run.time_limit", "the limit"));
  for (std::size_t i = 0; i < f.stuck().size(); ++i)
    if (const Json* wait = f.stuck()[i].find("waits_for"); wait != nullptr && f.stuck()[i].find("name") != nullptr)
      d.evidence.push_back(f.found("/stuck/" + std::to_string(i) + "/waits_for",
                                   f.stuck()[i].find("name")->string() + " waits for this"));
  d.advice.push_back(
      f.turn("run.time_limit", "0 s", "no limit: the programs end by themselves, or the run is a deadlock"));
  out.push_back(std::move(d));
}

}  // namespace

void find_ends(const Facts& f, Diagnoses& out) {
  if (f.verdict() == "time_limit") time_limit(f, out);
  for (const auto& p : f.programs()) {
    const auto& all = p.value.find("failures")->items();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string at = "/programs/" + p.key + "/failures/" + std::to_string(i);
      Diagnosis d{"step_failed",
                  Severity::error,
                  "a step did not go as its program expects",
                  p.key + ", " + all[i].find("step")->string(),
                  p.value.find("ended_ns")->number(),
                  {},
                  {},
                  {}};
      d.evidence.push_back(f.found(at + "/message", "at " + all[i].find("at")->string()));
      out.push_back(std::move(d));
    }
  }
  const auto& conditions = f.result().find("expectations")->items();
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Json& c = conditions[i];
    if (c.find("met")->boolean()) continue;
    Diagnosis d{"expectation_unmet",
                Severity::error,
                "the result is not what the scenario expects at " + c.find("at")->string(),
                "",
                {},
                {},
                {},
                {}};
    d.evidence.push_back(f.found("/expectations/" + std::to_string(i) + "/actual",
                                 "what is there; expected " + c.find("expected")->string()));
    out.push_back(std::move(d));
  }
}

}  // namespace experiment
