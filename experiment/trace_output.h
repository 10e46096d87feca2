// SPDX-License-Identifier: Apache-2.0
// The trace formats that `--trace` knows, and the sinks of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/file_writer.h"
#include "sim/trace/filter.h"
#include "sim/trace/ring.h"
#include "sim/trace/trace.h"

namespace experiment {

struct TraceOptions;

struct TraceFormat {
  const char* name;  ///< as in --trace
  const char* file;  ///< name of the file in the output directory
  const char* what;
  const char* reader;   ///< what opens it
  std::uint64_t limit;  ///< bytes, unpacked, that the reader takes well (docs/trace_format.md, "Sizes")
  const char* smaller;  ///< options that make this format smaller, beside those that record less; may be empty
  std::string (*how)(const std::filesystem::path& file);  ///< how to look at it, for people
  std::unique_ptr<sim::trace::Sink> (*make)(const std::filesystem::path& file, const TraceOptions& options,
                                            sim::trace::SizeAlarm alarm);
};
const std::vector<TraceFormat>& trace_formats();

/// What is recorded, and how.
struct TraceOptions {
  std::vector<const TraceFormat*> formats;  ///< none: no trace
  bool compress = false;                    ///< gzip; adds .gz to the file names
  std::uint32_t bytes = 0;                  ///< kept of each WQE, CQE, EQE, TLP and frame in the native trace
  std::uint32_t pcap_snaplen = 0;           ///< bytes of a frame that are kept; 0 = all
  std::uint32_t categories = ~0U;           ///< mask over sim::trace::Category
  sim::trace::Filter filter;
  sim::Picos last{0};  ///< only the piece of this length at `trigger`; 0 = everything
  sim::trace::Trigger trigger = sim::trace::Trigger::error;
  std::function<void(const std::string&)>
      warn;                                 ///< told once of each file that grows larger than its reader takes well
  std::optional<std::uint64_t> size_limit;  ///< instead of the formats' own, for tests
};
/// Path of a format's file in `directory`.
std::filesystem::path trace_file(const TraceFormat& format, const TraceOptions& options,
                                 const std::filesystem::path& directory);
/// Creates the files. Throws std::runtime_error naming the one that cannot be made.
std::vector<std::unique_ptr<sim::trace::Sink>> make_sinks(const TraceOptions& options,
                                                          const std::filesystem::path& directory);

/// One line of `rdmasim list trace-points`.
struct TracePointInfo {
  const char *name, *category, *kind, *arguments, *declared_in;
  const char* mark;  ///< "warning" or "error" when the record tells of trouble, else empty
};
/// Every trace point that the sources declare, by category and name.
const std::vector<TracePointInfo>& trace_points();

}  // namespace experiment
