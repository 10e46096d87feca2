// SPDX-License-Identifier: Apache-2.0
// Shared receive queues, XRC domains and target QPs of the kernel: errno of every wrong call, use counts, events, sharing
// between processes, and the listing of live objects.
#include <fcntl.h>

#include <memory>

#include "kernel/core/qp_state.h"
#include "kernel/core/resource_tracking.h"
#include "machine.h"

namespace {

using namespace test;

struct SrqHandle {
  std::uint32_t handle = 0, max_wr = 0, max_sge = 0, srqn = 0;
};

template <class Base>
Joined<Base, mlx5_ib_create_srq> srq_command(Verbs& v, std::uint32_t pd, std::uint32_t max_wr, std::uint32_t max_sge) {
  Joined<Base, mlx5_ib_create_srq> c;
  c.base().pd_handle = pd;
  c.base().max_wr = max_wr;
  c.base().max_sge = max_sge;
  c.base().user_handle = 0x5150;
  c.mlx5().buf_addr = reinterpret_cast<std::uint64_t>(v.m.user.alloc(64 << 10, 4096));
  c.mlx5().db_addr = v.dbr();
  return c;
}
template <class Command>
int issue(Verbs& v, std::uint32_t number, Command c, SrqHandle& out) {
  Joined<ib_uverbs_create_srq_resp, mlx5_ib_create_srq_resp> r;
  const auto e = v.send(number, c, &r);
  out = {r.base().srq_handle, r.base().max_wr, r.base().max_sge, r.mlx5().srqn};
  return static_cast<int>(e);
}
int create_srq(Verbs& v, std::uint32_t pd, std::uint32_t max_wr, std::uint32_t max_sge, SrqHandle& out) {
  return issue(v, IB_USER_VERBS_CMD_CREATE_SRQ, srq_command<ib_uverbs_create_srq>(v, pd, max_wr, max_sge), out);
}
int create_xrc_srq(Verbs& v, std::uint32_t pd, std::uint32_t xrcd, std::uint32_t cq, SrqHandle& out) {
  auto c = srq_command<ib_uverbs_create_xsrq>(v, pd, 15, 1);
  c.base().srq_type = IBV_SRQT_XRC;
  c.base().xrcd_handle = xrcd;
  c.base().cq_handle = cq;
  c.mlx5().uidx = 9;
  return issue(v, IB_USER_VERBS_CMD_CREATE_XSRQ, c, out);
}
int modify_srq(Verbs& v, std::uint32_t h, std::uint32_t mask, std::uint32_t limit) {
  ib_uverbs_modify_srq c{};
  c.srq_handle = h;
  c.attr_mask = mask;
  c.srq_limit = limit;
  return static_cast<int>(v.send(IB_USER_VERBS_CMD_MODIFY_SRQ, c));
}
int destroy_srq(Verbs& v, std::uint32_t h) {
  ib_uverbs_destroy_srq c{};
  c.srq_handle = h;
  std::uint64_t r = 0;
  return static_cast<int>(v.send(IB_USER_VERBS_CMD_DESTROY_SRQ, c, &r));
}
int create_qp_on(Verbs& v, std::uint32_t pd, std::uint32_t cq, std::uint32_t srq, std::uint32_t& handle) {
  Joined<ib_uverbs_create_qp, mlx5_ib_create_qp> c;
  c.base().pd_handle = pd;
  c.base().send_cq_handle = c.base().recv_cq_handle = cq;
  c.base().srq_handle = srq;
  c.base().is_srq = 1;
  c.base().max_send_wr = 16;
  c.base().max_recv_wr = 16;
  c.base().max_send_sge = c.base().max_recv_sge = 1;
  c.base().qp_type = IBV_QPT_RC;
  c.mlx5().buf_addr = reinterpret_cast<std::uint64_t>(v.m.user.alloc(64 * 64));
  c.mlx5().db_addr = v.dbr();
  c.mlx5().sq_wqe_count = 64;
  Joined<ib_uverbs_create_qp_resp, mlx5_ib_create_qp_resp> r;
  const auto e = v.send(IB_USER_VERBS_CMD_CREATE_QP, c, &r);
  handle = r.base().qp_handle;
  EXPECT_EQ(r.base().max_recv_wr, 0u);
  return static_cast<int>(e);
}
int open_xrcd(Verbs& v, int fd, int flags, std::uint32_t& handle) {
  ib_uverbs_open_xrcd c{};
  c.fd = static_cast<std::uint32_t>(fd);
  c.oflags = static_cast<std::uint32_t>(flags);
  std::uint64_t r = 0;
  const auto e = v.send(IB_USER_VERBS_CMD_OPEN_XRCD, c, &r);
  handle = static_cast<std::uint32_t>(r);
  return static_cast<int>(e);
}
int close_xrcd(Verbs& v, std::uint32_t h) {
  struct {
    ib_uverbs_close_xrcd c;
  } c{{h}};
  return static_cast<int>(v.send(IB_USER_VERBS_CMD_CLOSE_XRCD, c));
}
int create_target(Verbs& v, std::uint32_t xrcd, Verbs::Qp& qp) {
  Joined<ib_uverbs_create_qp, mlx5_ib_create_qp> c;
  c.base().pd_handle = xrcd;
  c.base().qp_type = IBV_QPT_XRC_RECV;
  Joined<ib_uverbs_create_qp_resp, mlx5_ib_create_qp_resp> r;
  const auto e = v.send(IB_USER_VERBS_CMD_CREATE_QP, c, &r);
  qp = {r.base().qp_handle, r.base().qpn, 0};
  return static_cast<int>(e);
}
int open_qp(Verbs& v, std::uint32_t xrcd, std::uint32_t qpn, ibv_qp_type type, std::uint32_t& handle) {
  ib_uverbs_open_qp c{};
  c.pd_handle = xrcd;
  c.qpn = qpn;
  c.qp_type = static_cast<std::uint8_t>(type);
  ib_uverbs_create_qp_resp r{};
  const auto e = v.send(IB_USER_VERBS_CMD_OPEN_QP, c, &r);
  handle = r.qp_handle;
  return static_cast<int>(e);
}

TEST(Srq, LimitsAndErrnos_S_SRQ_4) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    std::uint32_t pd = 0;
    ASSERT_EQ(v.alloc_pd(pd), 0);
    SrqHandle s;
    EXPECT_EQ(create_srq(v, pd, 32768, 1, s), -EINVAL) << "beyond the device";
    EXPECT_EQ(create_srq(v, pd, 15, 33, s), -EINVAL);
    EXPECT_EQ(create_srq(v, 99, 15, 1, s), -EINVAL) << "no such PD";
    ASSERT_EQ(create_srq(v, pd, 10, 2, s), 0);
    EXPECT_EQ(s.max_wr, 15u);
    EXPECT_EQ(s.max_sge, 3u);
    const std::byte* srqc = m.device.srqs.at(s.srqn).data();
    EXPECT_EQ(prm::get(srqc, prm::kSrqcLogSize), 4u);
    EXPECT_EQ(prm::get(srqc, prm::kSrqcLogStride), 2u) << "64 bytes";
    EXPECT_EQ(prm::get(srqc, prm::kSrqcPd), v.pdn);
    EXPECT_EQ(modify_srq(v, s.handle, IBV_SRQ_MAX_WR, 0), -EINVAL) << "no resizing on mlx5";
    EXPECT_EQ(modify_srq(v, s.handle, IBV_SRQ_LIMIT, 15), -EINVAL);
    EXPECT_EQ(modify_srq(v, s.handle, 4, 0), -EINVAL);
    EXPECT_EQ(modify_srq(v, s.handle + 1, IBV_SRQ_LIMIT, 1), -ENOENT);
    EXPECT_EQ(modify_srq(v, pd, IBV_SRQ_LIMIT, 1), -EINVAL) << "a handle of another type";
    EXPECT_EQ(modify_srq(v, s.handle, IBV_SRQ_LIMIT, 14), 0);
    ib_uverbs_query_srq q{};
    q.srq_handle = s.handle;
    ib_uverbs_query_srq_resp r{};
    EXPECT_EQ(v.send(IB_USER_VERBS_CMD_QUERY_SRQ, q, &r), 0);
    EXPECT_EQ(r.max_wr, 15u);
    EXPECT_EQ(r.max_sge, 3u);
    EXPECT_EQ(r.srq_limit, 14u);
    EXPECT_EQ(destroy_srq(v, s.handle), 0);
    EXPECT_TRUE(m.device.srqs.empty());
  });
}

TEST(Srq, UseCounts_S_OBJ_20) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    std::uint32_t pd = 0, qp = 0;
    Verbs::Cq cq;
    SrqHandle s;
    ASSERT_EQ(v.alloc_pd(pd), 0);
    ASSERT_EQ(v.create_cq(cq), 0);
    ASSERT_EQ(create_srq(v, pd, 15, 1, s), 0);
    EXPECT_EQ(v.dealloc_pd(pd), -EBUSY);
    ASSERT_EQ(create_qp_on(v, pd, cq.handle, s.handle, qp), 0);
    EXPECT_EQ(destroy_srq(v, s.handle), -EBUSY) << "a QP uses it";
    EXPECT_EQ(v.destroy_cq(cq.handle), -EBUSY);
    EXPECT_EQ(v.destroy_qp(qp), 0);
    EXPECT_EQ(destroy_srq(v, s.handle), 0);
    EXPECT_EQ(v.destroy_cq(cq.handle), 0);
    EXPECT_EQ(v.dealloc_pd(pd), 0);
  });
}

TEST(Xrc, DomainsOfAFileAreShared_S_XRC_1) {
  Machine m;
  m.run([&] {
    Verbs a(m), b(m);
    ASSERT_EQ(a.open(), 0);
    ASSERT_EQ(b.open(), 0);
    std::uint32_t d1 = 0, d2 = 0, handle = 0, pd = 0;
    EXPECT_EQ(open_xrcd(a, 77, O_CREAT, d1), -EBADF);
    EXPECT_EQ(open_xrcd(a, a.fd, O_CREAT, d1), -EBADF) << "not a regular file";
    EXPECT_EQ(m.process->open("/tmp/domain", O_RDONLY), -ENOENT);
    const int file = m.process->open("/tmp/domain", O_RDONLY | O_CREAT);
    ASSERT_GE(file, 0);
    EXPECT_EQ(open_xrcd(a, file, 0, d1), -EAGAIN) << "no domain yet and no O_CREAT";
    EXPECT_EQ(open_xrcd(a, file, O_RDWR, d1), -EINVAL);
    ASSERT_EQ(open_xrcd(a, file, O_CREAT, d1), 0);
    EXPECT_EQ(open_xrcd(b, file, O_CREAT | O_EXCL, d2), -EINVAL) << "exists";
    ASSERT_EQ(open_xrcd(b, file, 0, d2), 0);
    EXPECT_EQ(m.device.xrcds.size(), 1u);

    Verbs::Qp target;
    ASSERT_EQ(create_target(a, d1, target), 0);
    EXPECT_EQ(close_xrcd(a, d1), -EBUSY) << "a QP is in it";
    EXPECT_EQ(open_qp(b, d2, target.qpn + 1, IBV_QPT_XRC_RECV, handle), -EINVAL);
    EXPECT_EQ(open_qp(b, d2, target.qpn, IBV_QPT_RC, handle), -EINVAL);
    ASSERT_EQ(open_qp(b, d2, target.qpn, IBV_QPT_XRC_RECV, handle), 0);
    EXPECT_EQ(a.destroy_qp(target.handle), 0);
    EXPECT_EQ(m.device.qps.size(), 1u) << "b has it open";
    EXPECT_EQ(close_xrcd(a, d1), 0);
    EXPECT_EQ(m.device.xrcds.size(), 1u);

    Verbs::Cq cq;
    SrqHandle s;
    ASSERT_EQ(b.alloc_pd(pd), 0);
    ASSERT_EQ(b.create_cq(cq), 0);
    ASSERT_EQ(create_xrc_srq(b, pd, d2, cq.handle, s), 0);
    EXPECT_EQ(prm::get(m.device.srqs.at(s.srqn).data(), prm::kSrqcUserIndex), 9u);
    EXPECT_EQ(b.destroy_cq(cq.handle), -EBUSY);
    EXPECT_EQ(b.dealloc_pd(pd), -EBUSY);
    EXPECT_EQ(b.destroy_qp(handle), 0);
    EXPECT_TRUE(m.device.qps.empty());
    EXPECT_EQ(close_xrcd(b, d2), -EBUSY) << "the SRQ is in it";
    EXPECT_EQ(destroy_srq(b, s.handle), 0);
    EXPECT_EQ(close_xrcd(b, d2), 0);
    EXPECT_TRUE(m.device.xrcds.empty());
  });
}

TEST(Xrc, ClosingTheFileReleasesEverything_A_7) {
  Machine m;
  m.run([&] {
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    std::uint32_t pd = 0, xrcd = 0;
    Verbs::Cq cq;
    Verbs::Qp target;
    SrqHandle s;
    ASSERT_EQ(v.alloc_pd(pd), 0);
    ASSERT_EQ(v.create_cq(cq), 0);
    ASSERT_EQ(open_xrcd(v, -1, O_CREAT, xrcd), 0);
    ASSERT_EQ(create_target(v, xrcd, target), 0);
    ASSERT_EQ(create_xrc_srq(v, pd, xrcd, cq.handle, s), 0);
    m.process->close(v.fd);
    EXPECT_TRUE(m.device.qps.empty() && m.device.srqs.empty() && m.device.xrcds.empty() && m.device.cqs.empty());
    EXPECT_EQ(m.user.pinned_pages(), 0u);
  });
}

// XRC splits the attributes of RC (S-QP-13).
TEST(Xrc, AttributesOfTheTransitions_S_QP_13) {
  using kernel::transition;
  const auto required = [](ibv_qp_type t, ibv_qp_state from, ibv_qp_state to) {
    return transition(t, from, to)->required;
  };
  constexpr std::uint32_t kConnect = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  EXPECT_EQ(required(IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR), kConnect);
  EXPECT_EQ(required(IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR),
            kConnect | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  EXPECT_EQ(
      required(IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS),
      std::uint32_t{IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC});
  EXPECT_EQ(required(IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS), std::uint32_t{IBV_QP_TIMEOUT | IBV_QP_SQ_PSN});
}

TEST(Resources, ListWhatIsAliveWithItsOwner) {
  Machine m;
  m.process->set_owner({4711, "server"});
  m.run([&] {
    EXPECT_TRUE(kernel::list_resources(*m.kernel).ctx.empty());
    Verbs v(m);
    ASSERT_EQ(v.open(), 0);
    std::uint32_t pd = 0, srq_qp = 0;
    Verbs::Cq cq;
    Verbs::Qp qp;
    SrqHandle s;
    ASSERT_EQ(v.alloc_pd(pd), 0);
    ASSERT_EQ(v.create_cq(cq, 15), 0);
    ASSERT_EQ(create_srq(v, pd, 15, 1, s), 0);
    ASSERT_EQ(v.create_qp(qp, pd, cq.handle, cq.handle), 0);
    ASSERT_EQ(create_qp_on(v, pd, cq.handle, s.handle, srq_qp), 0);
    v.bring(qp.handle, IBV_QPT_RC, IBV_QPS_RTR);
    auto* memory = m.user.alloc(8192, 4096);
    ib_uverbs_reg_mr_resp mr{};
    ASSERT_EQ(v.reg_mr(pd, memory, 8000, 0x10000, IBV_ACCESS_LOCAL_WRITE, mr), 0);

    const kernel::Resources all = kernel::list_resources(*m.kernel, [&](std::uint32_t qpn, std::span<std::byte> qpc) {
      std::memcpy(qpc.data(), m.device.qps.at(qpn).data(), qpc.size());
      return true;
    });
    ASSERT_EQ(all.ctx.size(), 1u);
    EXPECT_EQ(all.ctx[0].owner.pid, 4711u);
    ASSERT_EQ(all.pd.size(), 1u);
    EXPECT_EQ(all.pd[0].users, 4u) << "two QPs, an SRQ and an MR";
    ASSERT_EQ(all.cq.size(), 1u);
    EXPECT_EQ(all.cq[0].cqe, 15u);
    EXPECT_EQ(all.cq[0].users, 4u);
    ASSERT_EQ(all.qp.size(), 2u);
    EXPECT_EQ(all.qp[0].lqpn, qp.qpn);
    EXPECT_EQ(all.qp[0].rqpn, 0x102u);
    EXPECT_EQ(all.qp[0].type, "RC");
    EXPECT_EQ(all.qp[0].state, "RTR");
    EXPECT_EQ(all.qp[0].rq_psn, 0x111111u);
    EXPECT_EQ(all.qp[0].owner.comm, "server");
    EXPECT_EQ(all.qp[1].state, "RESET");
    ASSERT_EQ(all.mr.size(), 1u);
    EXPECT_EQ(all.mr[0].mrlen, 8000u);
    EXPECT_EQ(all.mr[0].iova, 0x10000u);
    EXPECT_EQ(all.mr[0].rkey, mr.rkey);
    EXPECT_EQ(all.mr[0].mrn, mr.rkey >> 8);
    ASSERT_EQ(all.srq.size(), 1u);
    EXPECT_EQ(all.srq[0].type, "BASIC");
    EXPECT_EQ(all.srq[0].lqpn, (std::vector<std::uint32_t>{all.qp[1].lqpn}));
    m.process->close(v.fd);
    const kernel::Resources none = kernel::list_resources(*m.kernel);
    EXPECT_TRUE(none.ctx.empty() && none.pd.empty() && none.cq.empty() && none.qp.empty() && none.mr.empty());
  });
}

}  // namespace
