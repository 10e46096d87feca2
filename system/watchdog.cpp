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

/// What the device does with them.
std::string progress(const hca::QpReport& q, const verbs::mlx5::QpOutstanding& posted) {
  if (q.rnr_waiting)
    return q.rnr_retry == 7 ? "the peer has no receive and is asked again for ever (rnr_retry 7)"
                            : "waits for the RNR timer";
  if (q.unanswered != 0) {
    std::string out = count(q.unanswered, "WQE") + " without an answer";
    if (q.ack_timeout == 0) out += ", and timeout 0 means that none is missed";
    return out;
  }
  if (q.unstarted != 0) return q.starts_wqes ? "the device has not started them" : "the state of the QP starts none";
  if (q.error) return "the device has flushed them; their completions went into a CQ in error";
  return posted.signaled == 0 ? "the device has done them all, and no completion will give their slots back"
                              : "the device has done them all, the completions are not polled";
}

/// What modules have posted and not seen completed.
void kernel_consumers(Host& host, std::vector<std::string>& out) {
  if (!host.kernel().ready()) return;
  for (const kernel::Object* o : host.kernel().device().objects(kernel::ObjectType::qp)) {
    const auto& qp = static_cast<const kernel::Mlx5Qp&>(*o);
    if (qp.kernel == nullptr) continue;
    const std::uint32_t sends = qp.kernel->sq.head - qp.kernel->sq.tail,
                        receives = qp.kernel->rq.head - qp.kernel->rq.tail;
    if (sends + receives != 0)
      out.push_back("QP " + hex(qp.qpn) + " of [" + qp.owner->comm + "] on " + host.config().name + ": " +
                    count(sends, "send WR") + " and " + count(receives, "receive WR") + " outstanding");
  }
}

}  // namespace

std::string Watchdog::name_of(const Process& process, const void* handle, const std::string& fallback) const {
  const std::string name = programs_ != nullptr ? programs_->name_of(process, handle) : "";
  return name.empty() ? fallback : name + " (" + fallback + ")";
}

void Watchdog::threads(std::vector<std::string>& out) const {
  for (const auto& h : hosts_)
    for (const auto& thread : h->threads()) {
      const sim::ProgramThread& t = thread->program_thread();
      if (t.finished() || !t.started() || is_watcher(t)) continue;
      const std::string_view why = t.wait_reason();
      if (why == Programs::kWaitsForOthers) continue;
      std::string line =
          t.name() + " on " + h->config().name + (why.empty() ? " waits" : " waits for ") + std::string(why);
      const std::string place = programs_ != nullptr ? programs_->place_of(t.name()) : "";
      out.push_back(line + (place.empty() ? "" : " at " + place));
    }
}

void Watchdog::queues(const Host& host, const Process& process, std::vector<std::string>& out) const {
  const verbs::mlx5::Outstanding posted = verbs::mlx5::outstanding(process);
  const hca::Report device = host.report();
  for (const auto& q : posted.qps) {
    const std::string what = name_of(process, q.qp, "QP " + hex(q.qp->qp_num) + " on " + host.config().name);
    const hca::QpReport* d = device.qp(q.qp->qp_num);
    std::string line;
    if (q.sends != 0) line = sends(q) + (d != nullptr ? "; " + progress(*d, q) : "");
    if (q.receives != 0) line += (line.empty() ? "" : "; ") + count(q.receives, "receive WR") + " outstanding";
    out.push_back(what + ": " + line);
  }
  for (const auto& c : posted.cqs) {
    const std::string what = name_of(process, c.cq, "CQ " + hex(c.cqn) + " on " + host.config().name) + ": ";
    const hca::CqReport* d = device.cq(c.cqn);
    if (d == nullptr) continue;
    if (d->overrun) out.push_back(what + "overrun: no further completion will be written");
    if (c.completion_waits)
      out.push_back(what + "a completion lies in it that nobody polls" +
                    (c.cq->channel != nullptr ? d->armed ? "; it came before the arm, so no event tells: a lost wake-up"
                                                         : "; the CQ is not armed"
                                              : ""));
    else if (c.cq->channel != nullptr && !d->armed)
      out.push_back(what + "not armed: no completion will raise an event");
    else if (d->armed && d->solicited_only) out.push_back(what + "armed for solicited completions only");
  }
}

std::vector<std::string> Watchdog::report() const {
  std::vector<std::string> lines;
  threads(lines);
  for (const auto& h : hosts_) {
    for (const auto& p : h->processes()) queues(*h, *p, lines);
    kernel_consumers(*h, lines);
  }
  for (const auto& h : hosts_)
    if (!h->kernel().boot_error().empty())
      lines.push_back(h->config().name + ": the device did not come up: " + h->kernel().boot_error());
  return lines;
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
