// SPDX-License-Identifier: Apache-2.0
// A signal handler can reach only static storage, so the flag is a static here and nowhere else.
#include "experiment/stop_scope.h"

namespace experiment {
namespace {

volatile std::sig_atomic_t stop_asked = 0;
void on_signal(int) { stop_asked = 1; }

}  // namespace

StopScope::StopScope() {
  stop_asked = 0;
  struct sigaction action {};
  action.sa_handler = &on_signal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, &old_mask_);
}

StopScope::~StopScope() {
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool StopScope::asked() const { return stop_asked != 0; }

}  // namespace experiment
