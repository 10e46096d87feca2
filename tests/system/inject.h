// SPDX-License-Identifier: Apache-2.0
// Frames that no requester of this simulator would send, put straight into the port of a host.
#pragma once

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hca/transport/icrc.h"
#include "hca/transport/wire.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {

class Injector {
 public:
  explicit Injector(Pair& pair) : pair_(pair), pool_(pair.context.pools.of<fabric::Packet>("packet")) {}

  /// A frame from the other host to `to`, which arrives at the calling program's time.
  void send(std::size_t to, const hca::wire::Headers& headers, std::uint32_t payload_bytes = 0) {
    send_from(1 - to, to, headers, payload_bytes);
  }
  /// The same with a reserved opcode instead of that of `headers`.
  void send_reserved(std::size_t to, std::uint8_t opcode, const hca::wire::Headers& headers) {
    fabric::PacketPtr p = pool_.make();
    hca::wire::FrameTemplate(path(1 - to, to)).build(*p, headers);
    p->header[kBth] = static_cast<std::byte>(opcode);
    p->icrc = hca::wire::icrc(*p, hca::wire::kEthernetSize);
    arrive_now(to, std::move(p));
  }
  /// The same with the addresses of host `from`.
  void send_from(std::size_t from, std::size_t to, const hca::wire::Headers& headers, std::uint32_t payload_bytes) {
    fabric::PacketPtr p = pool_.make();
    p->payload_length = payload_bytes;
    if (payload_bytes > 0) {
      p->payload = pair_.context.buffers.make(payload_bytes);
      std::memset(p->payload.data(), 0xA5, payload_bytes);
      p->payload_offset = 0;
    }
    hca::wire::FrameTemplate(path(from, to)).build(*p, headers);
    arrive_now(to, std::move(p));
  }

 private:
  static constexpr std::size_t kBth = 14 + 20 + 8;
  void arrive_now(std::size_t to, fabric::PacketPtr p) {
    cpu::current().sync();
    pending_.push_back({to, std::move(p)});
    pair_.context.scheduler.at(cpu::current().now(), &Injector::arrive, this, pending_.size() - 1);
  }
  struct Pending {
    std::size_t to;
    fabric::PacketPtr packet;
  };
  static hca::wire::Path path(std::size_t from, std::size_t to) {
    const auto number = [](std::size_t host) { return static_cast<std::int32_t>(host); };
    hca::wire::Path p;
    p.source_mac = Host::mac(number(from));
    p.destination_mac = Host::mac(number(to));
    const auto gid = [&](std::size_t host) { return *kernel::gid_of_ipv4(Host::ipv4(number(host))); };
    p.source = gid(from);
    p.destination = gid(to);
    return p;
  }
  static void arrive(void* self, std::uint64_t i) {
    auto* injector = static_cast<Injector*>(self);
    Pending& p = injector->pending_[i];
    static_cast<fabric::PacketSink&>(injector->pair_.cluster->host(p.to).hca()).receive(std::move(p.packet));
  }

  Pair& pair_;
  sim::Pool<fabric::Packet>& pool_;
  std::vector<Pending> pending_;
};

/// Headers of an RC request or response to `qpn`; the extended headers are the caller's.
inline hca::wire::Headers rc_headers(std::uint8_t operation, std::uint32_t qpn, std::uint32_t psn) {
  hca::wire::Headers h;
  h.bth.opcode = hca::wire::make_opcode(hca::wire::kRc, operation);
  h.bth.dest_qpn = qpn;
  h.bth.psn = hca::Psn(psn);
  h.bth.ack_req = true;
  return h;
}

}  // namespace sys::test
