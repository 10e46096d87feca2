// SPDX-License-Identifier: Apache-2.0
// Event lists in the vocabulary of RDMA fault injectors (queue pair, PSN, which transmission of it) and seeded rates. The rates are
// drawn in one fixed order for each packet, so that adding an event does not change what the rates do. Impairments act on
// a link, after its Ethernet FCS would have been checked: a corrupted packet reaches the ICRC check of the receiver.
#include "fabric/impairment.h"

#include <cstring>

namespace fabric {

Impairment::Impairment(const ImpairmentConfig& config, sim::Rng rng) : rates_(config), rng_(rng) {
  for (const ImpairmentEventConfig& e : config.events) events_.push_back({e, 0});
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

Impairment::Verdict Impairment::judge(const FrameId& id) {
  Verdict v;
  for (Event& e : events_) {
    const ImpairmentEventConfig& c = e.config;
    const bool selective = c.qpn || c.psn || c.opcode;
    if ((selective && !id.roce) || (c.qpn && *c.qpn != id.qpn) || (c.psn && *c.psn != id.psn) ||
        (c.opcode && *c.opcode != id.opcode))
      continue;
    ++e.seen;
    if (e.seen >= c.iter && e.seen - c.iter < c.count) apply(v, c.type, c.time);
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
