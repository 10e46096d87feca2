// SPDX-License-Identifier: Apache-2.0
// One run of random traffic, seen from outside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sys::test {

/// Runs the traffic of `seed` on two hosts. What went wrong; empty if nothing. Once per operating-system process.
std::string run_traffic(std::uint64_t seed, std::size_t messages);

}  // namespace sys::test
