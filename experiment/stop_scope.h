// SPDX-License-Identifier: Apache-2.0
// Ctrl-C while many runs are made: asks to stop instead of ending the process.
#pragma once

#include <csignal>

namespace experiment {

/// Catches SIGINT and SIGTERM for its lifetime; one of these at a time. The signals are blocked and come in only where
/// waiting_mask() is set, as in ppoll(), so that none is missed between a look at asked() and the wait.
class StopScope {
 public:
  StopScope();
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  bool asked() const;
  const sigset_t& waiting_mask() const { return old_mask_; }

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
  sigset_t old_mask_{};
};

}  // namespace experiment
