// SPDX-License-Identifier: Apache-2.0
// RoCEv2 packets for the fabric's tests, and a receiver that notes what arrives when.
#pragma once

#include <cstring>
#include <systemc>
#include <utility>
#include <vector>

#include "fabric/link.h"
#include "hca/transport/wire.h"
#include "sim/context.h"

namespace fabric {

struct Receiver : sc_core::sc_module, PacketSink {
  Receiver(sc_core::sc_module_name name, sim::Context& c) : sc_module(name), context(c) {}
  void receive(PacketPtr packet) override { arrivals.emplace_back(context.now(), std::move(packet)); }
  std::uint32_t psn(std::size_t i) const { return identify(*arrivals.at(i).second).psn; }
  std::vector<std::uint32_t> psns() const {
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < arrivals.size(); ++i) all.push_back(psn(i));
    return all;
  }
  sim::Context& context;
  std::vector<std::pair<sim::Picos, PacketPtr>> arrivals;
};

/// A SEND ONLY of `length` bytes 0, 1, 2, … to a QP with that PSN.
inline void fill(Packet& p, sim::Context& context, std::uint32_t psn, std::uint32_t length, std::uint32_t qpn = 0x77) {
  hca::wire::Path path;
  path.source = hca::wire::ipv4_gid(10, 0, 0, 1);
  path.destination = hca::wire::ipv4_gid(10, 0, 0, 2);
  hca::wire::FrameTemplate frame(path);
  p.payload_length = length;
  if (length != 0) p.payload = context.buffers.make(length);
  for (std::uint32_t i = 0; i < length; ++i) p.payload.data()[i] = static_cast<std::byte>(i);
  hca::wire::Headers h;
  h.bth.opcode = hca::wire::kSendOnly;
  h.bth.dest_qpn = qpn;
  h.bth.psn = hca::Psn(psn);
  frame.build(p, h);
}

inline void run(sim::Context& context) {
  while (context.scheduler.run_one(sim::kNever)) {}
}

}  // namespace fabric
