// SPDX-License-Identifier: Apache-2.0
// Thread domains and parent domains (S-OBJ-65): a thread domain owns a doorbell register that no other QP uses; a parent
// domain is a protection domain together with a thread domain, whose queues take no locks.
#pragma once

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {

struct Td {
  ibv_td td;
  BfReg* bf = nullptr;
  std::uint32_t users = 0;  ///< parent domains
};
inline Td& td_of(ibv_td* t) { return *reinterpret_cast<Td*>(t); }

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);
/// 0 if `pd` was a parent domain and is gone, EBUSY if a queue is in it; EINVAL for a plain protection domain.
int dealloc_parent_domain(ibv_pd* pd);

}  // namespace verbs::mlx5
