// SPDX-License-Identifier: Apache-2.0
// Frames on the wires as a pcapng file that Wireshark and tshark dissect.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "sim/trace/file_writer.h"
#include "sim/trace/trace.h"

namespace sim::trace {

/// Creates `path`. Frames longer than `snaplen` bytes are cut, with their real length kept; 0 keeps them whole.
std::unique_ptr<Sink> make_pcapng_sink(const std::filesystem::path& path, std::uint32_t snaplen = 0,
                                       SizeAlarm alarm = {});

}  // namespace sim::trace
