// SPDX-License-Identifier: Apache-2.0
// Responder of UC and UD. Nothing is ever answered. UC takes the PSN of each FIRST or ONLY packet as it comes and gives up
// the message in progress when a packet is missing; its receive WQE serves the next message (S-UC-3…5). UD delivers single
// packets with the network header in front (S-UD-3…5). What a receive WQE itself is to blame for, a bad key or, on UD, too
// little room, ends in its completion and in ERR; everything else is a silent drop with a counter.
#include <cstring>

#include "hca/trace_points.h"
#include "hca/transport/datagram.h"
#include "hca/transport/requester.h"
#include "hca/transport/responder.h"

namespace hca {

using wire::MessageKind;

sim::Task<void> Responder::on_unreliable_request(Qp& qp, RxPacket& rx) {
  if (rx.packet->cause.critical)
    device_.context.journeys.mark(rx.packet->cause.msg, sim::Stage::receive, device_.context.now());
  const bool fits = qp.service == prm::kStUd || continues_uc(qp, rx);
  if (!fits || !wire::payload_fits(*rx.parsed.op, rx.packet->payload_length, qp.mtu)) {
    drop_message(qp, rx);
    co_return;
  }
  if (qp.state == QpState::rtr && !qp.comm_est_raised) {
    qp.comm_est_raised = true;
    events_.async(prm::kEventCommEst, qp.qpn);
  }
  if (qp.service == prm::kStUd) prepend_network_header(rx);
  if (rx.parsed.op->kind == MessageKind::send) co_await on_send(qp, rx);
  else if (qp.rwe) co_await on_write(qp, rx);
  else drop_message(qp, rx);
}

// PSN and opcode sequence of UC: a packet that starts a message is always accepted.
bool Responder::continues_uc(Qp& qp, const RxPacket& rx) {
  const wire::OpcodeInfo& op = *rx.parsed.op;
  const bool in_order = rx.bth().psn == qp.expected_psn;
  qp.expected_psn = rx.bth().psn;
  if (op.starts()) {
    if (qp.rx_kind != 0xFF) broken_messages_.add();
    qp.rx_kind = 0xFF;
    return true;
  }
  return in_order && qp.rx_kind == static_cast<std::uint8_t>(op.kind);
}

// Gives up the message that the packet belongs to; the rest of it goes the same way, as it starts no message.
void Responder::drop_message(Qp& qp, const RxPacket& rx) {
  if (qp.rx_kind != 0xFF || rx.parsed.op->starts()) broken_messages_.add();
  qp.rx_kind = 0xFF;
  qp.expected_psn = rx.bth().psn + 1U;
  dropped_packets_.add();
  trace_.instant(points::message_drop, rx.packet->cause, device_.context.now(), qp.qpn, rx.bth().psn.value());
  device_.context.journeys.fail(rx.packet->cause.msg, sim::kLost, device_.context.now());
}

void Responder::refuse_unreliable(Qp& qp, const RxPacket& rx, const Refusal& why) {
  const bool receive_at_fault =
      rx.parsed.op->kind == MessageKind::send && (why.syndrome == prm::kSynLocalProt || qp.service == prm::kStUd);
  if (!receive_at_fault || !qp.rx_wqe_valid) {
    drop_message(qp, rx);
    return;
  }
  device_.context.journeys.give_up(rx.packet->cause.msg, sim::kLost);
  post_receive_error(qp, why.syndrome, why.vendor, rx.packet->cause.parent);
  control_.enter_error(qp);
}

// The first 40 bytes of a datagram's buffer: an IPv6 header, or an IPv4 header in bytes 20 to 39.
void Responder::prepend_network_header(RxPacket& rx) {
  fabric::Packet& packet = *rx.packet;
  sim::BufferRef whole = device_.context.buffers.make(kGrhArea + packet.payload_length);
  const std::size_t header = rx.parsed.ipv4 ? wire::kIpv4Size : wire::kIpv6Size;
  std::memset(whole.data(), 0, kGrhArea - header);
  std::memcpy(whole.data() + kGrhArea - header, packet.header.data() + rx.parsed.l3_offset, header);
  const auto payload = packet.payload_bytes();
  if (!payload.empty()) std::memcpy(whole.data() + kGrhArea, payload.data(), payload.size());
  packet.payload = std::move(whole);
  packet.payload_offset = 0;
  packet.payload_length += kGrhArea;
}

}  // namespace hca
