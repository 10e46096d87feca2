// SPDX-License-Identifier: Apache-2.0
// Register access, DMA and interrupts through root complex, link and endpoint, with exact times.
#include "machine.h"

namespace {

using namespace pcie_test;
using pcie::CplStatus;

std::span<const std::byte> bytes_of(const std::uint64_t& v) { return std::as_bytes(std::span(&v, 1)); }

TEST(MmioWrite, IdleLatencyIsTheSumOfItsFields) {
  Machine m;
  const auto line = pattern(64);
  m.root_complex.mmio_write({kBar0 + 0x10800}, line, {});
  m.run();
  ASSERT_EQ(m.device.stores.size(), 1U);
  const auto& s = m.device.stores[0];
  EXPECT_EQ(s.t, m.c.root_complex.mmio_latency + m.ser(24 + 64) + m.c.slot.link.latency);
  EXPECT_EQ(s.sent, m.c.root_complex.mmio_latency);
  EXPECT_EQ(s.offset, 0x10800U);
  EXPECT_EQ(s.bytes, line);
}

TEST(MmioWrite, StoresKeepTheirOrder) {
  Machine m;
  for (std::uint64_t i = 0; i < 200; ++i) m.root_complex.mmio_write({kBar0 + 0x10000 + 8 * i}, bytes_of(i), {});
  m.run();
  ASSERT_EQ(m.device.stores.size(), 200U);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(m.device.stores[i].offset, 0x10000 + 8 * i);
}

TEST(MmioWrite, MarksTheEndOfTheWayDown) {
  Machine m;
  struct Sink : sim::JourneySink {
    void finished(const sim::Journey& j) override { journey = j; }
    sim::Journey journey;
  } sink;
  m.context.journeys.set_sink(&sink);
  const sim::MsgId id = m.context.journeys.begin({}, 0, 0, 8);
  const std::uint64_t v = 1;
  m.root_complex.mmio_write({kBar0 + 0x10800}, bytes_of(v), {id, 0});
  m.run();
  m.context.journeys.finish(id, sim::Stage::poll, m.context.now());
  EXPECT_EQ(sink.journey.stage[static_cast<std::size_t>(sim::Stage::pcie_down)],
            m.c.root_complex.mmio_latency + m.ser(32) + m.c.slot.link.latency);
}

TEST(MmioWrite, ToNobodyVanishesAndIsCounted) {
  Machine m;
  const std::uint64_t v = 1;
  m.root_complex.mmio_write({kBar0 - 8}, bytes_of(v), {});
  m.root_complex.mmio_write({kBar0 + (32ULL << 20)}, bytes_of(v), {});
  m.run();
  EXPECT_TRUE(m.device.stores.empty());
  EXPECT_EQ(m.count("root_complex.unclaimed_mmio"), 2U);
}

struct Loaded {
  sim::Context* context;
  std::vector<std::pair<Picos, std::uint64_t>> values;
  static void done(void* self, std::uint64_t v) {
    auto* l = static_cast<Loaded*>(self);
    l->values.emplace_back(l->context->now(), v);
  }
};

TEST(MmioRead, RoundTripIsTheSumOfItsFields) {
  Machine m;
  Loaded l{&m.context, {}};
  m.root_complex.mmio_read({kBar0 + 0x10}, 4, Loaded::done, &l);
  m.run();
  ASSERT_EQ(l.values.size(), 1U);
  EXPECT_EQ(l.values[0].second, 0xA0000010U);
  const auto& link = m.c.slot.link;
  EXPECT_EQ(l.values[0].first, m.c.root_complex.mmio_latency + m.ser(24) + link.latency +
                                   m.c.slot.register_read_latency + m.ser(20 + 4) + link.latency +
                                   m.c.root_complex.mmio_return_latency);
  m.root_complex.mmio_read({kBar0 + 0x18}, 8, Loaded::done, &l);
  m.run();
  EXPECT_EQ(l.values[1].second, 0x1122334455667718U);
}

TEST(MmioRead, OfNobodyIsAllOnes) {
  Machine m;
  Loaded l{&m.context, {}};
  m.root_complex.mmio_read({kBar0 - 8}, 4, Loaded::done, &l);
  m.root_complex.mmio_read({kBar0 - 8}, 8, Loaded::done, &l);
  m.run();
  EXPECT_EQ(l.values[0].second, 0xFFFFFFFFU);
  EXPECT_EQ(l.values[1].second, ~0ULL);
}

TEST(MmioRead, ReturnsAfterTheEarlierDmaWritesOfTheDeviceAreVisible) {
  Machine m;
  m.translator.latency = 3_us;
  m.device.write(m.base, 64, 0x5A);
  struct Check {
    Machine* m;
    bool seen = false, called = false;
  } check{&m};
  m.root_complex.mmio_read(
      {kBar0 + 0x10}, 4,
      [](void* p, std::uint64_t) {
        auto* c = static_cast<Check*>(p);
        c->called = true;
        c->seen = *c->m->memory.raw({c->m->base}) == std::byte{0x5A};
      },
      &check);
  m.run();
  EXPECT_TRUE(check.called);
  EXPECT_TRUE(check.seen);
}

TEST(DmaWrite, IdleLatencyIsTheSumOfItsFields) {
  Machine m;
  m.translator.latency = 7_ns;
  m.watch(m.base + 128, 64);
  m.device.write(m.base + 128, pattern(64));
  m.run();
  ASSERT_EQ(m.written.size(), 1U);
  EXPECT_EQ(m.written[0].first, m.ser(24 + 64) + m.c.slot.link.latency + m.translator.latency +
                                    m.c.root_complex.dma_write_latency + m.c.memory.llc_latency);
  EXPECT_EQ(std::memcmp(m.ram + 128, pattern(64).data(), 64), 0);
}

TEST(DmaWrite, WithoutDdioGoesToDram) {
  MachineConfig c;
  c.memory.ddio = false;
  Machine m(c);
  m.watch(m.base, 64);
  m.device.write(m.base, pattern(64));
  m.run();
  EXPECT_EQ(m.written[0].first,
            m.ser(88) + m.c.slot.link.latency + m.c.root_complex.dma_write_latency + m.c.memory.dram_latency);
}

TEST(DmaWrite, MarksVisibility) {
  Machine m;
  struct Sink : sim::JourneySink {
    void finished(const sim::Journey& j) override { journey = j; }
    sim::Journey journey;
  } sink;
  m.context.journeys.set_sink(&sink);
  const sim::MsgId id = m.context.journeys.begin({}, 0, 0, 64);
  m.device.write(m.base, pattern(64), false, {id, 0});
  m.run();
  m.context.journeys.finish(id, sim::Stage::poll, m.context.now());
  EXPECT_EQ(sink.journey.stage[static_cast<std::size_t>(sim::Stage::visible)],
            m.ser(88) + m.c.slot.link.latency + m.c.root_complex.dma_write_latency + m.c.memory.llc_latency);
}

TEST(DmaWrite, BecomesVisibleInOrderEvenWhenAnEarlierTranslationIsSlow) {
  Machine m;
  m.translator.delay[m.base] = 2_us;
  m.watch(m.base, 4096);
  m.watch(m.base + 4096, 4096);
  m.device.write(m.base, 64, 1);
  m.device.write(m.base + 4096, 64, 2);
  m.run();
  ASSERT_EQ(m.written.size(), 2U);
  EXPECT_EQ(m.written[0].second, m.base);
  EXPECT_EQ(m.written[1].second, m.base + 4096);
  EXPECT_EQ(m.written[1].first, m.written[0].first) << "it was only waiting for the first";
}

TEST(DmaWrite, RelaxedOrderingMayPassButIsNotPassed) {
  Machine m;
  m.translator.delay[m.base] = 2_us;
  m.translator.delay[m.base + 4096] = 1_us;
  for (std::uint64_t p = 0; p < 3; ++p) m.watch(m.base + p * 4096, 4096);
  m.device.write(m.base, 64, 1);
  m.device.write(m.base + 4096, 64, 2, true);   // passes the first
  m.device.write(m.base + 8192, 64, 3, false);  // a CQE: after both
  m.run();
  ASSERT_EQ(m.written.size(), 3U);
  EXPECT_EQ(m.written[0].second, m.base + 4096);
  EXPECT_EQ(m.written[1].second, m.base);
  EXPECT_EQ(m.written[2].second, m.base + 8192);
}

TEST(DmaWrite, OfAFaultingPageIsDropped) {
  Machine m;
  m.translator.faults[m.base] = true;
  m.watch(m.base, 4096);
  m.device.write(m.base, 64, 1);
  m.device.write(0x7000'0000'0000, 64, 1);  // translates to something that is no memory
  m.run();
  EXPECT_TRUE(m.written.empty());
  EXPECT_EQ(m.count("root_complex.dropped_writes"), 2U);
}

TEST(DmaWrite, SlowTranslationsPushBackOnTheDevice) {
  MachineConfig c;
  c.slot.root_port_credits.posted_headers = 4;
  Machine m(c);
  m.translator.latency = 10_us;
  for (int i = 0; i < 8; ++i) m.device.write(m.base + 64U * static_cast<unsigned>(i), 64, 1);
  m.engine.run(5_us);
  EXPECT_EQ(m.translator.calls, 4);
  m.run();
  EXPECT_EQ(m.translator.calls, 8);
}

TEST(DmaRead, IdleLatencyIsTheSumOfItsFields) {
  Machine m;
  m.translator.latency = 7_ns;
  const auto data = pattern(64);
  std::memcpy(m.ram + 256, data.data(), 64);
  const auto expected = [&](Picos access) {
    return m.ser(24) + m.c.slot.link.latency + m.translator.latency + m.c.root_complex.dma_read_latency + access +
           m.ser(20 + 64) + m.c.slot.link.latency;
  };
  m.device.read(m.base + 256, 64, 9);
  m.run();
  ASSERT_EQ(m.device.pieces.size(), 1U);
  EXPECT_EQ(m.device.pieces[0].t, expected(m.c.memory.dram_latency));
  EXPECT_EQ(m.device.pieces[0].tag, 9);
  EXPECT_TRUE(m.device.pieces[0].last);
  EXPECT_EQ(m.device.pieces[0].bytes, data);
  m.warm(m.base);
  const Picos start = m.context.now();
  m.device.read(m.base + 256, 64, 10, false);
  m.run();
  EXPECT_EQ(m.device.pieces[1].t - start, expected(m.c.memory.llc_latency));
  EXPECT_EQ(m.device.pieces[1].bytes, data) << "short reads need no buffer";
}

TEST(DmaRead, DataAreThoseOfTheMomentAtWhichMemoryAnswers) {
  Machine m;
  const Picos sampled = m.ser(24) + m.c.slot.link.latency + m.c.root_complex.dma_read_latency + m.c.memory.dram_latency;
  m.device.read(m.base, 1, 1, false);
  m.at(sampled - 1_ps, [&] { m.ram[0] = std::byte{1}; });
  m.at(sampled + 1_ps, [&] { m.ram[0] = std::byte{2}; });
  m.run();
  EXPECT_EQ(m.device.pieces[0].bytes[0], std::byte{1});
}

TEST(DmaRead, CompletionsComeInPiecesOfMpsThatEndAtTheBoundary) {
  Machine m;
  const auto data = pattern(4096);
  std::memcpy(m.ram, data.data(), data.size());
  m.device.read(m.base + 10, 512, 1);
  m.run();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> got;
  std::vector<std::byte> joined;
  for (const auto& p : m.device.pieces) {
    got.emplace_back(p.offset, p.length);
    joined.insert(joined.end(), p.bytes.begin(), p.bytes.end());
    EXPECT_EQ(p.last, p.offset + p.length == 512);
  }
  EXPECT_EQ(got, (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{0, 246}, {246, 256}, {502, 10}}));
  EXPECT_TRUE(std::equal(joined.begin(), joined.end(), data.begin() + 10));
}

TEST(DmaRead, CompletionsMayBeOfOneBoundaryEach) {
  MachineConfig c;
  c.root_complex.split_completions_at_rcb = true;
  Machine m(c);
  const auto data = pattern(64);
  std::memcpy(m.ram + 40, data.data(), data.size());
  m.device.read(m.base + 40, 64, 1, false);
  m.run();
  ASSERT_EQ(m.device.pieces.size(), 2U);
  EXPECT_EQ(m.device.pieces[0].length, 24U);
  EXPECT_EQ(m.device.pieces[1].length, 40U);
  EXPECT_TRUE(std::equal(m.device.pieces[1].bytes.begin(), m.device.pieces[1].bytes.end(), data.begin() + 24));
}

TEST(DmaRead, SeesTheEarlierPostedWritesOfItsDevice) {
  Machine m;
  m.translator.delay[m.base] = 5_us;
  m.device.write(m.base, 64, 0x77);
  m.device.read(m.base + 4096, 64, 1);  // another page, translated at once
  m.device.read(m.base, 64, 2);
  m.watch(m.base, 64);
  m.run();
  ASSERT_EQ(m.device.pieces.size(), 2U);
  for (const auto& p : m.device.pieces) EXPECT_GT(p.t, m.written[0].first);
  EXPECT_EQ(m.device.pieces.back().bytes[0], std::byte{0x77});
}

TEST(DmaRead, DoesNotPassARelaxedWrite) {
  Machine m;
  m.translator.delay[m.base] = 5_us;
  m.device.write(m.base, 64, 0x77, true);
  m.translator.delay.clear();
  m.at(200_ns, [&] { m.device.read(m.base, 64, 2); });
  m.run();
  EXPECT_EQ(m.device.pieces[0].bytes[0], std::byte{0x77});
}

TEST(DmaRead, SlotsLimitAccessesInFlight) {
  MachineConfig c;
  c.root_complex.max_reads = 2;
  Machine m(c);
  m.warm(m.base);
  for (std::uint16_t i = 0; i < 6; ++i) m.device.read(m.base + 64U * i, 64, i);
  m.run();
  const Picos access = m.c.root_complex.dma_read_latency + m.c.memory.llc_latency;
  ASSERT_EQ(m.device.pieces.size(), 6U);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(m.device.pieces[i].t - m.device.pieces[i - 2].t, access) << i;
  EXPECT_EQ(m.context.stats.busy("host0.pcie.root_complex.reads", 2).busy, 6 * access);
}

TEST(DmaRead, FaultCompletesAsUnsupportedRequest) {
  Machine m;
  m.translator.latency = 30_ns;
  m.translator.faults[m.base] = true;
  m.device.read(m.base, 64, 5);
  m.device.read(0x7000'0000'0000, 64, 6);
  m.run();
  ASSERT_EQ(m.device.pieces.size(), 2U);
  EXPECT_EQ(m.device.pieces[0].status, CplStatus::UR);
  EXPECT_EQ(m.device.pieces[0].tag, 5);
  EXPECT_EQ(m.device.pieces[0].length, 0U);
  EXPECT_TRUE(m.device.pieces[0].last);
  EXPECT_EQ(m.device.pieces[0].t, m.ser(24) + m.c.slot.link.latency + 30_ns + m.ser(20) + m.c.slot.link.latency);
  EXPECT_EQ(m.device.pieces[1].status, CplStatus::UR);
  EXPECT_EQ(m.count("root_complex.refused_reads"), 2U);
}

TEST(DmaRead, MalformedRequestsAreCountedAndRefused) {
  Machine m;
  m.device.read(m.base, 513, 1);         // above MRRS
  m.device.read(m.base + 4090, 16, 2);   // across 4 KiB
  m.device.write(m.base, 257, 1);        // above MPS
  m.device.write(m.base + 4090, 16, 1);  // across 4 KiB
  m.run();
  EXPECT_EQ(m.count("root_complex.malformed"), 4U);
  EXPECT_EQ(m.translator.calls, 0);
  ASSERT_EQ(m.device.pieces.size(), 2U);
  for (const auto& p : m.device.pieces) EXPECT_EQ(p.status, CplStatus::UR);
}

TEST(Drained, IsWhenTheLastArrivedAccessTouchesMemory) {
  Machine m;
  m.translator.latency = 1_us;
  m.watch(m.base, 64);
  m.device.write(m.base, 64, 1);
  m.engine.run(m.ser(88) + m.c.slot.link.latency);
  EXPECT_EQ(m.root_complex.drained(m.c.slot.bdf),
            m.context.now() + 1_us + m.c.root_complex.dma_write_latency + m.c.memory.llc_latency);
  m.run();
  EXPECT_EQ(m.root_complex.drained(m.c.slot.bdf), m.written[0].first);
}

void unmask(Machine& m, std::uint32_t vector, std::uint32_t data) {
  m.slot.endpoint.set_msix_control(pcie::kMsixEnable);
  const std::uint32_t entry[4] = {0xFEE00000, 0, data, 0};
  m.root_complex.mmio_write({kBar0 + 0x2000 + 16ULL * vector}, std::as_bytes(std::span(entry)), {});
  m.run();
}

TEST(Msix, LatencyIsTheSumOfItsFields) {
  Machine m;
  unmask(m, 3, 0x23);
  const Picos start = m.context.now();
  m.slot.endpoint.raise_msix(3, {});
  m.run();
  ASSERT_EQ(m.interrupts.seen.size(), 1U);
  EXPECT_EQ(m.interrupts.seen[0].t - start, m.ser(20 + 4) + m.c.slot.link.latency + m.c.root_complex.interrupt_latency);
  EXPECT_EQ(m.interrupts.seen[0].data, 0x23U);
  EXPECT_EQ(m.interrupts.seen[0].address, 0xFEE00000U);
  EXPECT_EQ(m.count("root_complex.interrupts"), 1U);
}

TEST(Msix, ComesAfterEveryEarlierWriteIsVisible) {
  Machine m;
  unmask(m, 0, 1);
  m.translator.delay[m.base] = 3_us;
  m.translator.delay[m.base + 4096] = 4_us;
  bool seen = false;
  m.interrupts.on_interrupt = [&] { seen = m.ram[0] == std::byte{1} && m.ram[4096] == std::byte{2}; };
  m.device.write(m.base, 64, 1);
  m.device.write(m.base + 4096, 64, 2, true);
  m.slot.endpoint.raise_msix(0, {});
  m.run();
  EXPECT_TRUE(seen);
  EXPECT_EQ(m.translator.calls, 2) << "the interrupt window is never translated";
}

TEST(Msix, ADisabledOrMaskedFunctionHoldsItsMessages_S_EQE_7) {
  Machine m;
  unmask(m, 2, 0x22);
  unmask(m, 7, 0x77);
  EXPECT_EQ(m.slot.endpoint.msix_control(), pcie::kMsixEnable | (m.slot.endpoint.msix().vectors() - 1));
  for (const std::uint16_t control : {std::uint16_t{0}, pcie::kMsixFunctionMask,
                                      static_cast<std::uint16_t>(pcie::kMsixEnable | pcie::kMsixFunctionMask)}) {
    m.interrupts.seen.clear();
    m.slot.endpoint.set_msix_control(control);
    for (const int vector : {7, 2, 7}) m.slot.endpoint.raise_msix(static_cast<std::uint16_t>(vector), {});
    m.run();
    EXPECT_TRUE(m.interrupts.seen.empty()) << control;
    EXPECT_TRUE(m.slot.endpoint.msix().pending(2) && m.slot.endpoint.msix().pending(7));
    m.slot.endpoint.set_msix_control(pcie::kMsixEnable);
    m.run();
    ASSERT_EQ(m.interrupts.seen.size(), 2U) << "one message for each vector that pends";
    EXPECT_EQ(m.interrupts.seen[0].data, 0x22U);
    EXPECT_EQ(m.interrupts.seen[1].data, 0x77U);
  }
}

TEST(Msix, MaskedVectorIsPendingAndFiresWhenUnmasked) {
  Machine m;
  m.slot.endpoint.raise_msix(5, {});
  m.run();
  EXPECT_TRUE(m.interrupts.seen.empty());
  Loaded l{&m.context, {}};
  m.root_complex.mmio_read({kBar0 + 0x3000}, 8, Loaded::done, &l);
  m.run();
  EXPECT_EQ(l.values[0].second, 1U << 5);
  unmask(m, 5, 0x42);
  ASSERT_EQ(m.interrupts.seen.size(), 1U);
  EXPECT_EQ(m.interrupts.seen[0].data, 0x42U);
  m.root_complex.mmio_read({kBar0 + 0x3000}, 8, Loaded::done, &l);
  m.root_complex.mmio_read({kBar0 + 0x2000 + 5 * 16 + 8}, 4, Loaded::done, &l);
  m.run();
  EXPECT_EQ(l.values[1].second, 0U);
  EXPECT_EQ(l.values[2].second, 0x42U);
  EXPECT_EQ(m.count("endpoint.msix_masked"), 1U);
}

TEST(Endpoint, UnexpectedTlpsAreCounted) {
  Machine m;
  const auto send = [&](pcie::TlpType type, std::uint64_t address, std::uint32_t length, std::uint16_t requester) {
    pcie::TlpPtr tlp = m.device.port->make_tlp();
    tlp->type = type;
    tlp->address = address;
    tlp->length = length;
    tlp->requester = requester;
    m.slot.endpoint.receive(std::move(tlp));
  };
  send(pcie::TlpType::CplD, 0, 4, 0x1234);                  // completion for somebody else
  send(pcie::TlpType::MWr, kBar0 - 4, 4, 0);                // outside the BAR
  send(pcie::TlpType::MWr, kBar0 + (32U << 20) - 4, 8, 0);  // across its end
  send(pcie::TlpType::Msg, 0, 0, 0);
  EXPECT_EQ(m.count("endpoint.unexpected"), 4U);
  send(pcie::TlpType::MRd, kBar0, 16,
       0);  // too wide for a register: answered as UR, which the root complex did not ask for
  m.run();
  EXPECT_EQ(m.count("endpoint.unsupported"), 1U);
  EXPECT_EQ(m.count("root_complex.unexpected"), 1U);
  EXPECT_TRUE(m.device.stores.empty());
}

TEST(Trace, EachTlpIsASpanWhoseParentIsItsCause) {
  struct Recorder : sim::trace::Sink {
    using sim::trace::Sink::on;
    void on(const sim::trace::Span& s) override { spans.push_back(s); }
    void on(const sim::trace::Track& t) override { tracks[t.id] = t.path; }
    void close(Picos) override {}
    std::vector<sim::trace::Span> spans;
    std::map<std::uint32_t, std::string> tracks;
  };
  Machine m;
  auto owned = std::make_unique<Recorder>();
  Recorder& r = *owned;
  m.context.tracer.add_sink(std::move(owned));
  m.context.tracer.open({});
  m.device.read(m.base, 300, 7);
  m.run();
  ASSERT_EQ(r.spans.size(), 4U);  // MRd, memory access, two CplD
  EXPECT_STREQ(r.spans[0].point->name, "pcie.MRd");
  EXPECT_EQ(r.tracks[r.spans[0].track], "host0.pcie.up");
  EXPECT_EQ(r.spans[0].args, (std::array<std::uint64_t, 4>{7, 300, m.base, 24}));
  EXPECT_EQ(r.spans[0].end, m.ser(24) + m.c.slot.link.latency);
  EXPECT_STREQ(r.spans[1].point->name, "pcie.dma_read");
  EXPECT_EQ(r.spans[1].parent, r.spans[0].id);
  for (std::size_t i : {2U, 3U}) {
    EXPECT_STREQ(r.spans[i].point->name, "pcie.CplD");
    EXPECT_EQ(r.tracks[r.spans[i].track], "host0.pcie.down");
    EXPECT_EQ(r.spans[i].parent, r.spans[1].id);
  }
  EXPECT_EQ(r.spans[3].start - r.spans[2].start, m.ser(276)) << "pieces follow each other";
  EXPECT_EQ(r.spans[3].enqueued, r.spans[2].enqueued);
}

}  // namespace
