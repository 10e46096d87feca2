// SPDX-License-Identifier: Apache-2.0
// Address handles: the 48-byte datagram segment prepared at creation (S-WQE-9).
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "verbs_frontend/mlx5/machine.h"

namespace verbs::mlx5 {

struct Ah {
  ibv_ah ah;
  bool in_kernel = false;          ///< the kernel holds an object for it
  std::array<std::byte, 48> av{};  ///< datagram segment; queue key and destination are the WR's
};
inline Ah& ah_of(ibv_ah* ah) { return *reinterpret_cast<Ah*>(ah); }

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr);
int destroy_ah(ibv_ah* ah);

/// Stores the datagram segment of a UD WQE.
void put_datagram(Machine& m, std::byte* seg, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey);

}  // namespace verbs::mlx5
