// SPDX-License-Identifier: Apache-2.0
// XRC domains and shared target QPs of the mlx5 provider (S-XRC-1).
#pragma once

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int close_xrcd(ibv_xrcd* xrcd);
/// A handle on an XRC_RECV QP that another context, or this one, has created in the domain.
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr);
/// Creates an XRC_RECV QP: it has no rings, so only the kernel is asked.
ibv_qp* create_xrc_target(ibv_context* context, ibv_qp_init_attr_ex& attr);

}  // namespace verbs::mlx5
