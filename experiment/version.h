// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace experiment {

/// "0.1.0 (a1b2c3d4e5)": project version and git id; what results and traces carry.
std::string version();
/// "rdmasim 0.1.0 (git …, Release, GCC 12.2.0, SystemC 2.3.4)".
std::string version_line();

}  // namespace experiment
