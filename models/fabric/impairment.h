// SPDX-License-Identifier: Apache-2.0
// What a link does to packets beside carrying them: a list of events that name packets, and seeded rates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

/// Which of the two packet streams that go to a QP: what its peer asks for, or what its peer answers.
enum class PacketStream : std::uint8_t { requests, responses };

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

template <>
struct sim::EnumNames<fabric::PacketStream> {
  static constexpr std::array<std::pair<fabric::PacketStream, std::string_view>, 2> values{
      {{fabric::PacketStream::requests, "requests"}, {fabric::PacketStream::responses, "responses"}}};
};

namespace fabric {

/// One impairment of one packet. An absent selector matches every packet of the link.
struct ImpairmentEventConfig {
  std::optional<std::uint32_t> qpn, psn, opcode;
  bool relative = false;
  std::optional<PacketStream> of;
  std::string to;
  sim::Picos after{0}, until = sim::kNever;
  std::uint32_t iter = 1;
  std::uint32_t count = 1;
  ImpairmentType type = ImpairmentType::drop;
  std::optional<sim::Picos> time;
  static constexpr sim::Picos kDefaultTime{10'000'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    const auto any = sim::assumed("any packet");
    v("qpn", c.qpn, "destination QPN in the packet", any, sim::Range{0, 0xFFFFFF});
    v("psn", c.psn, "PSN in the packet", any, sim::Range{0, 0xFFFFFF});
    v("relative", c.relative,
      "qpn and psn count from 1: the QPs of this direction in the order in which packets to them first appear, and the "
      "PSNs of "
      "such a QP from that of its first packet",
      sim::assumed("numbers as in the packet"));
    v("of", c.of, "only packets that ask for something, or only those that answer",
      sim::assumed("any; requests when the PSN is relative, because answers count by themselves"));
    v("opcode", c.opcode, "BTH opcode of the packet", any, sim::Range{0, 255});
    v("to", c.to, "name of the host that the packet goes to; empty = both directions", any);
    v("after", c.after, "only packets that are sent at this simulated time or later", any, sim::Range{0, 1e18});
    v("until", c.until, "only packets that are sent before this simulated time", any,
      sim::Range{1, static_cast<double>(sim::kNever.n)});
    v("iter", c.iter, "which of the matching packets, from 1: a retransmission is the second with its PSN",
      sim::assumed("the first"), sim::Range{1, 4e9});
    v("count", c.count, "how many matching packets in a row, from that one on", sim::assumed("one"),
      sim::Range{1, 4e9});
    v("type", c.type, "what happens to the packet", sim::assumed("loss is the commonest fault"));
    v("time", c.time, "extra time of delay and reorder", sim::assumed("10 us, a few packet times"),
      sim::Range{1, 1e13});
  }
  template <class F>
  void check(F&& fail) const {
    if (relative && !qpn) fail("relative", "says how to count qpn, which is missing");
    if (relative && qpn && *qpn == 0) fail("qpn", "relative numbers begin with 1");
    if (relative && psn && *psn == 0) fail("psn", "relative numbers begin with 1");
    if (until <= after) fail("until", "is not later than `after`: no packet can match");
    if (time && type != ImpairmentType::delay && type != ImpairmentType::reorder)
      fail("time", "is for delay and reorder; \"" + std::string(sim::enum_name(type)) + "\" takes none");
  }
  /// Whether both select the same packets, seen by their selectors alone.
  bool selects_as(const ImpairmentEventConfig& o) const {
    return qpn == o.qpn && psn == o.psn && opcode == o.opcode && relative == o.relative && of == o.of && to == o.to;
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
  template <class F>
  void check(F&& fail) const {
    for (const std::string& m : contradictions()) fail("events", m);
    if (drop == 1 && (corrupt > 0 || duplicate > 0 || delay > 0 || reorder > 0))
      fail("drop", "every packet is lost: nothing is left to corrupt, duplicate, delay or reorder");
  }
  /// Events that want a packet to be lost and something else to happen to it.
  std::vector<std::string> contradictions() const;
};

/// Decides the fate of each packet of one direction of a link. The same seed and packets give the same fates.
class Impairment {
 public:
  struct Verdict {
    bool drop = false, corrupt = false, duplicate = false;
    sim::Picos delay{0}, reorder{0};
  };
  Impairment(const ImpairmentConfig& config, sim::Rng rng);
  /// Called once per packet in sending order, at time `now`.
  Verdict judge(const FrameId& id, sim::Picos now);
  /// Flips one bit of the packet in a private copy of its payload: of its transport headers (without the byte that the ICRC
  /// leaves out) and payload, or of anything after the Ethernet header when the packet is not RoCEv2. Returns the bit's
  /// number, counted from there.
  std::uint64_t corrupt(Packet& packet, const FrameId& id, sim::BufferPool& buffers);

 private:
  struct Event {
    ImpairmentEventConfig config;
    std::uint64_t seen = 0;
  };
  /// Streams to one destination QP, in the order of their appearance.
  struct Seen {
    std::uint32_t qpn;
    std::optional<std::uint32_t> first[2];  ///< first PSN of requests and of responses
  };
  bool matches(const ImpairmentEventConfig& c, const FrameId& id, sim::Picos now) const;
  void note(const FrameId& id);
  static void apply(Verdict& v, ImpairmentType type, sim::Picos time);
  sim::Picos random_time();
  std::vector<Event> events_;
  std::vector<Seen> seen_;
  bool relative_ = false;
  ImpairmentConfig rates_;
  sim::Rng rng_;
};

}  // namespace fabric
