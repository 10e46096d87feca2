// SPDX-License-Identifier: Apache-2.0
// The event engine: plain callbacks in a calendar wheel, executed in the order (time, class, sequence).
// It knows nothing of SystemC; sim/engine.h drives it from one SC_METHOD.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace sim {

using EventFn = void (*)(void* ctx, std::uint64_t arg);

/// Calendar wheel with a heap for far events.
///
/// Order: events run by time; at one instant all ordinary events run first, in the order in which they were scheduled,
/// then resumptions of program threads in the order of their thread number. A program that looks at memory at time t
/// therefore sees everything that hardware did at t, and the result does not depend on who scheduled first.
class Scheduler {
 public:
  Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  Picos now() const { return now_; }

  /// Run fn(ctx, arg) at absolute time t (>= now).
  void at(Picos t, EventFn fn, void* ctx, std::uint64_t arg = 0) { insert(t, next_seq_++, fn, ctx, arg, background_); }
  void after(Picos d, EventFn fn, void* ctx, std::uint64_t arg = 0) { at(now_ + d, fn, ctx, arg); }
  /// Run obj->Method(arg) at time t; Method takes nothing or a std::uint64_t.
  template <auto Method, class T>
  void at(Picos t, T* obj, std::uint64_t arg = 0) {
    at(t, &thunk<Method, T>, obj, arg);
  }
  template <auto Method, class T>
  void after(Picos d, T* obj, std::uint64_t arg = 0) {
    at(now_ + d, &thunk<Method, T>, obj, arg);
  }

  /// Run fn after every ordinary event of instant t; ties are ordered by `thread` (see the class comment).
  void at_thread(Picos t, std::uint32_t thread, EventFn fn, void* ctx) {
    insert(t, kThreadClass | thread, fn, ctx, 0, false);
  }

  // Background work: hardware looks now and then for something that only others change. It never keeps a run alive.

  /// Events executed so far, and program threads passed, that background work did not cause.
  std::uint64_t work() const { return work_; }
  /// Runs fn(ctx, arg) once, `d` after the next event that counts as work, or after now if work() is beyond `seen` already.
  /// Until then nothing is pending. fn, and all that it causes except resumed program threads, is background work.
  void after_work(std::uint64_t seen, Picos d, EventFn fn, void* ctx, std::uint64_t arg = 0);
  /// The background event under execution has found something to do: what it causes from here on counts as work.
  void promote() { background_ = false; }

  /// Time of the earliest pending event, kNever if there is none.
  Picos next_time() const;
  /// Runs the earliest event, if any is due at or before `limit`. Returns false if there is none.
  bool run_one(Picos limit);
  /// Moves the clock without running anything; no event may be pending before t.
  void advance_to(Picos t);
  /// As advance_to, for a program thread that need not be suspended until t: counts in the order checksum like the
  /// resumption that it saves.
  void pass_thread(Picos t, std::uint32_t thread);

  std::uint64_t executed() const { return executed_; }
  std::size_t pending() const { return pending_; }
  /// Order-sensitive hash over (time, sequence) of all events and thread resumptions so far; equal in every run mode.
  std::uint64_t order_checksum() const { return checksum_; }

 private:
  struct Node {
    Picos t;
    std::uint64_t seq;
    EventFn fn;
    void* ctx;
    std::uint64_t arg;
    std::uint32_t next;
    bool background;
  };
  /// A call that waits for work.
  struct Sleeper {
    Picos d;
    EventFn fn;
    void* ctx;
    std::uint64_t arg;
  };
  struct Key {
    Picos t;
    std::uint64_t seq;
    std::uint32_t node;
    bool operator<(const Key& o) const { return t != o.t ? t < o.t : seq < o.seq; }
  };
  static constexpr std::uint64_t kThreadClass = 1ULL << 63;
  static constexpr std::uint32_t kNil = ~0U;
  static constexpr unsigned kBuckets = 4096;

  template <auto Method, class T>
  static void thunk(void* ctx, std::uint64_t arg) {
    if constexpr (requires(T * t) { (t->*Method)(arg); }) (static_cast<T*>(ctx)->*Method)(arg);
    else {
      (void)arg;
      (static_cast<T*>(ctx)->*Method)();
    }
  }

  void insert(Picos t, std::uint64_t seq, EventFn fn, void* ctx, std::uint64_t arg, bool background);
  void count_work() {
    ++work_;
    if (!sleepers_.empty()) [[unlikely]]
      wake_sleepers();
  }
  void wake_sleepers();
  void place(std::uint32_t node);
  unsigned next_bucket() const;
  Picos earliest_in(unsigned bucket) const;
  bool load_due_bucket(Picos limit);
  void pull_far_events();
  void mix(Picos t, std::uint64_t seq) {
    checksum_ = (checksum_ ^ static_cast<std::uint64_t>(t.n) ^ std::rotl(seq, 1)) * 0x9E3779B97F4A7C15ULL;
  }
  void retune();
  std::uint64_t slot_of(Picos t) const { return static_cast<std::uint64_t>(t.n) >> shift_; }

  Picos now_{0};
  std::uint64_t next_seq_ = 1;
  std::uint64_t executed_ = 0;
  std::uint64_t checksum_ = 0;
  std::size_t pending_ = 0;
  std::uint64_t work_ = 0;
  bool background_ = false;  // the event under execution is background work
  std::vector<Sleeper> sleepers_;

  unsigned shift_ = 12;                    // log2 of the bucket width in ps, adapted to the load
  std::uint64_t current_slot_ = 0;         // the bucket whose events are in current_
  std::vector<Key> current_;               // events of the current bucket, latest first (pop from the back)
  std::uint32_t bucket_[kBuckets];         // list heads
  std::uint64_t bitmap_[kBuckets / 64]{};  // non-empty buckets
  std::uint64_t summary_ = 0;              // non-zero words of bitmap_
  std::size_t in_wheel_ = 0;
  std::vector<Key> far_;  // min-heap of events beyond the wheel
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> retuned_;  // scratch of retune()
  std::uint32_t free_ = kNil;
  std::uint64_t tune_executed_ = 0;
  Picos tune_start_{0};
};

}  // namespace sim
