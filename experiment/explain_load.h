// SPDX-License-Identifier: Apache-2.0
// The figures of one workload that its limits are worked out from.
#pragma once

#include <algorithm>
#include <string>

#include "experiment/explain_parts.h"

namespace experiment {

inline constexpr double kBusy = 0.9;  ///< share of its time from which on a core, or an engine, has none left

/// The figures of one workload.
struct Load {
  const Facts& f;
  std::size_t number;
  std::string at, config, op, name;
  double messages, span_ns, rate, latency_ns, depth, qps;
  std::size_t client, server;

  Load(const Facts& facts, std::size_t w)
      : f(facts),
        number(w),
        at("/workloads/" + std::to_string(w)),
        config("workloads." + std::to_string(w) + "."),
        op(facts.workloads()[w].find("op")->string()),
        name(facts.workloads()[w].find("name")->string()),
        messages(facts.number(at + "/messages")),
        span_ns(facts.number(at + "/last_done_ns") - facts.number(at + "/first_post_ns")),
        rate(facts.number(at + "/message_rate_mpps") / 1000),
        latency_ns(facts.number(at + "/latency_ns/mean")),
        depth(facts.config_number(config + "tx_depth")),
        qps(facts.config_number(config + "qps", 1)),
        client(facts.client_host(w)),
        server(facts.server_host(w)) {
    if (depth == 0) depth = latency_test() ? std::max(1.0, facts.config_number(config + "cq_mod", 1)) : 128;
  }
  bool latency_test() const { return op.ends_with("_lat"); }
  bool both_ways() const { return op == "send_lat" || op == "write_lat"; }
  /// Mean of a stage of the breakdown, and its pointer.
  double stage(const std::string& wanted, std::string* pointer = nullptr) const {
    const auto& all = f.workloads()[number].find("breakdown_ns")->items();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].find("stage")->string() == wanted) {
        if (pointer != nullptr) *pointer = at + "/breakdown_ns/" + std::to_string(i) + "/mean";
        return all[i].find("mean")->number();
      }
    return 0;
  }
  Evidence stage_evidence(const std::string& wanted, const std::string& says) const {
    std::string pointer;
    const double mean = stage(wanted, &pointer);
    return pointer.empty() ? Facts::derived(mean, says) : f.found(pointer, says);
  }
  std::string mode(bool is_client) const {
    const std::string own = f.config_text(config + (is_client ? "client_completion" : "server_completion"));
    return own.empty() ? f.config_text(config + "completion") : own;
  }
  bool in_kernel(bool is_client) const {
    const std::string own = f.config_text(config + (is_client ? "client_consumer" : "server_consumer"));
    return (own.empty() ? f.config_text(config + "consumer") : own) == "kernel";
  }
  std::string host(bool is_client) const { return "host" + std::to_string(is_client ? client : server); }
  double on_cpu(bool is_client) const {
    return f.number(at + "/cpu_ns/" + (is_client ? "client" : "server") + "/on_cpu");
  }
  double cpu_span(bool is_client) const {
    return f.number(at + "/cpu_ns/" + (is_client ? "client" : "server") + "/span");
  }
  std::string empty_polls(bool is_client) const {
    return host(is_client) + (in_kernel(is_client) ? ".kernel." : ".verbs.") + "empty_polls";
  }

  Diagnosis limit(const char* id, const std::string& what) const {
    Diagnosis d;
    d.id = id;
    d.severity = Severity::limit;
    d.what = what;
    d.who = name;
    return d;
  }
};

/// Bounds that make a message slow rather than a resource busy (explain_latency.cpp): events, idle states, and at last what
/// is outstanding over the latency of one message.
void event_latency(const Load& l, Diagnoses& out);
void idle_states(const Load& l, Diagnoses& out);
void latency_bound(const Load& l, Diagnoses& out);
void busy_polling(const Load& l, bool is_client, Diagnoses& out);

}  // namespace experiment
