// SPDX-License-Identifier: Apache-2.0
#include "experiment/version.h"

#include <systemc>

#include "git_id.h"

namespace experiment {

std::string version() { return std::string(RDMASIM_VERSION) + " (" + RDMASIM_GIT_ID + ")"; }

std::string version_line() {
#if defined(__clang__)
  const std::string compiler = "Clang " __clang_version__;
#else
  const std::string compiler = "GCC " __VERSION__;
#endif
  const std::string build = RDMASIM_BUILD_TYPE[0] == '\0' ? "no build type" : RDMASIM_BUILD_TYPE;
  return std::string("rdmasim ") + RDMASIM_VERSION + " (git " + RDMASIM_GIT_ID + ", " + build + ", " + compiler +
         ", SystemC " + std::to_string(sc_core::sc_version_major) + "." + std::to_string(sc_core::sc_version_minor) +
         "." + std::to_string(sc_core::sc_version_patch) + ")";
}

}  // namespace experiment
