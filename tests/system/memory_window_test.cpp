// SPDX-License-Identifier: Apache-2.0
// Memory windows between two programs: binding, access through a window, invalidation, and every way in which that fails.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/system/verbs_pair.h"

namespace sys::test {
namespace {

using namespace sim::literals;
using Statuses = std::vector<ibv_wc_status>;

constexpr int kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;

ibv_mw_bind_info piece(End& e, std::size_t offset, std::uint64_t length, unsigned access) {
  return {e.mr, e.va(offset), length, access};
}

int post_bind(End& e, std::uint64_t id, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& info,
              unsigned flags = IBV_SEND_SIGNALED) {
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = flags;
  wr.bind_mw = {mw, rkey, info};
  return ibv_post_send(e.qp, &wr, &bad);
}

int post_invalidate(End& e, std::uint64_t id, std::uint32_t rkey) {
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.opcode = IBV_WR_LOCAL_INV;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = rkey;
  return ibv_post_send(e.qp, &wr, &bad);
}

int send_invalidate(End& e, std::uint64_t id, std::uint32_t rkey, std::uint32_t n = 8) {
  ibv_sge sge = e.sge(0, n);
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = id;
  wr.opcode = IBV_WR_SEND_WITH_INV;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.invalidate_rkey = rkey;
  return ibv_post_send(e.qp, &wr, &bad);
}

/// What the server tells the client: a key and an address.
struct Shown {
  std::uint32_t rkey = 0;
  std::uint64_t va = 0;
};
Shown show(End& e, const char* tag, Shown mine = {}) {
  Shown peer;
  EXPECT_EQ(e.process_.exchange->swap(tag, &mine, &peer, sizeof mine), 0);
  return peer;
}

struct Windows : Pair {
  Windows() {
    for (EndOptions& o : options) o.mr_access = kAll;
  }
};

TEST(MemoryWindow, Type1ShowsAPieceOfARegion_S_MW_1) {
  Windows p;
  p.run(
      [](End& e) {
        e.fill(3);
        const Shown w = show(e, "bound");
        ASSERT_EQ(e.write(1, 0, 1000, w.va, w.rkey), 0);
        ASSERT_EQ(e.read(2, 8192, 1000, w.va, w.rkey), 0);
        ASSERT_EQ(e.write(3, 0, 1, w.va + 6000 - 1, w.rkey), 0);
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        EXPECT_TRUE(e.holds(8192, 1000, 3, 0));
        show(e, "written");
        ASSERT_EQ(e.write(4, 0, 2, w.va + 6000 - 1, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR})) << "a byte beyond the window, inside the region";
      },
      [](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
        ASSERT_NE(mw, nullptr);
        EXPECT_NE(mw->rkey, e.mr->rkey);
        const std::uint32_t allocated = mw->rkey;
        ibv_mw_bind bind{7, IBV_SEND_SIGNALED, piece(e, 5000, 6000, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)};
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &bind), 0);
        EXPECT_NE(mw->rkey, allocated) << "binding gives a new key";
        EXPECT_EQ(mw->rkey >> 8, allocated >> 8);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc[0].opcode, IBV_WC_BIND_MW);
        EXPECT_EQ(wc[0].wr_id, 7u);
        show(e, "bound", {mw->rkey, e.va(5000)});
        show(e, "written");
        EXPECT_TRUE(e.holds(5000, 1000, 3, 0));
        EXPECT_TRUE(e.holds(5000 + 6000 - 1, 1, 3, 0));
        EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY) << "S-MW-7";
        EXPECT_EQ(ibv_dereg_mr(e.mr), EBUSY) << "S-OBJ-21: a window is bound";
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
        EXPECT_EQ(ibv_dereg_mr(e.mr), 0);
      });
}

TEST(MemoryWindow, RebindingType1MakesTheOldKeyStale_S_MW_5) {
  Windows p;
  p.run(
      [](End& e) {
        const Shown first = show(e, "first"), second = show(e, "second");
        ASSERT_EQ(e.write(1, 0, 8, second.va, second.rkey), 0);
        ASSERT_EQ(e.write(2, 0, 8, first.va, first.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR}));
        show(e, "done");
      },
      [](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
        ibv_mw_bind bind{1, IBV_SEND_SIGNALED, piece(e, 0, 4096, IBV_ACCESS_REMOTE_WRITE)};
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &bind), 0);
        show(e, "first", {mw->rkey, e.va(0)});
        bind.bind_info = piece(e, 100, 4096, IBV_ACCESS_REMOTE_WRITE);
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &bind), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        show(e, "second", {mw->rkey, e.va(100)});
        show(e, "done");
        EXPECT_EQ(ibv_dealloc_mw(mw), 0);
      });
}

TEST(MemoryWindow, Length0UnbindsType1AndItCanBeBoundAgain_S_MW_1) {
  Windows p;
  p.run(
      [](End& e) {
        const Shown again = show(e, "again");
        ASSERT_EQ(e.write(1, 0, 8, again.va, again.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "written");
        const Shown unbound = show(e, "unbound");
        ASSERT_EQ(e.write(2, 0, 8, unbound.va, unbound.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
        ibv_mw_bind bind{1, IBV_SEND_SIGNALED, piece(e, 0, 4096, IBV_ACCESS_REMOTE_WRITE)};
        ibv_mw_bind unbind{2, IBV_SEND_SIGNALED, {nullptr, 0, 0, 0}};
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &bind), 0);
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &unbind), 0);
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &bind), 0);
        EXPECT_EQ(e.statuses(3), (Statuses{IBV_WC_SUCCESS, IBV_WC_SUCCESS, IBV_WC_SUCCESS}));
        show(e, "again", {mw->rkey, e.va(0)});
        show(e, "written");
        ASSERT_EQ(ibv_bind_mw(e.qp, mw, &unbind), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        EXPECT_EQ(ibv_dereg_mr(e.mr), 0) << "no window is bound any more";
        show(e, "unbound", {mw->rkey, e.va(0)});
      });
}

TEST(MemoryWindow, Type2WithoutRemoteWriteRefusesAWrite_A_65) {
  Windows p;
  p.run(
      [](End& e) {
        const Shown w = show(e, "bound");
        ASSERT_EQ(e.read(1, 0, 100, w.va, w.rkey), 0);
        ASSERT_EQ(e.write(2, 0, 100, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
        const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
        ASSERT_EQ(post_bind(e, 1, mw, rkey, piece(e, 0, 4096, IBV_ACCESS_REMOTE_READ)), 0);
        const auto wc = e.wait(1);
        EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
        EXPECT_EQ(wc[0].opcode, IBV_WC_BIND_MW);
        show(e, "bound", {rkey, e.va(0)});
      });
}

/// How a window of type 2 ends.
enum class End2 : std::uint8_t { local, remote, dealloc };
class WindowEnd : public testing::TestWithParam<End2> {};
TEST_P(WindowEnd, TheKeyIsRefusedAfterwards_A_65) {
  const End2 how = GetParam();
  Windows p;
  p.run(
      [&](End& e) {
        const Shown w = show(e, "bound");
        ASSERT_EQ(e.write(1, 0, 8, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        if (how == End2::remote) {
          ASSERT_EQ(send_invalidate(e, 2, w.rkey), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        }
        show(e, "end");
        show(e, "ended");
        ASSERT_EQ(e.write(3, 0, 8, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR}));
        show(e, "done");
      },
      [&](End& e) {
        ASSERT_EQ(e.receive(9, 20000, 64), 0);
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
        const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
        ASSERT_EQ(post_bind(e, 1, mw, rkey, piece(e, 0, 4096, IBV_ACCESS_REMOTE_WRITE)), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "bound", {rkey, e.va(0)});
        show(e, "end");
        if (how == End2::local) {
          ASSERT_EQ(post_invalidate(e, 2, rkey), 0);
          const auto wc = e.wait(1);
          EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc[0].opcode, IBV_WC_LOCAL_INV);
        } else if (how == End2::remote) {
          const auto wc = e.wait(1);
          EXPECT_EQ(wc[0].status, IBV_WC_SUCCESS);
          EXPECT_EQ(wc[0].opcode, IBV_WC_RECV);
          EXPECT_EQ(wc[0].wc_flags & IBV_WC_WITH_INV, unsigned{IBV_WC_WITH_INV}) << "S-MW-6";
          EXPECT_EQ(wc[0].invalidated_rkey, rkey);
          // It is free when the completion is seen, so it can be bound at once.
          const std::uint32_t next = ibv_inc_rkey(rkey);
          ASSERT_EQ(post_bind(e, 3, mw, next, piece(e, 0, 4096, IBV_ACCESS_REMOTE_WRITE)), 0);
          EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        } else {
          EXPECT_EQ(ibv_dealloc_mw(mw), 0) << "a bound window may be deallocated";
        }
        show(e, "ended");
        show(e, "done");
      });
}
INSTANTIATE_TEST_SUITE_P(Type2, WindowEnd, testing::Values(End2::local, End2::remote, End2::dealloc),
                         [](const auto& i) {
                           return i.param == End2::local    ? "LocalInvalidate"
                                  : i.param == End2::remote ? "SendWithInvalidate"
                                                            : "Dealloc";
                         });

/// A second QP of the server, connected to itself, binds the window; e.qp and e.peer are as before afterwards.
Shown bind_on_another_qp(End& e) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = e.cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {4, 4, 1, 1, 0};
  ibv_qp* connected = std::exchange(e.qp, ibv_create_qp(e.pd, &init));
  const End::Address peer = std::exchange(e.peer, End::Address{e.qp->qp_num, e.o.psn, 0, 0, e.mine.gid});
  e.go_to_rts();
  ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
  const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
  EXPECT_EQ(post_bind(e, 1, mw, rkey, piece(e, 0, 4096, IBV_ACCESS_REMOTE_WRITE)), 0);
  EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
  e.qp = connected;
  e.peer = peer;
  return {rkey, e.va(0)};
}

TEST(MemoryWindow, Type2BelongsToTheQpThatBoundIt_S_MW_2) {
  Windows p;
  p.run(
      [](End& e) {
        const Shown w = show(e, "bound");
        ASSERT_EQ(e.write(1, 0, 8, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) { show(e, "bound", bind_on_another_qp(e)); });
}

/// A bind or invalidate that the device refuses: MW_BIND_ERR, the QP goes to ERR and the next WQE is flushed.
struct BadBind {
  const char* name;
  std::function<int(End&, ibv_mw* type_1, ibv_mw* type_2)> post;
};
class BindFails : public testing::TestWithParam<BadBind> {};
TEST_P(BindFails, WithMwBindError_S_MW_3) {
  Windows p;
  p.run([](End&) {},
        [](End& e) {
          ibv_mw* type_1 = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
          ibv_mw* type_2 = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
          ASSERT_EQ(GetParam().post(e, type_1, type_2), 0);
          ASSERT_EQ(e.send(99, 0, 8), 0);
          const auto wc = e.wait(2);
          EXPECT_EQ(wc[0].status, IBV_WC_MW_BIND_ERR);
          EXPECT_EQ(wc[0].wr_id, 1u);
          EXPECT_EQ(wc[1].status, IBV_WC_WR_FLUSH_ERR);
          EXPECT_EQ(e.state(), IBV_QPS_ERR);
        });
}
ibv_mr* region(End& e, int access, ibv_pd* pd = nullptr) {
  return ibv_reg_mr(pd != nullptr ? pd : e.pd, e.buffer, 8192, access);
}
constexpr unsigned kWrite = IBV_ACCESS_REMOTE_WRITE, kRead = IBV_ACCESS_REMOTE_READ;
INSTANTIATE_TEST_SUITE_P(
    Mlx5, BindFails,
    testing::Values(
        BadBind{"RegionWithoutMwBind",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  ibv_mr* mr = region(e, IBV_ACCESS_LOCAL_WRITE);
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), {mr, e.va(), 4096, kRead});
                }},
        BadBind{"RegionOfAnotherPd",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  ibv_mr* mr = region(e, kAll, ibv_alloc_pd(e.context));
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), {mr, e.va(), 4096, kRead});
                }},
        BadBind{"WindowOfAnotherPd",
                [](End& e, ibv_mw*, ibv_mw*) {
                  ibv_mw* w = ibv_alloc_mw(ibv_alloc_pd(e.context), IBV_MW_TYPE_2);
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), piece(e, 0, 4096, kRead));
                }},
        BadBind{"BeyondTheRegion",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), piece(e, 4096, e.o.bytes - 4095, kRead));
                }},
        BadBind{"BeforeTheRegion",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), {e.mr, e.va() - 1, 16, kRead});
                }},
        BadBind{"WriteToAReadOnlyRegion",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  ibv_mr* mr = region(e, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), {mr, e.va(), 4096, kWrite});
                }},
        BadBind{"DeregisteredRegion",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  ibv_mr* mr = region(e, kAll);
                  ibv_mr copy = *mr;
                  EXPECT_EQ(ibv_dereg_mr(mr), 0);
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), {&copy, e.va(), 4096, kRead});
                }},
        BadBind{"BoundType2",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  EXPECT_EQ(post_bind(e, 5, w, w->rkey + 1, piece(e, 0, 64, kRead), 0), 0);
                  return post_bind(e, 1, w, w->rkey + 2, piece(e, 0, 64, kRead));
                }},
        BadBind{"Type2OfLength0",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), piece(e, 0, 0, kRead));
                }},
        BadBind{"ZeroBasedType1",
                [](End& e, ibv_mw* w, ibv_mw*) {
                  return post_bind(e, 1, w, ibv_inc_rkey(w->rkey), piece(e, 0, 64, kRead | IBV_ACCESS_ZERO_BASED));
                }},
        BadBind{"KeyOfARegion",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  ibv_mw wrong = *w;
                  wrong.rkey = e.mr->rkey;
                  return post_bind(e, 1, &wrong, ibv_inc_rkey(wrong.rkey), piece(e, 0, 64, kRead));
                }},
        BadBind{"UnknownWindow",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  ibv_mw wrong = *w;
                  wrong.rkey = 0xFFFFFF00;
                  return post_bind(e, 1, &wrong, 0xFFFFFF01, piece(e, 0, 64, kRead));
                }},
        BadBind{"InvalidateAFreeWindow", [](End& e, ibv_mw*, ibv_mw* w) { return post_invalidate(e, 1, w->rkey); }},
        BadBind{"InvalidateARegion", [](End& e, ibv_mw*, ibv_mw*) { return post_invalidate(e, 1, e.mr->rkey); }},
        BadBind{"InvalidateType1",
                [](End& e, ibv_mw* w, ibv_mw*) {
                  ibv_mw_bind bind{5, 0, piece(e, 0, 64, kRead)};
                  EXPECT_EQ(ibv_bind_mw(e.qp, w, &bind), 0);
                  return post_invalidate(e, 1, w->rkey);
                }},
        BadBind{"InvalidateAnotherQpsWindow",
                [](End& e, ibv_mw*, ibv_mw*) { return post_invalidate(e, 1, bind_on_another_qp(e).rkey); }},
        BadBind{"InvalidateAStaleKey",
                [](End& e, ibv_mw*, ibv_mw* w) {
                  EXPECT_EQ(post_bind(e, 5, w, w->rkey + 1, piece(e, 0, 64, kRead), 0), 0);
                  return post_invalidate(e, 1, w->rkey);
                }}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(MemoryWindow, BindCallsThatTheLibraryRefuses_S_MW_3) {
  Windows p;
  p.run([](End&) {},
        [](End& e) {
          ibv_mw* type_1 = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
          ibv_mw* type_2 = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
          ibv_mw* foreign = ibv_alloc_mw(ibv_alloc_pd(e.context), IBV_MW_TYPE_1);
          ibv_mw_bind bind{1, IBV_SEND_SIGNALED, piece(e, 0, 64, kRead)};
          EXPECT_EQ(ibv_bind_mw(e.qp, type_2, &bind), EINVAL);
          EXPECT_EQ(ibv_bind_mw(e.qp, foreign, &bind), EPERM);
          bind.bind_info = {nullptr, e.va(), 0, kRead};
          EXPECT_EQ(ibv_bind_mw(e.qp, type_1, &bind), EINVAL);
          bind.bind_info = {nullptr, 0, 64, kRead};
          EXPECT_EQ(ibv_bind_mw(e.qp, type_1, &bind), EINVAL);
          bind.bind_info = piece(e, 0, (1ULL << 31) + 1, kRead);
          EXPECT_EQ(ibv_bind_mw(e.qp, type_1, &bind), EOPNOTSUPP);
          errno = 0;
          EXPECT_EQ(ibv_alloc_mw(e.pd, static_cast<ibv_mw_type>(3)), nullptr) << "A-65";
          EXPECT_EQ(errno, EINVAL);
        });
}

TEST(MemoryWindow, ZeroBasedType2CountsFrom0) {
  Windows p;
  p.run(
      [](End& e) {
        e.fill(9);
        const Shown w = show(e, "bound");
        ASSERT_EQ(e.write(1, 0, 3000, 0, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "done");
      },
      [](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
        const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
        ASSERT_EQ(post_bind(e, 1, mw, rkey, piece(e, 10000, 3000, kWrite | IBV_ACCESS_ZERO_BASED)), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "bound", {rkey, 0});
        show(e, "done");
        EXPECT_TRUE(e.holds(10000, 3000, 9, 0));
      });
}

TEST(MemoryWindow, TheWqeBehindABindWaitsForIt_S_RC_76) {
  Windows p;
  for (HostConfig& h : p.scenario.hosts) h.hca.keys.umr_execute = 30_us;
  sim::Picos posted{0};
  p.run(
      [](End& e) {
        // The SEND that tells the key follows the bind in one chain: its small fence lets the key be valid on arrival.
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        show(e, "ready");
        EXPECT_EQ(e.wait(1)[0].status, IBV_WC_SUCCESS);
        Shown w;
        std::memcpy(static_cast<void*>(&w), e.buffer, sizeof w);
        ASSERT_EQ(e.write(2, 100, 8, w.va, w.rkey), 0);
        ASSERT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        show(e, "done");
      },
      [&](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
        const Shown w{ibv_inc_rkey(mw->rkey), e.va(4096)};
        e.thread().store(e.buffer, &w, sizeof w);
        show(e, "ready");
        ibv_sge sge = e.sge(0, sizeof w);
        ibv_send_wr wr[2] = {}, *bad = nullptr;
        wr[0].wr_id = 1;
        wr[0].next = &wr[1];
        wr[0].opcode = IBV_WR_BIND_MW;
        wr[0].send_flags = IBV_SEND_SIGNALED;
        wr[0].bind_mw = {mw, w.rkey, piece(e, 4096, 64, kWrite)};
        wr[1].wr_id = 2;
        wr[1].opcode = IBV_WR_SEND;
        wr[1].sg_list = &sge;
        wr[1].num_sge = 1;
        wr[1].send_flags = IBV_SEND_SIGNALED;
        posted = e.thread().now();
        ASSERT_EQ(ibv_post_send(e.qp, wr, &bad), 0);
        const auto wc = e.wait(2);
        EXPECT_EQ(wc[0].opcode, IBV_WC_BIND_MW);
        EXPECT_EQ(wc[1].opcode, IBV_WC_SEND);
        show(e, "done");
      });
  const auto send = std::find_if(p.frames.begin(), p.frames.end(), [](const SentFrame& f) { return f.opcode == 4; });
  ASSERT_NE(send, p.frames.end());
  EXPECT_GE(send->t - posted, 30_us);
  EXPECT_LT(send->t - posted, 33_us);
}

struct BadInvalidate {
  const char* name;
  hca::BadRemoteInvalidate policy;
  ibv_wc_status requester;
};
class RemoteInvalidateFails : public testing::TestWithParam<BadInvalidate> {};
TEST_P(RemoteInvalidateFails, OfAKeyThatIsNoWindow_S_ERR_21) {
  ScenarioConfig config;
  for (HostConfig& h : config.hosts) h.hca.keys.bad_remote_invalidate = GetParam().policy;
  Pair p(config);
  p.run(
      [](End& e) {
        show(e, "ready");
        ASSERT_EQ(send_invalidate(e, 1, e.peer.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{GetParam().requester}));
        show(e, "done");
      },
      [](End& e) {
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        ASSERT_EQ(e.receive(2, 0, 64), 0);
        show(e, "ready");
        EXPECT_EQ(e.statuses(2), (Statuses{IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR}));
        EXPECT_EQ(e.state(), IBV_QPS_ERR);
        show(e, "done");
      });
}
INSTANTIATE_TEST_SUITE_P(Policy, RemoteInvalidateFails,
                         testing::Values(BadInvalidate{"Nak", hca::BadRemoteInvalidate::nak, IBV_WC_REM_ACCESS_ERR},
                                         BadInvalidate{"Acknowledge", hca::BadRemoteInvalidate::acknowledge,
                                                       IBV_WC_SUCCESS}),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(MemoryWindow, AWindowOutlivesItsRegionWhenTheDeviceAllowsIt) {
  Windows p;
  for (HostConfig& h : p.scenario.hosts) h.hca.keys.bound_region_is_busy = false;
  p.run(
      [](End& e) {
        const Shown w = show(e, "bound");
        ASSERT_EQ(e.write(1, 0, 8, w.va, w.rkey), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_REM_ACCESS_ERR}));
      },
      [](End& e) {
        ibv_mw* mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
        const std::uint32_t rkey = ibv_inc_rkey(mw->rkey);
        ASSERT_EQ(post_bind(e, 1, mw, rkey, piece(e, 0, 4096, kWrite)), 0);
        EXPECT_EQ(e.statuses(1), (Statuses{IBV_WC_SUCCESS}));
        const std::uint64_t va = e.va(0);
        EXPECT_EQ(ibv_dereg_mr(e.mr), 0);
        show(e, "bound", {rkey, va});
      });
}

}  // namespace
}  // namespace sys::test
