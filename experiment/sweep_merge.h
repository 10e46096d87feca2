// SPDX-License-Identifier: Apache-2.0
// One database of the shards of a sweep.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "experiment/sqlite.h"

namespace experiment {

struct SweepMerge {
  std::uint64_t points = 0;            ///< of the sweep
  std::uint64_t taken = 0;             ///< finished ones, each once
  std::uint64_t repeated = 0;          ///< finished ones that an earlier directory had already
  std::vector<std::uint64_t> missing;  ///< points that none of them has run
};

/// Makes `out`/sweep.sqlite of the databases in `from`, each of which must be of the same scenario and design. Of a point that
/// several have, the first counts. `out` must have no database yet; it gets none when anything goes wrong. Throws
/// std::runtime_error.
SweepMerge merge_sweeps(const std::filesystem::path& out, const std::vector<std::filesystem::path>& from);

}  // namespace experiment
