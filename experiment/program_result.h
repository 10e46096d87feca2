// SPDX-License-Identifier: Apache-2.0
// What step programs noted, as parts of the result.
#pragma once

#include <vector>

#include "experiment/result.h"
#include "system/programs.h"

namespace experiment {

/// One per program, in the order of their flow numbers.
std::vector<ProgramResult> program_results(sys::Programs& programs, sim::Picos now);

}  // namespace experiment
