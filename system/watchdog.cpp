// SPDX-License-Identifier: Apache-2.0
// Three books are read side by side: the provider's (what is posted and not completed), the kernel's (events read and
// acknowledged), the device's (what it has started, armed, and waits for).
#include "system/watchdog.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "hca/report.h"
#include "kernel/mlx5/objects.h"
#include "kernel/uverbs/uverbs_file.h"
#include "system/verbs_names.h"
#include "verbs_frontend/mlx5/outstanding.h"

namespace sys {
namespace {

std::string hex(std::uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%06x", n);
  return text;
}

std::string count(std::uint64_t n, const char* what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

bool is_watcher(const sim::ProgramThread& t) { return t.name().ends_with(".async"); }

/// The posted sends as the provider sees them.
std::string sends(const verbs::mlx5::QpOutstanding& q) {
  std::string out = count(q.sends, "send WR") + " outstanding (wr_id " + std::to_string(q.first_wr_id) +
                    (q.sends > 1 ? " to " + std::to_string(q.last_wr_id) : "") + ")";
  if (q.sends >= q.max_sends) out += ", the send queue is full";
  if (q.signaled == 0) out += ", nothing signaled since wr_id " + std::to_string(q.first_wr_id);
  return out;
}

/// Where the sends are, as a word for `stuck` and in a phrase.
struct Progress {
  const char* state;
  std::string text;
};
Progress progress(const hca::QpReport& q, const verbs::mlx5::QpOutstanding& posted) {
  if (q.rnr_waiting) {
    if (q.rnr_retry == 7) return {"rnr_for_ever", "the peer has no receive and is asked again for ever (rnr_retry 7)"};
    return {"rnr_wait", "waits for the RNR timer"};
  }
  if (q.unanswered != 0) {
    std::string text = count(q.unanswered, "WQE") + " without an answer";
    if (q.ack_timeout == 0) text += ", and timeout 0 means that none is missed";
    return {q.ack_timeout == 0 ? "unanswered_for_ever" : "unanswered", text};
  }
  if (q.unstarted != 0) {
    if (q.starts_wqes) return {"unstarted", "the device has not started them"};
    return {"held_by_state", "the state of the QP starts none"};
  }
  if (q.error) return {"flushed", "the device has flushed them; their completions went into a CQ in error"};
  if (posted.signaled == 0)
    return {"unsignaled", "the device has done them all, and no completion will give their slots back"};
  return {"unpolled", "the device has done them all, the completions are not polled"};
}

sim::Json facts_of(const char* kind, const Host& host) {
  sim::Json j = sim::Json::object();
  j["kind"] = kind;
  j["host"] = host.config().name;
  return j;
}

/// What modules have posted and not seen completed.
void kernel_consumers(const Host& host, kernel::Kernel& kernel, std::vector<Stuck>& out) {
  if (!kernel.ready()) return;
  for (const kernel::Object* o : kernel.device().objects(kernel::ObjectType::qp)) {
    const auto& qp = static_cast<const kernel::Mlx5Qp&>(*o);
    if (qp.kernel == nullptr) continue;
    const std::uint32_t sends = qp.kernel->sq.head - qp.kernel->sq.tail,
                        receives = qp.kernel->rq.head - qp.kernel->rq.tail;
    if (sends + receives == 0) continue;
    Stuck s{"QP " + hex(qp.qpn) + " of [" + qp.owner->comm + "] on " + host.config().name + ": " +
                count(sends, "send WR") + " and " + count(receives, "receive WR") + " outstanding",
            facts_of("kernel_qp", host)};
    s.facts["module"] = qp.owner->comm;
    s.facts["qpn"] = qp.qpn;
    s.facts["sends"] = sends;
    s.facts["receives"] = receives;
    out.push_back(std::move(s));
  }
}

}  // namespace

std::string Watchdog::name_of(const Process& process, const void* handle) const {
  return programs_ != nullptr ? programs_->name_of(process, handle) : "";
}

void Watchdog::threads(std::vector<Stuck>& out) const {
  for (const auto& h : hosts_)
    for (const auto& thread : h->threads()) {
      const sim::ProgramThread& t = thread->program_thread();
      if (t.finished() || !t.started() || is_watcher(t)) continue;
      const std::string_view why = t.wait_reason();
      if (why == Programs::kWaitsForOthers) continue;
      const std::string place = programs_ != nullptr ? programs_->place_of(t.name()) : "";
      Stuck s{t.name() + " on " + h->config().name + (why.empty() ? " waits" : " waits for ") + std::string(why) +
                  (place.empty() ? "" : " at " + place),
              facts_of("thread", *h)};
      s.facts["name"] = t.name();
      s.facts["waits_for"] = why;
      s.facts["at"] = place;
      s.facts["since_ns"] = static_cast<double>(t.now().n) / 1000.0;
      out.push_back(std::move(s));
    }
}

void Watchdog::queue_pairs(const Host& host, const Process& process, std::vector<Stuck>& out) const {
  const hca::Report device = host.report();
  for (const auto& q : verbs::mlx5::outstanding(process).qps) {
    const hca::QpReport* d = device.qp(q.qp->qp_num);
    const std::string name = name_of(process, q.qp), number = "QP " + hex(q.qp->qp_num) + " on " + host.config().name;
    Stuck s{(name.empty() ? number : name + " (" + number + ")") + ": ", facts_of("qp", host)};
    s.facts["object"] = name;
    s.facts["qpn"] = q.qp->qp_num;
    s.facts["sends"] = q.sends;
    if (q.sends != 0) {
      s.text += sends(q);
      s.facts["first_wr_id"] = q.first_wr_id;
      s.facts["last_wr_id"] = q.last_wr_id;
      s.facts["signaled"] = q.signaled;
      s.facts["max_send_wr"] = q.max_sends;
      if (d != nullptr) {
        const Progress p = progress(*d, q);
        s.text += "; " + p.text;
        s.facts["state"] = p.state;
      }
    }
    if (q.receives != 0) s.text += (q.sends != 0 ? "; " : "") + count(q.receives, "receive WR") + " outstanding";
    s.facts["receives"] = q.receives;
    out.push_back(std::move(s));
  }
}

void Watchdog::completion_queues(const Host& host, const Process& process, std::vector<Stuck>& out) const {
  const hca::Report device = host.report();
  for (const auto& c : verbs::mlx5::outstanding(process).cqs) {
    const hca::CqReport* d = device.cq(c.cqn);
    if (d == nullptr) continue;
    const std::string name = name_of(process, c.cq), number = "CQ " + hex(c.cqn) + " on " + host.config().name;
    const bool channel = c.cq->channel != nullptr;
    const auto add = [&](const char* state, const std::string& text) {
      Stuck s{(name.empty() ? number : name + " (" + number + ")") + ": " + text, facts_of("cq", host)};
      s.facts["object"] = name;
      s.facts["cqn"] = c.cqn;
      s.facts["state"] = state;
      out.push_back(std::move(s));
    };
    if (d->overrun) add("overrun", "overrun: no further completion will be written");
    if (c.completion_waits) {
      const std::string lies = "a completion lies in it that nobody polls";
      if (channel && d->armed)
        add("lost_wake_up", lies + "; it came before the arm, so no event tells: a lost wake-up");
      else if (channel) add("unpolled_unarmed", lies + "; the CQ is not armed");
      else add("unpolled", lies);
    } else if (channel && !d->armed) {
      add("unarmed", "not armed: no completion will raise an event");
    } else if (d->armed && d->solicited_only) {
      add("armed_solicited", "armed for solicited completions only");
    }
  }
}

std::vector<Stuck> Watchdog::report() const {
  std::vector<Stuck> found;
  threads(found);
  for (const auto& h : hosts_) {
    for (const auto& p : h->processes()) {
      queue_pairs(*h, *p, found);
      completion_queues(*h, *p, found);
    }
    kernel_consumers(*h, h->kernel(), found);
  }
  for (const auto& h : hosts_)
    if (!h->kernel().boot_error().empty()) {
      found.push_back(
          {h->config().name + ": the device did not come up: " + h->kernel().boot_error(), facts_of("device", *h)});
      found.back().facts["error"] = h->kernel().boot_error();
    }
  return found;
}

bool Watchdog::stalled(sim::Picos now, sim::Picos limit) const {
  bool someone = false;
  for (const auto& h : hosts_) {
    for (const auto& thread : h->threads()) {
      const sim::ProgramThread& t = thread->program_thread();
      if (t.finished() || is_watcher(t)) continue;
      const std::string_view why = t.wait_reason();
      if (!t.started() || why == "sleep" || why == "poll with a time limit" || t.now() > now - limit) return false;
      someone = true;
    }
    if (h->kernel().last_activity() > now - limit) return false;
    for (const hca::QpReport& q : h->report().qps)
      if (q.ack_timer || (q.rnr_waiting && q.rnr_retry != 7)) return false;
  }
  return someone;
}

}  // namespace sys
