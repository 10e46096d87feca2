// SPDX-License-Identifier: Apache-2.0
// Frames that no peer should send: wrong in one field, or random. Each wrong one is dropped under its own counter and
// changes nothing; after random ones the device still serves the queue pair that is reset.
#include <gtest/gtest.h>

#include <random>

#include "hca/transport/icrc.h"
#include "hca/transport/wire.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
namespace wire = hca::wire;

void pause(End& e, sim::Picos d) { e.thread().sleep(d); }

/// Puts frames into the port of host 1 as if host 0 had sent them.
struct Port {
  explicit Port(Pair& p) : pair(p), pool(p.context.pools.of<fabric::Packet>("packet")) {}
  fabric::PacketPtr frame(const wire::Headers& h, std::uint32_t payload) {
    fabric::PacketPtr p = pool.make();
    p->payload_length = payload;
    if (payload > 0) {
      p->payload = pair.context.buffers.make(payload);
      std::memset(p->payload.data(), 0x5a, payload);
      p->payload_offset = 0;
    }
    wire::Path path;
    path.source_mac = Host::mac(0);
    path.destination_mac = Host::mac(1);
    path.source = *kernel::gid_of_ipv4(Host::ipv4(0));
    path.destination = *kernel::gid_of_ipv4(Host::ipv4(1));
    wire::FrameTemplate(path).build(*p, h);
    return p;
  }
  /// Delivers it now; `seal` recomputes the ICRC after the caller has changed bytes.
  void deliver(fabric::PacketPtr p, bool seal) {
    if (seal) p->icrc = hca::wire::icrc(*p, wire::kEthernetSize);
    cpu::current().sync();
    held.push_back(std::move(p));
    pair.context.scheduler.at<&Port::arrive>(cpu::current().now(), this);
    cpu::current().sleep(2_us);
  }
  void arrive() {
    fabric::PacketPtr p = held.pop_front();
    static_cast<fabric::PacketSink&>(pair.cluster->host(1).hca()).receive(std::move(p));
  }
  Pair& pair;
  sim::Pool<fabric::Packet>& pool;
  sim::Ring<fabric::PacketPtr> held;
};

wire::Headers send_only(wire::Transport transport, std::uint32_t qpn, std::uint32_t psn) {
  wire::Headers h;
  h.bth.opcode = wire::make_opcode(transport, wire::kSendOnly);
  h.bth.dest_qpn = qpn;
  h.bth.psn = hca::Psn(psn);
  h.bth.ack_req = transport == wire::kRc;
  h.deth = {0x11111111, 0x77};
  return h;
}

struct Wrong {
  const char* name;
  const char* counter;  ///< below rx.dropped
  void (*change)(wire::Headers& h, fabric::Packet* p);
  bool seal = true;
};
void PrintTo(const Wrong& w, std::ostream* out) { *out << w.name; }
std::byte& bth(fabric::Packet& p, std::size_t i) { return p.header[wire::kEthernetSize + 28 + i]; }

class WrongField : public testing::TestWithParam<Wrong> {};
TEST_P(WrongField, IsASilentDropWithACounter_S_PKT_12_S_PKT_13) {
  const Wrong& w = GetParam();
  Pair p;
  p.run([](End& e) { e.meet("done"); },
        [&](End& e) {
          Port port(p);
          for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(e.receive(i, 0, 256), 0);
          wire::Headers h = send_only(wire::kRc, e.qp->qp_num, 0x100);
          w.change(h, nullptr);
          fabric::PacketPtr bad = port.frame(h, 21);
          w.change(h, bad.get());
          port.deliver(std::move(bad), w.seal);
          pause(e, 20_us);
          ibv_wc wc{};
          EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
          EXPECT_EQ(e.state(), IBV_QPS_RTS);
          EXPECT_TRUE(e.events().empty());
          EXPECT_EQ(p.counter("host1.hca.tx.packets"), 0u) << "no answer";
          EXPECT_EQ(p.counter(std::string("host1.hca.rx.dropped.") + w.counter), 1u);
          port.deliver(port.frame(send_only(wire::kRc, e.qp->qp_num, 0x100), 21), false);
          EXPECT_EQ(e.wait(1)[0].byte_len, 21u) << "the expected PSN has not moved";
          e.meet("done");
        });
}
INSTANTIATE_TEST_SUITE_P(
    Rc, WrongField,
    testing::Values(
        Wrong{"icrc", "icrc_errors",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) p->icrc ^= 1;
              },
              false},
        Wrong{"payload_bit", "icrc_errors",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) p->payload.data()[3] ^= std::byte{4};
              },
              false},
        Wrong{"pkey", "pkey_mismatch", [](wire::Headers& h, fabric::Packet*) { h.bth.pkey = 0x8001; }},
        Wrong{"qpn", "unknown_qp", [](wire::Headers& h, fabric::Packet*) { h.bth.dest_qpn ^= 0x4000; }},
        Wrong{"qpn_zero", "unknown_qp", [](wire::Headers& h, fabric::Packet*) { h.bth.dest_qpn = 0; }},
        Wrong{"transport_version", "malformed", [](wire::Headers& h, fabric::Packet*) { h.bth.version = 1; }},
        Wrong{"reserved_opcode", "malformed",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) bth(*p, 0) = std::byte{0x3f};
              }},
        Wrong{"rd_opcode", "malformed",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) bth(*p, 0) = std::byte{0x44};
              }},
        Wrong{"uc_opcode", "wrong_transport",
              [](wire::Headers& h, fabric::Packet*) { h.bth.opcode = wire::make_opcode(wire::kUc, wire::kSendOnly); }},
        Wrong{"ud_opcode", "wrong_transport",
              [](wire::Headers& h, fabric::Packet*) { h.bth.opcode = wire::make_opcode(wire::kUd, wire::kSendOnly); }},
        Wrong{"pad", "malformed",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) bth(*p, 1) ^= std::byte{0x10};
              }},
        Wrong{"udp_port", "malformed",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) p->header[37] ^= std::byte{1};
              }},
        Wrong{"udp_length", "malformed",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) p->header[39] ^= std::byte{1};
              }},
        Wrong{"source_address", "wrong_source",
              [](wire::Headers&, fabric::Packet* p) {
                if (p == nullptr) return;
                p->header[29] = static_cast<std::byte>(static_cast<unsigned>(p->header[29]) + 1);
                std::uint16_t sum;
                std::memcpy(&sum, &p->header[24], 2);
                sum = __builtin_bswap16(static_cast<std::uint16_t>(__builtin_bswap16(sum) - 1));
                std::memcpy(&p->header[24], &sum, 2);
              }},
        Wrong{"destination_mac", "wrong_address",
              [](wire::Headers&, fabric::Packet* p) {
                if (p != nullptr) p->header[5] ^= std::byte{8};
              }}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(BadPacket, OfAnotherServiceIsDropped_S_PKT_13) {
  Pair p;
  p.options[0].type = p.options[1].type = IBV_QPT_UD;
  p.run([](End& e) { e.meet("done"); },
        [&](End& e) {
          Port port(p);
          ASSERT_EQ(e.receive(1, 0, 256), 0);
          port.deliver(port.frame(send_only(wire::kRc, e.qp->qp_num, 0x100), 16), false);
          wire::Headers wrong_key = send_only(wire::kUd, e.qp->qp_num, 5);
          wrong_key.deth.qkey ^= 1;
          port.deliver(port.frame(wrong_key, 16), false);
          port.deliver(port.frame(send_only(wire::kUd, 0xFFFFFF, 5), 16), false);
          port.deliver(port.frame(send_only(wire::kUd, e.qp->qp_num, 5), 16), false);
          EXPECT_EQ(e.wait(1)[0].byte_len, 56u);
          e.meet("done");
        });
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.wrong_transport"), 1u);
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.qkey_mismatch"), 1u);
  EXPECT_EQ(p.counter("host1.hca.rx.dropped.no_group_member"), 1u);
}

// Random bytes in the transport headers, random opcodes and lengths, with a correct ICRC.
class RandomPackets : public testing::TestWithParam<ibv_qp_type> {};
TEST_P(RandomPackets, NeverBreakTheDevice) {
  Pair p;
  p.options[0].type = p.options[1].type = GetParam();
  p.run([](End& e) { e.meet("done"); },
        [&](End& e) {
          Port port(p);
          std::mt19937 generator(7);
          const auto random = [&] { return static_cast<std::uint32_t>(generator()); };
          const auto byte = [&] { return static_cast<std::byte>(random() & 0xff); };
          for (int i = 0; i < 1500; ++i) {
            wire::Headers h = send_only(wire::kRc, e.qp->qp_num, 0x100 + random() % 3);
            do h.bth.opcode = static_cast<std::uint8_t>(random());
            while (!wire::opcode_info(h.bth.opcode).valid());
            h.reth = {random() % 4 != 0 ? e.va(random() % 70000) : random(), e.mr->rkey,
                      static_cast<std::uint32_t>(random() % 3 != 0 ? random() % 5000 : random())};
            fabric::PacketPtr f = port.frame(h, random() % 3 == 0 ? 0 : random() % 1100);
            const std::size_t first = wire::kEthernetSize + 28;
            for (int k = 0; k < 3; ++k)
              if (random() % 2 == 0) f->header[first + random() % (f->header_length - first)] = byte();
            e.receive(1, 0, 2048);
            port.deliver(std::move(f), true);
            if (i % 8 == 7) {
              const ibv_qp_state state = e.state();
              ASSERT_TRUE(state == IBV_QPS_RTS || state == IBV_QPS_ERR);
              e.events();
              ibv_qp_attr a{};
              a.qp_state = IBV_QPS_RESET;
              ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), 0);
              e.go_to_rts();
            }
          }
          ASSERT_EQ(e.receive(1, 0, 256), 0);
          const wire::Transport transport = GetParam() == IBV_QPT_RC   ? wire::kRc
                                            : GetParam() == IBV_QPT_UC ? wire::kUc
                                                                       : wire::kUd;
          port.deliver(port.frame(send_only(transport, e.qp->qp_num, 0x100), 16), false);
          EXPECT_EQ(e.wait(1)[0].status, IBV_WC_SUCCESS);
          e.meet("done");
        });
}
INSTANTIATE_TEST_SUITE_P(Services, RandomPackets, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD));

}  // namespace
}  // namespace sys::test
