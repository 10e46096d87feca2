// SPDX-License-Identifier: Apache-2.0
// Occupancies, states and events over time as a value change dump that GTKWave and Surfer open.
#pragma once

#include <filesystem>
#include <memory>

#include "sim/trace/file_writer.h"
#include "sim/trace/trace.h"

namespace sim::trace {

/// Creates `path`, and beside it `path` with the extension .gtkw, which opens it in GTKWave with its signals in groups.
std::unique_ptr<Sink> make_vcd_sink(const std::filesystem::path& path, SizeAlarm alarm = {});

}  // namespace sim::trace
