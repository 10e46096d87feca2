// SPDX-License-Identifier: Apache-2.0
// Runs the binary as users call it, in a directory of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_json.h"

extern char** environ;

namespace fs = std::filesystem;

inline const std::string kPingPong = RDMASIM_SOURCE_DIR "/scenarios/rc_send_pingpong.json";

struct Finished {
  int code = -1;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  Cli() : dir_(fs::temp_directory_path() / ("rdmasim_cli_" + std::to_string(getpid()))) {
    fs::create_directories(dir_);
  }
  ~Cli() override {
    fs::permissions(dir_, fs::perms::owner_all, fs::perm_options::add);
    fs::remove_all(dir_);
  }

  pid_t spawn(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{RDMASIM_BINARY};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& a : all) argv.push_back(a.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, (dir_ / "stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, (dir_ / "stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, RDMASIM_BINARY, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
  }
  Finished wait(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status), slurp(dir_ / "stdout"),
            slurp(dir_ / "stderr")};
  }
  Finished rdmasim(const std::vector<std::string>& arguments) { return wait(spawn(arguments)); }
  Finished run(std::vector<std::string> more) {
    more.insert(more.begin(), {"run", kPingPong});
    return rdmasim(more);
  }
  fs::path write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name) << text;
    return dir_ / name;
  }
  static std::string slurp(const fs::path& p) {
    std::ostringstream s;
    s << std::ifstream(p).rdbuf();
    return s.str();
  }
  static sim::Json parsed(const std::string& text) {
    sim::ConfigErrors errors;
    const auto j = sim::parse_json(text, "output", errors);
    EXPECT_TRUE(errors.empty()) << errors.text();
    return j.value_or(sim::Json{});
  }

  fs::path dir_;
};
