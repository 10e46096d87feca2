// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "sim/units.h"

namespace sys {

/// A work completion in error that one side of a workload has polled.
struct WorkloadError {
  sim::Picos time{0};
  bool client = false;
  std::uint32_t qpn = 0;
  std::uint64_t wr_id = 0;  ///< number of the message of its QP and direction, from 0
  std::string status;       ///< without the prefix IBV_WC_
  std::uint32_t vendor_err = 0;
};

}  // namespace sys
