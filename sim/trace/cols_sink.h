// SPDX-License-Identifier: Apache-2.0
// The native trace: columnar JSON lines with exact picoseconds. The format is described in docs/trace_format.md.
#pragma once

#include <filesystem>
#include <memory>

#include "sim/trace/file_writer.h"
#include "sim/trace/trace.h"

namespace sim::trace {

/// Sink that writes "rdmasim-cols/1" to `path`. Throws std::runtime_error with the path when the file cannot be created, and
/// from any record or close() when it cannot be written. Memory is bounded; every complete line is valid JSON. Of the bytes of
/// WQEs, CQEs, EQEs, TLPs and frames it keeps the first `bytes`.
std::unique_ptr<Sink> make_cols_sink(const std::filesystem::path& path, std::uint32_t bytes = 0, SizeAlarm alarm = {});

}  // namespace sim::trace
