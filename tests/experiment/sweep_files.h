// SPDX-License-Identifier: Apache-2.0
// A directory of its own for a test, with scenarios to sweep.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace experiment {

struct SweepFiles : testing::Test {
  SweepFiles() : dir(std::filesystem::temp_directory_path() / ("rdmasim_sweep_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(dir);
  }
  ~SweepFiles() override { std::filesystem::remove_all(dir); }
  SweepFiles(const SweepFiles&) = delete;
  SweepFiles& operator=(const SweepFiles&) = delete;

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::ofstream(dir / name) << text;
    return dir / name;
  }
  /// A stream of ten WRITEs with this `sweep` section.
  std::filesystem::path scenario(const std::string& sweep) const {
    return write("stream.json",
                 R"({"workloads": [{"op": "write_bw", "size": "64 B", "iters": 10}], "sweep": )" + sweep + "}");
  }
  static std::string slurp(const std::filesystem::path& p) {
    std::ostringstream s;
    s << std::ifstream(p).rdbuf();
    return s.str();
  }

  const std::filesystem::path dir;
};

}  // namespace experiment
