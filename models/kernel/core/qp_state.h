// SPDX-License-Identifier: Apache-2.0
// QP state machine of the RDMA core: which transitions exist and which attributes each needs and allows (S-QP-1 … S-QP-14).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace kernel {

struct AttributeMasks {
  std::uint32_t required = 0, optional = 0;
};

/// The masks of a legal transition, without IBV_QP_STATE; empty if the transition is not legal for that type.
std::optional<AttributeMasks> transition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to);

/// Whether modify_qp with `mask` may move a QP of `type` from one state to the other.
bool modify_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, std::uint32_t mask);

/// opt_param_mask of the device command: the optional attributes in `mask` that the command takes for this transition.
std::uint32_t device_opt_mask(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, std::uint32_t mask);

/// Device command of a transition; empty where there is none.
std::optional<std::uint16_t> device_command(ibv_qp_state from, ibv_qp_state to);

/// qpc.state code to verbs state and back (S-QP-1).
ibv_qp_state state_of_device(std::uint32_t code);
std::uint32_t device_service(ibv_qp_type type);

}  // namespace kernel
