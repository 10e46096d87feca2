// SPDX-License-Identifier: Apache-2.0
#include "experiment/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace experiment {

std::string progress_text(sim::Picos now, std::uint64_t done, std::uint64_t total, double elapsed_s) {
  char buffer[160];
  const double ms = static_cast<double>(now.n) / 1e9;
  if (total == 0) {
    std::snprintf(buffer, sizeof buffer, "%.3f ms simulated, %llu messages", ms, static_cast<unsigned long long>(done));
    return buffer;
  }
  constexpr std::size_t kWidth = 20;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(std::floor(share * kWidth));
  std::string bar(kWidth, '.');
  bar.replace(0, filled, filled, '#');
  int n = std::snprintf(buffer, sizeof buffer, "[%s] %3.0f %%  %.3f ms simulated, %llu of %llu messages", bar.c_str(),
                        std::floor(100 * share), ms, static_cast<unsigned long long>(done),
                        static_cast<unsigned long long>(total));
  std::string out(buffer, static_cast<std::size_t>(n));
  if (done > 0) {
    n = std::snprintf(buffer, sizeof buffer, ", %.0f s left", std::ceil(elapsed_s * (1 - share) / share));
    out.append(buffer, static_cast<std::size_t>(n));
  }
  return out;
}

ProgressBar::ProgressBar(sim::Engine& engine, std::function<std::uint64_t()> done, std::uint64_t total)
    : engine_(engine) {
  engine.on_progress([this, done = std::move(done), total] {
    shown_ = true;
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    std::fprintf(stderr, "\r\033[K%s",
                 progress_text(engine_.scheduler().now(), done(), total, elapsed.count()).c_str());
    std::fflush(stderr);
  });
  ticker_ = std::thread([this] {
    std::unique_lock lock(mutex_);
    while (!stop_condition_.wait_for(lock, std::chrono::seconds(1), [this] { return stop_; }))
      engine_.request_progress();
  });
}

ProgressBar::~ProgressBar() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_condition_.notify_one();
  ticker_.join();
  engine_.on_progress({});
  if (shown_) std::fputs("\r\033[K", stderr);
}

}  // namespace experiment
