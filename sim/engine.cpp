// SPDX-License-Identifier: Apache-2.0
// The SC_METHOD runs events until a program thread has to run, then returns; the thread hands control back with an
// immediate notification when it blocks. In run-ahead mode SystemC's clock moves only when another SystemC model has
// something timed pending; in tick mode it follows every distinct event time. In both, a step follows each activity of
// other SystemC models, so that what they schedule is seen.
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
  resume_at(t);
}

void ProgramThread::resume_at(Picos t) {
  resume_at_ = t;
  engine_.scheduler_.at_thread(t, number_, &ProgramThread::resume, this);
}

void ProgramThread::resume(void* self, std::uint64_t) {
  auto* t = static_cast<ProgramThread*>(self);
  if (t->resume_at_ != t->engine_.scheduler_.now()) return;
  t->resume_at_ = kNever;
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
  if (engine_.mode_ == EngineMode::run_ahead && local_ <= engine_.limit_ && !engine_.asked() &&
      s.next_time() > local_) {
    s.pass_thread(local_, number_);  // nothing happens in between: no need to switch
    return;
  }
  resume_at(local_);
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
    token_time_ = token_ ? min(token_time_, t) : t;
    token_ = true;
    return;
  }
  parked_ = false;
  resume_at(max(t, local_));
}

void ProgramThread::interrupt(Picos t) {
  if (finished_ || !started_) return;
  parked_ = token_ = false;
  local_ = t;
  resume_at(t);
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
    const sc_core::sc_time ahead = sc_core::sc_time_to_pending_activity();
    const bool alone = ahead == sc_core::sc_max_time() - sc_core::sc_time_stamp();
    const Picos others = alone ? kNever : sc_now() + Picos{static_cast<std::int64_t>(ahead.value())};
    limit_ = min(until_, mode_ == EngineMode::tick ? sc_now() : others);
    while (error_ == nullptr && !attend_requests() && scheduler_.run_one(limit_)) {
      if (yield_) {
        yield_ = false;
        return;
      }
    }
    if (error_ != nullptr || stop_.load(std::memory_order_relaxed)) {
      outcome_ = Outcome::stopped;
      sc_core::sc_pause();
      return;
    }
    const Picos next = scheduler_.next_time();
    outcome_ = next == kNever ? Outcome::quiescent : Outcome::time_limit;
    const Picos resume = min(next, others);
    if (resume <= until_ && resume != kNever) next_trigger(to_sc(resume - sc_now()), wake_);
  } catch (...) {
    error_ = std::current_exception();
    sc_core::sc_pause();
  }
}

Outcome Engine::run(Picos until) {
  until_ = until;
  wake_.notify(sc_core::SC_ZERO_TIME);
  if (until == kNever) sc_core::sc_start();
  else sc_core::sc_start(to_sc(max(until - sc_now(), Picos{0})), sc_core::SC_EXIT_ON_STARVATION);
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  if (outcome_ == Outcome::stopped) stop_.store(false, std::memory_order_relaxed);
  return outcome_;
}

}  // namespace sim
