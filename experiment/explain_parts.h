// SPDX-License-Identifier: Apache-2.0
// The diagnoses of explain, by kind. Each looks at the facts and appends what it finds; none looks at what others found.
#pragma once

#include <optional>
#include <vector>

#include "experiment/explain_facts.h"

namespace experiment {

using Diagnoses = std::vector<Diagnosis>;
using Advices = std::vector<Advice>;

/// Verdict deadlock: which wait will never end, and why (explain_hangs.cpp).
void find_hangs(const Facts& f, Diagnoses& out);
/// The end of the run: time limit, steps that went wrong, expectations that are not met (explain_ends.cpp).
void find_ends(const Facts& f, Diagnoses& out);
/// Work completions in error, by queue pair (explain_errors.cpp).
void find_errors(const Facts& f, Diagnoses& out);
/// Asynchronous events that tell of trouble, CQ overruns among them, and counters of what nobody is told (explain_events.cpp).
void find_events(const Facts& f, Diagnoses& out);
/// RNR waits, ACK timeouts, gaps, and what was lost on the way (explain_retries.cpp).
void find_retries(const Facts& f, Diagnoses& out);
/// What holds a workload at its rate, the strongest bound first (explain_limits.cpp).
void find_limits(const Facts& f, std::size_t workload, Diagnoses& out);
/// What bounds step programs (explain_limits.cpp).
void find_program_limits(const Facts& f, Diagnoses& out);

/// The configuration path of a queue pair's attribute: of a step program's, or that of the workload on `host`.
/// `workload_name` is the attribute's name there. Empty when neither is found.
std::string qp_attribute(const Facts& f, const std::string& object, const std::string& host, const char* name,
                         const char* workload_name);
/// Time that retries have cost: RNR waits and ACK timeouts, counted times their timer. Zero figures when there were none.
struct RetryCost {
  double rnr_waits = 0, rnr_timer_ns = 0, timeouts = 0, ack_timeout_ns = 0;
  std::vector<std::string> rnr_paths, ack_paths;  ///< attributes that say so: of the queue pairs that it may have been
  unsigned rnr_code = 0, ack_exponent = 0;
  double total_ns() const { return rnr_waits * rnr_timer_ns + timeouts * ack_timeout_ns; }
};
/// Of the retries of requesters on `host`.
RetryCost retry_cost(const Facts& f, std::size_t host);
/// What makes the next wait shorter; nothing when it cannot be.
Advices shorter_rnr_timer(const Facts& f, const RetryCost& cost);
Advices shorter_ack_timer(const Facts& f, std::size_t host, const RetryCost& cost);
/// Compares the receives that the peer of `qp` posts in all with the messages that take one, as evidence and advice; nothing
/// when there are enough, or when a shared receive queue or a loop without end makes them uncountable.
void compare_receives(const Facts& f, const ObjectName& qp, Diagnosis& d);
/// A resource that is busy all the time, told by its path among the utilisations (explain_resources.cpp). `workload` is
/// whose parameters may be turned, nothing for step programs.
Diagnosis saturated(const Facts& f, const std::string& path, std::optional<std::size_t> workload);
/// Paths whose utilisation is that of a saturated resource, the busiest first.
std::vector<std::string> saturated_paths(const Facts& f);

}  // namespace experiment
