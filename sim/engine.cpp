// SPDX-License-Identifier: Apache-2.0
// The SC_METHOD runs events until a program thread has to run, then returns; the thread hands control back with an
// immediate notification when it blocks. In run-ahead mode SystemC's clock moves only when another SystemC model has
// something timed pending; in tick mode it follows every distinct event time.
#include "sim/engine.h"

#include <utility>

#include "sim/check.h"

namespace sim {
namespace {
sc_core::sc_time to_sc(Picos t) { return {static_cast<double>(t.n), sc_core::SC_PS}; }
Picos sc_now() { return {static_cast<std::int64_t>(sc_core::sc_time_stamp().value())}; }
}  // namespace

ProgramThread::ProgramThread(Engine& engine, std::string name, std::uint32_t number, std::function<void()> body)
    : engine_(engine), name_(std::move(name)), number_(number), body_(std::move(body)) {}

void ProgramThread::start(Picos t) {
  SIM_CHECK(!started_, "thread started twice: " + name_);
  started_ = true;
  engine_.scheduler_.at_thread(t, number_, &ProgramThread::resume, this);
}

void ProgramThread::resume(void* self, std::uint64_t) {
  auto* t = static_cast<ProgramThread*>(self);
  t->local_ = max(t->local_, t->engine_.scheduler_.now());
  t->engine_.running_ = t;
  t->engine_.yield_ = true;
  if (t->waiting_) t->event_.notify();
  else t->skip_first_wait_ = true;  // SystemC has not run the new process yet
}

void ProgramThread::main() {
  if (!skip_first_wait_) {
    waiting_ = true;
    sc_core::wait(event_);
  }
  try {
    body_();
  } catch (const sc_core::sc_unwind_exception&) {
    throw;
  } catch (...) {
    engine_.error_ = std::current_exception();
  }
  finished_ = true;
  engine_.running_ = nullptr;
  engine_.wake_.notify();
}

void ProgramThread::switch_out() {
  engine_.running_ = nullptr;
  engine_.wake_.notify();
  waiting_ = true;
  sc_core::wait(event_);
}

void ProgramThread::sync() {
  Scheduler& s = engine_.scheduler_;
  if (local_ <= s.now()) return;
  if (engine_.mode_ == EngineMode::run_ahead && local_ <= engine_.until_ && s.next_time() > local_) {
    s.advance_to(local_);  // nothing happens in between: no need to switch
    return;
  }
  s.at_thread(local_, number_, &ProgramThread::resume, this);
  switch_out();
}

void ProgramThread::park() {
  if (token_) {
    token_ = false;
    local_ = max(local_, token_time_);
    sync();
    return;
  }
  parked_ = true;
  switch_out();
}

void ProgramThread::unpark(Picos t) {
  if (!parked_) {
    if (!token_) token_time_ = t;
    token_ = true;
    return;
  }
  parked_ = false;
  engine_.scheduler_.at_thread(max(t, local_), number_, &ProgramThread::resume, this);
}

Engine::Engine(sc_core::sc_module_name name, Scheduler& scheduler, EngineMode mode)
    : sc_module(name), scheduler_(scheduler), mode_(mode) {
  SC_METHOD(step);
  sensitive << wake_;
  dont_initialize();
}

ProgramThread& Engine::spawn(std::string name, std::uint32_t number, std::function<void()> body) {
  threads_.push_back(std::make_unique<ProgramThread>(*this, std::move(name), number, std::move(body)));
  ProgramThread* t = threads_.back().get();
  sc_core::sc_spawn_options options;
  options.set_stack_size(256 << 10);
  sc_core::sc_spawn([t] { t->main(); }, sc_core::sc_gen_unique_name("thread"), &options);
  return *t;
}

// Handles what other threads and signal handlers asked for. True if the run must end.
bool Engine::attend_requests() {
  if (progress_requested_.load(std::memory_order_relaxed)) {
    progress_requested_.store(false, std::memory_order_relaxed);
    if (progress_) progress_();
  }
  return stop_.load(std::memory_order_relaxed);
}

void Engine::step() {
  try {
    Picos limit = until_;
    if (mode_ == EngineMode::tick) {
      limit = min(until_, sc_now());
    } else {
      const sc_core::sc_time ahead = sc_core::sc_time_to_pending_activity();
      if (ahead != sc_core::sc_max_time() - sc_core::sc_time_stamp())
        limit = min(until_, sc_now() + Picos{static_cast<std::int64_t>(ahead.value())});
    }
    while (error_ == nullptr && !attend_requests() && scheduler_.run_one(limit)) {
      if (yield_) {
        yield_ = false;
        return;
      }
    }
    if (error_ != nullptr || stop_.load(std::memory_order_relaxed)) {
      outcome_ = Outcome::stopped;
      return;
    }
    const Picos next = scheduler_.next_time();
    if (next == kNever) {
      outcome_ = Outcome::quiescent;
    } else if (next > until_) {
      outcome_ = Outcome::time_limit;
    } else {
      next_trigger(to_sc(next - sc_now()), wake_);
    }
  } catch (...) {
    error_ = std::current_exception();
  }
}

Outcome Engine::run(Picos until) {
  until_ = until;
  stop_.store(false, std::memory_order_relaxed);
  wake_.notify(sc_core::SC_ZERO_TIME);
  sc_core::sc_start();
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  return outcome_;
}

}  // namespace sim
