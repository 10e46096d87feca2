// SPDX-License-Identifier: Apache-2.0
// How a thread lets time pass: synchronising with the engine, blocking in the kernel, being delayed by kernel work on its
// core, and polling memory. A wait for a write makes no event per poll: the write computes the poll that would have seen
// it. Kernel work that starts at or before a poll delays that poll, and the grid of all later ones, by its length.
// Not modelled: the cache-line transfers of the polls themselves; what a killed thread has done ahead of the engine's time,
// since its last sync(), is not taken back.
#include <algorithm>

#include "cpu/core.h"
#include "cpu/thread.h"
#include "cpu/trace_points.h"

namespace cpu {

void Thread::sync() {
  if (takes_core_) occupy_core();
  thread_.sync();
  if (!steals_.empty()) [[unlikely]]
    settle_steals();
  occupied_until_ = thread_.now();
  core_.memory().commit_pending();
  die_if_killed();
}

void Thread::die_if_killed() {
  if (!killed_ || dying_ || in_kernel_ != 0) [[likely]]
    return;
  dying_ = true;
  thread_.set_wait_reason("");
  throw Killed{};
}

void Thread::kill(sim::Picos at) {
  if (killed_ || finished()) return;
  killed_ = true;
  if (in_kernel_ != 0) return;
  state_ = State::running;
  steals_.clear();
  for (const memory::WatchId id : watches_) core_.memory().unwatch(id);
  watches_.clear();
  thread_.interrupt(at);
}

void Thread::leave_kernel() {
  --in_kernel_;
  die_if_killed();
}

// Books what an interrupt context has computed since its last sync(), waits for a device or a lock apart. Kernel work that
// had the core first delays it.
void Thread::occupy_core() {
  const sim::Picos from = sim::max(occupied_until_, core_.context().now());
  const sim::Picos d = thread_.now() - from;
  if (d <= sim::Picos{0}) return;
  const sim::Picos start = core_.steal(from, d, this);
  while (!steals_.empty() && steals_.front().start < start) steals_.pop_front();
  const sim::Picos waited = start - from;
  stolen_ += waited;
  thread_.charge(waited);
  occupied_until_ = thread_.now();
}

// Kernel work that has started by now has kept the thread from getting here; the delay may let more of it start.
void Thread::settle_steals() {
  while (!steals_.empty() && steals_.front().start <= thread_.now()) {
    const sim::Picos taken = steals_.pop_front().length;
    stolen_ += taken;
    thread_.charge(taken);
    thread_.sync();
  }
}

void Thread::on_steal(sim::Picos start, sim::Picos d) {
  switch (state_) {
    case State::idle:
      not_before_ = sim::max(not_before_, start + d);
      break;
    case State::blocked:
      if (start < blocked_from_) {  // the thread has run ahead; in truth it still computed then
        trace_state(State::running, blocked_from_);
        blocked_from_ += d;
        trace_state(State::blocked, blocked_from_);
        stolen_ += d;
      }
      not_before_ = sim::max(not_before_, start + d);
      break;
    case State::running:
      steals_.push_back({start, d});
      break;
    case State::polling:
      steals_.push_back({start, d});
      if (poll_.hit) break;
      while (!steals_.empty() && steals_.front().start <= core_.context().now()) {
        const Steal s = steals_.pop_front();
        poll_.next = poll_.first_at_or_after(s.start) + s.length;
        stolen_ += s.length;
      }
      break;
  }
}

void Thread::enter_blocked() {
  state_ = State::blocked;
  blocked_from_ = thread_.now();
  trace_state(state_, blocked_from_);
  // Work that was known before and starts only later meets a blocked thread.
  while (!steals_.empty()) {
    const Steal s = steals_.pop_front();
    not_before_ = sim::max(not_before_, s.start + s.length);
  }
}

void Thread::leave_blocked() {
  waking_ = false;
  state_ = State::running;
  const sim::Picos resume = sim::max(blocked_from_, not_before_);
  if (resume > thread_.now()) advance_to(resume);
  asleep_ += thread_.now() - blocked_from_;
  trace_state(state_, thread_.now());
  occupied_until_ = thread_.now();
  sync();
}

void Thread::sleep(sim::Picos d) {
  SIM_CHECK(!takes_core_, "an interrupt context cannot sleep");
  settle_steals();
  const sim::Picos from = thread_.now();
  enter_blocked();
  thread_.set_wait_reason("sleep");
  thread_.charge(d);
  thread_.sync();
  thread_.set_wait_reason("");
  if (const sim::Picos up = core_.wake(thread_.now()); up > thread_.now()) {
    waking_ = true;
    advance_to(up);
    thread_.sync();
  }
  if (blocked_from_ > from) {  // the sleep began later than it seemed
    thread_.charge(blocked_from_ - from);
    thread_.sync();
  }
  leave_blocked();
}

void Thread::park(const char* why) {
  if (takes_core_) occupy_core();
  settle_steals();
  if (token_) {
    token_ = false;
    if (token_time_ > thread_.now()) {
      advance_to(token_time_);
      occupied_until_ = thread_.now();
    }
    sync();
    return;
  }
  enter_blocked();
  thread_.set_wait_reason(why);
  thread_.park();
  die_if_killed();
  thread_.set_wait_reason("");
  leave_blocked();
}

// A thread that waits for something else (memory, a device, a lock) is not woken; its next park() passes.
void Thread::unpark(sim::Picos at) {
  if (state_ == State::blocked && thread_.parked()) {
    const sim::Picos now = core_.context().now();
    at += core_.wake(now) - now;
    waking_ = true;
    thread_.unpark(at);
  } else if (!token_) {
    token_ = true;
    token_time_ = at;
  }
}

sim::trace::Cause Thread::wait_for_write(const void* at, std::size_t n, sim::Picos interval) {
  const Range range{at, n};
  return wait_for_write(std::span(&range, 1), interval);
}

sim::trace::Cause Thread::wait_for_write(std::span<const Range> ranges, sim::Picos interval) {
  SIM_CHECK(interval > sim::Picos{0} && !ranges.empty(), "a poll takes time and looks at something");
  SIM_CHECK(!takes_core_, "an interrupt context cannot poll");
  memory::HostMemory& memory = core_.memory();
  const sim::Picos begin = thread_.now();
  poll_ = {false, begin + interval, interval, {}};
  watches_.clear();
  for (const Range& r : ranges)
    watches_.push_back(memory.watch(space_.phys_of(memory::va_of(r.at)), r.n, &Thread::on_write, this));
  thread_.set_wait_reason("polling memory");
  trace_state(State::polling, begin);
  if (core_.config().poll_mode == PollMode::spin) {
    do {
      thread_.charge(interval);
      sync();
    } while (!poll_.hit);
  } else {
    poll_until_hit();
  }
  thread_.set_wait_reason("");
  for (const memory::WatchId id : watches_) memory.unwatch(id);
  watches_.clear();
  trace_state(State::running, thread_.now());
  core_.trace().span(points::poll, poll_.cause, begin, begin, thread_.now(), memory::va_of(ranges.front().at).v);
  return poll_.cause;
}

void Thread::poll_until_hit() {
  state_ = State::polling;
  while (!poll_.hit) {
    thread_.park();
    die_if_killed();
  }
  state_ = State::running;
  sync();
}

void Thread::on_write(void* self, std::uint64_t, sim::trace::Cause cause) {
  auto* const t = static_cast<Thread*>(self);
  if (t->poll_.hit) return;
  t->poll_.hit = true;
  t->poll_.cause = cause;
  if (t->state_ == State::polling) t->on_poll_hit();
}

// The poll that sees a write of this instant: kernel work that starts at or before a poll moves it.
void Thread::on_poll_hit() {
  const sim::Picos now = core_.context().now();
  sim::Picos seen = poll_.first_at_or_after(now);
  while (!steals_.empty() && steals_.front().start <= seen) {
    const Steal s = steals_.pop_front();
    poll_.next = poll_.first_at_or_after(s.start) + s.length;
    stolen_ += s.length;
    seen = poll_.first_at_or_after(now);
  }
  thread_.unpark(seen);
}

}  // namespace cpu
