// SPDX-License-Identifier: Apache-2.0
// Evaluation of a scenario's expectations against the result JSON.
#pragma once

#include <vector>

#include "experiment/result.h"
#include "system/expect.h"

namespace experiment {

/// Checks one condition; `result` is the JSON of to_json().
ExpectationResult evaluate(const sys::ExpectationConfig& expectation, const sim::Json& result);
/// Checks all conditions and stores the outcomes in the result.
void evaluate_all(const std::vector<sys::ExpectationConfig>& expectations, Result& result);
/// True if some met expectation speaks about the verdict, so that a deadlock is what the scenario wants.
bool verdict_expected(const Result& result);

}  // namespace experiment
