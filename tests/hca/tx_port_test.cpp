// SPDX-License-Identifier: Apache-2.0
// Where a packet goes after the transmit pipeline: to the wire, or back into the device.
#include "hca/transport/tx_port.h"

#include "tests/hca/scripted_endpoint.h"

namespace hca::test {
namespace {

struct Wire final : fabric::PacketPort {
  void send(fabric::PacketPtr packet) override { sent.push_back(std::move(packet)); }
  fabric::PacketPtr make_packet() override { return pool.make(); }
  std::uint64_t queued_bytes() const override { return 0; }
  sim::Picos ready_at() const override { return busy_until; }
  sim::Pool<fabric::Packet> pool{"packet"};
  std::vector<fabric::PacketPtr> sent;
  sim::Picos busy_until{0};
};
struct Inside final : fabric::PacketSink {
  explicit Inside(sim::Context& c) : context(c) {}
  void receive(fabric::PacketPtr) override { arrivals.push_back(context.now()); }
  sim::Context& context;
  std::vector<sim::Picos> arrivals;
};

class TxPortTest : public testing::Test {
 protected:
  TxPortTest() {
    tx.bind(static_cast<fabric::PacketPort&>(wire));
    tx.bind_loopback(kOwn, inside);
    wire::Path path;
    path.source = wire::ipv4_gid(10, 0, 0, 1);
    path.destination = wire::ipv4_gid(10, 0, 0, 2);
    path.destination_mac = kPeer;
    qp.frame = wire::FrameTemplate(path);
  }
  void send() {
    OutPacket* p = tx.make(qp, qp.requests);
    p->headers.bth.opcode = wire::make_opcode(wire::kRc, wire::kSendOnly);
    tx.submit(p, {});
    bench.run();
  }
  static constexpr wire::Mac kOwn{2, 0, 0, 0, 0, 1}, kPeer{2, 0, 0, 0, 0, 2};
  DmaBench bench;
  const SendConfig config;
  Wire wire;
  Inside inside{bench.context};
  TxPort tx{bench.context, config, bench.dma, 0, "tx"};
  Qp qp;
};

TEST_F(TxPortTest, APacketToAnotherPortTakesTheWire) {
  send();
  EXPECT_EQ(wire.sent.size(), 1u);
  EXPECT_TRUE(inside.arrivals.empty());
}

TEST_F(TxPortTest, AQpThatForcesLoopbackNeverTakesTheWire) {
  qp.force_loopback = true;
  wire.busy_until = sim::Picos{1'000'000'000};
  send();
  EXPECT_TRUE(wire.sent.empty());
  ASSERT_EQ(inside.arrivals.size(), 1u);
  EXPECT_EQ(inside.arrivals[0], config.tx_pipeline + config.loopback_latency) << "and does not wait for it";
}

}  // namespace
}  // namespace hca::test
