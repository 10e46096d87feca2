// SPDX-License-Identifier: Apache-2.0
// SIM_CHECK: invariants of the simulator itself, on in every build type. A failed check is a bug of rdmasim (exit code 3);
// mistakes of users and modelled failures never come here.
#pragma once

#include <stdexcept>
#include <string>

namespace sim {

/// Thrown by SIM_CHECK; the CLI turns it into exit code 3 with the simulated time and the running process.
struct SimulatorBug : std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* expr, const char* file, int line, const std::string& detail);

}  // namespace sim

#define SIM_CHECK(expr, ...)                                                    \
  do {                                                                          \
    if (!(expr)) [[unlikely]]                                                   \
      ::sim::check_failed(#expr, __FILE__, __LINE__, std::string{__VA_ARGS__}); \
  } while (false)
