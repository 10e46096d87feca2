// SPDX-License-Identifier: Apache-2.0
// The trace formats that `--trace` knows.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace experiment {

struct TraceFormat {
  const char* name;  ///< as in --trace
  const char* file;  ///< name of the file in the output directory
  const char* what;
  std::unique_ptr<sim::trace::Sink> (*make)(const std::filesystem::path& file);
};
const std::vector<TraceFormat>& trace_formats();

/// One line of `rdmasim list trace-points`.
struct TracePointInfo {
  const char *name, *category, *kind, *arguments, *declared_in;
};
/// Every trace point that the sources declare, by category and name.
const std::vector<TracePointInfo>& trace_points();

}  // namespace experiment
