// SPDX-License-Identifier: Apache-2.0
// Trouble that no work completion tells of: asynchronous events, and counters of what the device or the kernel dropped. An
// event that is the responder's view of a request that failed belongs to that completion (explain_errors.cpp).
#include <algorithm>

#include "experiment/explain_parts.h"

namespace experiment {
namespace {

using sim::Json;

struct Event {
  std::string type, object, host, pointer;
  double time_ns;
  std::string who() const { return object + " on " + host; }
};

std::vector<Event> events_of(const Facts& f) {
  std::vector<Event> out;
  const auto& all = f.result().find("async_events")->items();
  for (std::size_t i = 0; i < all.size(); ++i)
    out.push_back({all[i].find("type")->string(), all[i].find("object")->string(), all[i].find("host")->string(),
                   "/async_events/" + std::to_string(i) + "/type", all[i].find("time_ns")->number()});
  return out;
}

Diagnosis about(const Facts& f, const Event& e, const char* id, Severity severity, const std::string& what,
                std::vector<std::string> rules) {
  Diagnosis d{id, severity, what, e.who(), e.time_ns, std::move(rules), {}, {}};
  d.evidence.push_back(f.found(e.pointer, "asynchronous event"));
  return d;
}

std::string host_path(const Facts& f, const Event& e) { return "host" + std::to_string(f.host_number(e.host)); }

Diagnosis overrun(const Facts& f, const Event& e) {
  Diagnosis d =
      about(f, e, "cq_overrun", Severity::error,
            "a completion queue was full when the next completion came: it is dead, and what finds no slot is "
            "never reported",
            {"S-OVR-1", "S-OVR-2", "S-OVR-5", "A-41"});
  const std::string completions = host_path(f, e) + ".hca.completions.";
  d.evidence.push_back(f.counted(completions + "cq_overruns", "completion queues that overran"));
  d.evidence.push_back(f.counted(completions + "cqes_lost", "completions that found no slot"));
  const double lost = f.counter(completions + "cqes_lost");
  if (const ObjectName cq = Facts::object_name(e.object); !cq.empty()) {
    const std::string path = "programs." + cq.program + ".cq." + cq.name + ".cqe";
    double ring = 1;
    while (ring < f.config_number(path, 63) + 1 && ring < 1 << 24) ring *= 2;
    d.evidence.push_back(f.configured(path, "entries asked for; the ring has " + number_text(ring)));
    d.advice.push_back(f.turn(path, whole(ring + lost), "room for all that may complete before somebody polls"));
  }
  for (std::size_t w = 0; w < f.workloads().size(); ++w)
    if (const std::string path = "workloads." + std::to_string(w) + ".cq_depth"; f.config_number(path) > 0)
      d.advice.push_back(f.turn(path, 0, "as many entries as can be outstanding"));
  return d;
}

Diagnosis qp_fatal(const Facts& f, const Event& e) {
  Diagnosis d =
      about(f, e, "qp_fatal", Severity::error, "the queue pair has failed without a completion that could tell", {});
  const double overruns = f.counter(host_path(f, e) + ".hca.completions.cq_overruns");
  if (overruns > 0) {
    d.what = "the queue pair has failed because it needs a completion queue that is dead";
    d.rules = {"S-OVR-3", "S-ERR-22"};
    d.evidence.push_back(
        f.counted(host_path(f, e) + ".hca.completions.cq_overruns", "completion queues of this host that overran"));
  } else {
    d.rules = {"S-ERR-11", "S-AE-3"};
    d.evidence.push_back(
        f.counted(host_path(f, e) + ".hca.translation.faults", "accesses that the device's translation refused"));
  }
  return d;
}

/// The requester's QP has a completion that tells the same.
bool told_by_peer(const Facts& f, const Event& e) {
  const ObjectName peer = f.peer_of(Facts::object_name(e.object));
  for (const auto& p : f.programs())
    for (const Json& c : p.value.find("completions")->items())
      if (f.owner(p.key) == peer.program && c.find("qp")->string() == peer.name &&
          c.find("status")->string().starts_with("REM_"))
        return true;
  return std::ranges::any_of(f.workloads(), [](const Json& w) {
    return std::ranges::any_of(w.find("errors")->items(),
                               [](const Json& c) { return c.find("status")->string().starts_with("REM_"); });
  });
}

Diagnosis device_fatal(const Facts& f, const Event& e) {
  Diagnosis d = about(f, e, "device_fatal", Severity::error, "the device is gone for its programs", {"S-DEV-9"});
  const std::size_t host = f.host_number(e.host);
  const std::string internal = "hosts." + std::to_string(host) + ".hca.internal_error_at";
  if (f.config_ns(internal) > 0) {
    d.what = "the device has reported an internal error";
    d.rules = {"S-AE-2"};
    d.evidence.push_back(f.configured(internal, "the scenario makes it fail then"));
    d.advice.push_back(f.turn(internal, "0 s", "a sound device"));
  } else if (f.counter(host_path(f, e) + ".hca.events.eq_overruns") > 0) {
    d.what = "an event queue was full when the next event came, and the device reported an internal error";
    d.rules = {"S-EQE-8"};
    d.evidence.push_back(f.counted(host_path(f, e) + ".hca.events.eq_overruns", "event queues that overflowed"));
  }
  return d;
}

Diagnosis link_down(const Facts& f, const Event& e) {
  Diagnosis d = about(f, e, "link_down", Severity::loss, "the cable carried nothing for a while", {"S-AE-2"});
  d.who = "the link";
  for (const auto& m : f.result().find("counters")->members())
    if (m.key.ends_with(".lost_while_down")) d.evidence.push_back(f.counted(m.key, "packets lost in that time"));
  d.advice.push_back(
      f.turn("fabric.link.down", Json::array(), "the scenario takes the link down; without that it stays up"));
  return d;
}

/// A counter that is never above zero in a sound run.
struct Silent {
  const char *name, *id;
  Severity severity;
  const char* what;
  std::vector<std::string> rules;
};

const std::vector<Silent>& silent() {
  static const std::vector<Silent> all{
      {"iommu.faults",
       "iommu_fault",
       Severity::error,
       "the device used a bus address that is not mapped for it",
       {"S-MR-32"}},
      {"hca.uar.blueflame_torn",
       "torn_blueflame",
       Severity::loss,
       "BlueFlame copies arrived torn or late and counted as plain doorbells",
       {"S-BF-5", "A-28"}},
      {"hca.rx.dropped.qkey_mismatch",
       "rx_dropped",
       Severity::loss,
       "datagrams with another Q_Key were dropped in silence",
       {"S-UD-3"}},
      {"hca.rx.dropped.pkey_mismatch",
       "rx_dropped",
       Severity::loss,
       "packets of another partition were dropped in silence",
       {"S-PKT-12"}},
      {"hca.rx.dropped.icrc_errors",
       "rx_dropped",
       Severity::loss,
       "packets with a wrong ICRC were dropped",
       {"S-ICRC-5"}},
      {"hca.rx.dropped.unknown_qp",
       "rx_dropped",
       Severity::loss,
       "packets came for a queue pair that does not exist",
       {"S-QP-31"}},
      {"hca.rx.dropped.qp_state",
       "rx_dropped",
       Severity::loss,
       "packets came for a queue pair whose state receives none",
       {"S-QP-40", "S-ERR-32"}},
      {"hca.rx.lost", "rx_dropped", Severity::loss, "packets came for a device that was gone", {"S-DEV-9"}},
      {"hca.responder.unreliable_messages_dropped",
       "unreliable_drop",
       Severity::loss,
       "messages of unreliable services were dropped in silence",
       {"S-UC-3", "S-UC-4"}},
      {"hca.responder.unreliable_packets_dropped",
       "unreliable_drop",
       Severity::loss,
       "packets of unreliable services were dropped in silence",
       {"S-UC-3", "S-UD-5"}}};
  return all;
}

void silent_trouble(const Facts& f, Diagnoses& out) {
  for (std::size_t h = 0; h < f.hosts(); ++h) {
    for (const Silent& s : silent()) {
      const std::string path = "host" + std::to_string(h) + "." + s.name;
      if (f.counter(path) == 0) continue;
      Diagnosis d{s.id, s.severity, s.what, f.host_name(h), {}, s.rules, {}, {}};
      d.evidence.push_back(f.counted(path, "times"));
      out.push_back(std::move(d));
    }
    const std::string lost = "host" + std::to_string(h) + ".kernel.events_lost";
    if (f.counter(lost) == 0) continue;
    Diagnosis d{"lost_event_record",
                Severity::loss,
                "completion events were lost because their record found no memory",
                f.host_name(h),
                {},
                {"S-CE-10"},
                {},
                {}};
    d.evidence.push_back(f.counted(lost, "events lost"));
    d.advice.push_back(
        f.turn("hosts." + std::to_string(h) + ".kernel.interrupt.event_alloc_failures", 0, "no allocation fails"));
    out.push_back(std::move(d));
  }
}

/// Bytes that differ: a barrier that is left out lets the device read a buffer too early.
void corrupted(const Facts& f, Diagnoses& out) {
  for (std::size_t w = 0; w < f.workloads().size(); ++w) {
    const std::string at = "/workloads/" + std::to_string(w);
    if (f.number(at + "/corrupted") == 0) continue;
    Diagnosis d{"corrupted_payload",
                Severity::error,
                "messages arrived with other bytes than those sent",
                f.workloads()[w].find("name")->string(),
                {},
                {"S-BAR-2", "S-BAR-5"},
                {},
                {}};
    d.evidence.push_back(f.found(at + "/corrupted", "messages whose bytes differ"));
    for (std::size_t h = 0; h < f.hosts(); ++h)
      for (const char* key : {"omit_barriers", "weaken_barriers"}) {
        const std::string path = "hosts." + std::to_string(h) + ".core." + key;
        if (const Json* list = f.config(path); list != nullptr && list->is_array() && !list->items().empty())
          d.advice.push_back(f.turn(path, Json::array(), "the barriers that the driver needs"));
      }
    out.push_back(std::move(d));
  }
}

}  // namespace

void find_events(const Facts& f, Diagnoses& out) {
  bool down = false;
  for (const Event& e : events_of(f)) {
    if (e.type == "CQ_ERR") out.push_back(overrun(f, e));
    else if (e.type == "QP_FATAL") out.push_back(qp_fatal(f, e));
    else if (e.type == "DEVICE_FATAL") out.push_back(device_fatal(f, e));
    else if (e.type == "PORT_ERR" && !down) {
      down = true;
      out.push_back(link_down(f, e));
    } else if ((e.type == "QP_ACCESS_ERR" || e.type == "QP_REQ_ERR") && !told_by_peer(f, e)) {
      out.push_back(about(f, e, e.type == "QP_ACCESS_ERR" ? "qp_access_err" : "qp_req_err", Severity::error,
                          "the responder has refused a request and its queue pair is in ERR", {"S-AE-3", "S-RC-26"}));
    }
  }
  silent_trouble(f, out);
  corrupted(f, out);
}

}  // namespace experiment
