// SPDX-License-Identifier: Apache-2.0
// The few fields by which links, switches and impairments tell RoCEv2 packets apart. Reads the header without judging it.
#pragma once

#include <cstdint>

#include "fabric/packet.h"

namespace fabric {

/// Opcode, destination QPN and PSN of a RoCEv2 packet; `roce` is false for anything else.
struct FrameId {
  bool roce = false;
  std::uint16_t bth_offset = 0;  ///< in Packet::header
  std::uint8_t opcode = 0;
  std::uint32_t qpn = 0, psn = 0;
};
FrameId identify(const Packet& packet);

}  // namespace fabric
