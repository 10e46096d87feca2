// SPDX-License-Identifier: Apache-2.0
// Chrome Trace Event JSON, for ui.perfetto.dev and chrome://tracing. See docs/trace_format.md.
#pragma once

#include <filesystem>
#include <memory>

#include "sim/trace/file_writer.h"
#include "sim/trace/trace.h"

namespace sim::trace {

/// Sink that writes Chrome JSON to `path`: a process per host, a thread per track and slot, arrows along the causes of each
/// message. Times are whole nanoseconds, which is what the format can hold. Throws std::runtime_error with the path when the
/// file cannot be created, and from any record or close() when it cannot be written. A sink that is destroyed without
/// close() still leaves a complete JSON object if it can.
std::unique_ptr<Sink> make_perfetto_sink(const std::filesystem::path& path, SizeAlarm alarm = {});

}  // namespace sim::trace
