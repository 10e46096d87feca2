// SPDX-License-Identifier: Apache-2.0
// Control operations of the mlx5 provider, as its operation tables name them.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace verbs::mlx5 {

/// Behind ibv_query_device_ex: `size` bytes of *attr are filled, what the program's struct has beyond ours is zeroed.
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    std::size_t size);

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector);
/// Behind verbs_context::create_cq_ex: the driver's work, then the library's initialisation (S-DEV-5).
ibv_cq_ex* create_cq_ex_checked(ibv_context* context, ibv_cq_init_attr_ex* attr);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int destroy_cq(ibv_cq* cq);
/// Moderation (S-MOD-1).
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);
int resize_cq(ibv_cq* cq, int cqe);
void cq_event(ibv_cq* cq);

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);
int destroy_qp(ibv_qp* qp);

ibv_mr* reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access);
int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access);
int dereg_mr(ibv_mr* mr);
ibv_mr* alloc_null_mr(ibv_pd* pd);

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
/// ibv_bind_mw: a type 1 window, by a BIND_MW WR (S-MW-1).
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);

}  // namespace verbs::mlx5
