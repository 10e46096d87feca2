// SPDX-License-Identifier: Apache-2.0
// Receive side of the port: parse, ICRC, steering to the QP or to the members of a multicast group, and the silent drops of
// S-PKT-12/13 and S-UD-3.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "hca/context/context_cache.h"
#include "hca/context/objects.h"
#include "hca/device.h"
#include "hca/hca_config.h"
#include "hca/transport/tx_port.h"

namespace hca {

/// Takes packets that belong to a QP.
struct TransportSink {
  virtual ~TransportSink() = default;
  virtual void request(Qp& qp, RxPtr packet) = 0;
  virtual void response(Qp& qp, RxPtr packet) = 0;
};

/// Why a packet was dropped without an answer.
enum class DropReason : std::uint8_t {
  malformed,
  icrc,
  unknown_qp,
  qp_state,
  transport,
  pkey,
  source,
  congestion_notification,
  address,
  qkey,
  multicast_group
};
inline constexpr std::size_t kDropReasons = 11;

class RxPort final : public fabric::PacketSink {
 public:
  RxPort(Device& device, ContextCache& qpc, const std::string& path);
  sim::Context& context() { return device_.context; }
  void bind(TransportSink& sink) { sink_ = &sink; }
  /// The last bit of a packet has arrived from the wire; it must be addressed to this port.
  void receive_from_wire(fabric::PacketPtr packet) { enter(std::move(packet), true); }
  /// A packet has turned round inside the device.
  void receive(fabric::PacketPtr packet) override { enter(std::move(packet), false); }

 private:
  struct InPipeline {
    RxPtr packet;
    sim::Picos due{0};
  };
  void enter(fabric::PacketPtr packet, bool from_wire);
  void deliver();
  bool addressed_to_port(const RxPacket& rx) const;
  void deliver_multicast(const RxPacket& rx);
  sim::Flow steer(RxPtr packet);
  sim::Flow look_up(RxPtr packet);
  void hand_over(Qp& qp, RxPtr packet);
  bool acceptable(const Qp& qp, const RxPacket& rx, DropReason& why) const;
  void drop(DropReason why, const RxPacket& rx);

  Device& device_;
  ContextCache& qpc_;
  TransportSink* sink_ = nullptr;
  sim::Pool<RxPacket>& pool_;
  sim::Pool<fabric::Packet>& packet_pool_;
  sim::Ring<InPipeline> pipeline_;
  sim::Picos next_entry_{0};
  sim::trace::Source trace_;
  sim::Counter& packets_;
  sim::Counter& bytes_;
  std::array<sim::Counter*, kDropReasons> drops_{};
  sim::BusyTime& busy_;
};

}  // namespace hca
