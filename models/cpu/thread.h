// SPDX-License-Identifier: Apache-2.0
// A software thread on a core. Every operation that software performs in the simulated world is a call here; each costs
// simulated time on the thread's local clock and has the effect that the architecture gives it: a store enters the store
// buffer and becomes visible when it drains, a store to write-combining memory collects in a line, a barrier orders them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cpu/barriers.h"
#include "memory/address_space.h"
#include "sim/engine.h"
#include "sim/pool.h"
#include "sim/trace/trace.h"

namespace cpu {

class Core;
class Thread;

/// A spin lock of the simulated program; contention costs spinning time. Debug value only, no memory behind it.
struct SpinLock {
  bool held = false;
  const Thread* owner = nullptr;   ///< who holds it, or held it last
  sim::Picos released{0};          ///< time of the last release
  Thread* first_waiter = nullptr;  ///< threads that spin, in the order of their coming
};

class Thread {
 public:
  /// A thread of address space `space` on `core`, numbered uniquely in the simulation. start() begins it.
  Thread(Core& core, sim::Engine& engine, memory::AddressSpace& space, std::string name, std::uint32_t number,
         std::function<void()> body);
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  void start(sim::Picos t);

  // Time
  sim::Picos now() const { return thread_.now(); }
  /// Spends d of computing time.
  void compute(sim::Picos d) { thread_.charge(d); }
  /// Lets everything up to now() happen: the caller sees memory as of now(). Kernel work that has run on the core in the
  /// meantime moves now().
  void sync();
  void sleep(sim::Picos d);
  /// Blocks until unpark() (kernel wait queues); `why` names the wait for the deadlock report.
  void park(const char* why);
  /// Ends park() at time `at`, never before the thread's own time; an unpark() that comes first lets the next park() pass.
  void unpark(sim::Picos at);

  // Signals
  /// SIGKILL at time `at`: no further instruction of the program is executed. A thread that is in the kernel dies on its way
  /// out; the kernel ends waits that may be interrupted. Dying unwinds the program's frames with a Killed.
  void kill(sim::Picos at);
  bool killed() const { return killed_; }
  struct Killed {};
  /// Around the kernel part of a system call.
  void enter_kernel() { ++in_kernel_; }
  void leave_kernel();

  // Memory of the thread's address space. dst/src are pointers into its arena. n <= 64 per call.
  /// Store through the store buffer; charges the core's store cost.
  void store(void* dst, const void* src, std::size_t n);
  template <class T>
  void store(T* dst, std::type_identity_t<T> value) {
    store(static_cast<void*>(dst), &value, sizeof value);
  }
  /// Load as this thread sees it (own pending stores included); charges the load cost, or the latency of the cache or
  /// memory that has the line. Call sync() before a load whose value another agent may change.
  void load(const void* src, void* dst, std::size_t n);
  template <class T>
  T load(const T* src) {
    T v;
    load(src, &v, sizeof v);
    return v;
  }
  /// Bulk copy by the program, any n, charged per 64-byte line; visible when it drains. Either side may also lie outside
  /// the arena (a program's stack).
  void copy(void* dst, const void* src, std::size_t n);

  // Device memory. `at` lies in a mapping of AddressSpace::map_mmio; value bytes are in memory order (already swapped).
  void mmio_store64(memory::Va at, std::uint64_t value);
  void mmio_store32(memory::Va at, std::uint32_t value);
  std::uint64_t mmio_load64(memory::Va at);
  std::uint32_t mmio_load32(memory::Va at);
  /// The barrier macro of the real code; expands per architecture (barriers.h).
  void barrier(Barrier b);
  /// pthread_spin_lock; with Barrier::mmio_wc_spinlock if `wc` (mmio_wc_spinlock).
  void lock(SpinLock& l, bool wc = false);
  void unlock(SpinLock& l);

  // Polling
  /// Waits until a write touches [at, at+n) (inside one page) after the last sync(), as a loop of empty polls that each
  /// cost `interval` would: returns at the first multiple of `interval` after now() at or after the write is visible,
  /// with now() advanced by that multiple. With CoreConfig::poll_mode == spin it performs the loop step by step instead;
  /// results are identical. `cause` receives that of the write.
  sim::trace::Cause wait_for_write(const void* at, std::size_t n, sim::Picos interval);
  /// As above, until any of several ranges is written.
  struct Range {
    const void* at;
    std::size_t n;
  };
  sim::trace::Cause wait_for_write(std::span<const Range> ranges, sim::Picos interval);
  /// Another thread has, now, changed a condition of the polling loop that is not in the memory it watches: its wait ends with the next poll.
  void end_poll() {
    if (!watches_.empty()) on_write(this, 0, {});
  }

  /// The thread is a core's interrupt context (a softirq): from now on what it computes takes the core away from the other
  /// threads there, as kernel work does. It may park and lock, and neither sleeps nor polls.
  void take_core() { takes_core_ = true; }

  /// Time that kernel work has taken from this thread while it computed or polled, as far as it is known.
  sim::Picos stolen() const { return stolen_; }
  /// Time that it has been off the core until `t`, its present or a later time: from the call that blocks to its return,
  /// wake-up and switch included.
  sim::Picos asleep(sim::Picos t) const {
    return state_ == State::blocked && t > blocked_from_ ? asleep_ + (t - blocked_from_) : asleep_;
  }

  /// The cause attached to this thread's next stores and MMIO writes.
  void set_cause(sim::trace::Cause c) { cause_ = c; }
  sim::trace::Cause cause() const { return cause_; }

  /// The lane of what the thread does.
  sim::trace::Source& trace() { return trace_; }

  Core& core() { return core_; }
  memory::AddressSpace& space() { return space_; }
  const std::string& name() const { return thread_.name(); }
  bool finished() const { return thread_.finished(); }
  sim::ProgramThread& program_thread() { return thread_; }

  /// Hooks for the layers above: the process this thread belongs to (kernel::Process), opaque here.
  void* process = nullptr;

 private:
  friend class Core;
  /// Since when the thread leaves its core alone; kNever while it does not.
  sim::Picos idle_since() const {
    return (state_ == State::idle || state_ == State::blocked) && !waking_ ? blocked_from_ : sim::kNever;
  }
  enum class State : std::uint8_t { idle, running, blocked, polling };  // idle: not started, or finished
  void trace_state(State s, sim::Picos t);
  struct Steal {
    sim::Picos start{0}, length{0};
  };
  /// The grid of poll instants of a wait: next, next + interval, …
  struct Poll {
    bool hit = false;
    sim::Picos next{0}, interval{0};
    sim::trace::Cause cause;
    sim::Picos first_at_or_after(sim::Picos t) const {
      if (t <= next) return next;
      return next + interval * ((t - next + interval - sim::Picos{1}) / interval);
    }
  };

  void run(const std::function<void()>& body);
  void advance_to(sim::Picos t) { thread_.charge(t - thread_.now()); }
  void store_across_lines(const std::byte* dst, const std::byte* src, std::size_t n);
  void mmio_store(memory::Va at, std::span<const std::byte> bytes);
  std::uint64_t mmio_load(memory::Va at, unsigned size);
  void on_steal(sim::Picos start, sim::Picos d);
  void settle_steals();
  void die_if_killed();
  void occupy_core();
  void enter_blocked();
  void leave_blocked();
  static void on_write(void* self, std::uint64_t, sim::trace::Cause cause);
  void on_poll_hit();
  void poll_until_hit();

  Core& core_;
  memory::AddressSpace& space_;
  sim::trace::Source trace_, state_trace_;
  sim::ProgramThread& thread_;
  sim::trace::Cause cause_;
  State state_ = State::idle;
  sim::Ring<Steal> steals_;  // kernel work that has not delayed this thread yet, by start
  sim::Picos stolen_{0}, asleep_{0};
  bool takes_core_ = false;
  sim::Picos occupied_until_{0};  // takes_core_: up to where the core knows of its work
  sim::Picos blocked_from_{0};    // when it blocked
  sim::Picos not_before_{0};      // end of the kernel work that ran while it was blocked
  Poll poll_;
  std::vector<memory::WatchId> watches_;
  bool waking_ = false;  // blocked, and to run at a known time
  bool token_ = false;   // an unpark() that came before its park()
  sim::Picos token_time_{0};
  Thread* next_waiter_ = nullptr;  // in SpinLock's list
  sim::Picos spin_from_{0};        // when it began to spin for a lock
  unsigned in_kernel_ = 0;
  bool killed_ = false, dying_ = false;
};

/// The thread that executes now, as `current` in Linux. Only valid inside a program.
Thread& current();
/// nullptr when hardware or the simulator itself runs.
Thread* current_or_null();

}  // namespace cpu
