// SPDX-License-Identifier: Apache-2.0
// The invariant CRC of RoCEv2 (S-ICRC-1..4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/packet.h"

namespace hca::wire {

/// ICRC of a RoCEv2 packet whose IP header starts at `l3_offset` of Packet::header: over header, payload and pad, with the
/// fields that routers and switches may change replaced by ones. The header must hold IP, UDP and BTH.
std::uint32_t icrc(const fabric::Packet& packet, std::size_t l3_offset);
/// The same over contiguous bytes from the IP header to the pad.
std::uint32_t icrc(std::span<const std::byte> ip_to_pad);

}  // namespace hca::wire
