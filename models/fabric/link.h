// SPDX-License-Identifier: Apache-2.0
// One direction of a cable: an unlimited transmit queue, serialisation with Ethernet's overhead, and time of flight.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "fabric/impairment.h"
#include "fabric/packet.h"
#include "sim/config.h"
#include "sim/context.h"
#include "sim/units.h"

namespace fabric {

/// A time during which the cable carries nothing.
struct LinkDownConfig {
  sim::Picos at{0}, duration{0};
  sim::Picos end() const { return at + duration; }

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("at", c.at, "simulated time at which the link goes down", sim::required(), sim::Range{0, 1e18});
    v("for", c.duration, "how long it stays down", sim::required(), sim::Range{1, 1e18});
  }
};

struct LinkConfig {
  sim::BitRate rate{100'000'000'000};
  sim::Picos propagation{5'000};
  sim::Picos phy_latency{62'000};
  sim::Bytes preamble{8}, fcs{4}, gap{12}, min_frame{64};
  ImpairmentConfig impairment;
  std::vector<LinkDownConfig> down;

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("rate", c.rate, "data rate of the MAC", sim::spec("IEEE 802.3, 100 GbE"), sim::Range{1e6, 1e13});
    v("propagation", c.propagation, "time of flight through the cable", sim::spec("5 ns per metre, 1 m"),
      sim::Range{0, 1e12});
    v("phy_latency", c.phy_latency, "MAC, PCS and FEC of both ends, once per frame",
      sim::measured("residue of ib_send_lat of a ConnectX-5 back to back"), sim::Range{0, 1e12});
    v("preamble", c.preamble, "preamble and start-of-frame delimiter", sim::spec("IEEE 802.3"), sim::Range{0, 64});
    v("fcs", c.fcs, "frame check sequence", sim::spec("IEEE 802.3"), sim::Range{0, 64});
    v("gap", c.gap, "inter-packet gap", sim::spec("IEEE 802.3"), sim::Range{0, 1024});
    v("min_frame", c.min_frame, "shortest frame, FCS included; shorter ones are padded on the wire",
      sim::spec("IEEE 802.3"), sim::Range{0, 9000});
    v("impairment", c.impairment, "loss, corruption, duplication, delay and reordering",
      sim::assumed("an undisturbed link"));
    v("down", c.down, "times at which the link is down, in both directions: packets are lost, the ports say DOWN",
      sim::assumed("an undisturbed link"));
  }
  template <class F>
  void check(F&& fail) const {
    for (std::size_t i = 1; i < down.size(); ++i)
      if (down[i].at <= down[i - 1].end()) fail("down", "times have to follow each other with a pause between them");
  }
};

/// Packets leave in order at line rate; each arrival is one event. The first bit of a packet leaves at
/// max(now, end of the previous frame and its gap); its last bit arrives after preamble, frame and FCS at `rate`, plus
/// propagation and phy_latency. Within a busy period serialisation is exact: n frames take bits / rate, rounded down once.
class Link : public sc_core::sc_module, public PacketPort {
 public:
  /// Bound to whoever receives.
  sc_core::sc_port<PacketSink> out;

  /// `path` names the link in statistics and traces ("fabric.host0_to_host1").
  Link(sc_core::sc_module_name name, sim::Context& context, const LinkConfig& config, const std::string& path);

  void send(PacketPtr packet) override;
  PacketPtr make_packet() override { return packets_.make(); }
  std::uint64_t queued_bytes() const override;
  sim::Picos ready_at() const override { return max(context_.now(), free_at_); }

  const LinkConfig& config() const { return config_; }
  /// Time from the first bit on the wire to the last bit at the far end of a frame of `length` bytes (Ethernet header to
  /// ICRC) on an idle link.
  sim::Picos flight_time(std::uint32_t length) const;

 private:
  struct InFlight {
    sim::Picos start, arrival;
    PacketPtr packet;  ///< empty: lost on the way
    std::uint32_t length = 0;
  };
  struct Late {
    sim::Picos arrival;
    PacketPtr packet;
  };

  sim::Bytes on_wire(std::uint32_t length) const;
  void send_impaired(PacketPtr packet);
  void transmit(PacketPtr packet, const FrameId* id, const Impairment::Verdict& fate);
  bool down_during(sim::Picos from, sim::Picos to) const;
  void change_state(std::uint64_t up);
  void settle(sim::Picos t);
  void head_arrives();
  void late_arrives();
  void deliver(PacketPtr packet);
  void trace_send(Packet& packet, sim::Picos start, sim::Picos arrival, std::uint64_t bytes);
  void trace_frame(const Packet& packet, sim::Picos t, bool transmit);

  sim::Context& context_;
  const LinkConfig config_;
  sim::RateMeter meter_;
  sim::Pool<Packet>& packets_;
  sim::Picos free_at_{0};  ///< end of the last frame's gap
  sim::Picos last_arrival_{0};
  sim::Ring<InFlight> flight_;  ///< by arrival
  std::vector<Late> late_;      ///< overtaken packets, by arrival, latest first
  std::size_t started_ = 0;     ///< entries at the front of flight_ that are on the wire
  std::uint64_t waiting_bytes_ = 0;
  std::uint32_t serial_ = 0;
  std::unique_ptr<Impairment> impairment_;
  sim::Counter& packets_count_;
  sim::Counter& bytes_count_;
  sim::Counter& dropped_;
  sim::Counter& corrupted_;
  sim::Counter& duplicated_;
  sim::Counter& delayed_;
  sim::Counter& reordered_;
  sim::Counter& lost_while_down_;
  sim::BusyTime& busy_;
  sim::trace::Source wire_trace_, rx_trace_, queue_trace_, bytes_trace_, event_trace_;
  std::vector<std::byte> frame_;  ///< gathered bytes, while tracing
};

}  // namespace fabric
