// SPDX-License-Identifier: Apache-2.0
// Loopback: a packet whose destination is this port's own MAC address never takes the wire, and neither does a packet of a
// QP whose address path forces it. Of a multicast packet a copy comes back, for members of the group in this device. It goes from the transmit pipeline to the receive pipeline, in order, a constant
// latency later.
#include <cstring>
#include <utility>

#include "hca/transport/tx_port.h"

namespace hca {

bool TxPort::loops_back(const OutPacket& p) const {
  if (loopback_ == nullptr) return false;
  return p.qp->force_loopback || std::memcmp(p.packet->header.data(), own_mac_.data(), own_mac_.size()) == 0;
}

void TxPort::turn_round(fabric::PacketPtr packet) {
  loopback_packets_.add();
  const bool idle = turning_.empty();
  turning_.push_back({std::move(packet), context_.now() + config_.loopback_latency});
  if (idle) context_.scheduler.at<&TxPort::loopback_arrives>(turning_.front().due, this);
}

void TxPort::copy_multicast(const fabric::Packet& packet) {
  if ((static_cast<std::uint8_t>(packet.header[0]) & 1) == 0) return;
  fabric::PacketPtr copy = port_->make_packet();
  *copy = packet;
  turn_round(std::move(copy));
}

void TxPort::loopback_arrives() {
  fabric::PacketPtr packet = std::move(turning_.pop_front().packet);
  if (!turning_.empty()) context_.scheduler.at<&TxPort::loopback_arrives>(turning_.front().due, this);
  loopback_->receive(std::move(packet));
}

}  // namespace hca
