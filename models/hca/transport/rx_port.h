// SPDX-License-Identifier: Apache-2.0
// Receive side of the port: parse, ICRC, steering to the QP, and the silent drops of S-PKT-12/13.
#pragma once

#include <array>
#include <cstdint>

#include "hca/context/context_cache.h"
#include "hca/context/objects.h"
#include "hca/device.h"
#include "hca/hca_config.h"

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
  congestion_notification
};
inline constexpr std::size_t kDropReasons = 8;

class RxPort final : public fabric::PacketSink {
 public:
  RxPort(Device& device, ContextCache& qpc, const std::string& path);
  sim::Context& context() { return device_.context; }
  void bind(TransportSink& sink) { sink_ = &sink; }
  /// The last bit of a packet has arrived.
  void receive(fabric::PacketPtr packet) override;

 private:
  struct InPipeline {
    RxPtr packet;
    sim::Picos due{0};
  };
  void deliver();
  sim::Flow steer(RxPtr packet);
  sim::Flow look_up(RxPtr packet);
  void hand_over(Qp& qp, RxPtr packet);
  bool acceptable(const Qp& qp, const RxPacket& rx, DropReason& why) const;
  void drop(DropReason why, const RxPacket& rx);

  Device& device_;
  ContextCache& qpc_;
  TransportSink* sink_ = nullptr;
  sim::Pool<RxPacket>& pool_;
  sim::Ring<InPipeline> pipeline_;
  sim::Picos next_entry_{0};
  sim::trace::Source trace_;
  sim::Counter& packets_;
  sim::Counter& bytes_;
  std::array<sim::Counter*, kDropReasons> drops_{};
  sim::BusyTime& busy_;
};

}  // namespace hca
