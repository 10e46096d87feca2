// SPDX-License-Identifier: Apache-2.0
// What a thread did with its time: computing or polling, asleep, or kept waiting by interrupts on its core.
#pragma once

#include "cpu/thread.h"

namespace sys {

/// The parts sum to the span exactly. Spinning is time on the core; asleep is from a call that blocks to its return.
struct CpuTime {
  sim::Picos span{0}, on_cpu{0}, asleep{0}, interrupted{0};
};

/// Measures the running thread between two of its own times.
class CpuMeter {
 public:
  void start() {
    thread_ = &cpu::current();
    from_ = at(thread_->now());
  }
  void stop() {
    to_ = at(thread_->now());
    stopped_ = true;
  }
  /// Up to stop(), or to `now` if that has not come.
  CpuTime read(sim::Picos now) const {
    if (thread_ == nullptr) return {};
    const Reading to = stopped_ ? to_ : at(sim::max(now, thread_->now()));
    CpuTime t;
    t.span = to.time - from_.time;
    t.asleep = to.asleep - from_.asleep;
    t.interrupted = to.stolen - from_.stolen;
    t.on_cpu = t.span - t.asleep - t.interrupted;
    return t;
  }

 private:
  struct Reading {
    sim::Picos time{0}, asleep{0}, stolen{0};
  };
  Reading at(sim::Picos t) const { return {t, thread_->asleep(t), thread_->stolen()}; }

  const cpu::Thread* thread_ = nullptr;
  Reading from_, to_;
  bool stopped_ = false;
};

}  // namespace sys
