// SPDX-License-Identifier: Apache-2.0
// UD on the send side: the datagram segment of a WQE, and the packet headers that it asks for (S-WQE-9, S-UD-2).
#pragma once

#include <cstdint>
#include <optional>

#include "hca/device.h"
#include "hca/transport/send_wqe.h"
#include "hca/transport/wire.h"

namespace hca {

/// Bytes of the GRH area in front of a received datagram (S-UD-4).
inline constexpr std::uint32_t kGrhArea = 40;
/// Destination QP of multicast packets.
inline constexpr std::uint32_t kMulticastQpn = 0xFFFFFF;

/// Address vector of a UD WQE.
struct Datagram {
  std::uint32_t qkey = 0, dest_qpn = 0, flow_label = 0;
  std::uint16_t udp_source_port = 0;
  wire::Mac rmac{};
  std::uint8_t traffic_class = 0, hop_limit = 0, sgid_index = 0;
  wire::Gid rgid{};
  bool extended = false;  ///< the segment has its 48-byte form
};
/// Decodes the datagram segment behind the control segment; the WQE has at least four 16-byte units.
Datagram parse_datagram(const std::byte* wqe);

/// Where a datagram goes; empty if its source address does not exist or is of the other IP version.
std::optional<wire::Path> path_of(const Datagram& d, const Device& device);

/// Q_Key that goes out: the QP's own one when bit 31 of the WQE's is set.
constexpr std::uint32_t outgoing_qkey(std::uint32_t wqe_qkey, std::uint32_t qp_qkey) {
  return (wqe_qkey & 0x80000000U) != 0 ? qp_qkey : wqe_qkey;
}

/// Whether a UC or UD queue pair may execute the WQE: opcode of the service, and for UD a usable address (S-PS-2, S-PS-3).
bool unreliable_allows(const Qp& qp, const SendWqe& wqe, const Device& device);

}  // namespace hca
