// SPDX-License-Identifier: Apache-2.0
// Results of several runs in one test: each run is made in a process of its own, because SystemC has one kernel per process.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "experiment/scenario.h"
#include "sim/config_json.h"

namespace experiment {

/// The result, without its cost, of a run of `file` with these overrides.
inline sim::Json result_of(const std::filesystem::path& file, const std::vector<std::string>& sets = {}) {
  int fd[2];
  EXPECT_EQ(pipe(fd), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Scenario s = load_scenario(file, {sets});
    const std::string text = to_json(run(run_options(s), machine_factory(s)), false).compact();
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = write(fd[1], text.data() + done, text.size() - done);
      if (n <= 0) _exit(1);
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(fd[1]);
  std::string text;
  char buffer[65536];
  for (ssize_t n; (n = read(fd[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  close(fd[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << file;
  sim::ConfigErrors errors;
  return sim::parse_json(text, "result", errors).value_or(sim::Json{});
}

}  // namespace experiment
