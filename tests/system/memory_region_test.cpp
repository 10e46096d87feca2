// SPDX-License-Identifier: Apache-2.0
// Memory regions between two programs: re-registration, stale keys, domains, zero-based regions.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct Shown {
  std::uint32_t rkey = 0;
  std::uint64_t va = 0;
};
Shown show(End& e, const char* tag, Shown mine = {}) {
  Shown peer;
  EXPECT_EQ(e.process_.exchange->swap(tag, &mine, &peer, sizeof mine), 0);
  return peer;
}

TEST(MemoryRegion, ReregisteredReadOnlyItRefusesWrites_A_67) {
  Pair p;
  p.run(
      [](End& e) {
        const Shown before = show(e, "before");
        ASSERT_EQ(e.write(1, 0, 8, before.va, before.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "written");
        const Shown after = show(e, "after");
        ASSERT_EQ(e.read(2, 0, 8, after.va, after.rkey), 0);
        ASSERT_EQ(e.write(3, 0, 8, after.va, after.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) {
        show(e, "before", {e.mr->rkey, e.va(0)});
        show(e, "written");
        ASSERT_EQ(ibv_rereg_mr(e.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_READ), 0);
        show(e, "after", {e.mr->rkey, e.va(0)});
      });
}

/// What is re-registered at the receiver; its old segments then fail with a remote operational error.
class Reregistered : public testing::TestWithParam<int> {};
TEST_P(Reregistered, OldSegmentsOfAReceiveFail_S_MR_12) {
  Pair p;
  p.run(
      [](End& e) {
        show(e, "posted");
        ASSERT_EQ(e.send(1, 0, 4000), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_OP_ERR}));
        show(e, "done");
      },
      [](End& e) {
        const ibv_sge old = e.sge(0, 4000);
        ibv_pd* other = ibv_alloc_pd(e.context);
        void* elsewhere = e.process_.space.alloc(8192, 4096);
        ASSERT_EQ(ibv_rereg_mr(e.mr, GetParam(), other, elsewhere, 8192, 0), 0);
        EXPECT_EQ(e.mr->pd, (GetParam() & IBV_REREG_MR_CHANGE_PD) != 0 ? other : e.pd);
        EXPECT_EQ(e.mr->addr, (GetParam() & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 ? elsewhere : e.buffer);
        ASSERT_EQ(e.receive(1, {old}), 0);
        show(e, "posted");
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_PROT_ERR}));
        show(e, "done");
        if ((GetParam() & IBV_REREG_MR_CHANGE_PD) != 0) {
          EXPECT_EQ(ibv_dealloc_pd(other), EBUSY);
        }
        EXPECT_EQ(ibv_dereg_mr(e.mr), 0);
        EXPECT_EQ(ibv_dealloc_pd(other), 0);
      });
}
INSTANTIATE_TEST_SUITE_P(Mr, Reregistered,
                         testing::Values(IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_PD,
                                         IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD));

TEST(MemoryRegion, ReregistrationMovesTheRegion_S_MR_12) {
  Pair p;
  p.run(
      [](End& e) {
        e.fill(5);
        const Shown w = show(e, "moved");
        ASSERT_EQ(e.write(1, 0, 5000, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "written");
      },
      [](End& e) {
        auto* to = static_cast<std::byte*>(e.process_.space.alloc(8192, 4096));
        const std::uint64_t pinned = e.process_.space.pinned_pages();
        ASSERT_EQ(ibv_rereg_mr(e.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, to, 8192, 0), 0);
        EXPECT_EQ(e.process_.space.pinned_pages(), pinned - e.o.bytes / 4096 + 2) << "the old pages are let go";
        show(e, "moved", {e.mr->rkey, reinterpret_cast<std::uint64_t>(to)});
        show(e, "written");
        e.thread().sleep(10_us);
        for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(to[i], End::pattern(i, 5));
      });
}

TEST(MemoryRegion, BadReregistrationsChangeNothing_A_67) {
  Pair p;
  p.run(
      [](End& e) {
        const Shown w = show(e, "bad");
        ASSERT_EQ(e.write(1, 0, 8, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "written");
      },
      [](End& e) {
        const std::uint32_t key = e.mr->lkey;
        const auto input = [&](int flags, ibv_pd* pd, void* addr, std::size_t n, int access) {
          errno = 0;
          EXPECT_EQ(ibv_rereg_mr(e.mr, flags, pd, addr, n, access), IBV_REREG_MR_ERR_INPUT);
          EXPECT_EQ(errno, EINVAL);
        };
        input(0, nullptr, nullptr, 0, 0);
        input(1 << 7, nullptr, nullptr, 0, 0);
        input(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 4096, 0);
        input(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, e.buffer, 0, 0);
        input(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0);
        input(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE);
        input(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 1 << 12);
        errno = 0;
        EXPECT_EQ(ibv_rereg_mr(e.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr,
                               reinterpret_cast<void*>(0x5000'0000'0000ULL), 4096, 0),
                  IBV_REREG_MR_ERR_CMD);
        EXPECT_EQ(errno, EFAULT);
        EXPECT_EQ(e.mr->lkey, key);
        show(e, "bad", {e.mr->rkey, e.va(0)});
        show(e, "written");
      });
}

TEST(MemoryRegion, AKeyOfAnotherDomainFailsAtRunTime_S_MR_22) {
  Pair p;
  p.run(
      [](End& e) {
        ibv_mr* foreign = ibv_reg_mr(ibv_alloc_pd(e.context), e.buffer, 4096, kAll);
        ASSERT_EQ(e.send(1, {{e.va(0), 100, foreign->lkey}}), 0) << "not at post time";
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_PROT_ERR}));
      },
      [](End&) {});
}

TEST(MemoryRegion, AStaleKeyFailsThoughItsIndexIsInUseAgain_S_MR_4) {
  Pair p;
  p.run(
      [](End& e) {
        ibv_mr* first = ibv_reg_mr(e.pd, e.buffer, 4096, kAll);
        const std::uint32_t stale = first->lkey;
        EXPECT_EQ(first->lkey, first->rkey);
        ASSERT_EQ(ibv_dereg_mr(first), 0);
        ibv_mr* second = ibv_reg_mr(e.pd, e.buffer, 4096, kAll);
        EXPECT_EQ(second->lkey >> 8, stale >> 8);
        EXPECT_NE(second->lkey, stale);
        ASSERT_EQ(e.send(1, {{e.va(0), 100, stale}}), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_LOC_PROT_ERR}));
      },
      [](End&) {});
}

TEST(MemoryRegion, ZeroBasedRegionsCountFrom0_S_MR_6) {
  Pair p;
  p.run(
      [](End& e) {
        e.fill(7);
        const Shown w = show(e, "registered");
        ASSERT_EQ(e.write(1, 0, 3000, 500, w.rkey), 0);
        ASSERT_EQ(e.write(2, 0, 1, 8192, w.rkey), 0) << "one byte beyond";
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR}));
        show(e, "written");
      },
      [](End& e) {
        ibv_mr* mr = ibv_reg_mr(e.pd, e.buffer + 4096, 8192, kAll | IBV_ACCESS_ZERO_BASED);
        ASSERT_NE(mr, nullptr);
        show(e, "registered", {mr->rkey, 0});
        show(e, "written");
        EXPECT_TRUE(e.holds(4096 + 500, 3000, 7, 0));
        errno = 0;
        EXPECT_EQ(ibv_reg_mr(e.pd, e.buffer + 100, 8192, kAll | IBV_ACCESS_ZERO_BASED), nullptr)
            << "the key translates whole pages";
        EXPECT_EQ(errno, EINVAL);
      });
}

TEST(MemoryRegion, TheNullRegionReadsZerosAndDropsWhatIsWritten_S_OBJ_64) {
  Pair p;
  p.run(
      [](End& e) {
        e.fill(13);
        ibv_mr* null = ibv_alloc_null_mr(e.pd);
        ASSERT_NE(null, nullptr);
        e.meet("posted");
        ASSERT_EQ(e.send(1, {e.sge(0, 60), {0x1234, 40, null->lkey}}), 0);
        ASSERT_EQ(e.send(2, {e.sge(0, 100)}), 0);
        ASSERT_EQ(e.send(3, {e.sge(0, 20)}), 0) << "travels in the CQE";
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        ASSERT_EQ(e.write(4, 0, 8, e.peer.va, null->lkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR})) << "local only";
        EXPECT_EQ(ibv_dereg_mr(null), 0);
      },
      [](End& e) {
        e.fill(50);
        ibv_mr* null = ibv_alloc_null_mr(e.pd);
        ASSERT_EQ(e.receive(1, {e.sge(0, 200)}), 0);
        ASSERT_EQ(e.receive(2, {{0, 70, null->lkey}, e.sge(4096, 200)}), 0);
        ASSERT_EQ(e.receive(3, {{0, 5, null->lkey}, e.sge(8192, 200)}), 0);
        e.meet("posted");
        const auto wc = e.wait(3);
        for (const ibv_wc& each : wc) EXPECT_EQ(each.status, IBV_WC_SUCCESS);
        EXPECT_TRUE(e.holds(0, 60, 13, 0));
        for (std::size_t i = 60; i < 100; ++i) EXPECT_EQ(e.buffer[i], std::byte{0});
        EXPECT_TRUE(e.holds(100, 50, 50, 100));
        EXPECT_TRUE(e.holds(4096, 30, 13, 70));
        EXPECT_TRUE(e.holds(4126, 50, 50, 4126));
        EXPECT_TRUE(e.holds(8192, 15, 13, 5)) << "S-CQE-16";
        EXPECT_EQ(ibv_dealloc_pd(ibv_alloc_pd(e.context)), 0);
      });
}

/// The READ of the client is being answered when the server deregisters: no byte is read after ibv_dereg_mr returned, and
/// the client learns of it.
TEST(MemoryRegion, DeregistrationUnderAReadEndsIt_S_MR_20) {
  Pair p;
  for (EndOptions& o : p.options) o.bytes = 8 << 20;
  p.run(
      [](End& e) {
        show(e, "go");
        ASSERT_EQ(e.read(1, 0, 8 << 20, e.peer.va, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) {
        show(e, "go");
        e.thread().sleep(200_us);
        ASSERT_EQ(ibv_dereg_mr(e.mr), 0);
        e.thread().sleep(10_us);
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
      });
  EXPECT_EQ(p.counter("host1.iommu.faults"), 0u) << "nothing was read through a mapping that is gone";
}

}  // namespace
}  // namespace sys::test
