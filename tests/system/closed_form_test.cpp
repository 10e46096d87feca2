// SPDX-License-Identifier: Apache-2.0
// On an idle system every stage of a message's latency is a sum of named config fields, to the picosecond. The sums are
// written here from the meaning of the fields, not taken from the simulator. Polling is checked apart: it ends at the first
// poll instant at or after visibility.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>

#include "fabric/link.h"
#include "hca/transport/wire.h"
#include "pcie/pcie_config.h"
#include "tests/system/run_workload.h"

namespace sys::test {
namespace {

using sim::Picos;
using sim::Stage;
using Stages = std::map<Stage, Picos>;

constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kMwrHeader = 24, kMrdHeader = 24, kCpldHeader = 20;
constexpr std::uint32_t kMsixHeader = 20;                       // the address has 32 bits
constexpr std::uint32_t kFrameOverhead = 14 + 20 + 8 + 12 + 4;  // Ethernet, IPv4, UDP, BTH, ICRC
constexpr std::uint32_t kReth = 16, kAeth = 4;

struct Model {
  explicit Model(const ScenarioConfig& s) : h(s.hosts[0]), link(s.fabric.link), w(s.workloads[0]) {}
  const HostConfig& h;
  const fabric::LinkConfig& link;
  const WorkloadConfig& w;

  Picos tlp(std::uint32_t bytes) const {
    return pcie::serialisation(h.pcie.link, h.pcie.max_payload_size, sim::Bytes{bytes});
  }
  Picos frame_time(std::uint32_t frame) const {
    const std::uint64_t bytes = link.preamble.n + std::max<std::uint64_t>(frame + link.fcs.n, link.min_frame.n);
    return {static_cast<std::int64_t>(bytes * 8'000'000'000'000ULL / link.rate.bps)};
  }
  Picos wire(std::uint32_t frame) const { return frame_time(frame) + link.propagation + link.phy_latency; }
  Picos gap() const { return {static_cast<std::int64_t>(link.gap.n * 8'000'000'000'000ULL / link.rate.bps)}; }
  Picos translate() const { return h.hca.context.mpt_hit + h.hca.context.mtt_hit; }
  bool inlined() const { return w.inline_size > 0 && w.size.n <= w.inline_size; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(w.size.n); }

  // Post call: provider work, the stores of the WQE and the doorbell record, the fence until the record is visible, the
  // loads and stores of the 64-byte BlueFlame lines.
  Picos cpu_post() const {
    const bool remote = w.is_write() || w.is_read();
    const std::uint32_t ds = 1 + (remote ? 1 : 0) + (inlined() ? (4 + size() + 15) / 16 : 1);
    const std::uint32_t lines = (ds * 16 + 63) / 64;
    // ctrl: bytes 8..11, immediate, fm_ce_se, first half; raddr: va, rkey, reserved; data: count, lkey, address;
    // doorbell record. Inline data: the count, then a load and a store per 32 bytes.
    const std::uint32_t pieces = inlined() ? (size() + 31) / 32 : 0;
    const std::uint32_t stores = 4 + 1 + 1 + (remote ? 3 : 0) + (inlined() ? 1 + pieces : 3);
    const auto& v = h.verbs;
    const auto& c = h.core;
    Picos t = v.post_send_call + v.post_send_wr + c.lock_cost + c.store_cost * stores + c.store_visible_after;
    t += c.load_cost * (8 * lines + pieces) + c.mmio_store_cost * (8 * lines);
    t += inlined() ? v.inline_copy_16b * ((size() + 15) / 16) : v.sge;
    return t;
  }

  // Bytes [from, to) of the payload by DMA read: when the last completion arrives after the request is handed over at 0.
  Picos dma_read(std::uint32_t n, Picos memory) const {
    const auto& rc = h.root_complex;
    return h.hca.dma.read_setup + tlp(kMrdHeader) + h.pcie.link.latency + h.iommu.hit_latency + rc.dma_read_latency +
           memory + tlp(kCpldHeader + (n + 3) / 4 * 4) + h.pcie.link.latency;
  }
  Picos dma_write(std::uint32_t n) const {
    return tlp(kMwrHeader + (n + 3) / 4 * 4) + h.pcie.link.latency + h.iommu.hit_latency +
           h.root_complex.dma_write_latency + h.memory.llc_latency;
  }

  Stages request_path() const {
    Stages s;
    s[Stage::cpu_post] = cpu_post();
    s[Stage::store_buffer_wc] = h.core.wc_flush_latency;
    s[Stage::pcie_down] = h.root_complex.mmio_latency + tlp(kMwrHeader + 64) + h.pcie.link.latency;
    s[Stage::doorbell_context] = h.hca.uar.doorbell_decode + h.hca.context.qpc_hit;
    s[Stage::wqe_fetch] = h.hca.send.wqe_decode;
    s[Stage::translation] = inlined() ? Picos{0} : translate();
    return s;
  }

  // SEND or WRITE of one or two packets.
  Stages send() const {
    Stages s = request_path();
    const std::uint32_t first = std::min(size(), kMtu), second = size() - first;
    const std::uint32_t extra = w.is_write() ? kReth : 0;
    const auto pad = [](std::uint32_t n) { return (n + 3) / 4 * 4; };
    const Picos llc = h.memory.llc_latency;
    Picos payload = inlined() ? Picos{0} : dma_read(first, llc);
    Picos tx_wait{0}, rx_wait{0};
    if (second > 0) {
      // The second request follows one packet interval and one translation later; its completion waits for the link.
      const Picos later = h.hca.send.packet_interval + translate();
      const Picos alone = later + dma_read(second, llc);
      const Picos behind = dma_read(first, llc) + tlp(kCpldHeader + pad(second));
      const Picos first_ready = payload;
      payload = sim::max(alone, behind);
      const Picos port_free =
          first_ready + h.hca.send.tx_pipeline + frame_time(kFrameOverhead + extra + pad(first)) + gap();
      tx_wait = sim::max(port_free - (payload + h.hca.send.tx_pipeline), Picos{0});
      // The responder takes the second packet when it has executed the first.
      const Picos apart = payload + tx_wait + frame_time(kFrameOverhead + pad(second)) - first_ready -
                          frame_time(kFrameOverhead + extra + pad(first));
      const Picos first_execution =
          translate() + h.hca.receive.scatter + (w.is_write() ? h.hca.context.mpt_hit : Picos{0});
      rx_wait = sim::max(first_execution - apart, Picos{0});
    }
    s[Stage::payload_dma] = payload;
    s[Stage::packetise] = h.hca.send.tx_pipeline + tx_wait;
    const std::uint32_t last = second > 0 ? second : first;
    s[Stage::wire] = wire(kFrameOverhead + (second > 0 ? 0 : extra) + pad(last));
    s[Stage::receive] = h.hca.receive.rx_pipeline + h.hca.context.qpc_hit + rx_wait;
    // WRITE checks the whole range with its first packet, then translates each. A SEND of up to 32 bytes travels in its CQE:
    // nothing is translated or scattered (S-INL-2).
    const bool in_cqe = !w.is_write() && size() <= 32;
    if (!in_cqe)
      s[Stage::scatter] =
          translate() + h.hca.receive.scatter + (w.is_write() && second == 0 ? h.hca.context.mpt_hit : Picos{0});
    if (w.is_write()) {
      s[Stage::visible] = dma_write(last);
    } else {
      s[Stage::cqe_write] = h.hca.context.cqc_hit + h.hca.completion.cqe_build;
      s[Stage::visible] = dma_write(64);
    }
    return s;
  }

  // From a CQE in memory to the return of the read that delivers its event: the EQE leaves eqe_build behind the CQE, the
  // MSI-X one slot of the DMA engine behind the EQE, and both pass through the same pipe.
  Stages event() const {
    const auto& i = h.kernel.interrupt;
    const Picos eqe = tlp(kMwrHeader + 64), slot = h.hca.dma.issue_interval;
    const Picos back_to_back = tlp(kMwrHeader + 64 + kMsixHeader + 4) - eqe;
    const Picos message =
        (slot <= eqe ? back_to_back : slot - eqe + tlp(kMsixHeader + 4)) + h.root_complex.interrupt_latency;
    Stages s;
    s[Stage::eqe_write] = h.hca.completion.eqe_build;
    s[Stage::msix] =
        sim::max(message - (h.iommu.hit_latency + h.root_complex.dma_write_latency + h.memory.llc_latency), Picos{0});
    s[Stage::irq_entry] = i.irq_entry;
    s[Stage::irq_handler] = i.eqe + i.eq_rearm;
    s[Stage::tasklet] = i.tasklet_delay + i.comp_handler;
    s[Stage::wake_up] = i.wake_up + i.context_switch;
    s[Stage::syscall_return] = h.kernel.syscall.event_read + h.kernel.syscall.exit;
    return s;
  }

  Stages read() const {
    Stages s = request_path();
    const auto pad = [](std::uint32_t n) { return (n + 3) / 4 * 4; };
    const auto& r = h.hca.receive;
    const std::uint32_t first = std::min(size(), kMtu), second = size() - first;
    s[Stage::translation] =
        r.ack_turnaround + h.hca.context.mpt_hit + translate();  // at the responder: range, then address
    const Picos memory = h.memory.dram_latency;
    Picos payload = dma_read(first, memory), tx_wait{0}, rx_wait{0};
    if (second > 0) {
      const Picos later = h.hca.send.packet_interval + translate();
      const Picos first_ready = payload;
      payload = sim::max(later + dma_read(second, memory), first_ready + tlp(kCpldHeader + pad(second)));
      const Picos port_free =
          first_ready + h.hca.send.tx_pipeline + frame_time(kFrameOverhead + kAeth + pad(first)) + gap();
      tx_wait = sim::max(port_free - (payload + h.hca.send.tx_pipeline), Picos{0});
      const Picos apart = payload + tx_wait + frame_time(kFrameOverhead + kAeth + pad(second)) - first_ready -
                          frame_time(kFrameOverhead + kAeth + pad(first));
      rx_wait = sim::max(translate() + r.scatter - apart, Picos{0});
    }
    s[Stage::payload_dma] = payload;
    s[Stage::packetise] = h.hca.send.tx_pipeline * 2 + tx_wait;
    const std::uint32_t last = second > 0 ? second : first;
    s[Stage::wire] = wire(kFrameOverhead + kReth) + wire(kFrameOverhead + kAeth + pad(last));
    s[Stage::receive] = (r.rx_pipeline + h.hca.context.qpc_hit) * 2 + rx_wait;
    s[Stage::scatter] = translate() + r.scatter;
    s[Stage::cqe_write] = h.hca.context.cqc_hit + h.hca.completion.cqe_build;
    s[Stage::visible] = dma_write(64);
    return s;
  }
};

struct Case {
  Op op;
  std::uint32_t size, inline_size;
};
std::string case_name(const testing::TestParamInfo<Case>& i) {
  return std::string(sim::enum_name(i.param.op)) + "_" + std::to_string(i.param.size) + "B" +
         (i.param.inline_size > 0 ? "_inline" : "");
}

class ClosedForm : public testing::TestWithParam<Case> {};

TEST_P(ClosedForm, EachStageIsASumOfConfigFields) {
  ScenarioConfig s = one_workload(GetParam().op, GetParam().size, 12);
  s.workloads[0].inline_size = GetParam().inline_size;
  s.workloads[0].mtu = kMtu;
  Simulation run(s);
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  ASSERT_GE(run.journeys.all.size(), 12u);
  const sim::Journey& j = run.journeys.all[run.journeys.all.size() - 3];  // caches are warm
  const Model model(s);
  Stages expected = s.workloads[0].is_read() ? model.read() : model.send();
  Picos sum{0};
  for (std::size_t i = 0; i < sim::kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    sum += j.stage[i];
    if (stage == Stage::poll) continue;
    EXPECT_EQ(j.stage[i].n, expected[stage].n) << sim::name_of(stage);
  }
  EXPECT_EQ(sum, j.total()) << "the stages are a partition of the latency";
}

// Sizes on each side of what travels in a CQE (32), of the inline limit (60) and of the MTU (256).
INSTANTIATE_TEST_SUITE_P(
    Rc, ClosedForm,
    testing::Values(Case{Op::send_lat, 8, 60}, Case{Op::send_lat, 32, 60}, Case{Op::send_lat, 33, 60},
                    Case{Op::send_lat, 60, 60}, Case{Op::send_lat, 64, 60}, Case{Op::send_lat, 128, 60},
                    Case{Op::send_lat, 200, 0}, Case{Op::send_lat, 256, 0}, Case{Op::send_lat, 300, 0},
                    Case{Op::send_lat, 512, 0}, Case{Op::write_lat, 8, 60}, Case{Op::write_lat, 44, 60},
                    Case{Op::write_lat, 64, 0}, Case{Op::write_lat, 256, 0}, Case{Op::write_lat, 300, 0},
                    Case{Op::write_lat, 512, 0}, Case{Op::read_lat, 8, 0}, Case{Op::read_lat, 256, 0},
                    Case{Op::read_lat, 300, 0}, Case{Op::read_lat, 512, 0}),
    case_name);

ScenarioConfig event_driven(Picos interrupt_latency) {
  ScenarioConfig s = one_workload(Op::send_lat, 8, 16);
  s.workloads[0].inline_size = 60;
  s.workloads[0].mtu = kMtu;
  s.workloads[0].completion = CompletionMode::event;
  for (HostConfig& h : s.hosts) h.root_complex.interrupt_latency = interrupt_latency;
  return s;
}

// The stages of an event-driven message from `first` on: those of a polled one, the way of its event, and `extra`.
void expect_event_driven(const ScenarioConfig& s, const sim::Journey& j, const Stages& extra = {},
                         Stage first = Stage::cpu_post) {
  const Model model(s);
  Stages expected = model.send();
  for (const auto& [stage, time] : model.event()) expected[stage] = time;
  for (const auto& [stage, time] : extra) expected[stage] += time;
  Picos sum{0};
  for (std::size_t i = 0; i < sim::kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    sum += j.stage[i];
    if (stage == Stage::poll || stage < first) continue;
    EXPECT_EQ(j.stage[i].n, expected[stage].n) << sim::name_of(stage);
  }
  EXPECT_EQ(sum, j.total());
  EXPECT_GT(j.stage[static_cast<std::size_t>(Stage::poll)].n, 0);
}

class EventDriven : public testing::TestWithParam<std::int64_t> {};
TEST_P(EventDriven, EachStageIsASumOfConfigFields_S_CE_13) {
  const ScenarioConfig s = event_driven({GetParam()});
  Simulation run(s);
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  ASSERT_EQ(run.journeys.all.size(), 32u);
  expect_event_driven(s, run.journeys.all[28]);
  expect_event_driven(s, run.journeys.all[29]);
}
// An interrupt that is hidden behind the write of its EQE, and one that is not.
INSTANTIATE_TEST_SUITE_P(InterruptLatency, EventDriven, testing::Values(40'000, 900'000));

// Cores that fell asleep pay for the way out, the one that takes the interrupt and, if it is another one, the reader's.
struct Placement {
  const char* name;
  std::uint32_t irq_core;
  bool cstates;
};
std::ostream& operator<<(std::ostream& out, const Placement& p) { return out << p.name; }
class VectorPlacement : public testing::TestWithParam<Placement> {};
TEST_P(VectorPlacement, MovesTheLatencyByTheConfiguredSteps) {
  constexpr Picos kExit{10'000'000};
  const Placement p = GetParam();
  ScenarioConfig s = event_driven({40'000});
  s.workloads[0].cq_mod = 16;  // no completion of a SEND keeps a core awake
  for (HostConfig& h : s.hosts) {
    h.kernel.driver.irq_affinity = {p.irq_core};
    if (!p.cstates) continue;
    h.core.cstate_exit_latency = kExit;
    h.core.cstate_entry = {400'000};
  }
  Simulation run(s);
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  const Picos exit = p.cstates ? kExit : Picos{0};
  const bool remote = p.irq_core != 0;
  const Picos wake = remote ? s.hosts[0].kernel.interrupt.remote_wake_up + exit : Picos{0};
  expect_event_driven(s, run.journeys.all.at(28), {{Stage::irq_entry, exit}, {Stage::wake_up, wake}}, Stage::receive);
}
INSTANTIATE_TEST_SUITE_P(Core, VectorPlacement,
                         testing::Values(Placement{"same", 0, false}, Placement{"other", 1, false},
                                         Placement{"same_asleep", 0, true}, Placement{"other_asleep", 1, true}),
                         [](const auto& i) { return i.param.name; });

// In steady state the ping-pong is periodic. Foreign work takes the receiver's core shortly before a message's interrupt comes.
TEST(EventDrivenBusyCore, TheWaitForTheCoreIsInTheEntryOfTheInterrupt) {
  constexpr Picos kBefore{50'000}, kBusy{6'000'000};
  struct Disturber : sim::JourneySink {
    void finished(const sim::Journey& j) override {
      all.push_back(j);
      if (all.size() != 21) return;
      Picos interrupt = j.start + (j.start - all[18].start);
      for (std::size_t i = 0; i <= static_cast<std::size_t>(Stage::msix); ++i) interrupt += j.stage[i];
      context->scheduler.at(
          interrupt - kBefore, [](void* c, std::uint64_t) { static_cast<cpu::Core*>(c)->steal({}, kBusy); }, core);
    }
    std::vector<sim::Journey> all;
    sim::Context* context = nullptr;
    cpu::Core* core = nullptr;
  } sink;
  const ScenarioConfig s = event_driven({40'000});
  Simulation run(s);
  sink.context = &run.context;
  sink.core = &run.cluster->host(1).core(0);
  run.context.journeys.set_sink(&sink);
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  ASSERT_EQ(sink.all.size(), 32u);
  expect_event_driven(s, sink.all[20]);
  expect_event_driven(s, sink.all[22], {{Stage::irq_entry, kBusy - kBefore}});
  expect_event_driven(s, sink.all[24]);
}

}  // namespace
}  // namespace sys::test
