// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

namespace {

using namespace test;

struct Objects : Verbs {
  explicit Objects(Machine& machine) : Verbs(machine) {
    EXPECT_EQ(open(), 0);
    EXPECT_EQ(alloc_pd(pd), 0);
    EXPECT_EQ(create_cq(cq), 0);
  }
  std::uint32_t pd = 0;
  Cq cq;
};

TEST(Objects, A2_PdWithAnMrIsBusy) {
  Machine m;
  m.run([&] {
    Objects o(m);
    ib_uverbs_reg_mr_resp r{};
    void* buf = m.user.alloc(8192);
    ASSERT_EQ(o.reg_mr(o.pd, buf, 8192, reinterpret_cast<std::uint64_t>(buf), IBV_ACCESS_LOCAL_WRITE, r), 0);
    EXPECT_EQ(o.dealloc_pd(o.pd), -EBUSY);
    EXPECT_EQ(m.device.mkeys.size(), 1U);
    EXPECT_EQ(o.dereg_mr(r.mr_handle), 0);
    EXPECT_EQ(o.dealloc_pd(o.pd), 0);
    EXPECT_EQ(o.dealloc_pd(o.pd), -ENOENT);
  });
}

TEST(Objects, A3_CqIsCountedTwiceByOneQp) {
  Machine m;
  m.run([&] {
    Objects o(m);
    Verbs::Qp a, b;
    ASSERT_EQ(o.create_qp(a, o.pd, o.cq.handle, o.cq.handle), 0);
    ASSERT_EQ(o.create_qp(b, o.pd, o.cq.handle, o.cq.handle), 0);
    const auto* file = m.process->context(o.fd);
    EXPECT_EQ(file->inspect<kernel::Cq>(o.cq.handle)->usecnt, 4U);
    EXPECT_EQ(file->inspect<kernel::Pd>(o.pd)->usecnt, 2U);
    EXPECT_EQ(o.destroy_cq(o.cq.handle), -EBUSY);
    EXPECT_EQ(o.destroy_qp(a.handle), 0);
    EXPECT_EQ(o.destroy_cq(o.cq.handle), -EBUSY);
    EXPECT_EQ(o.dealloc_pd(o.pd), -EBUSY);
    EXPECT_EQ(o.destroy_qp(b.handle), 0);
    EXPECT_EQ(o.destroy_cq(o.cq.handle), 0);
    EXPECT_EQ(o.dealloc_pd(o.pd), 0);
    EXPECT_EQ(file->object_count(), 0U);
    EXPECT_EQ(m.user.pinned_pages(), 0U);
  });
}

TEST(Objects, HandlesAreTypedAndPerFile) {  // S-DEV-6, S-DEV-11
  Machine m;
  m.run([&] {
    Objects a(m), b(m);
    EXPECT_EQ(a.pd, b.pd);
    EXPECT_NE(a.pdn, b.pdn);
    EXPECT_EQ(a.destroy_cq(a.pd), -EINVAL);
    EXPECT_EQ(a.destroy_cq(77), -ENOENT);
    EXPECT_EQ(a.dealloc_pd(a.cq.handle), -EINVAL);
    Verbs::Qp qp;
    EXPECT_EQ(a.create_qp(qp, 77, a.cq.handle, a.cq.handle), -EINVAL);
    EXPECT_EQ(a.create_qp(qp, a.pd, a.pd, a.cq.handle), -EINVAL);
    EXPECT_EQ(a.modify(77, Verbs::good(), IBV_QP_STATE), -ENOENT);
    EXPECT_EQ(a.create_qp(qp, a.pd, a.cq.handle, a.cq.handle, IBV_QPT_RAW_PACKET), -EOPNOTSUPP);
  });
}

TEST(Objects, UseIsSharedAndDestroyIsAlone_S_OBJ_24_S_DEV_11) {
  Machine m;
  Verbs v(m);
  std::uint32_t pd = 0;
  Verbs::Cq cq;
  Verbs::Qp qp;
  int used_by_both[2] = {1, 1}, destroyed = 1, used_after = 1;
  m.program([&] {
    ASSERT_EQ(v.open(), 0);
    ASSERT_EQ(v.alloc_pd(pd), 0);
    ASSERT_EQ(v.create_cq(cq), 0);
    ASSERT_EQ(v.create_qp(qp, pd, cq.handle, cq.handle), 0);
    v.bring(qp.handle, IBV_QPT_RC, IBV_QPS_INIT);
    m.device.most_in_flight = 0;
    cpu::current().sync();
    for (auto& t : m.programs) t->unpark(cpu::current().now());
    used_by_both[0] = static_cast<int>(v.query(qp.handle).qp_state);
  });
  m.program([&] {
    cpu::current().park("start");
    used_by_both[1] = static_cast<int>(v.query(qp.handle).qp_state);
    destroyed = v.destroy_qp(qp.handle);  // alone
  });
  m.program([&] {
    cpu::current().park("start");
    cpu::current().sleep(sim::Picos{3'000'000});
    EXPECT_EQ(v.destroy_qp(qp.handle), -EBUSY) << "two commands use it";
    while (m.device.opcodes.back() != prm::kQp2Rst) cpu::current().sleep(sim::Picos{500'000});
    ib_uverbs_query_qp c{};
    c.qp_handle = qp.handle;
    ib_uverbs_query_qp_resp r{};
    used_after = static_cast<int>(v.send(IB_USER_VERBS_CMD_QUERY_QP, c, &r));
  });
  m.run();
  EXPECT_EQ(used_by_both[0], IBV_QPS_INIT);
  EXPECT_EQ(used_by_both[1], IBV_QPS_INIT);
  EXPECT_EQ(m.device.most_in_flight, 2U);
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(used_after, -EBUSY) << "it is being destroyed";
  EXPECT_TRUE(m.device.qps.empty());
}

TEST(Objects, A1_CqSizes) {
  Machine m;
  m.run([&] {
    Objects o(m);
    const std::pair<std::uint32_t, std::uint32_t> sizes[] = {
        {1, 1}, {100, 127}, {127, 127}, {128, 255}, {65535, 65535}};
    for (const auto& [asked, given] : sizes) {
      Verbs::Cq cq;
      ASSERT_EQ(o.create_cq(cq, asked), 0) << asked;
      EXPECT_EQ(cq.cqe, given);
      EXPECT_EQ(prm::get(m.device.cqs[cq.cqn].data(), prm::kCqcLogSize), static_cast<unsigned>(std::bit_width(given)));
    }
    Verbs::Cq cq;
    EXPECT_EQ(o.create_cq(cq, 0), -EINVAL);
    EXPECT_EQ(o.create_cq(cq, 65536), -EINVAL);
    EXPECT_EQ(o.create_cq(cq, 0xffffffffU), -EINVAL);
    EXPECT_EQ(o.create_cq(cq, 15, -1, 0, 2), -EINVAL);  // comp_vector = num_comp_vectors
    EXPECT_EQ(o.create_cq(cq, 15, o.fd), -EINVAL);      // not a completion channel
    EXPECT_EQ(o.create_cq(cq, 15, static_cast<int>(o.context.base().async_fd)), -EINVAL);
    EXPECT_EQ(o.create_cq(cq, 15, 99), -EINVAL);
  });
}

TEST(Objects, CqContextCarriesDmaAddresses) {
  Machine m;
  m.run([&] {
    Objects o(m);
    Verbs::Cq cq;
    ASSERT_EQ(o.create_cq(cq, 15, -1, 0, 1), 0);
    const auto& cqc = m.device.cqs[cq.cqn];
    EXPECT_EQ(prm::get(cqc.data(), prm::kCqcEqn), 4U);
    const memory::Iova dbr{prm::get64(cqc.data(), prm::kCqcDbrAddr)};
    const std::uint64_t va = reinterpret_cast<std::uint64_t>(o.dbr_page) + 64;
    ASSERT_TRUE(m.iommu.translate(dbr));
    EXPECT_EQ(m.iommu.translate(dbr)->v, m.user.translate({va})->phys.v);
    EXPECT_EQ(static_cast<const kernel::Mlx5Ucontext*>(m.process->context(o.fd)->ucontext())->dbr_pages.size(),
              1U);  // two CQs share one page of records
  });
}

TEST(Mr, A66_Errors) {
  kernel::KernelConfig config = default_config();
  config.driver.memlock_limit = {16 * 4096};
  Machine m(config);
  m.run([&] {
    Objects o(m);
    ib_uverbs_reg_mr_resp r{};
    auto* buf = static_cast<std::byte*>(m.user.alloc(64 * 4096));
    const auto at = reinterpret_cast<std::uint64_t>(buf);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 4096, at, IBV_ACCESS_REMOTE_WRITE, r), -EINVAL);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 4096, at, IBV_ACCESS_REMOTE_ATOMIC, r), -EINVAL);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 4096, at, 1U << 12, r), -EINVAL);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 4096, at, IBV_ACCESS_ON_DEMAND, r), -EOPNOTSUPP);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 4096, at + 1, 0, r), -EINVAL);  // page offsets differ
    EXPECT_EQ(o.reg_mr(99, buf, 4096, at, 0, r), -EINVAL);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 0, at, 0, r), -EINVAL);
    EXPECT_EQ(o.reg_mr(o.pd, buf, ~0ULL, at, 0, r), -EINVAL);
    EXPECT_EQ(o.reg_mr(o.pd, buf, 15 * 4096, at, 0, r), -ENOMEM);  // RLIMIT_MEMLOCK, the CQ holds two pages
    EXPECT_EQ(o.reg_mr(o.pd, reinterpret_cast<void*>(0x5000'0000'0000ULL), 4096, 0x5000'0000'0000ULL, 0, r), -EFAULT);
    m.device.fail[prm::kCreateMkey] = prm::kCmdNoRes;
    const auto pinned = m.user.pinned_pages();
    const auto mapped = m.kernel->dma().pages_mapped();
    EXPECT_EQ(o.reg_mr(o.pd, buf, 4096, at, 0, r), -ENOMEM);
    EXPECT_EQ(m.user.pinned_pages(), pinned);
    EXPECT_EQ(m.kernel->dma().pages_mapped(), mapped);
    EXPECT_EQ(o.dealloc_pd(o.pd), 0);  // nothing was left behind
  });
}

TEST(Mr, IsTranslatedInTheLargestPagesThatFit_S_MR_9) {
  Machine m;
  m.run([&] {
    Objects o(m);
    ib_uverbs_reg_mr_resp r{};
    constexpr std::uint64_t kBytes = 64 << 10;
    auto* buf = static_cast<std::byte*>(m.user.alloc(kBytes, 4096));
    const auto registered = [&](std::uint64_t iova) {
      EXPECT_EQ(o.reg_mr(o.pd, buf, kBytes, iova, 0, r), 0);
      const auto& mkc = m.device.mkeys.at(r.lkey >> 8);
      EXPECT_EQ(prm::get64(mkc.data(), prm::kMkcStart), iova);
      return std::pair{prm::get(mkc.data(), prm::kMkcLogPageSize), m.device.mkey_pages.at(r.lkey >> 8)};
    };
    const auto probe = registered(0x1000'0000);
    const std::uint64_t dma =
        probe.second[0] + (0x1000'0000 & ((1ULL << probe.first) - 1));  // given out again for as many pages
    ASSERT_EQ(o.dereg_mr(r.mr_handle), 0);
    for (const auto& [differs, shift] : {std::pair{0x1000U, 12U}, {0x2000U, 13U}, {0x8000U, 15U}, {0U, 16U}}) {
      const std::uint64_t iova = dma ^ differs, page = 1ULL << shift;
      const auto [log_page, pages] = registered(iova);
      EXPECT_EQ(log_page, shift);
      const std::uint64_t count = ((iova & (page - 1)) + kBytes + page - 1) >> shift;
      ASSERT_GE(pages.size(), count);
      for (std::uint64_t i = 0; i < count; ++i) EXPECT_EQ(pages[i], (dma & ~(page - 1)) + i * page);
      ASSERT_EQ(o.dereg_mr(r.mr_handle), 0);
    }
  });
}

TEST(Mr, A68_FourDifferentAddresses) {
  Machine m;
  m.run([&] {
    Objects o(m);
    ib_uverbs_reg_mr_resp r{};
    auto* buf = static_cast<std::byte*>(m.user.alloc(3 * 4096)) + 0x123;
    const std::uint64_t a = reinterpret_cast<std::uint64_t>(buf), b = 0x10000123;
    ASSERT_EQ(o.reg_mr(o.pd, buf, 8192, b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, r), 0);
    EXPECT_EQ(r.lkey, r.rkey);
    const auto& mkc = m.device.mkeys.at(r.lkey >> 8);
    EXPECT_EQ(prm::get64(mkc.data(), prm::kMkcStart), b);
    EXPECT_EQ(prm::get64(mkc.data(), prm::kMkcLen), 8192U);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcVariant), r.lkey & 0xff);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcLw), 1U);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcLr), 1U);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcRr), 1U);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcRw), 0U);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcQpn), 0xffffffU);
    EXPECT_EQ(prm::get(mkc.data(), prm::kMkcPd), o.pdn);
    const auto& pages = m.device.mkey_pages.at(r.lkey >> 8);
    const std::uint64_t page = 1ULL << prm::get(mkc.data(), prm::kMkcLogPageSize);
    const std::uint64_t d = pages[0] + (b & (page - 1)), p = m.iommu.translate({d})->v;
    EXPECT_EQ(p, m.user.translate({a})->phys.v - m.user.translate({a})->phys.v % 4096 + 0x123);
    EXPECT_EQ((std::set<std::uint64_t>{a, b, d, p}.size()), 4U);
    const std::uint32_t old_key = r.lkey;
    ASSERT_EQ(o.dereg_mr(r.mr_handle), 0);
    EXPECT_FALSE(m.iommu.translate({d}));  // unmapped, S-MR-31
    EXPECT_GE(m.iommu.invalidated, 3U);
    ASSERT_EQ(o.reg_mr(o.pd, buf, 8192, b, 0, r), 0);
    EXPECT_NE(r.lkey & 0xff, old_key & 0xff);  // S-MR-4
  });
}

TEST(Qp, ContextOfCreate) {
  Machine m;
  m.run([&] {
    Objects o(m);
    Verbs::Cq recv;
    ASSERT_EQ(o.create_cq(recv), 0);
    Verbs::Qp qp;
    ASSERT_EQ(o.create_qp(qp, o.pd, o.cq.handle, recv.handle), 0);
    EXPECT_EQ(qp.bfreg, 24U);
    const auto* qpc = m.device.qps.at(qp.qpn).data();
    EXPECT_EQ(prm::get(qpc, prm::kQpcSt), prm::kStRc);
    EXPECT_EQ(prm::get(qpc, prm::kQpcPd), o.pdn);
    EXPECT_EQ(prm::get(qpc, prm::kQpcLogSqSize), 6U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcLogRqSize), 4U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcLogRqStride), 0U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcCqnSnd), o.cq.cqn);
    EXPECT_EQ(prm::get(qpc, prm::kQpcCqnRcv), recv.cqn);
    EXPECT_EQ(prm::get(qpc, prm::kQpcUserIndex), 7U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcUarPage), prm::kFirstUar + 1 + 6);
    EXPECT_EQ(m.device.qp_pages.at(qp.qpn).size(), 2U);
    Verbs::Qp second;
    ASSERT_EQ(o.create_qp(second, o.pd, o.cq.handle, recv.handle), 0);
    EXPECT_EQ(second.bfreg, 25U);
  });
}

TEST(Qp, FailedCreateGivesEverythingBack) {
  Machine m;
  m.run([&] {
    Objects o(m);
    const auto pinned = m.user.pinned_pages();
    const auto mapped = m.kernel->dma().pages_mapped();
    m.device.fail[prm::kCreateQp] = prm::kCmdLimit;
    Verbs::Qp qp;
    EXPECT_EQ(o.create_qp(qp, o.pd, o.cq.handle, o.cq.handle), -ENOMEM);
    EXPECT_EQ(m.user.pinned_pages(), pinned);
    EXPECT_EQ(m.kernel->dma().pages_mapped(), mapped);
    EXPECT_EQ(o.destroy_cq(o.cq.handle), 0);
    EXPECT_EQ(o.dealloc_pd(o.pd), 0);
  });
}

TEST(Qp, FailedDestroyLeavesTheObjectUsable) {  // S-OBJ-22
  Machine m;
  m.run([&] {
    Objects o(m);
    m.device.fail[prm::kDestroyCq] = prm::kCmdResBusy;
    EXPECT_EQ(o.destroy_cq(o.cq.handle), -EBUSY);
    Verbs::Qp qp;
    EXPECT_EQ(o.create_qp(qp, o.pd, o.cq.handle, o.cq.handle), 0);
  });
}

TEST(Commands, SeveralThreadsHaveCommandsInFlightTogether) {
  Machine m;
  Verbs v(m);
  unsigned done = 0;
  m.program([&] {
    ASSERT_EQ(v.open(), 0);
    for (auto& t : m.programs) t->unpark(t->now() > m.context.now() ? t->now() : m.context.now());
  });
  for (int i = 0; i < 4; ++i)
    m.program([&, i] {
      if (i >= 0) cpu::current().park("start");
      std::uint32_t pd;
      Verbs mine(m);
      mine.fd = v.fd;
      ASSERT_EQ(mine.alloc_pd(pd), 0);
      ++done;
    });
  m.run();
  EXPECT_EQ(done, 4U);
  EXPECT_EQ(m.device.pds.size(), 4U);
  EXPECT_GT(m.device.most_in_flight, 1U);
}

}  // namespace
