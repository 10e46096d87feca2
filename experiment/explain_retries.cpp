// SPDX-License-Identifier: Apache-2.0
// What was done again: waits for the RNR timer and for the ACK timer, go-back-N after a gap, and the losses behind them. The
// device counts retries by host and not by queue pair, so a wait is given with the longest timer of those it may belong to.
#include <algorithm>
#include <cmath>

#include "experiment/explain_parts.h"
#include "sim/config_json.h"
#include "sim/units.h"

namespace experiment {
namespace {

using sim::Json;

constexpr int kByNak = 1;  // cause of a retransmission in its trace point

std::string host_path(std::size_t host) { return "host" + std::to_string(host); }

/// Completions with a status on one host.
double count_status(const Facts& f, std::size_t host, const char* status) {
  double n = 0;
  for (const auto& p : f.programs())
    if (f.host_number(p.value.find("host")->string()) == host)
      n += f.number("/programs/" + p.key + "/wc_status/" + status);
  for (std::size_t w = 0; w < f.workloads().size(); ++w)
    if (f.client_host(w) == host || f.server_host(w) == host)
      n += f.number("/workloads/" + std::to_string(w) + "/wc_status/" + status);
  return n;
}

/// The slowest message of the run that a host has posted: whose, which, and when, unless that is known better already.
void name_slowest(const Facts& f, std::size_t host, Diagnosis& d) {
  std::string at;
  double worst = -1;
  const auto look = [&](const std::string& flow) {
    const std::string message = flow + "/slowest_message";
    if (f.number(message + "/host") != static_cast<double>(host) || f.number(message + "/latency_ns") <= worst) return;
    worst = f.number(message + "/latency_ns");
    at = message;
  };
  for (std::size_t w = 0; w < f.workloads().size(); ++w)
    if (f.at("/workloads/" + std::to_string(w) + "/slowest_message/id") != nullptr)
      look("/workloads/" + std::to_string(w));
  for (const auto& p : f.programs())
    if (p.value.at("/slowest_message/id") != nullptr) look("/programs/" + p.key);
  if (at.empty()) return;
  d.evidence.push_back(f.found(at + "/latency_ns", "ns of the slowest message, " + time_text(worst) + ": WR " +
                                                       f.at(at + "/wr_id")->compact() + " of QP " +
                                                       number_text(f.number(at + "/qpn"), 9)));
  d.evidence.push_back(f.found(at + "/posted_ns", "ns, when it was posted"));
  if (!d.when_ns) d.when_ns = f.number(at + "/posted_ns");
}

/// Keeps the attribute with the longest timer.
struct Longest {
  std::vector<std::string> paths;  ///< with this timer
  unsigned code = 0;
  double ns = 0;
  void consider(const std::string& p, unsigned c, double t) {
    if (paths.empty() || t > ns) paths.clear(), code = c, ns = t;
    if (t == ns) paths.push_back(p);
  }
};

/// When the first trouble of a kind came, of a run that has noted them: `cause` is that of a retransmission, -1 any.
void note_first(const Facts& f, const std::string& point, const std::string& track, int cause, Diagnosis& d) {
  const Json* all = f.result().find("troubles");
  if (all == nullptr || !all->is_array()) return;
  for (std::size_t i = 0; i < all->items().size(); ++i) {
    const Json &t = all->items()[i], *name = t.find("point"), *on = t.find("track");
    const std::string at = "/troubles/" + std::to_string(i);
    if (name == nullptr || on == nullptr || !name->is_string() || !on->is_string() || name->string() != point ||
        !on->string().starts_with(track + ".") || (cause >= 0 && f.number(at + "/cause") != cause))
      continue;
    d.when_ns = f.number(at + "/time_ns");
    d.who += ", QP " + number_text(f.number(at + "/qpn"), 9) + ", PSN " + number_text(f.number(at + "/psn"), 9);
    d.evidence.push_back(f.found(at + "/time_ns", "ns, when the first of them began"));
    return;
  }
}

void rnr_waits(const Facts& f, std::size_t host, const RetryCost& cost, Diagnoses& out) {
  const double waits = cost.rnr_waits;
  const bool endless = std::ranges::any_of(f.stuck(), [&](const Json& s) {
    const Json* state = s.find("state");
    return state != nullptr && state->is_string() && state->string() == "rnr_for_ever" &&
           f.host_number(s.find("host")->string()) == host;
  });
  if (waits <= 0 || endless) return;
  Diagnosis d{"rnr_wait", Severity::stall, "", "requester " + f.host_name(host), {}, {"S-RC-50", "S-RC-14", "A-51"}, {},
              {}};
  d.what =
      "messages came before a receive was posted for them, and each RNR NAK made the sender wait for the receiver's "
      "RNR timer";
  d.evidence.push_back(
      f.counted(host_path(host) + ".hca.requester.rnr_naks_received", "RNR NAKs that the sender has got"));
  note_first(f, "hca.rnr_wait", host_path(host), -1, d);
  if (!cost.rnr_paths.empty()) {
    if (cost.rnr_code == 0) d.rules.push_back("S-RC-54");
    if (f.config(cost.rnr_paths.front()) != nullptr)
      d.evidence.push_back(f.configured(cost.rnr_paths.front(), "code of the timer, " + time_text(cost.rnr_timer_ns)));
    d.evidence.push_back(Facts::derived(waits * cost.rnr_timer_ns, "ns of waiting at most: " + number_text(waits) +
                                                                       " waits of " + time_text(cost.rnr_timer_ns)));
  }
  name_slowest(f, host, d);
  for (std::size_t w = 0; w < f.workloads().size(); ++w)
    if (const std::string path = "workloads." + std::to_string(w) + ".rx_depth";
        f.config_number(path) < 512 && f.programs().empty())
      d.advice.push_back(f.turn(path, 512, "more receives posted ahead"));
  for (Advice& a : shorter_rnr_timer(f, cost)) d.advice.push_back(std::move(a));
  out.push_back(std::move(d));
}

void ack_timeouts(const Facts& f, std::size_t host, const RetryCost& cost, Diagnoses& out) {
  if (cost.timeouts <= 0 || count_status(f, host, "RETRY_EXC_ERR") > 0) return;
  Diagnosis d{"ack_timeout", Severity::stall, "", "requester " + f.host_name(host), {}, {"S-RC-40", "S-RC-42"}, {}, {}};
  d.what = "an answer did not come, and nothing but the ACK timer noticed it";
  d.evidence.push_back(f.counted(host_path(host) + ".hca.requester.timeouts", "times that an ACK timer ran out"));
  note_first(f, "hca.ack_timeout", host_path(host), -1, d);
  d.evidence.push_back(f.counted(host_path(host) + ".hca.requester.retransmitted_packets", "packets sent again"));
  if (!cost.ack_paths.empty()) {
    if (f.config(cost.ack_paths.front()) != nullptr)
      d.evidence.push_back(
          f.configured(cost.ack_paths.front(), "timeout, " + time_text(ack_timeout_ns(cost.ack_exponent))));
    d.evidence.push_back(
        Facts::derived(cost.timeouts * cost.ack_timeout_ns,
                       "ns of waiting: " + number_text(cost.timeouts) + " waits of " + time_text(cost.ack_timeout_ns)));
  }
  name_slowest(f, host, d);
  if (f.config_true("hosts." + std::to_string(host) + ".hca.transport.adaptive_retrans")) d.rules.push_back("S-RC-61");
  d.advice = shorter_ack_timer(f, host, cost);
  out.push_back(std::move(d));
}

void gaps(const Facts& f, std::size_t host, Diagnoses& out) {
  const std::string path = host_path(host) + ".hca.requester.";
  if (f.counter(path + "sequence_naks_received") == 0) return;
  Diagnosis d{"gap",
              Severity::loss,
              "packets were missing in a row of requests: a NAK, and everything from the gap on is sent again",
              "requester " + f.host_name(host),
              {},
              {"A-47", "S-RC-11"},
              {},
              {}};
  d.evidence.push_back(f.counted(path + "sequence_naks_received", "NAKs for a missing PSN"));
  note_first(f, "hca.retransmit", host_path(host), kByNak, d);
  d.evidence.push_back(f.counted(path + "retransmitted_packets", "packets sent again"));
  out.push_back(std::move(d));
}

/// What the link lost or spoiled.
void losses(const Facts& f, Diagnoses& out) {
  for (const auto& m : f.result().find("counters")->members()) {
    const bool lost = m.key.ends_with(".dropped") || m.key.ends_with(".corrupted") || m.key.ends_with(".reordered");
    if (!m.key.starts_with("fabric.") || !lost || m.value.number() == 0) continue;
    const std::string link = m.key.substr(0, m.key.rfind('.')), kind = m.key.substr(link.size() + 1);
    Diagnosis d{"packet_loss", Severity::loss, "the link " + kind + " packets", link, {}, {"A-47", "A-49"}, {}, {}};
    d.evidence.push_back(f.counted(m.key, "packets " + kind));
    d.evidence.push_back(f.counted(link + ".packets", "packets in all"));
    note_first(f,
               kind == "dropped"     ? "fabric.drop"
               : kind == "corrupted" ? "fabric.corrupt"
                                     : "fabric.reorder",
               link, -1, d);
    const std::string rate = "fabric.link.impairment." + std::string(kind == "dropped"     ? "drop"
                                                                     : kind == "corrupted" ? "corrupt"
                                                                                           : "reorder");
    if (f.config_number(rate) > 0)
      d.advice.push_back(f.turn(rate, 0, "the scenario draws these losses; without them the link is sound"));
    if (const Json* events = f.config("fabric.link.impairment.events");
        events != nullptr && events->is_array() && !events->items().empty())
      d.advice.push_back(f.turn("fabric.link.impairment.events", Json::array(),
                                "the scenario scripts these losses; without them the link is sound"));
    out.push_back(std::move(d));
  }
}

}  // namespace

std::string qp_attribute(const Facts& f, const std::string& object, const std::string& host, const char* name,
                         const char* workload_name) {
  if (const ObjectName qp = Facts::object_name(object); !qp.empty()) return Facts::qp_path(qp) + ".attr." + name;
  const std::size_t number = f.host_number(host);
  for (std::size_t w = 0; w < f.workloads().size(); ++w)
    if (f.client_host(w) == number || f.server_host(w) == number)
      return "workloads." + std::to_string(w) + "." + workload_name;
  return "";
}

void compare_receives(const Facts& f, const ObjectName& qp, Diagnosis& d) {
  const ObjectName peer = f.peer_of(qp);
  if (peer.empty() || !f.config_text(Facts::qp_path(peer) + ".srq").empty()) return;
  const double needed = f.posted(qp, "post_send", true), there = f.posted(peer, "post_recv", false);
  if (there >= needed) return;
  d.evidence.push_back(Facts::derived(there, "receives that the steps of " + peer.program + " post"));
  d.evidence.push_back(Facts::derived(needed, "messages of " + qp.program + " that take one"));
  bool turned = false;
  f.for_each_step(peer.program, [&](const std::string& at, const Json&, double) {
    const Json* chain = f.config(at + ".post_recv.wr");
    if (turned || chain == nullptr || !chain->is_array() || chain->items().empty()) return;
    turned = true;
    const double more = std::ceil((needed - there) / static_cast<double>(chain->items().size()));
    d.advice.push_back(
        f.turn(at + ".times", whole(f.config_number(at + ".times", 1) + more), "a receive for each message"));
  });
}

RetryCost retry_cost(const Facts& f, std::size_t host) {
  RetryCost cost;
  // The last NAK of a send that gives up is followed by no wait.
  cost.rnr_waits = std::max(0.0, f.counter(host_path(host) + ".hca.requester.rnr_naks_received") -
                                     count_status(f, host, "RNR_RETRY_EXC_ERR"));
  cost.timeouts = f.counter(host_path(host) + ".hca.requester.timeouts");
  Longest rnr, ack;
  for (const std::string& path : f.qp_paths(-1)) {
    const Json* type = f.config(path + ".type");
    if (type != nullptr && type->is_string() && (type->string() == "UD" || type->string() == "UC")) continue;
    const std::size_t on = f.host_of_program(sim::split_path(path)[1]);
    if (f.counter(host_path(on) + ".hca.responder.rnr_naks_sent") > 0) {
      const auto code = f.config_code(path + ".attr.min_rnr_timer", 12);
      rnr.consider(path + ".attr.min_rnr_timer", code, rnr_timer_ns(code));
    }
    if (on == host) {
      const auto exponent = f.config_code(path + ".attr.timeout", 14);
      ack.consider(path + ".attr.timeout", exponent, ack_timeout_ns(exponent));
    }
  }
  for (std::size_t w = 0; w < f.workloads().size(); ++w) {
    const std::string path = "workloads." + std::to_string(w);
    if (f.client_host(w) != host && f.server_host(w) != host) continue;
    const auto code = f.config_code(path + ".min_rnr_timer", 12), exponent = f.config_code(path + ".qp_timeout", 14);
    rnr.consider(path + ".min_rnr_timer", code, rnr_timer_ns(code));
    ack.consider(path + ".qp_timeout", exponent, ack_timeout_ns(exponent));
  }
  cost.rnr_paths = rnr.paths, cost.rnr_code = rnr.code, cost.rnr_timer_ns = rnr.ns;
  cost.ack_paths = ack.paths, cost.ack_exponent = ack.code, cost.ack_timeout_ns = ack.ns;
  const std::string transport = "hosts." + std::to_string(host) + ".hca.transport.";
  if (f.config_true(transport + "adaptive_retrans"))
    cost.ack_timeout_ns = std::min(cost.ack_timeout_ns, f.config_ns(transport + "adaptive_first"));
  return cost;
}

Advices shorter_rnr_timer(const Facts& f, const RetryCost& cost) {
  if (cost.rnr_paths.empty() || cost.rnr_timer_ns <= rnr_timer_ns(1)) return {};
  if (cost.rnr_timer_ns > rnr_timer_ns(12))
    return {
        f.turn_all(cost.rnr_paths, 12, "0.64 ms, as perftest sets it: a shorter wait; the cure is a receive in time")};
  return {f.turn_all(cost.rnr_paths, 1, "0.01 ms, the shortest wait; the cure is a receive in time")};
}

Advices shorter_ack_timer(const Facts& f, std::size_t host, const RetryCost& cost) {
  Advices out;
  const std::string transport = "hosts." + std::to_string(host) + ".hca.transport.";
  const double first = f.config_ns(transport + "adaptive_first");
  if (f.config_true(transport + "adaptive_retrans")) {
    if (first > 100'000)
      out.push_back(f.turn(transport + "adaptive_first",
                           sim::to_string(sim::Picos{static_cast<std::int64_t>(first * 250)}),
                           "tries again sooner; it has to stay well above the round trip"));
    return out;
  }
  if (cost.ack_timeout_ns > first && count_status(f, host, "RETRY_EXC_ERR") == 0)
    out.push_back(f.turn(transport + "adaptive_retrans", true, "tries again early, long before the timer"));
  if (!cost.ack_paths.empty() && cost.ack_exponent > 8)
    out.push_back(f.turn_all(cost.ack_paths, cost.ack_exponent > 14 ? 14 : 8,
                             "a shorter timer; it has to stay well above the round trip"));
  return out;
}

void find_retries(const Facts& f, Diagnoses& out) {
  for (std::size_t host = 0; host < f.hosts(); ++host) {
    const RetryCost cost = retry_cost(f, host);
    rnr_waits(f, host, cost, out);
    ack_timeouts(f, host, cost, out);
    gaps(f, host, out);
  }
  losses(f, out);
}

}  // namespace experiment
