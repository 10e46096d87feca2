// SPDX-License-Identifier: Apache-2.0
// Blocking of program threads in the kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "cpu/thread.h"
#include "sim/units.h"

namespace kernel {

/// The wait state of one thread. A wake-up reaches the thread exactly once per wait, so that no token is left behind for a
/// later, unrelated wait.
struct Waiter {
  cpu::Thread* thread = nullptr;
  bool waiting = false;
  bool interruptible = false;    ///< a signal ends this wait
  std::uint64_t generation = 0;  ///< counts waits; tells a late timer that its wait is over

  /// Announces a wait; from here on wake() counts. Callers announce, enlist, and then block().
  void announce() {
    waiting = true;
    ++generation;
  }
  /// Blocks until wake(); returns at once if that came since announce(). A wait for events is interruptible: it also ends
  /// when the thread is killed.
  void block(const char* why, bool by_signal = false) {
    interruptible = by_signal;
    if (!by_signal || !thread->killed()) thread->park(why);
    interruptible = false;
  }
  bool wake(sim::Picos at) {
    if (!waiting) return false;
    waiting = false;
    thread->unpark(at);
    return true;
  }
};

/// The waiters of all threads that ever entered the kernel.
class Waiters {
 public:
  Waiter& of(cpu::Thread& thread) {
    auto& w = waiters_[&thread];
    if (!w) w = std::make_unique<Waiter>(Waiter{&thread});
    return *w;
  }
  Waiter& current() { return of(cpu::current()); }

 private:
  std::map<cpu::Thread*, std::unique_ptr<Waiter>> waiters_;  // looked up, never iterated
};

/// Spends kernel time of the running thread; nothing when the simulator itself cleans up.
inline void charge(sim::Picos d) {
  if (cpu::Thread* t = cpu::current_or_null(); t != nullptr) t->compute(d);
}

}  // namespace kernel
