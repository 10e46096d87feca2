// SPDX-License-Identifier: Apache-2.0
// Failure path of SIM_CHECK.
#include "sim/check.h"

namespace sim {

void check_failed(const char* expr, const char* file, int line, const std::string& detail) {
  std::string text = std::string(file) + ":" + std::to_string(line) + ": check failed: " + expr;
  if (!detail.empty()) text += " (" + detail + ")";
  throw SimulatorBug(text);
}

}  // namespace sim
