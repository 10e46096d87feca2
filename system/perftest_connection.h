// SPDX-License-Identifier: Apache-2.0
// How the two sides of a workload bring their queue pairs to RTS, whoever they are: perftest's attributes.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "system/workload.h"

namespace sys {

/// Attributes of a transition, and which of them count (enum ibv_qp_attr_mask).
struct QpTransition {
  ibv_qp_attr attr{};
  int mask = 0;
};

QpTransition to_init();
/// `peer` is what the other side has sent.
QpTransition to_rtr(const WorkloadConfig& config, const PeerAddress& peer);
/// `psn` is the first that this side sends.
QpTransition to_rts(const WorkloadConfig& config, std::uint32_t psn);

/// First PSN of a queue pair: another one for each, and for each side.
std::uint32_t first_psn(std::uint32_t qpn, bool client);

}  // namespace sys
