// SPDX-License-Identifier: Apache-2.0
// The viewer's page with traces in it (tools/trace_viewer/README.md, "A page with the trace in it").
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cli {

/// A trace file that the viewer reads.
struct TraceFile {
  std::filesystem::path path;
  std::string name;            ///< what the page calls it
  bool gzip = false;           ///< packed already
  bool damaged = false;        ///< packed, and cut short or broken after `unpacked` bytes
  std::uint64_t unpacked = 0;  ///< bytes
};

/// `path`, or the trace in the directory `path`: trace.jsonl if there is one, else trace.perfetto.json, plain or .gz, the newer
/// of both. Throws UsageError: nothing there, unreadable, not a trace.
TraceFile find_trace(const std::filesystem::path& path);

/// The built page: beside the executable's installed data, or in the source tree. Throws UsageError that tells how to build it.
std::filesystem::path find_viewer_page();

/// Longest text that every browser holds in one piece: 2^29 - 24 characters in V8, more elsewhere.
inline constexpr std::uint64_t kMostText = 536'870'888;

/// Writes `page` with one or two traces in it to `out`, which appears only when it is complete. Memory does not grow with the
/// traces. Throws UsageError or std::runtime_error: not the viewer's page, unreadable, not writable, or a trace whose
/// base64 is longer than `most`.
void write_trace_page(const std::filesystem::path& page, const std::vector<TraceFile>& traces,
                      const std::filesystem::path& out, std::uint64_t most = kMostText);

}  // namespace cli
