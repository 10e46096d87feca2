// SPDX-License-Identifier: Apache-2.0
// Many jobs, each in a forked process of its own: SystemC has one kernel per process, and a job that crashes takes nobody
// along. No exec: a child is the parent as it was at the fork, so a job starts in well under a millisecond.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace experiment {

/// How the process of one job ended.
struct JobEnd {
  std::size_t job = 0;
  std::string text;         ///< what the job returned; possibly cut short when it did not end by itself
  int status = 0;           ///< as waitpid() reports it
  bool time_limit = false;  ///< it was killed for taking longer than JobPool::limit
  double wall_s = 0;

  /// It ended by itself and its text is whole.
  bool finished() const { return status == 0; }
  /// "signal 9 (Killed)", "status 3".
  std::string how() const;
};

/// The jobs, and who is told about them. All but `work` are called in the parent, one at a time.
struct JobPool {
  unsigned jobs = 1;                       ///< at a time
  std::chrono::duration<double> limit{0};  ///< most wall time of one job; 0 = none
  unsigned spare = 0;                      ///< further ones while `ended` is at work, which may wait for a disk
  /// The next job, nothing when there is no more.
  std::function<std::optional<std::size_t>()> next;
  /// Runs in the child; what it returns becomes JobEnd::text.
  std::function<std::string(std::size_t job)> work;
  /// Called when the job's successor is under way. What it throws ends the pool: children are killed, and it is thrown on.
  std::function<void(JobEnd)> ended;
  /// Called about once a second, if given.
  std::function<void()> tick;
};

/// Runs jobs until there is no next one. The process must not have built a SystemC module yet. SIGINT and SIGTERM kill those
/// under way, which are not reported, and start no more. Returns true when that happened.
bool run_jobs(const JobPool& pool);

}  // namespace experiment
