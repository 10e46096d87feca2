// SPDX-License-Identifier: Apache-2.0
// Why a workload is no faster. In the order in which a bound hides those behind it: waits for timers, its own rate limit,
// saturated resources, bounds of one queue pair, the cores, and at last latency (explain_latency.cpp).
#include <algorithm>
#include <cmath>

#include "experiment/explain_load.h"
#include "experiment/explain_parts.h"
#include "sim/units.h"

namespace experiment {
namespace {

using sim::Json;

constexpr double kRetryShare = 0.3;  // of the run, from which on retries are what limits it

/// Retries of the hosts that took most of the time.
void retry_bound(const Facts& f, double span_ns, const std::string& who, Diagnoses& out) {
  for (std::size_t h = 0; h < f.hosts() && span_ns > 0; ++h) {
    const RetryCost cost = retry_cost(f, h);
    const double rnr = cost.rnr_waits * cost.rnr_timer_ns, ack = cost.timeouts * cost.ack_timeout_ns;
    if (rnr + ack < kRetryShare * span_ns) continue;
    const bool by_rnr = rnr >= ack;
    Diagnosis d;
    d.id = by_rnr ? "rnr_timer" : "ack_timeout_waits";
    d.severity = Severity::limit;
    d.who = who;
    d.what = by_rnr ? "the run waits for RNR timers: messages meet no posted receive"
                    : "the run waits for ACK timers: lost packets are noticed by nothing else";
    d.rules = by_rnr ? std::vector<std::string>{"S-RC-50"} : std::vector<std::string>{"S-RC-40"};
    const std::string requester = "host" + std::to_string(h) + ".hca.requester.";
    d.evidence.push_back(
        f.counted(requester + (by_rnr ? "rnr_naks_received" : "timeouts"), by_rnr ? "RNR NAKs" : "ACK timeouts"));
    d.evidence.push_back(
        Facts::derived(by_rnr ? cost.rnr_timer_ns : cost.ack_timeout_ns, "ns that each waits, at most"));
    d.evidence.push_back(Facts::derived(std::min(1.0, (by_rnr ? rnr : ack) / span_ns),
                                        "of " + time_text(span_ns) + " that the run measured, at most"));
    d.advice = by_rnr ? shorter_rnr_timer(f, cost) : shorter_ack_timer(f, h, cost);
    out.push_back(std::move(d));
  }
}

/// Whether the client keeps to its own rate; a polling one spins on its core until the next message may go.
bool own_rate(const Load& l, Diagnoses& out) {
  const double limit = l.f.config_number(l.config + "rate_limit");
  const double posted = l.rate * 1e9 / (l.both_ways() ? 2 : 1);
  if (limit == 0 || posted < 0.8 * limit) return false;
  Diagnosis d = l.limit("rate_limit", "the client posts no faster than its own rate_limit allows");
  d.evidence.push_back(l.f.configured(l.config + "rate_limit", "messages per second allowed"));
  d.evidence.push_back(Facts::derived(posted, "messages per second posted"));
  d.advice.push_back(l.f.turn(l.config + "rate_limit", 0, "as fast as it goes"));
  out.push_back(std::move(d));
  return true;
}

/// One queue pair is served by one engine at a time. With messages of one packet it is the WQEs that keep the engine busy;
/// with longer ones it waits for their payload.
void one_engine(const Load& l, Diagnoses& out) {
  const std::string path = l.host(true) + ".hca.requester.engines",
                    send = "hosts." + std::to_string(l.client) + ".hca.send.";
  const auto size = sim::parse_bytes(l.f.config_text(l.config + "size"));
  const bool one_packet = !size || static_cast<double>(size.value.n) <= l.f.config_number(l.config + "mtu", 4096);
  const double engines = l.f.config_number(send + "engines", 4), used = std::min(engines, l.qps);
  const double busy = l.f.utilisation(path) * engines / used, queued = l.stage("doorbell_context");
  // Between two WQEs an engine may wait for the next read of WQEs; then they queue in front of it all the same.
  if (l.latency_test() || (busy < kBusy && (busy < 0.5 || queued < 0.4 * l.latency_ns))) return;
  Diagnosis d = l.limit(one_packet ? "hca_requester" : "payload_dma",
                        one_packet ? "the send engines that serve these queue pairs have no time left"
                                   : "the send engines that serve these queue pairs wait for payload from host memory");
  d.evidence.push_back(l.f.found("/utilisation/" + path, "share of the time of all engines"));
  d.evidence.push_back(
      Facts::derived(busy, "of the time of the " + number_text(used) + " that serve these queue pairs"));
  d.evidence.push_back(l.stage_evidence("doorbell_context", "ns that a WQE waits for its engine"));
  d.evidence.push_back(l.f.configured(l.config + "qps", "queue pairs, each served by one engine at a time"));
  if (!one_packet) {
    d.evidence.push_back(l.stage_evidence("payload_dma", "ns for the payload of a message"));
    const auto buffer = sim::parse_bytes(l.f.config_text(send + "tx_buffer"));
    d.evidence.push_back(l.f.configured(send + "tx_buffer", "payload being fetched at a time"));
    if (buffer)
      d.advice.push_back(l.f.turn(send + "tx_buffer", sim::to_string(sim::Bytes{buffer.value.n * 4}),
                                  "more payload on its way at a time"));
  } else if (used < engines) {
    d.advice.push_back(l.f.turn(l.config + "qps", whole(engines), "one queue pair for each engine"));
  } else {
    d.advice.push_back(l.f.turn(send + "engines", whole(engines * 2), "more engines"));
  }
  out.push_back(std::move(d));
}

/// What is sent again takes the place of what is new.
void sent_again(const Load& l, Diagnoses& out) {
  const std::string again = l.host(true) + ".hca.requester.retransmitted_packets",
                    sent = l.host(true) + ".hca.tx.packets";
  if (l.f.counter(again) < 0.1 * l.f.counter(sent) || l.f.counter(again) == 0) return;
  Diagnosis d =
      l.limit("retransmission", "much of what the adapter sends it has sent before: go-back-N after each loss");
  d.rules = {"A-47", "S-RC-11"};
  d.evidence.push_back(l.f.counted(again, "packets sent again"));
  d.evidence.push_back(Facts::derived(l.f.counter(again) / l.f.counter(sent), "of all packets sent"));
  if (l.f.config_number("fabric.link.impairment.drop") > 0)
    d.advice.push_back(l.f.turn("fabric.link.impairment.drop", 0, "a link without loss"));
  out.push_back(std::move(d));
}

/// READs on their way: from the fetch of the WQE to the last byte of the answer.
void read_depth(const Load& l, Diagnoses& out) {
  const double allowed = l.f.config_number(l.config + "max_rd_atomic", 16);
  if (!l.op.starts_with("read") || l.depth <= allowed) return;
  double ns = 0;
  for (const char* s : {"wqe_fetch", "translation", "payload_dma", "packetise", "wire", "receive"}) ns += l.stage(s);
  const double in_flight = l.rate * ns / l.qps;
  if (in_flight < 0.85 * allowed) return;
  Diagnosis d = l.limit(
      "max_rd_atomic",
      "each queue pair has as many READs in flight as max_rd_atomic allows; further ones wait in the send queue");
  d.rules = {"S-RC-31", "A-58"};
  d.evidence.push_back(l.f.configured(l.config + "max_rd_atomic", "READs in flight allowed"));
  d.evidence.push_back(
      Facts::derived(in_flight, "READs of a queue pair in flight on average: " + number_text(l.rate * 1000 / l.qps) +
                                    " per us, " + time_text(ns) + " each"));
  d.evidence.push_back(l.stage_evidence("doorbell_context", "ns that a READ waits in the send queue"));
  if (allowed < 16)
    d.advice.push_back(
        l.f.turn(l.config + "max_rd_atomic", whole(std::min(16.0, allowed * 4)), "more READs in flight"));
  out.push_back(std::move(d));
}

/// The program computes between two messages.
void own_work(const Load& l, bool is_client, double own, Diagnoses& out) {
  const std::string side = is_client ? "client" : "server";
  Diagnosis d = l.limit("program_work", "the " + side + " spends its time on work of its own between two messages");
  d.evidence.push_back(l.f.found(l.at + "/cpu_ns/" + side + "/on_cpu", "ns of the " + side + " on its core"));
  d.evidence.push_back(Facts::derived(own, "of them for work between two messages, on average"));
  for (const std::string& path : {l.config + "loop", std::string("run.jitter.step")})
    if (l.f.config_ns(path) * l.messages >= 0.5 * own) {
      d.evidence.push_back(l.f.configured(path, "per message"));
      d.advice.push_back(l.f.turn(path, "0 s", "no work between two messages"));
    }
  out.push_back(std::move(d));
}

/// A core that always finds work: it posts and polls as fast as it can.
void core_bound(const Load& l, bool is_client, Diagnoses& out) {
  const double span = l.cpu_span(is_client), busy = l.on_cpu(is_client), polls = l.f.counter(l.empty_polls(is_client));
  if (l.latency_test() || span <= 0 || busy < kBusy * span || polls > 0.5 * l.messages || l.messages == 0) return;
  const std::string side = is_client ? "client" : "server";
  const std::string core = "hosts." + std::to_string(is_client ? l.client : l.server) + ".core.";
  double stores = 0, fences = 0;
  for (unsigned c = 0; c < l.f.cores(is_client ? l.client : l.server); ++c) {
    const std::string cpu = l.host(is_client) + ".cpu" + std::to_string(c) + ".";
    stores += l.f.counter(cpu + "mmio_stores");
    fences += l.f.counter(cpu + "fences");
  }
  const bool arm = l.f.config_text(core + "arch") == "arm64";
  const double ringing = stores * l.f.config_ns(core + "mmio_store_cost") +
                         fences * l.f.config_ns(core + (arm ? "dsb_cost" : "sfence_cost"));
  const double own = l.messages * (l.f.config_ns(l.config + "loop") + l.f.config_ns("run.jitter.step") / 2);
  if (own >= 0.5 * busy) return own_work(l, is_client, own, out);
  const bool doorbells = is_client && ringing >= 0.3 * busy;
  Diagnosis d = l.limit(doorbells   ? "doorbell_bound"
                        : is_client ? "cpu_client"
                                    : "cpu_server",
                        doorbells ? "the core of the client spends its time on stores and fences of doorbells"
                                  : "the core of the " + side + " always has work: it cannot post and poll any faster");
  d.evidence.push_back(l.f.found(l.at + "/cpu_ns/" + side + "/on_cpu",
                                 percent(busy / span) + " of the time of the " + side + " is on the core"));
  d.evidence.push_back(l.f.at("/counters/" + l.empty_polls(is_client)) != nullptr
                           ? l.f.counted(l.empty_polls(is_client), "polls that found nothing")
                           : Facts::derived(0, "polls that found nothing"));
  d.evidence.push_back(Facts::derived(busy / l.messages, "ns of the core per message"));
  d.evidence.push_back(l.stage_evidence("cpu_post", "ns from the call to the doorbell, per message"));
  if (is_client)
    d.evidence.push_back(Facts::derived(ringing / busy, "of the core's time for stores and fences of doorbells"));
  const double list = l.f.config_number(l.config + "post_list", 1), mod = l.f.config_number(l.config + "cq_mod", 1);
  if (is_client && list < 16 && l.depth >= 32)
    d.advice.push_back(l.f.turn(l.config + "post_list", 16, "one doorbell for 16 WRs"));
  if (is_client && mod < 16 && l.depth >= 32)
    d.advice.push_back(l.f.turn(l.config + "cq_mod", 16, "one completion to poll for 16 WRs"));
  out.push_back(std::move(d));
}

/// Packets that wait in front of the responder.
void responder_bound(const Load& l, Diagnoses& out) {
  const double pipeline = l.f.config_ns("hosts." + std::to_string(l.server) + ".hca.receive.rx_pipeline"),
               waits = l.stage("receive");
  const bool retries = l.f.counter(l.host(true) + ".hca.requester.retransmitted_packets") > 0;
  if (retries || l.latency_ns == 0 || waits < 0.25 * l.latency_ns || waits < 10 * pipeline) return;
  Diagnosis d = l.limit(
      "hca_responder",
      "packets wait at the receiving adapter: it cannot carry out the requests of a queue pair as fast as they come");
  d.evidence.push_back(l.stage_evidence("receive", "ns from the last bit of a message to its execution"));
  d.evidence.push_back(l.f.configured("hosts." + std::to_string(l.server) + ".hca.receive.rx_pipeline",
                                      "what it takes without a queue"));
  d.evidence.push_back(l.f.counted(l.host(false) + ".hca.responder.requests", "request packets"));
  if (l.f.config_number(l.config + "mtu", 4096) < 4096)
    d.advice.push_back(l.f.turn(l.config + "mtu", 4096, "fewer packets for the same bytes"));
  if (!l.latency_test())
    d.advice.push_back(
        l.f.turn(l.config + "qps", whole(l.qps * 4), "requests of several queue pairs are carried out side by side"));
  out.push_back(std::move(d));
}

/// Would limit if what limits now did not: turning it alone changes little.
void make_next(Diagnosis& d) {
  d.severity = Severity::note;
  d.what = "comes next: " + d.what;
  d.advice.clear();
}

/// Contexts and keys that do not fit on the chip.
void context_caches(const Load& l, bool first, Diagnoses& out) {
  struct Cache {
    const char *counters, *config, *what;
  };
  constexpr Cache kCaches[] = {{"qpc", "qpc_entries", "queue pair contexts"},
                               {"completions.cqc", "cqc_entries", "completion queue contexts"},
                               {"translation.mpt", "mpt_entries", "memory keys"},
                               {"translation.mtt", "mtt_lines", "translations"}};
  for (const bool client : {true, false})
    for (const Cache& c : kCaches) {
      const std::string path = l.host(client) + ".hca." + c.counters,
                        entries = "hosts." + std::to_string(client ? l.client : l.server) + ".hca.context." + c.config;
      const double misses = l.f.counter(path + ".misses"), all = misses + l.f.counter(path + ".hits");
      if (all == 0 || misses < 0.05 * all) continue;
      Diagnosis d = l.limit("context_cache", std::string("the adapter fetches ") + c.what +
                                                 " from host memory again and again: they do not fit on the chip");
      d.who = l.name + ", " + path;
      d.evidence.push_back(l.f.counted(path + ".misses", "look-ups that missed"));
      d.evidence.push_back(Facts::derived(misses / all, "of all look-ups"));
      d.evidence.push_back(l.f.configured(entries, "entries on the chip"));
      double wanted = std::max(1.0, l.f.config_number(entries, 1024)) * 2;
      while (wanted < 2 * l.qps && wanted < 1 << 20) wanted *= 2;
      d.advice.push_back(l.f.turn(entries, whole(wanted), "a larger cache"));
      if (!first) make_next(d);
      out.push_back(std::move(d));
    }
}

void append_saturated(const Facts& f, std::optional<std::size_t> workload, bool first, Diagnoses& out) {
  for (const std::string& path : saturated_paths(f)) {
    out.push_back(saturated(f, path, workload));
    if (!first) make_next(out.back());
    first = false;
  }
}

}  // namespace

void find_limits(const Facts& f, std::size_t workload, Diagnoses& out) {
  const Load l(f, workload);
  if (l.messages == 0) return;
  const std::size_t before = out.size();
  retry_bound(f, l.span_ns, l.name, out);
  if (out.size() == before) sent_again(l, out);
  const bool paced = own_rate(l, out);
  append_saturated(f, workload, out.size() == before, out);
  const bool bound = out.size() != before;
  if (!bound) responder_bound(l, out);
  if (out.size() == before) one_engine(l, out);
  read_depth(l, out);
  if (bound && out.back().id == "max_rd_atomic") make_next(out.back());
  if (!paced) core_bound(l, true, out);
  core_bound(l, false, out);
  event_latency(l, out);
  context_caches(l, out.size() == before, out);
  idle_states(l, out);
  if (out.size() == before) latency_bound(l, out);
  busy_polling(l, true, out);
  busy_polling(l, false, out);
}

void find_program_limits(const Facts& f, Diagnoses& out) {
  if (f.programs().empty() || f.verdict() == "deadlock") return;
  double begin = 0, end = 0;
  for (const auto& p : f.programs()) {
    const double started = p.value.find("started_ns")->number();
    begin = begin == 0 ? started : std::min(begin, started);
    end = std::max(end, p.value.find("ended_ns")->number());
  }
  const std::size_t before = out.size();
  retry_bound(f, end - begin, "programs", out);
  append_saturated(f, std::nullopt, out.size() == before, out);
  if (out.size() != before) return;
  Diagnosis d;
  d.id = "programs";
  d.severity = Severity::limit;
  d.who = "programs";
  d.what = "nothing is saturated; what the steps wait for, and latency, decide how long the run takes";
  const Json* busiest = f.at("/bottleneck/resource");
  d.evidence.push_back(f.found("/bottleneck/utilisation",
                               "of the time is the busiest resource busy" +
                                   (busiest != nullptr && busiest->is_string() ? ", " + busiest->string() : "")));
  for (const auto& p : f.programs()) {
    const std::string cpu = "/programs/" + p.key + "/cpu_ns/";
    if (const double span = f.number(cpu + "span"); span > 0)
      d.evidence.push_back(f.found(
          cpu + "asleep", "ns that " + p.key + " slept, " + percent(f.number(cpu + "asleep") / span) + " of its time"));
  }
  out.push_back(std::move(d));
}

}  // namespace experiment
