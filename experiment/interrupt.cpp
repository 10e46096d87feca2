// SPDX-License-Identifier: Apache-2.0
// A signal handler can reach only static storage, so the engine to stop is a static here and nowhere else.
#include "experiment/interrupt.h"

#include <atomic>

namespace experiment {
namespace {

std::atomic<sim::Engine*> target{nullptr};
std::atomic<bool> seen{false};
static_assert(std::atomic<sim::Engine*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void on_signal(int) {
  seen.store(true, std::memory_order_relaxed);
  if (sim::Engine* e = target.load(std::memory_order_relaxed); e != nullptr) e->stop();
}

}  // namespace

InterruptScope::InterruptScope(sim::Engine& engine) {
  seen = false;
  target = &engine;
  struct sigaction action {};
  action.sa_handler = &on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

InterruptScope::~InterruptScope() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  target = nullptr;
}

bool InterruptScope::interrupted() const { return seen.load(std::memory_order_relaxed); }

}  // namespace experiment
