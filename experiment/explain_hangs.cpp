// SPDX-License-Identifier: Apache-2.0
// A deadlock: the watchdog's findings (`stuck` in the result) say who waits and where the work is; here each pattern that
// has a name gets it. What has none is still told, wait by wait.
#include "experiment/explain_parts.h"

namespace experiment {
namespace {

using sim::Json;

std::string text_of(const Json& j, const char* key) {
  const Json* v = j.find(key);
  return v != nullptr && v->is_string() ? v->string() : "";
}
double number_of(const Json& j, const char* key) {
  const Json* v = j.find(key);
  return v != nullptr && v->is_number() ? v->number() : 0;
}

/// One entry of `stuck` with its pointer.
struct Entry {
  const Json& facts;
  std::string at;
  std::string kind() const { return text_of(facts, "kind"); }
  std::string host() const { return text_of(facts, "host"); }
  std::string object() const { return text_of(facts, "object"); }
  std::string state() const { return text_of(facts, "state"); }
  double number(const char* key) const { return number_of(facts, key); }
};

std::vector<Entry> entries(const Facts& f, const char* kind) {
  std::vector<Entry> out;
  for (std::size_t i = 0; i < f.stuck().size(); ++i)
    if (text_of(f.stuck()[i], "kind") == kind) out.push_back({f.stuck()[i], "/stuck/" + std::to_string(i)});
  return out;
}

/// The thread on `host` that waits for something with this text in it, nullptr if none does.
const Json* waiter(const Facts& f, const std::string& host, const char* what, std::string& at) {
  for (const Entry& e : entries(f, "thread"))
    if (e.host() == host && text_of(e.facts, "waits_for").find(what) != std::string::npos) {
      at = e.at;
      return &e.facts;
    }
  return nullptr;
}

std::string named(const Entry& e) {
  const std::string object = e.object().empty() ? "QP " + number_text(e.number("qpn"), 9) : e.object();
  return object + " on " + e.host();
}
std::string wr_range(const Entry& e) {
  const double first = e.number("first_wr_id"), last = e.number("last_wr_id");
  return first == last ? "WR " + number_text(first, 20)
                       : "WR " + number_text(first, 20) + " to " + number_text(last, 20);
}

Diagnosis hang(const Facts& f, const Entry& e, const char* id, const std::string& what) {
  Diagnosis d;
  d.id = id;
  d.severity = Severity::hang;
  d.what = what;
  d.who = named(e);
  std::string at;
  const Json* thread = nullptr;
  for (const char* wait : {"polling memory", "completion channel", ""})
    if (thread = waiter(f, e.host(), wait, at); thread != nullptr) break;
  if (thread != nullptr) {
    d.when_ns = number_of(*thread, "since_ns");
    d.evidence.push_back(
        f.found(at + "/waits_for", text_of(*thread, "name") + " waits for it since " + time_text(*d.when_ns) +
                                       (text_of(*thread, "at").empty() ? "" : " at " + text_of(*thread, "at"))));
  }
  return d;
}

/// Nothing signaled: the queue's slots never come back (S-PS-42).
Diagnosis unsignaled(const Facts& f, const Entry& e) {
  Diagnosis d = hang(f, e, "unsignaled_send_queue",
                     "no send WR that is outstanding asks for a completion, so none will come and no slot of the send "
                     "queue will be given back");
  d.who += ", " + wr_range(e);
  d.rules = {"S-PS-42", "S-PS-41", "A-17"};
  d.evidence.push_back(f.found(e.at + "/sends", "send WRs outstanding, all done by the device"));
  d.evidence.push_back(f.found(e.at + "/signaled", "of them are signaled"));
  d.evidence.push_back(f.found(e.at + "/max_send_wr", "fit into the send queue"));
  if (const ObjectName qp = Facts::object_name(e.object()); !qp.empty())
    d.advice.push_back(f.turn(Facts::qp_path(qp) + ".sq_sig_all", true,
                              "signals every WR; signaling one in every max_send_wr would do"));
  return d;
}

Diagnosis rnr_for_ever(const Facts& f, const Entry& e) {
  Diagnosis d = hang(f, e, "rnr_for_ever",
                     "the peer has no receive posted, and rnr_retry 7 asks again without end and without an error");
  d.who += ", " + wr_range(e);
  d.rules = {"S-RC-52", "S-RC-14", "A-51"};
  const std::string host = "host" + std::to_string(f.host_number(e.host()));
  d.evidence.push_back(f.found(e.at + "/state", "the send waits for the RNR timer, with rnr_retry 7"));
  d.evidence.push_back(f.counted(host + ".hca.requester.rnr_naks_received", "RNR NAKs so far"));
  if (const ObjectName qp = Facts::object_name(e.object()); !qp.empty()) compare_receives(f, qp, d);
  if (const std::string path = qp_attribute(f, e.object(), e.host(), "rnr_retry", "rnr_retry"); !path.empty())
    d.advice.push_back(
        f.turn(path, 6, "7 attempts, then RNR_RETRY_EXC_ERR instead of a hang; the cure is a receive at the peer"));
  return d;
}

Diagnosis no_timeout(const Facts& f, const Entry& e) {
  Diagnosis d =
      hang(f, e, "no_ack_timeout", "an answer is missing, and timeout 0 means that the device never asks again");
  d.who += ", " + wr_range(e);
  d.rules = {"A-50", "S-RC-40"};
  d.evidence.push_back(f.found(e.at + "/state", "sent, and no answer has come"));
  if (const std::string path = qp_attribute(f, e.object(), e.host(), "timeout", "qp_timeout"); !path.empty())
    d.advice.push_back(f.turn(path, 14, "sends again after 67.1 ms, retry_cnt times"));
  return d;
}

Diagnosis held(const Facts& f, const Entry& e) {
  const bool flushed = e.state() == "flushed";
  Diagnosis d = hang(f, e, flushed ? "flushed_into_dead_cq" : "held_by_qp_state",
                     flushed ? "the WRs are flushed, but their completions would go into a CQ in error"
                             : "the queue pair is in a state that starts no send WR");
  d.who += ", " + wr_range(e);
  d.rules = flushed ? std::vector<std::string>{"S-OVR-3", "S-OVR-7"} : std::vector<std::string>{"S-QP-40"};
  d.evidence.push_back(f.found(e.at + "/sends", "send WRs outstanding"));
  return d;
}

/// Whether the adapter fires for CQEs behind the arm only.
bool fires_late(const Facts& f, const std::string& host) {
  return f.config_text("hosts." + std::to_string(f.host_number(host)) + ".hca.completion.arm_rule") == "next_cqe";
}

/// Whether a step that arms the CQ is followed by a poll of it.
bool polls_behind_arm(const Facts& f, const std::string& program) {
  bool armed = false, polls = false;
  f.for_each_step(program, [&](const std::string&, const Json& step, double) {
    if (armed && step.find("poll") != nullptr) polls = true;
    armed = step.find("arm") != nullptr;
  });
  return polls;
}

/// The adapter has told, and the kernel had no memory for the record (S-CE-10).
Diagnosis lost_event(const Facts& f, const Entry& e) {
  Diagnosis d =
      hang(f, e, "lost_event", "a completion lies in the CQ and its event has not reached the program, which sleeps");
  const std::size_t host = f.host_number(e.host());
  d.rules = {"S-CE-10"};
  d.evidence.push_back(f.found(e.at + "/state", "a CQE lies unpolled in an armed CQ"));
  d.evidence.push_back(
      f.counted("host" + std::to_string(host) + ".kernel.events_lost", "events that the kernel could not queue"));
  d.advice.push_back(
      f.turn("hosts." + std::to_string(host) + ".kernel.interrupt.event_alloc_failures", 0, "no allocation fails"));
  return d;
}

Diagnosis lost_wake_up(const Facts& f, const Entry& e) {
  Diagnosis d =
      hang(f, e, "lost_wake_up",
           "a completion was written before the arm reached the device, no event tells of it, and the program "
           "sleeps");
  const ObjectName cq = Facts::object_name(e.object());
  const bool second_poll = !cq.empty() && polls_behind_arm(f, cq.program);
  d.rules = {second_poll ? "S-CE-20" : "S-CE-21", "S-CE-5"};
  d.evidence.push_back(f.found(e.at + "/state", "a CQE lies unpolled in an armed CQ"));
  const std::string host = "hosts." + std::to_string(f.host_number(e.host()));
  d.evidence.push_back(f.configured(host + ".hca.completion.arm_rule", "the adapter fires for later CQEs only"));
  if (!second_poll)
    d.what += "; it does not poll once more between the arm and the sleep, which is what a correct loop does";
  d.advice.push_back(f.turn(host + ".hca.completion.arm_rule", "compare_ci",
                            "an adapter that compares the armed index with its producer fires at once"));
  if (second_poll)
    d.advice.push_back(
        f.turn(host + ".verbs.arm_read_back", true,
               "the arm is at the device when the call returns, so that the poll behind it finds the CQE"));
  return d;
}

Diagnosis not_armed(const Facts& f, const Entry& e) {
  const bool lies = e.state() == "unpolled_unarmed";
  Diagnosis d = hang(f, e, "not_armed",
                     lies ? "a completion lies in the CQ, but the CQ is not armed, so no event will wake the program"
                          : "the program sleeps for an event of a CQ that is not armed");
  d.rules = {"S-CE-24", "S-CE-20"};
  d.evidence.push_back(f.found(e.at + "/state", "the CQ is not armed"));
  return d;
}

Diagnosis solicited_only(const Facts& f, const Entry& e) {
  Diagnosis d = hang(f, e, "armed_solicited_only",
                     "the CQ is armed for solicited completions, and none has come that is solicited");
  d.rules = {"S-CE-3", "A-34"};
  d.evidence.push_back(f.found(e.at + "/state", "armed for solicited completions only"));
  const ObjectName cq = Facts::object_name(e.object());
  if (cq.empty()) return d;
  f.for_each_step(cq.program, [&](const std::string& at, const Json&, double) {
    if (f.config_true(at + ".arm.solicited_only"))
      d.advice.push_back(f.turn(at + ".arm.solicited_only", false, "wakes for any completion"));
  });
  return d;
}

/// ibv_destroy_cq waits for the acknowledgement of every event that was read (S-CE-31).
Diagnosis unacknowledged(const Facts& f, const Entry& e) {
  Diagnosis d;
  d.id = "unacknowledged_events";
  d.severity = Severity::hang;
  d.who = text_of(e.facts, "name") + " on " + e.host();
  d.when_ns = e.number("since_ns");
  d.what = "ibv_destroy_cq waits until every completion event that was read is acknowledged";
  d.rules = {"S-CE-31", "S-CE-30"};
  d.evidence.push_back(f.found(e.at + "/waits_for", "the call under way at " + text_of(e.facts, "at")));
  const std::string program = f.owner(text_of(e.facts, "name"));
  double acknowledged = 0;
  std::string last;
  f.for_each_step(program, [&](const std::string& at, const Json& step, double times) {
    if (step.find("ack") == nullptr) return;
    acknowledged += times * f.config_number(at + ".ack.count", 1);
    last = at;
  });
  const Json* events = f.at("/programs/" + program + "/events");
  if (events == nullptr || !events->is_array()) return d;
  const auto read = static_cast<double>(events->items().size());
  d.evidence.push_back(Facts::derived(read, "events that the program has read"));
  d.evidence.push_back(Facts::derived(acknowledged, "events that its steps acknowledge"));
  if (!last.empty() && read > acknowledged)
    d.advice.push_back(f.turn(last + ".ack.count", whole(f.config_number(last + ".ack.count", 1) + read - acknowledged),
                              "acknowledges all of them"));
  return d;
}

Diagnosis dead_device(const Facts& f, const Entry& e) {
  Diagnosis d;
  d.id = "device_not_up";
  d.severity = Severity::hang;
  d.who = e.host();
  d.what = "the device did not come up, so no program got to work with it";
  d.evidence.push_back(f.found(e.at + "/error", "what the driver says"));
  return d;
}

/// Every wait, when no pattern fits.
Diagnosis unnamed(const Facts& f) {
  Diagnosis d;
  d.id = "deadlock";
  d.severity = Severity::hang;
  d.what = "nothing will happen any more, and programs wait";
  d.when_ns = f.number("/sim_time_ns");
  d.evidence.push_back(f.found("/verdict", "no event is left that would end a wait"));
  for (const Entry& e : entries(f, "thread"))
    d.evidence.push_back(
        f.found(e.at + "/waits_for", text_of(e.facts, "name") + " on " + e.host() + " waits for this" +
                                         (text_of(e.facts, "at").empty() ? "" : " at " + text_of(e.facts, "at"))));
  for (const Entry& e : entries(f, "qp"))
    if (e.number("sends") > 0) d.evidence.push_back(f.found(e.at + "/sends", "send WRs outstanding on " + named(e)));
  for (const Entry& e : entries(f, "kernel_qp"))
    d.evidence.push_back(f.found(e.at + "/sends", "send WRs outstanding on " + named(e) + " of a kernel module"));
  return d;
}

}  // namespace

void find_hangs(const Facts& f, Diagnoses& out) {
  if (f.verdict() != "deadlock") return;
  const std::size_t before = out.size();
  for (const Entry& e : entries(f, "qp")) {
    const std::string state = e.state();
    std::string at;
    const bool polls = waiter(f, e.host(), "polling memory", at) != nullptr ||
                       waiter(f, e.host(), "completion channel", at) != nullptr;
    if (state == "rnr_for_ever") out.push_back(rnr_for_ever(f, e));
    else if (state == "unanswered_for_ever") out.push_back(no_timeout(f, e));
    else if (state == "unsignaled" && polls) out.push_back(unsignaled(f, e));
    else if (state == "flushed" || state == "held_by_state") out.push_back(held(f, e));
  }
  for (const Entry& e : entries(f, "cq")) {
    const std::string state = e.state();
    std::string at;
    const bool sleeps = waiter(f, e.host(), "completion channel", at) != nullptr;
    if (state == "lost_wake_up") out.push_back(fires_late(f, e.host()) ? lost_wake_up(f, e) : lost_event(f, e));
    else if (sleeps && (state == "unpolled_unarmed" || state == "unarmed")) out.push_back(not_armed(f, e));
    else if (sleeps && state == "armed_solicited") out.push_back(solicited_only(f, e));
  }
  for (const Entry& e : entries(f, "thread"))
    if (text_of(e.facts, "waits_for").find("not acknowledged") != std::string::npos)
      out.push_back(unacknowledged(f, e));
  for (const Entry& e : entries(f, "device")) out.push_back(dead_device(f, e));
  if (out.size() == before) out.push_back(unnamed(f));
}

}  // namespace experiment
