// SPDX-License-Identifier: Apache-2.0
// A child runs one scenario and writes its outcome to a pipe as JSON; the end of the pipe and the exit status tell the rest.
#include "experiment/run_pool.h"

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

#include "experiment/scenario.h"
#include "sim/check.h"
#include "sim/config_json.h"

namespace experiment {
namespace {

volatile std::sig_atomic_t stop_asked = 0;
void on_signal(int) { stop_asked = 1; }

/// Catches SIGINT and SIGTERM for its lifetime.
class StopScope {
 public:
  StopScope() {
    stop_asked = 0;
    struct sigaction action {};
    action.sa_handler = &on_signal;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~StopScope() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

RunOutcome outcome_of(const Result& r) {
  RunOutcome o;
  o.outcome = name_of(r.verdict);
  if (r.verdict == Verdict::ok && !r.expectations_met()) o.outcome = "unmet";
  o.good = exit_code(r) == 0;
  for (const auto& p : r.programs)
    for (const auto& f : p.failures) o.why.push_back(f.at + ": " + f.step + ": " + f.message);
  for (const auto& e : r.expectations)
    if (!e.met) o.why.push_back(e.at + ": expected " + e.expected + ", got " + e.actual);
  o.why.insert(o.why.end(), r.outstanding.begin(), r.outstanding.end());
  return o;
}

RunOutcome run_one(const std::filesystem::path& file, const sys::Overrides& overrides) {
  try {
    const Scenario s = load_scenario(file, overrides);
    return outcome_of(run(run_options(s), machine_factory(s)));
  } catch (const sim::ConfigFailure& e) {
    return {"refused", false, {e.what()}};
  } catch (const sim::SimulatorBug& e) {
    return {"bug", false, {e.what()}};
  } catch (const std::exception& e) {
    return {"failed", false, {e.what()}};
  }
}

std::string to_text(const RunOutcome& o) {
  sim::Json j = sim::Json::object();
  j["outcome"] = o.outcome;
  j["good"] = o.good;
  sim::Json& why = j["why"] = sim::Json::array();
  for (const std::string& line : o.why) why.push_back(line);
  return j.compact();
}

/// What a child said, or how it died without a word.
RunOutcome from_text(const std::string& text, int status) {
  if (WIFSIGNALED(status))
    return {"crashed",
            false,
            {"the simulator was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
             strsignal(WTERMSIG(status)) + ")"}};
  sim::ConfigErrors errors;
  const auto j = sim::parse_json(text, "run", errors);
  if (!j || j->find("outcome") == nullptr)
    return {"crashed",
            false,
            {"the simulator ended with status " + std::to_string(WEXITSTATUS(status)) + " and no result"}};
  RunOutcome o{j->find("outcome")->string(), j->find("good")->boolean(), {}};
  for (const sim::Json& line : j->find("why")->items()) o.why.push_back(line.string());
  return o;
}

struct Child {
  pid_t pid = -1;
  int fd = -1;
  std::size_t run = 0;
  std::string text;
};

[[noreturn]] void be_child(int fd, const std::filesystem::path& file, const sys::Overrides& overrides) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGINT, SIG_DFL);  // until the run has a handler of its own
  std::signal(SIGTERM, SIG_DFL);
  const std::string text = to_text(run_one(file, overrides));
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  _exit(0);
}

Child start(std::size_t run, const std::filesystem::path& file, const sys::Overrides& overrides) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    close(ends[0]);
    be_child(ends[1], file, overrides);
  }
  close(ends[1]);
  return {pid, ends[0], run, {}};
}

/// Reads what there is; true when the child has ended.
bool read_from(Child& child) {
  char buffer[4096];
  const ssize_t n = read(child.fd, buffer, sizeof buffer);
  if (n > 0) child.text.append(buffer, static_cast<std::size_t>(n));
  return n == 0 || (n < 0 && errno != EINTR);
}

RunOutcome finish(Child& child) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {}
  close(child.fd);
  return from_text(child.text, status);
}

}  // namespace

std::vector<RunOutcome> run_all(const std::filesystem::path& file, const std::vector<sys::Overrides>& runs,
                                unsigned jobs, const std::function<void(std::size_t)>& progress, bool& interrupted) {
  const StopScope scope;
  std::vector<RunOutcome> out(runs.size());
  std::vector<Child> children;
  std::size_t next = 0, ended = 0;
  bool told = false;
  while (!children.empty() || (next < runs.size() && stop_asked == 0)) {
    while (next < runs.size() && children.size() < jobs && stop_asked == 0) {
      children.push_back(start(next, file, runs[next]));
      ++next;
    }
    if (stop_asked != 0 && !std::exchange(told, true))
      for (const Child& c : children) kill(c.pid, SIGTERM);
    std::vector<pollfd> fds;
    for (const Child& c : children) fds.push_back({c.fd, POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    for (std::size_t i = fds.size(); i-- > 0;) {
      if (fds[i].revents == 0 || !read_from(children[i])) continue;
      RunOutcome o = finish(children[i]);
      if (stop_asked == 0) out[children[i].run] = std::move(o);
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      if (progress) progress(++ended);
    }
  }
  interrupted = stop_asked != 0;
  return out;
}

}  // namespace experiment
