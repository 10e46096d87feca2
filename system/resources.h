// SPDX-License-Identifier: Apache-2.0
// Live RDMA objects of the hosts of a cluster, as data for results and as the text that `rdma resource show` prints.
#pragma once

#include <string>

#include "sim/json.h"
#include "system/cluster.h"

namespace sys {

/// An array with one object per host: `host`, `device`, and a list per type of object (docs/result.md). No simulated time
/// passes.
sim::Json resources_of(Cluster& cluster);
/// The summary line of each host and one line per object.
std::string resources_text(const sim::Json& resources);

}  // namespace sys
