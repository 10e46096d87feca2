// SPDX-License-Identifier: Apache-2.0
#include "hca/transport/datagram.h"

#include <algorithm>
#include <cstring>

namespace hca {

Datagram parse_datagram(const std::byte* wqe) {
  const std::byte* p = wqe + prm::kDs;
  const auto field = [p](std::uint16_t dword, std::uint8_t lsb, std::uint8_t width) {
    return prm::get(p, {dword, lsb, width});
  };
  Datagram d;
  d.qkey = field(0, 0, 32);
  d.extended = field(8, 31, 1) != 0;
  d.dest_qpn = field(8, 0, 24);
  d.udp_source_port = static_cast<std::uint16_t>(field(12, 0, 16));
  std::memcpy(d.rmac.data(), p + 20, d.rmac.size());
  d.traffic_class = static_cast<std::uint8_t>(p[26]);
  d.hop_limit = static_cast<std::uint8_t>(p[27]);
  d.sgid_index = static_cast<std::uint8_t>(field(28, 20, 8));
  d.flow_label = field(28, 0, 20);
  std::memcpy(d.rgid.data(), p + 32, d.rgid.size());
  return d;
}

std::optional<wire::Path> path_of(const Datagram& d, const Device& device) {
  const RoceAddress* source = device.roce_v2_address(d.sgid_index);
  if (!d.extended || source == nullptr || wire::is_ipv4(source->gid) != wire::is_ipv4(d.rgid)) return std::nullopt;
  wire::Path p;
  p.source = source->gid;
  p.source_mac = source->mac;
  p.destination = d.rgid;
  p.destination_mac = d.rmac;
  p.traffic_class = d.traffic_class;
  p.hop_limit = d.hop_limit;
  p.flow_label = d.flow_label;
  p.udp_source_port = d.udp_source_port;
  return p;
}

bool unreliable_allows(const Qp& qp, const SendWqe& wqe, const Device& device) {
  if (wqe.opcode == MLX5_OPCODE_NOP) return true;
  const bool send = wqe.opcode == MLX5_OPCODE_SEND || wqe.opcode == MLX5_OPCODE_SEND_IMM;
  if (qp.service == prm::kStUc) return send || wqe.is_write() || wqe.is_umr();
  return send && path_of(parse_datagram(wqe.bytes.data()), device).has_value();
}

}  // namespace hca
