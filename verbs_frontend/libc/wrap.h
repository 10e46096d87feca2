// SPDX-License-Identifier: Apache-2.0
// Calls of the C library that a plug-in makes reach the simulated process: it is linked with `--wrap=NAME` for each, which
// turns its call of NAME into one of __wrap_NAME, which the simulator exports.
#pragma once

#include <span>

namespace verbs {

/// NAMEs that have a __wrap_NAME.
std::span<const char* const> wrapped_calls();
/// NAMEs that have none: a simulated process has no such thing, and a plug-in that calls one is not loaded.
std::span<const char* const> refused_calls();

/// exit(3) of a simulated process: unwinds the program up to whoever has called its main().
struct Exit {
  int code;
};

}  // namespace verbs
