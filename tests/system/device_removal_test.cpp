// SPDX-License-Identifier: Apache-2.0
// The adapter of host 1 goes while programs use it: unbound or pulled out, at many times (S-DEV-8, S-DEV-9, A-72).
#include "kernel/core/resource_tracking.h"
#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;

constexpr int kWrites = 24;
constexpr std::uint32_t kSize = 8192;

struct Removal : testing::TestWithParam<std::tuple<bool, int>> {
  static ScenarioConfig short_notice() {
    ScenarioConfig s;
    for (HostConfig& h : s.hosts) h.kernel.device.hotplug_delay = 20_us;
    return s;
  }
  bool surprise() const { return std::get<0>(GetParam()); }
  sim::Picos when() const { return sim::Picos{7'300'000} * std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(AtManyTimes, Removal, testing::Combine(testing::Bool(), testing::Range(0, 24)),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param) ? "Surprise" : "Unbind") +
                                  std::to_string(std::get<1>(i.param));
                         });

TEST_P(Removal, LeavesNothingAndThePeerRunsOutOfRetries_S_DEV_8_S_DEV_9) {
  Pair p(short_notice());
  for (EndOptions& o : p.options) {
    o.timeout = 8;
    o.retry = 2;
    o.send_wr = 64;
  }
  std::vector<ibv_wc_status> peer;
  int devices = -1;
  p.run(
      [&](End& e) {
        for (int i = 0; i < kWrites; ++i) e.write(static_cast<std::uint64_t>(i), 0, kSize, e.peer.va, e.peer.rkey);
        peer = e.statuses(kWrites);
      },
      [&](End& e) {
        Host& host = p.cluster->host(1);
        Process& other = host.create_process();
        host.create_thread(other, 1, "hand",
                           [&] {
                             cpu::current().sleep(when());
                             host.remove_device(surprise());
                           })
            .start(cpu::current().now());
        for (int i = 0; i < kWrites; ++i) e.read(static_cast<std::uint64_t>(i), 0, kSize, e.peer.va, e.peer.rkey);
        // Whatever call it is that meets the end first.
        int error = 0;
        for (int i = 0; error == 0 && i < 10'000; ++i) {
          ibv_mr* mr = ibv_reg_mr(e.pd, e.buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
          error = mr == nullptr ? errno : 0;
          if (mr != nullptr) error = ibv_dereg_mr(mr);  // under way when the device vanishes, it fails too
          cpu::current().sleep(1_us);
        }
        EXPECT_EQ(error, EIO);
        e.thread().sleep(10_ms);
        EXPECT_EQ(e.events(), std::vector<ibv_event_type>{IBV_EVENT_DEVICE_FATAL});
        EXPECT_EQ(e.send(99, 0, 64), 0);  // goes into the ring, and nowhere else
        ibv_wc wc{};
        while (ibv_poll_cq(e.cq, 1, &wc) == 1) {}
        e.thread().sleep(1_ms);
        EXPECT_EQ(ibv_poll_cq(e.cq, 1, &wc), 0);
        EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
        EXPECT_EQ(ibv_destroy_cq(e.cq), 0);
        EXPECT_EQ(ibv_dereg_mr(e.mr), 0);
        EXPECT_EQ(ibv_dealloc_pd(e.pd), 0);
        EXPECT_EQ(ibv_close_device(e.context), 0);
        ibv_device** list = ibv_get_device_list(&devices);
        ASSERT_NE(list, nullptr);  // uverbs is there, only no device
        ibv_free_device_list(list);
      });
  EXPECT_EQ(devices, 0);
  ASSERT_EQ(peer.size(), std::size_t{kWrites});
  const auto good = std::count(peer.begin(), peer.end(), IBV_WC_SUCCESS);
  if (good < kWrites) {
    EXPECT_EQ(peer[static_cast<std::size_t>(good)], IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(std::count(peer.begin(), peer.end(), IBV_WC_WR_FLUSH_ERR), kWrites - good - 1);
  }
  const kernel::Kernel& k = p.cluster->host(1).kernel();
  EXPECT_TRUE(k.device_removed());
  EXPECT_EQ(p.cluster->host(1).kernel().dma().pages_mapped(), 0U);
  EXPECT_TRUE(kernel::list_resources(k).ctx.empty());
  for (const auto& process : p.cluster->host(1).processes()) EXPECT_EQ(process->space.pinned_pages(), 0U);
  EXPECT_EQ(p.counter("host1.iommu.faults"), 0U);
  EXPECT_EQ(p.counter("host1.kernel.objects_left_on_close"), 0U);
  EXPECT_EQ(p.counter("host1.kernel.teardown_failures"), 0U);
  EXPECT_EQ(p.counter("host1.kernel.uar_release_failures"), 0U);
  if (!surprise()) {
    const hca::Hca::Census c = p.cluster->host(1).hca().census();
    EXPECT_EQ(c.qps + c.cqs + c.eqs + c.mkeys + c.pds + c.srqs + c.xrcds, 0U);
  }
}

}  // namespace
}  // namespace sys::test
