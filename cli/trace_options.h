// SPDX-License-Identifier: Apache-2.0
// The --trace options of `rdmasim run`.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "experiment/trace_output.h"

namespace cli {

void add_trace_options(Options& o);
/// Reads them; `hosts` are the names of the scenario's hosts. Throws UsageError.
experiment::TraceOptions trace_options(const Options& o, const std::vector<std::string>& hosts);

}  // namespace cli
