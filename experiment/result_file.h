// SPDX-License-Identifier: Apache-2.0
// A result that an earlier run wrote, read back for those who explain or compare it.
#pragma once

#include <filesystem>

#include "sim/config_json.h"

namespace experiment {

/// Adds an error for every member that `result` lacks, or has of another type, by its JSON pointer; another schema is the
/// only error then.
void check_result(const sim::Json& result, sim::ConfigErrors& errors);

/// The result in `path`, a file or a directory with a result.json. Throws sim::ConfigFailure when it cannot be read, is no
/// JSON, no result, or of another version than experiment::kResultSchema.
sim::Json load_result(const std::filesystem::path& path);

}  // namespace experiment
