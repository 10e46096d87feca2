// SPDX-License-Identifier: Apache-2.0
// A full-rate serial link without flow control: the time of every bit is known when a packet is handed over, so a packet costs
// one event, its arrival. A link that is down loses what would be on the wire then. Priority flow control, lanes and link
// training are not modelled here; the PHY is one latency.
// Frame overhead and gap follow IEEE 802.3.
#include "fabric/link.h"

#include <algorithm>

#include "fabric/trace_points.h"

namespace fabric {

using sim::Picos;

Link::Link(sc_core::sc_module_name name, sim::Context& context, const LinkConfig& config, const std::string& path)
    : sc_module(name),
      out("out"),
      context_(context),
      config_(config),
      meter_(config.rate),
      packets_(context.pools.of<Packet>("packet")),
      packets_count_(context.stats.counter(path + ".packets")),
      bytes_count_(context.stats.counter(path + ".bytes")),
      dropped_(context.stats.counter(path + ".dropped")),
      corrupted_(context.stats.counter(path + ".corrupted")),
      duplicated_(context.stats.counter(path + ".duplicated")),
      delayed_(context.stats.counter(path + ".delayed")),
      reordered_(context.stats.counter(path + ".reordered")),
      lost_while_down_(context.stats.counter(path + ".lost_while_down")),
      busy_(context.stats.busy(path)),
      wire_trace_(context, -1, path),
      rx_trace_(context, -1, path + ".rx", sim::trace::TrackKind::instant),
      queue_trace_(context, -1, path + ".queue", sim::trace::TrackKind::counter),
      bytes_trace_(context, -1, path + ".wire_bytes", sim::trace::TrackKind::counter),
      event_trace_(context, -1, path + ".events", sim::trace::TrackKind::instant) {
  SIM_CHECK(config.rate.bps > 0, "link without a rate");
  if (!config.impairment.empty())
    impairment_ = std::make_unique<Impairment>(config.impairment, context.rng(path + ".impairment"));
  for (const LinkDownConfig& d : config.down) {
    context.scheduler.at<&Link::change_state>(d.at, this, 0);
    context.scheduler.at<&Link::change_state>(d.end(), this, 1);
  }
}

void Link::change_state(std::uint64_t up) {
  event_trace_.instant(points::link, {}, context_.now(), up);
  out->link_state(up != 0);
}

bool Link::down_during(Picos from, Picos to) const {
  return std::any_of(config_.down.begin(), config_.down.end(),
                     [&](const LinkDownConfig& d) { return d.at < to && from < d.end(); });
}

sim::Bytes Link::on_wire(std::uint32_t length) const {
  return config_.preamble + std::max(sim::Bytes{length} + config_.fcs, config_.min_frame);
}

Picos Link::flight_time(std::uint32_t length) const {
  return sim::RateMeter(config_.rate).take(on_wire(length)) + config_.propagation + config_.phy_latency;
}

void Link::send(PacketPtr packet) {
  packet->serial = ++serial_;
  if (impairment_ == nullptr) [[likely]]
    transmit(std::move(packet), nullptr, {});
  else send_impaired(std::move(packet));
}

void Link::send_impaired(PacketPtr packet) {
  const FrameId id = identify(*packet);
  const Impairment::Verdict fate = impairment_->judge(id, context_.now());
  PacketPtr twin;
  if (fate.duplicate) {
    twin = packets_.make();
    *twin = *packet;
    twin->serial = ++serial_;
  }
  transmit(std::move(packet), &id, fate);
  if (twin) {
    duplicated_.add();
    event_trace_.instant(points::duplicate, twin->cause, context_.now(), id.qpn, id.psn, id.opcode);
    transmit(std::move(twin), &id, {});
  }
}

void Link::transmit(PacketPtr packet, const FrameId* id, const Impairment::Verdict& fate) {
  const Picos now = context_.now();
  const std::uint32_t length = packet->frame_length();
  settle(now);
  // An idle line starts from a whole picosecond; only back-to-back frames carry the remainder on.
  if (now > free_at_) meter_ = sim::RateMeter(config_.rate);
  const Picos start = max(now, free_at_);
  const Picos last_bit = start + meter_.take(on_wire(length));
  free_at_ = last_bit + meter_.take(config_.gap);
  const Picos arrival = max(last_bit + config_.propagation + config_.phy_latency + fate.delay, last_arrival_);
  packets_count_.add();
  bytes_count_.add(length);
  busy_.add(free_at_ - start);
  bytes_trace_.level(points::wire_bytes, last_bit, static_cast<std::int64_t>(bytes_count_.value));

  if (wire_trace_.on(points::wire)) trace_send(*packet, start, arrival + fate.reorder, length);
  if (fate.delay > Picos{0}) {
    delayed_.add();
    event_trace_.instant(points::delay, packet->cause, now, id->qpn, id->psn, id->opcode,
                         static_cast<std::uint64_t>(fate.delay.n));
  }
  if (fate.corrupt) {
    corrupted_.add();
    const std::uint64_t bit = impairment_->corrupt(*packet, *id, context_.buffers);
    event_trace_.instant(points::corrupt, packet->cause, now, id->qpn, id->psn, id->opcode, bit);
  }
  if (down_during(start, arrival)) {
    lost_while_down_.add();
    const FrameId lost = identify(*packet);
    event_trace_.instant(points::drop, packet->cause, now, lost.qpn, lost.psn, lost.opcode);
    packet.reset();
  } else if (fate.drop) {
    dropped_.add();
    event_trace_.instant(points::drop, packet->cause, now, id->qpn, id->psn, id->opcode);
    packet.reset();
  } else if (fate.reorder > Picos{0}) {
    reordered_.add();
    event_trace_.instant(points::reorder, packet->cause, now, id->qpn, id->psn, id->opcode,
                         static_cast<std::uint64_t>(fate.reorder.n));
    const Late late{arrival + fate.reorder, {}};
    const auto at = std::find_if(late_.begin(), late_.end(), [&](const Late& l) { return l.arrival <= late.arrival; });
    late_.insert(at, Late{late.arrival, std::move(packet)});
    context_.scheduler.at<&Link::late_arrives>(late.arrival, this);
    // The slot in flight stays, empty, so that the queue is accounted for.
  }

  last_arrival_ = arrival;
  if (start > now) {
    waiting_bytes_ += length;
    queue_trace_.level(points::queue, now, static_cast<std::int64_t>(waiting_bytes_));
  } else {
    ++started_;
  }
  const bool idle = flight_.empty();
  flight_.push_back({start, arrival, std::move(packet), length});
  if (idle) context_.scheduler.at<&Link::head_arrives>(arrival, this);
}

// Counts off the packets whose first bit has left by `t`.
void Link::settle(Picos t) {
  while (started_ < flight_.size() && flight_[started_].start <= t) {
    waiting_bytes_ -= flight_[started_].length;
    queue_trace_.level(points::queue, flight_[started_].start, static_cast<std::int64_t>(waiting_bytes_));
    ++started_;
  }
}

std::uint64_t Link::queued_bytes() const {
  std::uint64_t bytes = waiting_bytes_;
  for (std::size_t i = started_; i < flight_.size() && flight_[i].start <= context_.now(); ++i)
    bytes -= flight_[i].length;
  return bytes;
}

void Link::head_arrives() {
  settle(context_.now());
  --started_;
  PacketPtr packet = std::move(flight_.pop_front().packet);
  if (!flight_.empty()) context_.scheduler.at<&Link::head_arrives>(flight_.front().arrival, this);
  if (packet) deliver(std::move(packet));
}

void Link::late_arrives() {
  PacketPtr packet = std::move(late_.back().packet);
  late_.pop_back();
  deliver(std::move(packet));
}

void Link::deliver(PacketPtr packet) {
  if (rx_trace_.on(points::frame)) trace_frame(*packet, context_.now(), false);
  out->receive(std::move(packet));
}

void Link::trace_send(Packet& packet, Picos start, Picos arrival, std::uint64_t bytes) {
  const FrameId id = identify(packet);
  trace_frame(packet, start, true);
  packet.cause.parent =
      wire_trace_.span(points::wire, packet.cause, context_.now(), start, arrival, id.qpn, id.psn, id.opcode, bytes);
}

void Link::trace_frame(const Packet& packet, Picos t, bool transmit) {
  const std::uint32_t length = packet.frame_length();
  if (frame_.size() < length) frame_.resize(length);
  packet.write_to(frame_);
  const std::uint64_t frame = std::uint64_t{wire_trace_.track()} << 32 | packet.serial;
  (transmit ? wire_trace_ : rx_trace_)
      .packet(points::frame, packet.cause.msg, t, context_.now(), transmit, frame, {frame_.data(), length});
}

}  // namespace fabric
