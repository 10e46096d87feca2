// SPDX-License-Identifier: Apache-2.0
// What the programs of a process have posted and not seen completed, by the provider's own books.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "verbs_frontend/process_state.h"

namespace verbs::mlx5 {

struct QpOutstanding {
  const ibv_qp* qp = nullptr;
  std::uint32_t sends = 0;                        ///< send WRs whose slots no completion has given back
  std::uint32_t max_sends = 0;                    ///< that fit
  std::uint32_t signaled = 0;                     ///< of those outstanding
  std::uint64_t first_wr_id = 0, last_wr_id = 0;  ///< of those outstanding
  std::uint32_t receives = 0;                     ///< receive WRs without a completion
};

struct CqOutstanding {
  const ibv_cq* cq = nullptr;
  std::uint32_t cqn = 0;
  bool completion_waits = false;  ///< a CQE is in the ring that nobody has polled
};

struct Outstanding {
  std::vector<QpOutstanding> qps;  ///< that have something outstanding
  std::vector<CqOutstanding> cqs;  ///< of all QPs
};

/// Looks at every open device of the process; costs no simulated time.
Outstanding outstanding(const ProcessState& process);

}  // namespace verbs::mlx5
