// SPDX-License-Identifier: Apache-2.0
// Arming of a CQ: the doorbell word, and which arms count (S-CE-2…8).
#pragma once

#include <cstdint>

#include "hca/context/objects.h"
#include "hca/prm.h"

namespace hca {

struct ArmRequest {
  std::uint32_t sn;
  bool solicited_only;
  std::uint32_t ci;  ///< 24 bits
};

/// High word of the arm doorbell, which is also word 1 of the CQ's doorbell record.
constexpr ArmRequest decode_arm(std::uint32_t word) {
  return {word >> 28 & 3, (word >> 24 & 1) == prm::kArmCmdSolicited, word & 0xFFFFFF};
}

/// cqc.st code of an arm state.
constexpr std::uint32_t cqc_state(ArmState s) {
  return s == ArmState::armed             ? prm::kCqStateArmed
         : s == ArmState::armed_solicited ? prm::kCqStateSolicitedArmed
                                          : prm::kCqStateFired;
}

/// Applies an arm. An arm that repeats the sequence number of an event that has already fired is a duplicate that crossed
/// the event and is ignored; any-CQE wins over solicited-only.
inline bool take_arm(Cq& cq, const ArmRequest& request) {
  if (cq.fired_since_arm && request.sn == cq.arm_sn) return false;
  cq.arm_sn = request.sn;
  cq.fired_since_arm = false;
  if (!request.solicited_only) cq.arm = ArmState::armed;
  else if (cq.arm != ArmState::armed) cq.arm = ArmState::armed_solicited;
  return true;
}

}  // namespace hca
