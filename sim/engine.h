// SPDX-License-Identifier: Apache-2.0
// Couples the event engine to SystemC: one SC_METHOD runs the Scheduler's events; programs are SC_THREADs.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "sim/scheduler.h"

namespace sim {

/// How the engine relates to SystemC's clock. Both execute the same events in the same order.
enum class EngineMode {
  run_ahead,  ///< run events up to sc_time_to_pending_activity(); sc_time_stamp() lags behind Scheduler::now()
  tick,       ///< advance sc_time to every distinct event time, for co-simulation with other SystemC models
};

enum class Outcome {
  quiescent,   ///< no event is left
  time_limit,  ///< the next event lies beyond the time limit
  stopped,     ///< stop() was called
};

class Engine;

/// A program (or kernel) thread: an SC_THREAD with a local clock that may run ahead of the engine's.
/// charge() only moves the local clock; sync() lets everything that happens before the local time happen.
class ProgramThread {
 public:
  ProgramThread(Engine& engine, std::string name, std::uint32_t number, std::function<void()> body);
  ProgramThread(const ProgramThread&) = delete;
  ProgramThread& operator=(const ProgramThread&) = delete;

  /// The thread's own time, >= Scheduler::now().
  Picos now() const { return local_; }
  void charge(Picos d) { local_ += d; }
  /// Blocks until all events up to and including the local time have run.
  void sync();
  /// Blocks until unpark(); returns at once if unpark() came first. The local clock becomes the wake-up time.
  void park();
  /// Wakes the thread at time t (>= Scheduler::now()); never before the thread's local time.
  void unpark(Picos t);

  /// Ends whatever the thread waits for, sync() included, at time t (>= Scheduler::now()): its clock goes back to t. Not for
  /// the running thread.
  void interrupt(Picos t);

  bool parked() const { return parked_; }
  bool finished() const { return finished_; }
  bool started() const { return started_; }
  const std::string& name() const { return name_; }
  std::uint32_t number() const { return number_; }
  /// What the thread waits for, for the deadlock report; owned by the caller.
  void set_wait_reason(const char* why) { wait_reason_ = why; }
  const char* wait_reason() const { return wait_reason_; }

  /// Begins execution at time t. Called once, in thread-number order, before or during the run.
  void start(Picos t);

 private:
  friend class Engine;
  void main();
  void switch_out();
  static void resume(void* self, std::uint64_t);
  void resume_at(Picos t);

  Engine& engine_;
  std::string name_;
  std::uint32_t number_;
  std::function<void()> body_;
  sc_core::sc_event event_;
  Picos local_{0};
  bool parked_ = false, token_ = false, finished_ = false, started_ = false, waiting_ = false, skip_first_wait_ = false;
  Picos token_time_{0};
  Picos resume_at_ = kNever;  ///< of the resumption that counts; interrupt() overtakes others
  const char* wait_reason_ = "";
};

/// Owner of the simulation's progress. Exactly one per process, because SystemC has one kernel per process.
class Engine : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Engine);
  Engine(sc_core::sc_module_name name, Scheduler& scheduler, EngineMode mode);

  Scheduler& scheduler() { return scheduler_; }
  EngineMode mode() const { return mode_; }
  /// Creates a program thread; `number` orders threads that resume at the same instant and must be unique.
  ProgramThread& spawn(std::string name, std::uint32_t number, std::function<void()> body);
  const std::vector<std::unique_ptr<ProgramThread>>& threads() const { return threads_; }
  /// The thread that executes now, nullptr while hardware events run.
  ProgramThread* running() const { return running_; }

  /// Runs until no event is left, the limit is passed or stop() is called; may be called again.
  /// Rethrows what a model or a program threw. While another SystemC model has something pending, the run goes on: that
  /// model may schedule events, at absolute times >= sc_time_stamp(). A free-running sc_clock therefore needs a limit.
  Outcome run(Picos until = kNever);
  /// Ends run() after the current event, or the next run() at once. Safe in a signal handler.
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  /// A callback made from run() soon after request_progress(), which is safe in a signal handler or another thread.
  void on_progress(std::function<void()> fn) { progress_ = std::move(fn); }
  void request_progress() { progress_requested_.store(true, std::memory_order_relaxed); }

 private:
  friend class ProgramThread;
  void step();
  bool attend_requests();
  bool asked() const {
    return stop_.load(std::memory_order_relaxed) || progress_requested_.load(std::memory_order_relaxed);
  }

  Scheduler& scheduler_;
  EngineMode mode_;
  sc_core::sc_event wake_;
  std::vector<std::unique_ptr<ProgramThread>> threads_;
  ProgramThread* running_ = nullptr;
  bool yield_ = false;
  std::atomic<bool> stop_{false}, progress_requested_{false};
  std::function<void()> progress_;
  Picos until_ = kNever;
  Picos limit_{0};  // up to where the current step may run
  Outcome outcome_ = Outcome::quiescent;
  std::exception_ptr error_;
};

}  // namespace sim
