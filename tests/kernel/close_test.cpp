// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

namespace {

using namespace test;

TEST(Close, A7_EverythingIsReleased) {
  Machine m;
  std::uint64_t mapped_before = 0;
  m.run([&] {
    mapped_before = m.kernel->dma().pages_mapped();
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    std::uint32_t pd;
    ASSERT_EQ(v.alloc_pd(pd), 0);
    const int chan = v.channel();
    Verbs::Cq a, b;
    ASSERT_EQ(v.create_cq(a, 100, chan), 0);
    ASSERT_EQ(v.create_cq(b, 100), 0);
    Verbs::Qp qp, other;
    ASSERT_EQ(v.create_qp(qp, pd, a.handle, b.handle), 0);
    ASSERT_EQ(v.create_qp(other, pd, a.handle, a.handle), 0);
    v.bring(qp.handle, IBV_QPT_RC, IBV_QPS_RTS);
    ib_uverbs_reg_mr_resp r{};
    void* buf = m.user.alloc(1 << 20);
    ASSERT_EQ(v.reg_mr(pd, buf, 1 << 20, reinterpret_cast<std::uint64_t>(buf), IBV_ACCESS_LOCAL_WRITE, r), 0);
    EXPECT_GT(m.user.pinned_pages(), 256U);
    m.process->exit();
  });
  EXPECT_EQ(m.device.qps.size(), 0U);
  EXPECT_EQ(m.device.cqs.size(), 0U);
  EXPECT_EQ(m.device.mkeys.size(), 0U);
  EXPECT_EQ(m.device.pds.size(), 0U);
  EXPECT_EQ(m.device.uars.size(), 1U);
  EXPECT_EQ(m.user.pinned_pages(), 0U);
  EXPECT_EQ(m.process->open_files(), 0);
  EXPECT_EQ(m.kernel->counter("objects_left_on_close").value, 0U);
  // Only mailbox pages of the command interface may have been added.
  EXPECT_LE(m.kernel->dma().pages_mapped(), mapped_before + 8);
}

TEST(Close, BlockedAsyncReaderGetsEio) {
  Machine m;
  Verbs v(m);
  long result = 0;
  m.program([&] {
    ASSERT_EQ(v.open(), 0);
    cpu::current().sync();
    m.programs[1]->unpark(cpu::current().now());
    cpu::current().sleep(sim::Picos{50'000'000});
    v.p.close(v.fd);
  });
  m.program([&] {
    cpu::current().park("start");
    std::uint64_t record[2];
    result = v.p.read(static_cast<int>(v.context.base().async_fd), record, sizeof record);
  });
  m.run();
  EXPECT_EQ(result, -EIO);
}

TEST(Close, CommandInFlightKeepsTheFileUntilItReturns) {
  Machine m;
  Verbs v(m);
  int result = 1;
  m.program([&] {
    ASSERT_EQ(v.open(), 0);
    cpu::current().sync();
    m.programs[1]->unpark(cpu::current().now());
    cpu::current().sleep(sim::Picos{3'000'000});
    EXPECT_EQ(v.p.close(v.fd), 0);
    EXPECT_EQ(result, 1);
  });
  m.program([&] {
    cpu::current().park("start");
    std::uint32_t pd;
    result = v.alloc_pd(pd);
  });
  m.run();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(m.device.pds.size(), 0U);
  EXPECT_EQ(m.device.uars.size(), 1U);
}

TEST(Close, FailedOpenLeavesNoUarPage) {
  Machine m;
  m.run([&] {
    m.device.fail[prm::kAllocUar] = prm::kCmdNoRes;
    Verbs v(m);
    EXPECT_EQ(v.open(), -ENOMEM);
    EXPECT_EQ(m.device.uars.size(), 1U);
    EXPECT_EQ(v.open(), 0);
    Verbs w(m);
    EXPECT_EQ(w.open(0), -EINVAL);
    EXPECT_EQ(w.open(4, 4), -EINVAL);
  });
}

TEST(Close, ClosedChannelSwallowsEventsOfItsCqs) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    const int chan = v.channel();
    Verbs::Cq cq;
    ASSERT_EQ(v.create_cq(cq, 15, chan), 0);
    EXPECT_EQ(v.p.close(chan), 0);
    EXPECT_EQ(v.p.close(chan), -EBADF);
    m.device.post_completion(cq.cqn);
    cpu::current().sleep(sim::Picos{100'000'000});
    EXPECT_EQ(v.destroy_cq(cq.handle), 0);
  });
}

}  // namespace
