// SPDX-License-Identifier: Apache-2.0
// The parent alone has the database. A point that ends makes room for the next one first and is stored then, so the processors
// do not wait for the disk.
#include "experiment/sweep.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

namespace experiment {

void check_configuration(const SweepPlan& plan, std::uint64_t number, const SweepSample& sample) {
  if (!sample.config_hash.empty() && sample.config_hash != plan.points[number].config_hash)
    throw std::runtime_error(plan.file.string() +
                             ": the scenario, or a profile of it, was changed while the sweep ran; point " +
                             std::to_string(number) + " is not stored");
}

bool run_sweep(const SweepPlan& plan, const std::vector<std::uint64_t>& points, SweepStore& store,
               const SweepRunOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  SweepProgress progress;
  progress.total = points.size();
  const auto tell = [&] {
    progress.elapsed_s = std::chrono::duration<double>(Clock::now() - begin).count();
    if (options.progress) options.progress(progress);
  };
  std::size_t next = 0;
  JobPool pool;
  pool.jobs = options.jobs;
  pool.spare = options.jobs > 1 ? 1 : 0;
  pool.limit = std::chrono::duration<double>(options.limit_s);
  pool.next = [&] { return next < points.size() ? std::optional(next++) : std::nullopt; };
  pool.work = [&](std::size_t job) { return to_text(run_point(plan, plan.points[points[job]])); };
  pool.ended = [&](const JobEnd& end) {
    const SweepSample sample = sample_of(end, options.limit_s);
    if (sample.verdict == "interrupted") return;  // somebody stopped this one alone
    check_configuration(plan, points[end.job], sample);
    store.finish(points[end.job], sample);
    ++progress.done;
    if (sample.verdict != "ok") ++progress.not_ok;
    tell();
  };
  pool.tick = tell;
  return run_jobs(pool);
}

std::string progress_text(const SweepProgress& p) {
  constexpr std::size_t kWidth = 20;
  const double share = p.total == 0 ? 1 : static_cast<double>(p.done) / static_cast<double>(p.total);
  std::string bar(kWidth, '.');
  const auto filled = static_cast<std::size_t>(std::floor(share * kWidth));
  bar.replace(0, filled, filled, '#');
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, "[%s] %3.0f %%  %llu of %llu points", bar.c_str(), std::floor(100 * share),
                static_cast<unsigned long long>(p.done), static_cast<unsigned long long>(p.total));
  std::string out = buffer;
  if (p.not_ok > 0) out += ", " + std::to_string(p.not_ok) + " not ok";
  if (p.done > 0 && p.done < p.total) {
    std::snprintf(buffer, sizeof buffer, ", %.0f s left", std::ceil(p.elapsed_s * (1 - share) / share));
    out += buffer;
  }
  return out;
}

}  // namespace experiment
