// SPDX-License-Identifier: Apache-2.0
// Transmit side of the port: packets whose payload has arrived go through the transmit pipeline onto the wire, in order
// within each queue; the transmit buffer's credits come back when a packet takes the wire.
#pragma once

#include <cstdint>

#include "fabric/packet.h"
#include "hca/context/objects.h"
#include "hca/dma/translation.h"
#include "hca/hca_config.h"

namespace hca {

/// Told what became of packets.
struct TransmitSink {
  virtual ~TransmitSink() = default;
  /// The payload of a queued packet could not be read.
  virtual void payload_failed(Qp& qp, const OutPacket& packet) = 0;
  /// The last bit of a packet with `report_leaving` is on the wire; `span` is its hca.tx. The QP may have been reset or
  /// destroyed meanwhile.
  virtual void packet_left(std::uint32_t qpn, std::uint32_t generation, Psn psn, std::uint64_t span) = 0;
};

class TxPort {
 public:
  TxPort(sim::Context& context, const SendConfig& config, DmaEngine& dma, std::int32_t host, const std::string& path);
  void bind(fabric::PacketPort& port) { port_ = &port; }
  void bind(TransmitSink& sink) { sink_ = &sink; }
  /// Packets to `own`, those of QPs that force it, and a copy of multicast packets turn round inside the device
  /// (loopback.cpp).
  void bind_loopback(const wire::Mac& own, fabric::PacketSink& sink) {
    own_mac_ = own;
    loopback_ = &sink;
  }

  /// The port is gone: packets vanish.
  void remove() { removed_ = true; }

  /// Credits for payload bytes in the device.
  sim::Semaphore& buffer() { return buffer_; }
  /// A packet for `queue` of `qp`; fill headers, payload length and cause, then submit().
  OutPacket* make(Qp& qp, OutQueue& queue);
  /// Queues the packet. `gather` names the payload's bus addresses (none for inline or empty payload).
  void submit(OutPacket* p, const Extents& gather);
  /// Gives back a packet that was made and will not be submitted.
  void discard(OutPacket* p) { retire(p); }
  /// Drops everything queued (QP error, reset, retransmission restart).
  void cancel(OutQueue& queue);

 private:
  static void payload_arrived(void* packet, std::uint64_t port, DmaStatus status);
  void release_ready(OutQueue& queue);
  void enter_pipeline(OutPacket& p);
  void pump();
  void report_leaving(std::uint32_t qpn, std::uint32_t generation, Psn psn, std::uint64_t span, bool on_wire);
  void left();
  void retire(OutPacket* p);
  bool loops_back(const OutPacket& p) const;
  void turn_round(fabric::PacketPtr packet);
  void copy_multicast(const fabric::Packet& packet);
  void loopback_arrives();

  struct InPipeline {
    fabric::PacketPtr packet;
    sim::Picos due{0}, enqueued{0};
    std::uint32_t buffer_bytes = 0, qpn = 0;
    Psn psn;
    std::uint8_t opcode = 0;
    bool last = false, loopback = false, report = false;
    std::uint32_t generation = 0;
  };
  struct Turning {
    fabric::PacketPtr packet;
    sim::Picos due{0};
  };
  struct Leaving {
    std::uint32_t qpn = 0, generation = 0;
    Psn psn;
    std::uint64_t span = 0;
  };
  sim::Context& context_;
  const SendConfig& config_;
  DmaEngine& dma_;
  fabric::PacketPort* port_ = nullptr;
  TransmitSink* sink_ = nullptr;
  sim::Pool<OutPacket>& pool_;
  sim::Semaphore buffer_;
  sim::Ring<InPipeline> pipeline_;
  wire::Mac own_mac_{};
  fabric::PacketSink* loopback_ = nullptr;
  bool removed_ = false;
  sim::Ring<Turning> turning_;
  sim::Picos pump_at_ = sim::kNever;
  sim::Ring<Leaving> leaving_;  // in order of time
  sim::Picos last_leaves_{0};
  std::uint32_t next_serial_ = 1;
  sim::trace::Source trace_;
  sim::Counter& packets_;
  sim::Counter& bytes_;
  sim::Counter& loopback_packets_;
};

}  // namespace hca
