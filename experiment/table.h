// SPDX-License-Identifier: Apache-2.0
// The result as people read it.
#pragma once

#include <string>

#include "experiment/result.h"

namespace experiment {

/// The whole report: configuration, workloads with latency, rates, statuses and breakdown, bottleneck, expectations.
std::string to_table(const Result& r);

}  // namespace experiment
