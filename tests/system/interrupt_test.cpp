// SPDX-License-Identifier: Apache-2.0
// Vectors that are masked while completions come, moderated event queues and foreign work on the cores, from the view of
// programs that sleep on completion channels.
#include <gtest/gtest.h>

#include "hca/prm.h"
#include "tests/system/run_workload.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using sim::Picos;

constexpr std::uint64_t kMessages = 400;

ScenarioConfig event_stream() {
  ScenarioConfig s = one_workload(Op::send_bw, 64, kMessages);
  s.workloads[0].completion = CompletionMode::event;
  s.workloads[0].tx_depth = 8;
  return s;
}
std::uint64_t counter(Simulation& run, const std::string& path) { return run.context.stats.counter(path).value; }

// Every 5 us the driver masks the vector of both CQs for 3 us: messages pend and come when it is unmasked.
TEST(MaskedVector, LosesNothing_S_EQE_7) {
  Simulation run(event_stream());
  struct Masker {
    Simulation* run;
    bool masked = false;
    void tick() {
      if (run->cluster->finished()) return;
      masked = !masked;
      for (std::size_t i = 0; i < 2; ++i) {
        Host& host = run->cluster->host(i);
        const std::uint64_t entry = hca::prm::kMsixTable + std::uint64_t{host.kernel().comp_eq(0).vector()} * 16;
        const std::uint32_t control = masked ? 1 : 0;
        host.core(0).mmio->mmio_write(host.kernel().platform().bar0 + (entry + 12),
                                      std::as_bytes(std::span(&control, 1)), {});
      }
      run->context.scheduler.after<&Masker::tick>(masked ? 3_us : 2_us, this);
    }
  } masker{&run};
  run.cluster->on_ready([&](Picos t) { run.context.scheduler.at<&Masker::tick>(t + 1_us, &masker); });
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  EXPECT_TRUE(run.cluster->finished());
  EXPECT_EQ(run.journeys.all.size(), kMessages);
  EXPECT_EQ(run.cluster->workloads()[0]->record().wc_status.at("SUCCESS"), 2 * kMessages);
  EXPECT_GT(counter(run, "host0.pcie.endpoint.msix_masked") + counter(run, "host1.pcie.endpoint.msix_masked"), 10u);
}

// The stream with other hosts: how long it took, and how many interrupts the receiver's device sent.
Picos run_stream(const std::function<void(HostConfig&)>& set, std::uint64_t& interrupts) {
  ScenarioConfig s = event_stream();
  for (HostConfig& h : s.hosts) set(h);
  Simulation run(s);
  EXPECT_EQ(run.run(), sim::Outcome::quiescent);
  EXPECT_EQ(run.journeys.all.size(), kMessages);
  EXPECT_EQ(run.cluster->workloads()[0]->record().wc_status.at("SUCCESS"), 2 * kMessages);
  interrupts = counter(run, "host1.hca.events.interrupts");
  return run.cluster->workloads()[0]->record().ended - run.cluster->workloads()[0]->record().started;
}
// Interrupts of the start-up are no more than this.
constexpr std::uint64_t kBoot = 200;

TEST(ModeratedEventQueue, InterruptsOncePerPeriodAndLosesNothing) {
  std::uint64_t interrupts = 0;
  const Picos took = run_stream([](HostConfig& h) { h.hca.completion.eq_moderation_period = 50_us; }, interrupts);
  EXPECT_LT(interrupts, kBoot + static_cast<std::uint64_t>(took / 50_us) + 2);
  EXPECT_GT(took, 50_us * 4);
}

TEST(ForeignWork, DelaysTheStagesThatNeedTheCore) {
  ScenarioConfig s = event_stream();
  for (HostConfig& h : s.hosts) {
    h.core.noise_interval = 4_us;
    h.core.noise_length = 1_us;
  }
  Simulation run(s);
  ASSERT_EQ(run.run(), sim::Outcome::quiescent);
  ASSERT_EQ(run.journeys.all.size(), kMessages);
  const auto longest = [&](sim::Stage stage) {
    Picos most{0};
    for (const sim::Journey& j : run.journeys.all) most = sim::max(most, j.stage[static_cast<std::size_t>(stage)]);
    return most;
  };
  const auto& c = s.hosts[0].kernel.interrupt;
  EXPECT_GT(longest(sim::Stage::irq_entry), c.irq_entry);
  EXPECT_GT(longest(sim::Stage::tasklet), c.tasklet_delay + c.comp_handler);
  EXPECT_LE(longest(sim::Stage::irq_entry), c.irq_entry + 20_us);
  EXPECT_GT(counter(run, "host1.cpu0.noise"), 10u);
}

}  // namespace
}  // namespace sys::test
