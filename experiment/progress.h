// SPDX-License-Identifier: Apache-2.0
// A progress bar for people: simulated time, messages and the time left, once a second on stderr.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "sim/engine.h"

namespace experiment {

/// "[#####.....]  50 %  1.25 ms simulated, 500 of 1000 messages, 3 s left". `total` 0 means unknown: no bar, no estimate.
std::string progress_text(sim::Picos now, std::uint64_t done, std::uint64_t total, double elapsed_s);

/// While it lives, a thread asks the engine once a second to report; the bar is printed from the engine's own thread, so
/// the run is never slowed by more than that. The bar is wiped at the end.
class ProgressBar {
 public:
  ProgressBar(sim::Engine& engine, std::function<std::uint64_t()> done, std::uint64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  sim::Engine& engine_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable stop_condition_;
  bool stop_ = false;
  std::thread ticker_;
};

}  // namespace experiment
