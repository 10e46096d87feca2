// SPDX-License-Identifier: Apache-2.0
// The queue between the completion handler (or the async event work) and read(). Every reader that waits is woken by a
// record; the first to run takes it, the others sleep again. Source: ib_uverbs (uverbs_main.c), rules S-CE-10, S-CE-11,
// S-AE-1, S-AE-6. Not modelled: SIGIO.
#include "kernel/uverbs/event_file.h"

#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <cstring>

#include "kernel/trace_points.h"

namespace kernel {

EventFile::EventFile(sim::Context& context, const KernelConfig& config, Kind kind, std::int32_t host)
    : context_(context),
      config_(config),
      host_(host),
      kind_(kind),
      trace_(context, host, host_lane(host, kind == Kind::completion ? "kernel.channel" : "kernel.async_file"),
             sim::trace::TrackKind::instant) {}

void EventFile::wake(sim::trace::Cause cause, const cpu::Core* core) {
  const sim::Picos now = context_.now();
  const sim::Picos local = config_.interrupt.wake_up + context_.jitter.draw(sim::JitterPlace::wake_up, host_);
  for (const Enlisted& e : waiters_) {
    if (e.waiter->generation != e.generation || !e.waiter->waiting) continue;
    const bool remote = core != nullptr && core != &e.waiter->thread->core();
    const sim::Picos picked = now + local + (remote ? config_.interrupt.remote_wake_up : sim::Picos{0});
    const sim::Picos at = picked + config_.interrupt.context_switch;
    e.waiter->wake(at);
    trace_.span(trace_points::wake, cause, now, picked, at, e.waiter->thread->program_thread().number());
  }
  waiters_.clear();
}

bool EventFile::push(const QueuedEvent& e, const cpu::Core* core) {
  if (closed_ || disassociated_) return false;
  queue_.push_back(e);
  queue_[queue_.size() - 1].times.queued = context_.now();
  ++records_;
  if (kind_ == Kind::completion)
    trace_.instant(trace_points::channel_event, e.cause, context_.now(), waiters_.size(), queue_.size());
  else trace_.instant(trace_points::async_event, e.cause, context_.now(), e.type, e.number);
  wake(e.cause, core);
  return true;
}

void EventFile::drop(const void* object) {
  for (std::size_t n = queue_.size(); n > 0; --n) {
    const QueuedEvent e = queue_.pop_front();
    if (e.object != object) queue_.push_back(e);
  }
}

long EventFile::read(Waiter& self, void* data, std::size_t n, bool nonblock) {
  cpu::Thread& t = *self.thread;
  for (;;) {
    t.sync();
    if (!queue_.empty()) break;
    if (disassociated_ || closed_) return -EIO;
    if (nonblock) return -EAGAIN;
    self.announce();
    enlist(self);
    self.block(kind_ == Kind::completion ? "completion channel: no event" : "async event file: no event", true);
    if (t.killed()) return -EINTR;
  }
  if (n < record_size()) return -EINVAL;
  const QueuedEvent e = queue_.pop_front();
  const sim::Picos found = t.now();
  t.compute(config_.syscall.event_read);
  if (e.reported != nullptr) ++*e.reported;
  if (kind_ == Kind::completion) {
    const ib_uverbs_comp_event_desc record{e.element};
    std::memcpy(data, &record, sizeof record);
    t.compute(config_.syscall.exit);
    e.times.charge(context_.journeys, e.cause, found, t.now());
  } else {
    const ib_uverbs_async_event_desc record{e.element, e.type, 0};
    std::memcpy(data, &record, sizeof record);
    t.compute(config_.syscall.exit);
  }
  return static_cast<long>(record_size());
}

void EventFile::close() {
  closed_ = true;
  queue_.clear();
  wake({}, nullptr);
}

void EventFile::disassociate() {
  disassociated_ = true;
  wake({}, nullptr);
}

}  // namespace kernel
