// SPDX-License-Identifier: Apache-2.0
// HTTP for one file, for people on this machine.
#pragma once

#include <cstdint>
#include <filesystem>

namespace cli {

/// Answers GET and HEAD of / on 127.0.0.1 with `page`, as it is on disk at that time, and everything else with an error, until SIGINT or
/// SIGTERM. Prints the address first. `port` 0 takes a free one. Throws UsageError when it cannot listen.
void serve_page(const std::filesystem::path& page, std::uint16_t port);

}  // namespace cli
