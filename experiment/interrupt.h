// SPDX-License-Identifier: Apache-2.0
// Ctrl-C ends a run cleanly: the engine stops after the current event and partial results are reported.
#pragma once

#include <csignal>

#include "sim/engine.h"

namespace experiment {

/// While one of these lives, the first SIGINT or SIGTERM stops `engine`; a second one kills the process as usual.
class InterruptScope {
 public:
  explicit InterruptScope(sim::Engine& engine);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  /// True once a signal has come.
  bool interrupted() const;

 private:
  struct sigaction old_int_ {
  }, old_term_{};
};

}  // namespace experiment
