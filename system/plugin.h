// SPDX-License-Identifier: Apache-2.0
// Loads a user's program and runs it as a simulated process. Each process has a copy of the shared object, so that its static
// variables are its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sys {

class Plugin {
 public:
  /// Throws std::runtime_error, with the file and the reason, when it cannot be loaded or has no main().
  explicit Plugin(const std::filesystem::path& file);

  /// Calls main() on the present thread; argv[0] is `name`. Returns its exit code. Once per Plugin.
  int run(const std::string& name, const std::vector<std::string>& arguments);

 private:
  int (*main_)(int, char**) = nullptr;
};

/// Options of the compiler that make a plug-in: `g++ prog.cpp -o prog.so` and these.
std::string plugin_flags();

}  // namespace sys
