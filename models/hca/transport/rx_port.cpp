// SPDX-License-Identifier: Apache-2.0
// Packets enter the pipeline at most one per rx_interval and leave it rx_pipeline later in order. A packet whose QP context
// is not on chip waits for the fill, and later packets of the same QP wait behind it. A multicast packet becomes one packet
// for each queue pair of its group.
#include "hca/transport/rx_port.h"

#include <cstring>
#include <utility>

#include "hca/trace_points.h"
#include "hca/transport/datagram.h"

namespace hca {

RxPort::RxPort(Device& device, ContextCache& qpc, const std::string& path)
    : device_(device),
      qpc_(qpc),
      pool_(device.context.pools.of<RxPacket>("received packet")),
      packet_pool_(device.context.pools.of<fabric::Packet>("packet")),
      trace_(device.context, device.host, path),
      packets_(device.context.stats.counter(path + ".packets")),
      bytes_(device.context.stats.counter(path + ".bytes")),
      busy_(device.context.stats.busy(path)) {
  constexpr std::array<const char*, kDropReasons> kNames{
      "malformed",    "icrc_errors", "unknown_qp",    "qp_state",      "wrong_transport", "pkey_mismatch",
      "wrong_source", "cnp",         "wrong_address", "qkey_mismatch", "no_group_member"};
  for (std::size_t i = 0; i < kDropReasons; ++i)
    drops_[i] = &device.context.stats.counter(path + ".dropped." + kNames[i]);
}

void RxPort::enter(fabric::PacketPtr packet, bool from_wire) {
  const sim::Picos now = device_.context.now();
  const ReceiveConfig& cfg = device_.config.receive;
  packets_.add();
  bytes_.add(packet->frame_length());
  RxPtr rx = pool_.make();
  context().journeys.mark(packet->cause.critical ? packet->cause.msg : 0, sim::Stage::wire, now);
  rx->packet = std::move(packet);
  rx->arrived = now;
  rx->from_wire = from_wire;
  const sim::Picos entry = sim::max(now, next_entry_);
  next_entry_ = entry + cfg.rx_interval;
  busy_.add(cfg.rx_interval);
  const bool idle = pipeline_.empty();
  pipeline_.push_back({std::move(rx), entry + cfg.rx_pipeline});
  if (idle) device_.context.scheduler.at<&RxPort::deliver>(pipeline_.front().due, this);
}

void RxPort::deliver() {
  RxPtr rx = std::move(pipeline_.pop_front().packet);
  if (!pipeline_.empty()) device_.context.scheduler.at<&RxPort::deliver>(pipeline_.front().due, this);
  const wire::ParseError error = wire::parse(*rx->packet, rx->parsed);
  // A reserved RC opcode reaches its QP, which refuses it in its turn (S-ERR-5).
  const bool reserved = error == wire::ParseError::opcode && wire::transport_of(rx->bth().opcode) == wire::kRc;
  if (error != wire::ParseError::none && !reserved) {
    drop(error == wire::ParseError::icrc ? DropReason::icrc : DropReason::malformed, *rx);
    return;
  }
  if (!addressed_to_port(*rx)) {
    drop(DropReason::address, *rx);
    return;
  }
  if (rx->bth().dest_qpn == kMulticastQpn) {
    deliver_multicast(*rx);
    return;
  }
  if (rx->parsed.op->kind == wire::MessageKind::cnp) {
    drop(DropReason::congestion_notification, *rx);  // rate control is not built: a CNP changes nothing here
    return;
  }
  steer(std::move(rx));
}

bool RxPort::addressed_to_port(const RxPacket& rx) const {
  const std::byte* destination = rx.packet->header.data();
  const bool multicast = (static_cast<std::uint8_t>(destination[0]) & 1) != 0;
  return !rx.from_wire || multicast || std::memcmp(destination, device_.mac.data(), device_.mac.size()) == 0;
}

void RxPort::deliver_multicast(const RxPacket& rx) {
  const auto members = device_.multicast.members(wire::destination_gid(*rx.packet, rx.parsed));
  if (members.empty()) drop(DropReason::multicast_group, rx);
  for (const std::uint32_t qpn : members) {
    RxPtr copy = pool_.make();
    copy->packet = packet_pool_.make();
    *copy->packet = *rx.packet;
    copy->parsed = rx.parsed;
    copy->parsed.headers.bth.dest_qpn = qpn;
    copy->arrived = rx.arrived;
    copy->multicast = true;
    steer(std::move(copy));
  }
}

sim::Flow RxPort::steer(RxPtr packet) {
  RxPtr rx = std::move(packet);
  const std::uint32_t qpn = rx->bth().dest_qpn;
  Qp* qp = device_.qps.find(qpn);
  if (qp == nullptr) {
    drop(DropReason::unknown_qp, *rx);
    co_return;
  }
  if (qp->context_filling) {
    qp->rx_held.push_back(std::move(rx));
    co_return;
  }
  if (qpc_.hit(qpn)) {
    look_up(std::move(rx));
    co_return;
  }
  qp->context_filling = true;
  co_await qpc_.fill(qpn, rx->packet->cause);
  look_up(std::move(rx));
  qp = device_.qps.find(qpn);  // it may have been destroyed meanwhile
  if (qp == nullptr) co_return;
  qp->context_filling = false;
  while (!qp->rx_held.empty()) look_up(qp->rx_held.pop_front());
}

sim::Flow RxPort::look_up(RxPtr packet) {
  RxPtr rx = std::move(packet);
  const std::uint32_t qpn = rx->bth().dest_qpn;
  co_await device_.context.delay(device_.config.context.qpc_hit);
  Qp* qp = device_.qps.find(qpn);
  DropReason why{};
  if (qp == nullptr) drop(DropReason::unknown_qp, *rx);
  else if (!acceptable(*qp, *rx, why)) drop(why, *rx);
  else hand_over(*qp, std::move(rx));
}

void RxPort::hand_over(Qp& qp, RxPtr rx) {
  const sim::Picos now = device_.context.now();
  const wire::OpcodeInfo& op = *rx->parsed.op;
  const std::uint64_t span = trace_.span(points::rx, rx->packet->cause, rx->arrived, rx->arrived, now, qp.qpn,
                                         rx->bth().psn.value(), rx->bth().opcode, rx->packet->payload_length);
  if (span != 0) rx->packet->cause.parent = span;
  if (op.is_response()) sink_->response(qp, std::move(rx));
  else sink_->request(qp, std::move(rx));
}

bool RxPort::acceptable(const Qp& qp, const RxPacket& rx, DropReason& why) const {
  why = DropReason::qp_state;
  if (qp.state == QpState::reset || qp.state == QpState::init || qp.state == QpState::err) return false;
  why = DropReason::transport;
  if (wire::transport_of(rx.bth().opcode) != qp.transport()) return false;
  // XRC separates the directions: one end only asks, the other only answers.
  if (qp.service == prm::kStXrc && qp.xrc_target() == rx.parsed.op->is_response()) return false;
  why = DropReason::pkey;
  if (!wire::pkeys_match(qp.pkey, rx.bth().pkey)) return false;
  if (qp.service == prm::kStUd) {
    why = DropReason::qkey;
    return rx.parsed.headers.deth.qkey == qp.qkey;
  }
  if (rx.multicast) {
    why = DropReason::transport;
    return false;
  }
  why = DropReason::source;
  return wire::source_gid(*rx.packet, rx.parsed) == qp.remote_gid;
}

void RxPort::drop(DropReason why, const RxPacket& rx) {
  drops_[static_cast<std::size_t>(why)]->add();
  trace_.instant(points::rx_drop, rx.packet->cause, device_.context.now(), static_cast<std::uint64_t>(why),
                 rx.bth().dest_qpn, rx.bth().psn.value());
}

}  // namespace hca
