// SPDX-License-Identifier: Apache-2.0
// Latency as a limit. Events, moderation and idle states lengthen the way of a completion; a core that polls in vain is the
// other side of that. With nothing saturated and nothing in the way, Little's law is left: the rate is what is outstanding
// over the latency of one message.
#include <algorithm>
#include <cmath>
#include <functional>

#include "experiment/explain_load.h"
#include "sim/units.h"

namespace experiment {
namespace {

using sim::Json;

constexpr double kEventShare = 0.3;  // of the latency, from which on events are what makes it long

/// Largest stages first.
std::vector<std::pair<double, std::string>> largest_stages(const Load& l) {
  std::vector<std::pair<double, std::string>> all;
  for (const Json& s : l.f.workloads()[l.number].find("breakdown_ns")->items())
    all.emplace_back(s.find("mean")->number(), s.find("stage")->string());
  std::ranges::sort(all, std::greater{});
  all.resize(std::min<std::size_t>(all.size(), 3));
  return all;
}

}  // namespace

void event_latency(const Load& l, Diagnoses& out) {
  if (l.latency_ns == 0 ||
      (l.mode(true) == "poll" && l.mode(false) == "poll" && !l.in_kernel(true) && !l.in_kernel(false)))
    return;
  double ns = 0;
  for (const char* s :
       {"eqe_write", "msix", "irq_entry", "irq_handler", "tasklet", "softirq", "wake_up", "syscall_return"})
    ns += l.stage(s);
  const double waits = l.stage("poll") + l.stage("eqe_write");
  const std::string moderation = "hosts." + std::to_string(l.server) + ".hca.completion.eq_moderation_period";
  const bool moderated = l.f.config_true(l.config + "dim") || l.f.config_ns(moderation) > 0;
  if (moderated && waits >= 0.5 * l.latency_ns) {
    Diagnosis d = l.limit("cq_moderation", "completions lie in the CQ until moderation lets their event go");
    d.rules = {"S-MOD-2", "S-MOD-3"};
    d.evidence.push_back(l.stage_evidence("poll", "ns from the completion being visible to its poll"));
    d.evidence.push_back(Facts::derived(waits / l.latency_ns, "of the latency"));
    if (l.f.config_true(l.config + "dim"))
      d.advice.push_back(
          l.f.turn(l.config + "dim", false, "an event for each completion, at the price of more interrupts"));
    if (l.f.config_ns(moderation) > 0)
      d.advice.push_back(l.f.turn(moderation, "0 s", "an interrupt as soon as the queue is armed"));
    out.push_back(std::move(d));
  }
  if (ns < kEventShare * l.latency_ns) return;
  Diagnosis d = l.limit("interrupt_latency",
                        "much of the latency is the way of the completion event: interrupt, handlers, wake-up");
  d.rules = {"S-CE-13"};
  d.evidence.push_back(Facts::derived(ns, "ns from the EQE to the return of the call that slept"));
  d.evidence.push_back(Facts::derived(ns / l.latency_ns, "of the latency"));
  for (const char* s : {"irq_entry", "wake_up"})
    d.evidence.push_back(l.stage_evidence(s, std::string("ns of the stage ") + s));
  for (const bool client : {false, true}) {
    if (l.in_kernel(client) || l.mode(client) == "poll") continue;
    const std::string own = l.config + (client ? "client_completion" : "server_completion"),
                      both = l.config + "completion";
    const bool separate = l.f.config(own) != nullptr;
    if (!separate && !d.advice.empty()) continue;
    d.advice.push_back(l.f.turn(separate ? own : both, "poll", "the core looks for itself, and is busy all the time"));
  }
  if (d.advice.empty())
    d.advice.push_back(l.f.turn(l.config + "poll_context", "direct", "the module's thread polls; no interrupts"));
  out.push_back(std::move(d));
}

void idle_states(const Load& l, Diagnoses& out) {
  Diagnosis d =
      l.limit("cstate_exits", "cores fall into their idle state between two messages and have to leave it for each");
  std::vector<std::string> paths;
  for (const bool client : {true, false}) {
    const std::string host = "hosts." + std::to_string(client ? l.client : l.server);
    double exits = 0;
    std::string busiest;
    for (unsigned c = 0; c < l.f.cores(client ? l.client : l.server); ++c) {
      const std::string path = l.host(client) + ".cpu" + std::to_string(c) + ".cstate_exits";
      if (l.f.counter(path) > exits) exits = l.f.counter(path), busiest = path;
    }
    if (l.f.config_ns(host + ".core.cstate_exit_latency") == 0 || exits < 0.2 * l.messages) continue;
    d.evidence.push_back(l.f.counted(busiest, "times that the core left its idle state"));
    d.evidence.push_back(l.f.configured(host + ".core.cstate_exit_latency", "each time"));
    paths.push_back(host + ".core.cstate_exit_latency");
  }
  if (paths.empty()) return;
  d.advice.push_back(l.f.turn_all(paths, "0 s", "C-states off"));
  out.push_back(std::move(d));
}

void latency_bound(const Load& l, Diagnoses& out) {
  if (l.latency_ns == 0) return;
  const double outstanding = l.rate * l.latency_ns / l.qps;
  const bool stream = !l.latency_test();
  Diagnosis d =
      l.limit(stream ? "tx_depth" : "latency",
              stream ? "nothing is saturated; the workload is latency-bound: tx_depth messages of a queue pair are "
                       "outstanding, and each takes its latency"
                     : "nothing is saturated; one message at a time is under way, so the rate is one over its latency");
  const Json* busiest = l.f.at("/bottleneck/resource");
  d.evidence.push_back(l.f.found("/bottleneck/utilisation",
                                 "of the time is the busiest resource busy" +
                                     (busiest != nullptr && busiest->is_string() ? ", " + busiest->string() : "")));
  d.evidence.push_back(l.f.found(l.at + "/latency_ns/mean", "ns of latency on average"));
  d.evidence.push_back(
      Facts::derived(outstanding, "messages of a queue pair under way on average: rate times latency (Little's law)"));
  const auto stages = largest_stages(l);
  for (const auto& [ns, s] : stages)
    d.evidence.push_back(
        l.stage_evidence(s, "ns of the stage " + s + ", " + percent(ns / l.latency_ns) + " of the latency"));
  if (stream) {
    double wanted = l.depth * 2;
    const double busy = std::max(0.02, l.f.number("/bottleneck/utilisation"));
    while (wanted * busy < l.depth && wanted < 16384) wanted *= 2;
    d.evidence.push_back(Facts::derived(l.depth, "messages of a queue pair may be outstanding"));
    d.advice.push_back(l.f.turn(l.config + "tx_depth", whole(wanted), "more messages under way at a time"));
  } else {
    const auto size = sim::parse_bytes(l.f.config_text(l.config + "size"));
    const double bytes = size ? static_cast<double>(size.value.n) : 0;
    if (l.stage("payload_dma") > 0 && bytes > 0 && bytes <= 912 &&
        bytes > l.f.config_number(l.config + "inline_size") && !l.op.starts_with("read"))
      d.advice.push_back(l.f.turn(l.config + "inline_size", whole(bytes),
                                  "the payload goes with the WQE; the adapter does not fetch it"));
    const std::string generation = "hosts." + std::to_string(l.client) + ".pcie.link.generation";
    if (l.f.config_number(generation, 6) < 6 && bytes > 912)
      d.advice.push_back(
          l.f.turn(generation, whole(l.f.config_number(generation) + 1), "a faster PCIe link for the payload"));
  }
  out.push_back(std::move(d));
}

void busy_polling(const Load& l, bool is_client, Diagnoses& out) {
  const double polls = l.f.counter(l.empty_polls(is_client)), busy = l.on_cpu(is_client), span = l.cpu_span(is_client);
  if (l.in_kernel(is_client) || l.mode(is_client) != "poll" || l.messages == 0 || span <= 0 || busy < kBusy * span ||
      polls < 100 * l.messages || busy < 10'000 * l.messages)
    return;
  const std::string side = is_client ? "client" : "server";
  Diagnosis d = l.limit(
      "core_busy_polling",
      "the core of the " + side +
          " polls in vain nearly all the time; sleeping for events would leave it free, at the price of latency");
  d.severity = Severity::note;
  d.evidence.push_back(l.f.counted(l.empty_polls(is_client), "polls that found nothing"));
  d.evidence.push_back(Facts::derived(busy / l.messages, "ns of the core per message"));
  d.advice.push_back(l.f.turn(l.config + side + "_completion", "event", "sleep on the completion channel"));
  out.push_back(std::move(d));
}

}  // namespace experiment
