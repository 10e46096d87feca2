// SPDX-License-Identifier: Apache-2.0
// What a link does to packets beside carrying them: a list of events that name packets, and seeded rates.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fabric/frame_id.h"
#include "sim/buffer.h"
#include "sim/config.h"
#include "sim/rng.h"
#include "sim/units.h"

namespace fabric {

enum class ImpairmentType : std::uint8_t {
  drop,       ///< takes its time on the wire and never arrives
  corrupt,    ///< one bit flipped in a place that the ICRC covers
  duplicate,  ///< sent a second time right behind
  delay,      ///< arrives later, and everything behind it too
  reorder,    ///< arrives later, and packets behind it overtake it
};

}  // namespace fabric

template <>
struct sim::EnumNames<fabric::ImpairmentType> {
  static constexpr std::array<std::pair<fabric::ImpairmentType, std::string_view>, 5> values{
      {{fabric::ImpairmentType::drop, "drop"},
       {fabric::ImpairmentType::corrupt, "corrupt"},
       {fabric::ImpairmentType::duplicate, "duplicate"},
       {fabric::ImpairmentType::delay, "delay"},
       {fabric::ImpairmentType::reorder, "reorder"}}};
};

namespace fabric {

/// One impairment of one packet. An absent selector matches every packet of the link.
struct ImpairmentEventConfig {
  std::optional<std::uint32_t> qpn, psn, opcode;
  std::uint32_t iter = 1;
  std::uint32_t count = 1;
  ImpairmentType type = ImpairmentType::drop;
  sim::Picos time{10'000'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto any = sim::assumed("any packet");
    v("qpn", c.qpn, "destination QPN in the packet", any, sim::Range{0, 0xFFFFFF});
    v("psn", c.psn, "PSN in the packet", any, sim::Range{0, 0xFFFFFF});
    v("opcode", c.opcode, "BTH opcode of the packet", any, sim::Range{0, 255});
    v("iter", c.iter, "which of the matching packets, from 1: a retransmission is the second with its PSN",
      sim::assumed("the first"), sim::Range{1, 4e9});
    v("count", c.count, "how many matching packets in a row, from that one on", sim::assumed("one"),
      sim::Range{1, 4e9});
    v("type", c.type, "what happens to the packet", sim::assumed("loss is the commonest fault"));
    v("time", c.time, "extra time of delay and reorder", sim::assumed("a few packet times"), sim::Range{1, 1e13});
  }
};

struct ImpairmentConfig {
  std::vector<ImpairmentEventConfig> events;
  double drop = 0, corrupt = 0, duplicate = 0, delay = 0, reorder = 0;
  sim::Picos delay_max{10'000'000};

  bool empty() const {
    return events.empty() && drop == 0 && corrupt == 0 && duplicate == 0 && delay == 0 && reorder == 0;
  }
  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto off = sim::assumed("an undisturbed link");
    const sim::Range probability{0, 1};
    v("events", c.events, "impairments of single packets", off);
    v("drop", c.drop, "probability that a packet is lost", off, probability);
    v("corrupt", c.corrupt, "probability that a bit of a packet flips", off, probability);
    v("duplicate", c.duplicate, "probability that a packet is sent twice", off, probability);
    v("delay", c.delay, "probability that a packet and those behind it are delayed", off, probability);
    v("reorder", c.reorder, "probability that a packet is overtaken", off, probability);
    v("delay_max", c.delay_max, "extra time of random delay and reorder: uniform from 1 ps to this",
      sim::assumed("a few packet times"), sim::Range{1, 1e13});
  }
};

/// Decides the fate of each packet of one direction of a link. The same seed and packets give the same fates.
class Impairment {
 public:
  struct Verdict {
    bool drop = false, corrupt = false, duplicate = false;
    sim::Picos delay{0}, reorder{0};
  };
  Impairment(const ImpairmentConfig& config, sim::Rng rng);
  /// Called once per packet in sending order.
  Verdict judge(const FrameId& id);
  /// Flips one bit of the packet in a private copy of its payload: of its transport headers (without the byte that the ICRC
  /// leaves out) and payload, or of anything after the Ethernet header when the packet is not RoCEv2. Returns the bit's
  /// number, counted from there.
  std::uint64_t corrupt(Packet& packet, const FrameId& id, sim::BufferPool& buffers);

 private:
  struct Event {
    ImpairmentEventConfig config;
    std::uint64_t seen = 0;
  };
  static void apply(Verdict& v, ImpairmentType type, sim::Picos time);
  sim::Picos random_time();
  std::vector<Event> events_;
  ImpairmentConfig rates_;
  sim::Rng rng_;
};

}  // namespace fabric
