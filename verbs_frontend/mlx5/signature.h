// SPDX-License-Identifier: Apache-2.0
// WQE signatures (MLX5_QP_SIGNATURE): one byte by which the device finds a WQE that was damaged in memory. The inverted XOR of
// the WQE's bytes; that of a receive WQE also covers its queue and number.
#pragma once

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {

/// Stores the signature of a complete send WQE of `ds` units.
void sign_send(Machine& m, const WorkQueue& sq, std::byte* ctrl, std::uint32_t ds);
/// Stores that of a receive WQE: `segments` posted segments behind the signature segment at `wqe`.
void sign_receive(Machine& m, Qp& qp, std::byte* wqe, int segments, std::uint16_t number);

}  // namespace verbs::mlx5
