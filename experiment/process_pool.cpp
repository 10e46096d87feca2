// SPDX-License-Identifier: Apache-2.0
// A child writes its text to a pipe; the end of the pipe and the exit status tell the rest. Signals are blocked but for the
// wait in ppoll(), so that none is missed between a look and the wait.
#include "experiment/process_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "experiment/stop_scope.h"

namespace experiment {
namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = -1;
  int fd = -1;
  std::size_t job = 0;
  Clock::time_point start;
  bool time_limit = false;
  std::string text;
};

[[noreturn]] void be_child(int fd, pid_t parent, const sigset_t& mask, const JobPool& pool, std::size_t job) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before
  std::signal(SIGINT, SIG_DFL);       // until the run has a handler of its own
  std::signal(SIGTERM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const std::string text = pool.work(job);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    done += static_cast<std::size_t>(n);
  }
  _exit(0);
}

/// The children under way; those that are left at the end are killed.
class Children {
 public:
  Children(const JobPool& pool, const sigset_t& mask) : pool_(pool), mask_(mask) {}
  ~Children() {
    for (const Child& c : all_) kill(c.pid, SIGKILL);
    for (Child& c : all_) reap(c);
  }
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }

  void start(std::size_t job) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) {
      const int error = errno;
      close(ends[0]);
      close(ends[1]);
      throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(error));
    }
    if (pid == 0) {
      close(ends[0]);
      be_child(ends[1], parent, mask_, pool_, job);
    }
    close(ends[1]);
    all_.push_back({pid, ends[0], job, Clock::now(), false, {}});
  }

  /// Waits for something to happen, a second at most; those that have ended are taken out.
  std::vector<JobEnd> wait() {
    std::vector<pollfd> fds;
    for (const Child& c : all_) fds.push_back({c.fd, POLLIN, 0});
    const timespec timeout = patience();
    std::vector<JobEnd> out;
    if (ppoll(fds.data(), fds.size(), &timeout, &mask_) > 0) {
      for (std::size_t i = fds.size(); i-- > 0;) {
        if (fds[i].revents == 0 || !read_from(all_[i])) continue;
        Child c = std::move(all_[i]);
        all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
        const int status = reap(c);
        out.push_back({c.job, std::move(c.text), status, c.time_limit, seconds_of(c)});
      }
    }
    enforce_limit();
    return out;
  }

 private:
  static double seconds_of(const Child& c) { return std::chrono::duration<double>(Clock::now() - c.start).count(); }

  /// Until the next limit, or one second.
  timespec patience() const {
    double least = 1;
    if (pool_.limit.count() > 0)
      for (const Child& c : all_)
        if (!c.time_limit) least = std::min(least, std::max(0.0, pool_.limit.count() - seconds_of(c)) + 0.001);
    return {static_cast<time_t>(least),
            static_cast<long>((least - static_cast<double>(static_cast<time_t>(least))) * 1e9)};
  }

  void enforce_limit() {
    if (pool_.limit.count() <= 0) return;
    for (Child& c : all_) {
      if (c.time_limit || seconds_of(c) < pool_.limit.count()) continue;
      c.time_limit = true;
      kill(c.pid, SIGKILL);
    }
  }

  /// Reads what there is; true when the child has ended.
  static bool read_from(Child& c) {
    char buffer[65536];
    const ssize_t n = read(c.fd, buffer, sizeof buffer);
    if (n > 0) c.text.append(buffer, static_cast<std::size_t>(n));
    return n == 0 || (n < 0 && errno != EINTR);
  }

  static int reap(Child& c) {
    int status = 0;
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR) {}
    close(c.fd);
    return status;
  }

  const JobPool& pool_;
  const sigset_t& mask_;
  std::vector<Child> all_;
};

}  // namespace

std::string JobEnd::how() const {
  if (WIFSIGNALED(status))
    return "signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "status " + std::to_string(WEXITSTATUS(status));
}

bool run_jobs(const JobPool& pool) {
  const StopScope stop;
  Children children(pool, stop.waiting_mask());
  std::optional<std::size_t> next = pool.next();
  const auto fill = [&](std::size_t most) {
    for (; next && children.size() < most && !stop.asked(); next = pool.next()) children.start(*next);
  };
  auto last_tick = Clock::now();
  for (fill(pool.jobs); !children.empty() && !stop.asked(); fill(pool.jobs)) {
    std::vector<JobEnd> ends = children.wait();
    if (stop.asked()) break;
    if (!ends.empty()) fill(pool.jobs + pool.spare);
    for (JobEnd& e : ends) pool.ended(std::move(e));
    if (pool.tick && Clock::now() - last_tick >= std::chrono::seconds(1)) {
      last_tick = Clock::now();
      pool.tick();
    }
  }
  return stop.asked();
}

}  // namespace experiment
