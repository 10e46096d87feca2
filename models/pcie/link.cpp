// SPDX-License-Identifier: Apache-2.0
// One direction of a link: serialisation, latency, credits, ordering. A TLP costs one event, its arrival. Its place on the
// wire is computed when it is handed over; only a TLP that lacks credits is queued. Not modelled: bit errors with replay,
// link power states, individual DLLPs (see link_rate.cpp).
#include "pcie/link.h"

#include "pcie/tlp_header.h"
#include "pcie/trace_points.h"

namespace pcie {
namespace {

constexpr auto kPosted = static_cast<std::size_t>(FcClass::posted);
constexpr auto kCompletion = static_cast<std::size_t>(FcClass::completion);
constexpr std::array<const char*, kTlpTypes> kTypeNames{"mrd", "mwr", "cpl", "cpld", "msg"};
constexpr std::array<const sim::trace::Point*, kTlpTypes> kPoints{
    &trace_points::kMRd, &trace_points::kMWr, &trace_points::kCpl, &trace_points::kCplD, &trace_points::kMsg};
std::string lane(const std::string& path, const char* between, Direction d) {
  return path + between + (d == Direction::up ? "up" : "down");
}

}  // namespace

Link::Link(sc_core::sc_module_name name, sim::Context& context, const LinkConfig& config, const CreditConfig& receiver,
           std::uint32_t max_payload_size, Direction direction, std::int32_t host, const std::string& path)
    : sc_module(name),
      context_(context),
      config_(config),
      meter_(tlp_rate(config, max_payload_size)),
      credits_{Credits(receiver.posted_headers, receiver.posted_data), Credits(receiver.non_posted_headers, 0),
               Credits(receiver.completion_headers, receiver.completion_data)},
      trace_(context, host, lane(path, ".", direction)),
      stall_trace_(context, host, lane(path, ".", direction) + ".credits"),
      waiting_trace_(context, host, lane(path, ".", direction) + ".waiting", sim::trace::TrackKind::counter),
      bytes_trace_(context, host, lane(path, ".", direction) + ".wire_bytes", sim::trace::TrackKind::counter),
      credit_trace_{
          CreditTrace(context, host, lane(path, ".", direction) + ".credits.p", receiver.posted_headers,
                      receiver.posted_data),
          CreditTrace(context, host, lane(path, ".", direction) + ".credits.np", receiver.non_posted_headers, 0),
          CreditTrace(context, host, lane(path, ".", direction) + ".credits.cpl", receiver.completion_headers,
                      receiver.completion_data)},
      busy_(context.stats.busy(lane(path, ".link.", direction))),
      wire_bytes_(context.stats.counter(lane(path, ".", direction) + ".wire_bytes")),
      stalls_(context.stats.counter(lane(path, ".", direction) + ".credit_stalls")) {
  for (std::size_t i = 0; i < kTlpTypes; ++i) {
    const std::string counter = lane(path, ".", direction) + "." + kTypeNames[i];
    tlps_[i] = &context.stats.counter(counter);
    payload_[i] = &context.stats.counter(counter + "_bytes");
  }
}

void Link::start_of_simulation() {
  for (CreditTrace& c : credit_trace_) c.begin();
}

void Link::receive(TlpPtr tlp) {
  tlp->t_enqueued = context_.now();
  const auto c = static_cast<std::size_t>(tlp->fc_class());
  if (waiting_count_ == 0 && credits_[c].take(data_credits(*tlp), start_time())) [[likely]] {
    transmit(std::move(tlp));
    return;
  }
  queue_[c].push_back({next_order_++, std::move(tlp)});
  ++waiting_count_;
  pump();
  waiting_trace_.level(trace_points::kWaiting, context_.now(), static_cast<std::int64_t>(waiting_count_));
}

void Link::transmit(TlpPtr tlp) {
  const sim::Picos now = context_.now();
  if (now > free_at_) meter_ = sim::RateMeter(meter_.rate());  // an idle wire carries no fraction of a picosecond over
  const std::uint32_t bytes = wire_bytes(*tlp, config_.ecrc);
  const sim::Picos start = start_time();
  const sim::Picos taken = meter_.take({bytes});
  free_at_ = start + taken;
  busy_.add(taken);
  wire_bytes_.add(bytes);
  const auto type = static_cast<std::size_t>(tlp->type);
  tlps_[type]->add();
  payload_[type]->add(tlp->carries_data() ? tlp->length : 0U);
  const sim::Picos arrival = free_at_ + config_.latency;
  trace(*tlp, start, arrival, bytes);
  if (wire_.empty()) context_.scheduler.at<&Link::deliver>(arrival, this);
  wire_.push_back({arrival, std::move(tlp)});
}

// What follows from this TLP has its flight as the cause.
void Link::trace(Tlp& tlp, sim::Picos start, sim::Picos arrival, std::uint32_t bytes) {
  const sim::trace::Point& point = *kPoints[static_cast<std::size_t>(tlp.type)];
  if (!trace_.on(point)) [[likely]]
    return;
  const std::uint64_t id =
      trace_.span(point, tlp.cause, tlp.t_enqueued, start, arrival, tlp.tag, tlp.length, tlp.address, bytes);
  trace_bytes(tlp, id, start);
  tlp.cause.parent = id;
  bytes_trace_.level(trace_points::kWireBytes, free_at_, static_cast<std::int64_t>(wire_bytes_.value));
  CreditTrace& credits = credit_trace_[static_cast<std::size_t>(tlp.fc_class())];
  credits.take(start, data_credits(tlp));
  credits.settle(context_.now());
}

// The header and the beginning of the payload.
void Link::trace_bytes(const Tlp& tlp, std::uint64_t span, sim::Picos t) {
  std::array<std::byte, kMaxTlpHeader + sizeof tlp.inline_bytes> image;
  const auto header = encode_header(tlp);
  std::memcpy(image.data(), header.data(), header.size());
  const std::size_t head = header_bytes(tlp);
  // The payload of a read's completion is put into memory's buffer before it leaves, that of a write as well.
  const std::size_t payload = tlp.carries_data() ? std::min<std::size_t>(tlp.length, sizeof tlp.inline_bytes) : 0;
  std::memcpy(image.data() + head, tlp.bytes().data(), payload);
  trace_.bytes(span, tlp.cause.msg, t, std::span(image).first(head + payload));
}

void Link::deliver() {
  TlpPtr tlp = std::move(wire_.front().tlp);
  wire_.pop_front();
  if (!wire_.empty()) context_.scheduler.at<&Link::deliver>(wire_.front().arrival, this);
  const auto c = static_cast<std::size_t>(tlp->fc_class());
  const std::uint32_t data = data_credits(*tlp);
  buffer_.consumed = context_.now();
  tlp->held = &buffer_;
  out->receive(std::move(tlp));
  const sim::Picos back = buffer_.consumed + config_.credit_processing + config_.update_fc_latency;
  credits_[c].give(data, back);
  if (credit_trace_[c].on()) [[unlikely]] {
    credit_trace_[c].give(back, data);
    credit_trace_[c].settle(context_.now());
  }
  if (waiting_count_ != 0) [[unlikely]]
    arm_wake();
}

bool Link::may_go(std::size_t c) const {
  if (c == kPosted || queue_[kPosted].empty()) return true;
  const Waiting& head = queue_[c].front();
  return queue_[kPosted].front().order > head.order || (c == kCompletion && head.tlp->relaxed_ordering);
}

// Sends what may go, oldest first.
void Link::pump() {
  for (;;) {
    std::size_t pick = kClasses;
    for (std::size_t c = 0; c < kClasses; ++c) {
      if (queue_[c].empty() || !may_go(c)) continue;
      if (pick != kClasses && queue_[pick].front().order < queue_[c].front().order) continue;
      if (credits_[c].available_by(data_credits(*queue_[c].front().tlp), start_time())) pick = c;
    }
    if (pick == kClasses) break;
    Waiting w = queue_[pick].pop_front();
    --waiting_count_;
    SIM_CHECK(credits_[pick].take(data_credits(*w.tlp), start_time()), "credits vanished");
    if (w.tlp->t_enqueued < context_.now()) {
      stalls_.add();
      stall_trace_.span(trace_points::kCreditStall, w.tlp->cause, w.tlp->t_enqueued, w.tlp->t_enqueued, context_.now(),
                        pick, w.tlp->length, data_credits(*w.tlp));
    }
    transmit(std::move(w.tlp));
  }
  if (waiting_count_ != 0) arm_wake();
}

void Link::wake() {
  if (context_.now() == wake_at_) wake_at_ = sim::kNever;
  if (waiting_count_ == 0) return;
  pump();
  waiting_trace_.level(trace_points::kWaiting, context_.now(), static_cast<std::int64_t>(waiting_count_));
}

void Link::arm_wake() {
  sim::Picos at = sim::kNever;
  for (std::size_t c = 0; c < kClasses; ++c)
    if (!queue_[c].empty() && may_go(c)) at = min(at, credits_[c].available_at(data_credits(*queue_[c].front().tlp)));
  if (at >= wake_at_) return;
  wake_at_ = at;
  context_.scheduler.at<&Link::wake>(at, this);
}

}  // namespace pcie
