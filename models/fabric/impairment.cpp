// SPDX-License-Identifier: Apache-2.0
// Event lists in the vocabulary of RDMA fault injectors (queue pair, PSN, which transmission of it) and seeded rates. The rates are
// drawn in one fixed order for each packet, so that adding an event does not change what the rates do. Impairments act on
// a link, after its Ethernet FCS would have been checked: a corrupted packet reaches the ICRC check of the receiver.
#include "fabric/impairment.h"

#include <algorithm>
#include <cstring>

namespace fabric {
namespace {

/// Answers of the responder by the last five bits of the opcode: READ responses, ACK, atomic ACK.
PacketStream stream_of(std::uint8_t opcode) {
  const unsigned operation = opcode & 0x1FU;
  return operation >= 0x0D && operation <= 0x12 ? PacketStream::responses : PacketStream::requests;
}

bool overlap(const ImpairmentEventConfig& a, const ImpairmentEventConfig& b) {
  const bool in_time = a.after < b.until && b.after < a.until;
  return in_time && std::uint64_t{a.iter} < std::uint64_t{b.iter} + b.count &&
         std::uint64_t{b.iter} < std::uint64_t{a.iter} + a.count;
}

}  // namespace

std::vector<std::string> ImpairmentConfig::contradictions() const {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < events.size(); ++i)
    for (std::size_t j = 0; j < events.size(); ++j) {
      const ImpairmentEventConfig &a = events[i], &b = events[j];
      if (i == j || a.type != ImpairmentType::drop || !a.selects_as(b) || !overlap(a, b)) continue;
      if (b.type == ImpairmentType::drop && j < i) continue;  // told once
      out.push_back("event " + std::to_string(i) + " loses the packet that event " + std::to_string(j) + " is to " +
                    std::string(sim::enum_name(b.type)));
    }
  return out;
}

Impairment::Impairment(const ImpairmentConfig& config, sim::Rng rng) : rates_(config), rng_(rng) {
  for (const ImpairmentEventConfig& e : config.events) {
    events_.push_back({e, 0});
    relative_ = relative_ || e.relative;
  }
  rates_.events.clear();
}

void Impairment::apply(Verdict& v, ImpairmentType type, sim::Picos time) {
  switch (type) {
    case ImpairmentType::drop:
      v.drop = true;
      break;
    case ImpairmentType::corrupt:
      v.corrupt = true;
      break;
    case ImpairmentType::duplicate:
      v.duplicate = true;
      break;
    case ImpairmentType::delay:
      v.delay += time;
      break;
    case ImpairmentType::reorder:
      v.reorder += time;
      break;
  }
}

sim::Picos Impairment::random_time() {
  const std::uint64_t r = static_cast<std::uint64_t>(rng_.next()) << 32 | rng_.next();
  const auto scaled = static_cast<unsigned __int128>(r) * static_cast<std::uint64_t>(rates_.delay_max.n) >> 64;
  return {static_cast<std::int64_t>(scaled) + 1};
}

void Impairment::note(const FrameId& id) {
  auto s = std::ranges::find(seen_, id.qpn, &Seen::qpn);
  if (s == seen_.end()) s = seen_.insert(s, Seen{id.qpn, {}});
  std::optional<std::uint32_t>& first = s->first[static_cast<std::size_t>(stream_of(id.opcode))];
  if (!first) first = id.psn;
}

bool Impairment::matches(const ImpairmentEventConfig& c, const FrameId& id, sim::Picos now) const {
  if (now < c.after || now >= c.until) return false;
  if (!c.qpn && !c.psn && !c.opcode && !c.of) return true;
  if (!id.roce || (c.opcode && *c.opcode != id.opcode)) return false;
  const PacketStream stream = stream_of(id.opcode);
  if (c.of && *c.of != stream) return false;
  if (!c.relative) return (!c.qpn || *c.qpn == id.qpn) && (!c.psn || *c.psn == id.psn);
  if (*c.qpn > seen_.size() || seen_[*c.qpn - 1].qpn != id.qpn) return false;
  if (!c.psn) return true;
  const std::uint32_t first = *seen_[*c.qpn - 1].first[static_cast<std::size_t>(stream)];
  return stream == c.of.value_or(PacketStream::requests) && ((id.psn - first) & 0xFFFFFF) + 1 == *c.psn;
}

Impairment::Verdict Impairment::judge(const FrameId& id, sim::Picos now) {
  Verdict v;
  if (relative_ && id.roce) note(id);
  for (Event& e : events_) {
    const ImpairmentEventConfig& c = e.config;
    if (!matches(c, id, now)) continue;
    ++e.seen;
    if (e.seen >= c.iter && e.seen - c.iter < c.count)
      apply(v, c.type, c.time.value_or(ImpairmentEventConfig::kDefaultTime));
  }
  if (rates_.drop > 0 && rng_.chance(rates_.drop)) apply(v, ImpairmentType::drop, {});
  if (rates_.corrupt > 0 && rng_.chance(rates_.corrupt)) apply(v, ImpairmentType::corrupt, {});
  if (rates_.duplicate > 0 && rng_.chance(rates_.duplicate)) apply(v, ImpairmentType::duplicate, {});
  if (rates_.delay > 0 && rng_.chance(rates_.delay)) apply(v, ImpairmentType::delay, random_time());
  if (rates_.reorder > 0 && rng_.chance(rates_.reorder)) apply(v, ImpairmentType::reorder, random_time());
  return v;
}

std::uint64_t Impairment::corrupt(Packet& packet, const FrameId& id, sim::BufferPool& buffers) {
  constexpr std::uint32_t kMaskedByte = 4;  // of the BTH: FECN, BECN and reserved bits
  const std::uint32_t start = id.roce ? id.bth_offset : 14;
  SIM_CHECK(packet.header_length >= start, "frame without Ethernet header");
  const std::uint32_t in_header = packet.header_length - start;
  const std::uint32_t bytes = in_header + packet.payload_length - (id.roce ? 1 : 0);
  SIM_CHECK(bytes > 0, "nothing to corrupt");
  const std::uint32_t draw = rng_.below(bytes * 8);
  std::uint32_t byte = draw / 8;
  if (id.roce && byte >= kMaskedByte) ++byte;
  const auto flip = static_cast<std::byte>(1U << draw % 8);
  if (byte < in_header) {
    packet.header[start + byte] ^= flip;
  } else {
    sim::BufferRef copy = buffers.make(packet.payload_length);
    std::memcpy(copy.data(), packet.payload.data() + packet.payload_offset, packet.payload_length);
    copy.data()[byte - in_header] ^= flip;
    packet.payload = std::move(copy);
    packet.payload_offset = 0;
  }
  return byte * 8ULL + draw % 8;
}

}  // namespace fabric
