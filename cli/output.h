// SPDX-License-Identifier: Apache-2.0
// The directory of --out. Made and checked before the run, so that no run is lost to a full or read-only disk that could
// have been noticed.
#pragma once

#include <filesystem>
#include <string>

namespace cli {

/// Creates `directory` and checks that files can be made in it. Throws UsageError with the reason.
void prepare_output(const std::filesystem::path& directory);
/// Writes a whole file or throws UsageError; a reader never sees half of it.
void write_file(const std::filesystem::path& file, const std::string& text);

}  // namespace cli
