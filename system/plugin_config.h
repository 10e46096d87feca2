// SPDX-License-Identifier: Apache-2.0
// A program that is not a list of steps but code of the user: a shared object with a main().
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/located.h"

namespace sys {

struct PluginConfig {
  sim::Located file;
  std::vector<std::string> argv;
  std::int32_t exit_code = 0;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto user = sim::assumed("given by the scenario");
    v("file", c.file, "the shared object, relative to the file that names it; docs/plugins.md tells how to build one",
      sim::required());
    v("argv", c.argv, "arguments of main() behind the name of the program", user);
    v("exit_code", c.exit_code, "what main() has to return or exit() to be given; anything else fails the run", user);
  }
};

/// Its file; a relative path starts where the file that names it is.
std::filesystem::path plugin_path(const PluginConfig& c);

}  // namespace sys
