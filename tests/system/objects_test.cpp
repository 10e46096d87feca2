// SPDX-License-Identifier: Apache-2.0
// The object layer as a program sees it: sizes that are granted, errno of every wrong call, use counts, device attributes,
// thread and parent domains.
#include <gtest/gtest.h>

#include "tests/system/verbs_pair.h"
#include "verbs_frontend/mlx5/srq.h"

namespace sys::test {
namespace {

using namespace sim::literals;

void nothing(End&) {}

/// One program against one device; the other host is idle.
void alone(const std::function<void(End&)>& program, const std::function<void(ScenarioConfig&)>& configure = nullptr) {
  Pair p;
  if (configure) configure(p.scenario);
  p.options[0].connect = p.options[1].connect = false;
  p.run(program, nothing);
}

int cq_of_size(End& e, int cqe, int vector = 0) {
  errno = 0;
  ibv_cq* cq = ibv_create_cq(e.context, cqe, nullptr, nullptr, vector);
  if (cq == nullptr) return -errno;
  const int granted = cq->cqe;
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  return granted;
}

TEST(Objects, CqSizes_A_1) {
  alone(
      [](End& e) {
        ibv_device_attr d{};
        ASSERT_EQ(ibv_query_device(e.context, &d), 0);
        EXPECT_EQ(d.max_cqe, 1023) << "2^log_max_cq_sz - 1";
        for (const auto& [wanted, granted] : {std::pair{1, 1},
                                              {2, 3},
                                              {3, 3},
                                              {16, 31},
                                              {100, 127},
                                              {127, 127},
                                              {128, 255},
                                              {255, 255},
                                              {511, 511},
                                              {1023, 1023}})
          EXPECT_EQ(cq_of_size(e, wanted), granted) << wanted;
        for (const int wrong : {1024, 0, -1, 1 << 24}) EXPECT_EQ(cq_of_size(e, wrong), -EINVAL) << wrong;
        EXPECT_EQ(cq_of_size(e, 15, e.context->num_comp_vectors), -EINVAL);
        EXPECT_EQ(cq_of_size(e, 15, -1), -EINVAL);
        EXPECT_EQ(cq_of_size(e, 15, e.context->num_comp_vectors - 1), 15);
      },
      [](ScenarioConfig& s) { s.hosts[0].hca.caps.log_max_cq_sz = 10; });
}

TEST(Objects, CreateCqExRefusesWhatItDoesNotKnow_S_OBJ_35) {
  alone([](End& e) {
    const auto create = [&](std::uint64_t wc_flags, std::uint32_t comp_mask, std::uint32_t flags) {
      ibv_cq_init_attr_ex a{};
      a.cqe = 15;
      a.wc_flags = wc_flags;
      a.comp_mask = comp_mask;
      a.flags = flags;
      a.parent_domain = e.pd;
      errno = 0;
      ibv_cq_ex* cq = ibv_create_cq_ex(e.context, &a);
      if (cq == nullptr) return errno;
      EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
      return 0;
    };
    EXPECT_EQ(create(IBV_WC_STANDARD_FLAGS, 0, 0), 0);
    EXPECT_EQ(create(1ULL << 40, 0, 0), EOPNOTSUPP);
    EXPECT_EQ(create(0, 1U << 7, 0), EINVAL);
    EXPECT_EQ(create(0, IBV_CQ_INIT_ATTR_MASK_FLAGS, 1U << 7), EINVAL);
    EXPECT_EQ(create(0, IBV_CQ_INIT_ATTR_MASK_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED), 0);
    EXPECT_EQ(create(0, IBV_CQ_INIT_ATTR_MASK_PD, 0), EINVAL) << "a plain PD is no parent domain";
  });
}

struct QpRequest {
  ibv_qp_type type = IBV_QPT_RC;
  ibv_qp_cap cap{};
  std::uint64_t ops = 0;  ///< 0: ibv_create_qp
};
/// 0 with the granted capabilities in `r.cap`, or errno.
int try_qp(End& e, QpRequest& r) {
  errno = 0;
  ibv_qp* qp = nullptr;
  if (r.ops == 0) {
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = e.cq;
    a.qp_type = r.type;
    a.cap = r.cap;
    qp = ibv_create_qp(e.pd, &a);
    r.cap = a.cap;
  } else {
    ibv_qp_init_attr_ex a{};
    a.send_cq = a.recv_cq = e.cq;
    a.qp_type = r.type;
    a.cap = r.cap;
    a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    a.pd = e.pd;
    a.send_ops_flags = r.ops;
    qp = ibv_create_qp_ex(e.context, &a);
    r.cap = a.cap;
  }
  if (qp == nullptr) return errno;
  EXPECT_GT(qp->qp_num, 1u);
  EXPECT_EQ(qp->state, IBV_QPS_RESET);
  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  return 0;
}

TEST(Objects, GrantedInlineDataAndDepths_A_5) {
  alone([](End& e) {
    struct Case {
      QpRequest request;
      std::uint32_t inline_data, send_wr;
    };
    for (Case c : {Case{{IBV_QPT_RC, {100, 1, 1, 1, 0}, 0}, 60, 128},
                   {{IBV_QPT_RC, {16, 1, 1, 1, 220}, 0}, 252, 18},
                   {{IBV_QPT_RC, {16, 1, 1, 1, 220}, IBV_QP_EX_WITH_RDMA_WRITE}, 220, 16},
                   {{IBV_QPT_RC, {16, 1, 1, 1, 236}, IBV_QP_EX_WITH_SEND}, 236, 16},
                   {{IBV_QPT_UD, {16, 1, 1, 1, 188}, 0}, 188, 16},
                   {{IBV_QPT_UD, {16, 1, 1, 1, 0}, 0}, 60, 16}}) {
      ASSERT_EQ(try_qp(e, c.request), 0);
      EXPECT_EQ(c.request.cap.max_inline_data, c.inline_data);
      EXPECT_EQ(c.request.cap.max_send_wr, c.send_wr);
    }
    QpRequest r{IBV_QPT_RC, {1, 5, 1, 3, 0}, 0};
    ASSERT_EQ(try_qp(e, r), 0);
    EXPECT_EQ(r.cap.max_recv_wr, 8u) << "powers of two (S-OBJ-43)";
    EXPECT_EQ(r.cap.max_recv_sge, 4u);
  });
}

TEST(Objects, CapabilitiesBeyondTheDeviceFail_A_6) {
  alone(
      [](End& e) {
        ibv_device_attr d{};
        ASSERT_EQ(ibv_query_device(e.context, &d), 0);
        const auto wr = static_cast<std::uint32_t>(d.max_qp_wr), sge = static_cast<std::uint32_t>(d.max_sge);
        EXPECT_EQ(wr, 256u);
        EXPECT_EQ(sge, 30u) << "S-OBJ-46";
        const auto refused = [&](ibv_qp_cap cap) {
          QpRequest r{IBV_QPT_RC, cap, 0};
          EXPECT_EQ(try_qp(e, r), EINVAL)
              << cap.max_send_wr << " " << cap.max_recv_wr << " " << cap.max_send_sge << " " << cap.max_recv_sge;
        };
        refused({wr + 1, 1, 1, 1, 0});
        refused({1, wr + 1, 1, 1, 0});
        refused({1, 1, 64, 1, 0});
        refused({1, 1, 1, 33, 0});
        refused({1, 1, 1, 1, 2000});
        refused({0x80000000, 1, 1, 1, 0});
        for (const ibv_qp_cap legal : {ibv_qp_cap{64, wr, 1, 1, 0}, ibv_qp_cap{1, 1, sge, 32, 0}}) {
          QpRequest r{IBV_QPT_RC, legal, 0};
          ASSERT_EQ(try_qp(e, r), 0);
          EXPECT_GE(r.cap.max_send_wr, legal.max_send_wr);
          EXPECT_GE(r.cap.max_recv_wr, legal.max_recv_wr);
          EXPECT_GE(r.cap.max_send_sge, legal.max_send_sge);
          EXPECT_GE(r.cap.max_recv_sge, legal.max_recv_sge);
        }
      },
      [](ScenarioConfig& s) { s.hosts[0].hca.caps.log_max_qp_sz = 8; });
}

TEST(Objects, CreateQpRefusals_S_OBJ_47) {
  alone([](End& e) {
    ibv_qp_init_attr_ex a{};
    a.send_cq = a.recv_cq = e.cq;
    a.qp_type = IBV_QPT_RC;
    a.cap = {1, 1, 1, 1, 0};
    a.pd = e.pd;
    const auto refused = [&](const ibv_qp_init_attr_ex& wrong) {
      ibv_qp_init_attr_ex copy = wrong;
      errno = 0;
      EXPECT_EQ(ibv_create_qp_ex(e.context, &copy), nullptr);
      return errno;
    };
    a.comp_mask = IBV_QP_INIT_ATTR_PD | 1U << 20;
    EXPECT_EQ(refused(a), EINVAL) << "unknown comp_mask bit";
    a.comp_mask = 0;
    EXPECT_EQ(refused(a), EINVAL) << "no PD";
    a.comp_mask = IBV_QP_INIT_ATTR_PD;
    a.qp_type = IBV_QPT_RAW_PACKET;
    EXPECT_EQ(refused(a), EOPNOTSUPP);
    a.qp_type = static_cast<ibv_qp_type>(77);
    EXPECT_EQ(refused(a), EINVAL);
    a.qp_type = IBV_QPT_RC;
    a.recv_cq = nullptr;
    EXPECT_EQ(refused(a), EINVAL) << "receives without a CQ";
    a.recv_cq = e.cq;
    a.send_cq = nullptr;
    EXPECT_EQ(refused(a), EINVAL);
    a.send_cq = e.cq;
    a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    a.send_ops_flags = IBV_QP_EX_WITH_TSO;
    EXPECT_EQ(refused(a), EOPNOTSUPP) << "an operation that RC does not have";
  });
}

TEST(Objects, BusyWhileInUse_A_2_A_3_A_4) {
  alone([](End& e) {
    EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(e.qp, &attr, IBV_QP_STATE, &init), 0) << "a failed destroy changes nothing (S-OBJ-22)";
    EXPECT_EQ(ibv_destroy_cq(e.cq), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
    EXPECT_EQ(ibv_destroy_cq(e.cq), 0);
    EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY) << "the MR";
    EXPECT_EQ(ibv_dereg_mr(e.mr), 0);
    EXPECT_EQ(ibv_dealloc_pd(e.pd), 0);
    ibv_comp_channel* channel = ibv_create_comp_channel(e.context);
    ibv_cq* cq = ibv_create_cq(e.context, 1, nullptr, channel, 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), EBUSY);
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
    std::vector<ibv_pd*> many;
    for (int i = 0; i < 50; ++i) many.push_back(ibv_alloc_pd(e.context));
    for (ibv_pd* pd : many) {
      ASSERT_NE(pd, nullptr);
      EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    }
  });
}

TEST(Objects, AddressHandlesNeedAGrhOnRoce_A_8) {
  alone([](End& e) {
    ibv_ah_attr a{};
    a.port_num = 1;
    errno = 0;
    EXPECT_EQ(ibv_create_ah(e.pd, &a), nullptr);
    EXPECT_EQ(errno, EINVAL);
    a.is_global = 1;
    a.grh.sgid_index = 3;
    a.grh.dgid = e.peer.gid;
    ibv_ah* ah = ibv_create_ah(e.pd, &a);
    ASSERT_NE(ah, nullptr);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    a.grh.sgid_index = 200;
    errno = 0;
    EXPECT_EQ(ibv_create_ah(e.pd, &a), nullptr);
    EXPECT_EQ(errno, EINVAL);
    a.grh.sgid_index = 3;
    a.port_num = 2;
    errno = 0;
    EXPECT_EQ(ibv_create_ah(e.pd, &a), nullptr);
    EXPECT_EQ(errno, EINVAL);
  });
}

TEST(Objects, PortsAndGids_A_9) {
  alone([](End& e) {
    ibv_port_attr p{};
    EXPECT_EQ(___ibv_query_port(e.context, 0, &p), EINVAL);
    EXPECT_EQ(___ibv_query_port(e.context, 2, &p), EINVAL);
    ASSERT_EQ(___ibv_query_port(e.context, 1, &p), 0);
    const int empty = p.gid_tbl_len - 1;
    ibv_gid gid{};
    gid.raw[0] = 1;
    EXPECT_EQ(ibv_query_gid(e.context, 1, empty, &gid), 0);
    EXPECT_TRUE(std::all_of(std::begin(gid.raw), std::end(gid.raw), [](std::uint8_t b) { return b == 0; }));
    ibv_gid_entry entry{};
    EXPECT_EQ(ibv_query_gid_ex(e.context, 1, static_cast<std::uint32_t>(empty), &entry, 0), ENODATA);
    EXPECT_EQ(ibv_query_gid_ex(e.context, 1, 3, &entry, 0), 0);
    EXPECT_EQ(entry.gid_type, static_cast<std::uint32_t>(IBV_GID_TYPE_ROCE_V2));
    EXPECT_EQ(ibv_query_gid(e.context, 1, p.gid_tbl_len, &gid), -1);
    EXPECT_EQ(ibv_query_gid_ex(e.context, 1, 3, &entry, 1), EINVAL) << "unknown flag";
    __be16 pkey = 0;
    EXPECT_EQ(ibv_query_pkey(e.context, 1, 0, &pkey), 0);
    EXPECT_EQ(ibv_query_pkey(e.context, 1, p.pkey_tbl_len, &pkey), -1);
  });
}

TEST(Objects, ReceivesUpToTheGrantedNumber_A_19) {
  alone([](End& e) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
    for (std::uint64_t i = 0; i < e.o.recv_wr; ++i) ASSERT_EQ(e.receive(i, 0, 8), 0);
    EXPECT_EQ(e.receive(99, 0, 8), ENOMEM);
  });
}

TEST(Objects, DeviceAttributesFollowTheProfile_S_OBJ_46) {
  alone(
      [](End& e) {
        ibv_device_attr d{};
        ASSERT_EQ(ibv_query_device(e.context, &d), 0);
        EXPECT_STREQ(d.fw_ver, "20.31.1014");
        EXPECT_EQ(d.vendor_id, 0x2c9u);
        EXPECT_EQ(d.vendor_part_id, 4123u);
        EXPECT_NE(d.node_guid, 0u);
        EXPECT_EQ(d.max_mr_size, ~0ULL);
        EXPECT_EQ(d.max_qp, 1 << 12);
        EXPECT_EQ(d.max_qp_wr, 1 << 10);
        EXPECT_EQ(d.max_sge, 30);
        EXPECT_EQ(d.max_cq, 1 << 11);
        EXPECT_EQ(d.max_cqe, (1 << 16) - 1);
        EXPECT_EQ(d.max_mr, 1 << 13);
        EXPECT_EQ(d.max_pd, 1 << 9);
        EXPECT_EQ(d.max_srq, 1 << 8);
        EXPECT_EQ(d.max_srq_wr, (1 << 12) - 1);
        EXPECT_EQ(d.max_srq_sge, 31);
        EXPECT_EQ(d.max_qp_rd_atom, 8);
        EXPECT_EQ(d.max_qp_init_rd_atom, 4);
        EXPECT_EQ(d.max_res_rd_atom, 8 << 12);
        EXPECT_EQ(d.max_pkeys, 1);
        EXPECT_EQ(d.phys_port_cnt, 1);
        EXPECT_EQ(d.device_cap_flags & IBV_DEVICE_XRC, 0u) << "no domains";
        ibv_xrcd_init_attr x{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, 0};
        errno = 0;
        EXPECT_EQ(ibv_open_xrcd(e.context, &x), nullptr);
        EXPECT_EQ(errno, EOPNOTSUPP);
        ibv_srq_init_attr too_long{nullptr, {1U << 12, 1, 0}};
        EXPECT_EQ(ibv_create_srq(e.pd, &too_long), nullptr);
      },
      [](ScenarioConfig& s) {
        hca::CapabilityConfig& c = s.hosts[0].hca.caps;
        c.fw_version = "20.31.1014";
        c.vendor_part_id = 4123;
        c.log_max_qp = 12;
        c.log_max_qp_sz = 10;
        c.log_max_cq = 11;
        c.log_max_cq_sz = 16;
        c.log_max_mkey = 13;
        c.log_max_pd = 9;
        c.log_max_srq = 8;
        c.log_max_srq_sz = 12;
        c.log_max_ra_res = 3;
        c.log_max_ra_req = 2;
        c.log_max_xrcd = 0;
      });
}

// The difference of two CQE time stamps, in the clock that the device reports, is the time that passed.
TEST(Objects, CoreClockIsThatOfTheTimeStamps) {
  Pair p;
  p.scenario.hosts[0].hca.completion.clock_period = sim::Picos{1280};
  p.run(
      [](End& e) {
        ibv_device_attr_ex d{};
        ASSERT_EQ(ibv_query_device_ex(e.context, nullptr, &d), 0);
        EXPECT_EQ(d.hca_core_clock, 781'250u) << "kHz: 1280 ps";
        EXPECT_EQ(d.completion_timestamp_mask, ~0ULL >> 1);
        EXPECT_EQ(d.phys_port_cnt_ex, 1u);
        ibv_query_device_ex_input input{1};
        EXPECT_EQ(ibv_query_device_ex(e.context, &input, &d), EINVAL);
        ibv_cq_init_attr_ex init{};
        init.cqe = 15;
        init.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
        ibv_cq_ex* cq = ibv_create_cq_ex(e.context, &init);
        ASSERT_NE(cq, nullptr);
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        ibv_qp_init_attr q{};
        q.send_cq = q.recv_cq = ibv_cq_ex_to_cq(cq);
        q.qp_type = IBV_QPT_RC;
        q.cap = {4, 1, 1, 1, 0};
        e.qp = ibv_create_qp(e.pd, &q);
        e.mine = e.address();
        ASSERT_EQ(e.process_.exchange->swap("again", &e.mine, &e.peer, sizeof e.mine), 0);
        e.go_to_rts();
        e.meet("ready");
        std::vector<std::uint64_t> stamps;
        const sim::Picos gap = 50_us;
        for (int i = 0; i < 2; ++i) {
          if (i == 1) e.thread().sleep(gap);
          const sim::Picos posted = e.thread().now();
          ASSERT_EQ(e.send(1, 0, 8), 0);
          ibv_poll_cq_attr none{};
          while (ibv_start_poll(cq, &none) == ENOENT) e.thread().sleep(100_ns);
          stamps.push_back(ibv_wc_read_completion_ts(cq));
          ibv_end_poll(cq);
          const auto stamp = sim::Picos{static_cast<std::int64_t>(stamps.back()) * 1280};
          EXPECT_GT(stamp, posted);
          EXPECT_LT(stamp, e.thread().now());
        }
        EXPECT_GT(stamps[1], stamps[0]);
      },
      [](End& e) {
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        ibv_qp_init_attr q{};
        q.send_cq = q.recv_cq = e.cq;
        q.qp_type = IBV_QPT_RC;
        q.cap = {1, 4, 1, 1, 0};
        e.qp = ibv_create_qp(e.pd, &q);
        e.mine = e.address();
        ASSERT_EQ(e.process_.exchange->swap("again", &e.mine, &e.peer, sizeof e.mine), 0);
        e.go_to_rts();
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        ASSERT_EQ(e.receive(2, 0, 64), 0);
        e.meet("ready");
        e.wait(2);
      });
}

TEST(Objects, ThreadAndParentDomains_S_OBJ_65) {
  Pair p;
  p.run(
      [](End& e) {
        ibv_td_init_attr unknown{1}, plain{};
        errno = 0;
        EXPECT_EQ(ibv_alloc_td(e.context, &unknown), nullptr);
        EXPECT_EQ(errno, EINVAL);
        ibv_td* td = ibv_alloc_td(e.context, &plain);
        ASSERT_NE(td, nullptr);
        ibv_parent_domain_init_attr a{};
        a.td = td;
        errno = 0;
        EXPECT_EQ(ibv_alloc_parent_domain(e.context, &a), nullptr) << "needs a PD";
        EXPECT_EQ(errno, EINVAL);
        a.pd = e.pd;
        a.comp_mask = 1U << 9;
        EXPECT_EQ(ibv_alloc_parent_domain(e.context, &a), nullptr);
        a.comp_mask = 0;
        ibv_pd* domain = ibv_alloc_parent_domain(e.context, &a);
        ASSERT_NE(domain, nullptr);
        EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
        EXPECT_EQ(ibv_dealloc_pd(e.pd), EBUSY);

        ibv_cq_init_attr_ex c{};
        c.cqe = 15;
        c.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
        c.parent_domain = domain;
        ibv_cq* cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(e.context, &c));
        ASSERT_NE(cq, nullptr);
        ibv_qp_init_attr q{};
        q.send_cq = q.recv_cq = cq;
        q.qp_type = IBV_QPT_RC;
        q.cap = {4, 1, 1, 1, 0};
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        e.qp = ibv_create_qp(domain, &q);
        ASSERT_NE(e.qp, nullptr);
        const verbs::mlx5::Qp& mine = verbs::mlx5::qp_of(e.qp);
        EXPECT_FALSE(mine.sq.lock.needed || mine.rq.lock.needed || mine.bf->need_lock) << "one thread uses it";
        EXPECT_FALSE(verbs::mlx5::cq_of(cq).lock.needed);
        ibv_qp* other = ibv_create_qp(e.pd, &q);
        EXPECT_NE(verbs::mlx5::qp_of(other).bf, mine.bf) << "a register of its own";
        EXPECT_TRUE(verbs::mlx5::qp_of(other).sq.lock.needed);

        e.mine = e.address();
        ASSERT_EQ(e.process_.exchange->swap("again", &e.mine, &e.peer, sizeof e.mine), 0);
        e.go_to_rts();
        e.cq = cq;
        e.meet("ready");
        ASSERT_EQ(e.send(1, 0, 8), 0);
        EXPECT_EQ(e.statuses(1)[0], IBV_WC_SUCCESS);

        EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY) << "queues are in it";
        EXPECT_EQ(ibv_destroy_qp(other), 0);
        EXPECT_EQ(ibv_destroy_qp(e.qp), 0);
        EXPECT_EQ(ibv_destroy_cq(cq), 0);
        EXPECT_EQ(ibv_dealloc_pd(domain), 0);
        EXPECT_EQ(ibv_dealloc_td(td), 0);
        ibv_td* next = ibv_alloc_td(e.context, &plain);
        EXPECT_NE(next, nullptr);
        EXPECT_EQ(ibv_dealloc_td(next), 0);
      },
      [](End& e) {
        ASSERT_EQ(ibv_destroy_qp(e.qp), 0);
        ibv_qp_init_attr q{};
        q.send_cq = q.recv_cq = e.cq;
        q.qp_type = IBV_QPT_RC;
        q.cap = {1, 4, 1, 1, 0};
        e.qp = ibv_create_qp(e.pd, &q);
        e.mine = e.address();
        ASSERT_EQ(e.process_.exchange->swap("again", &e.mine, &e.peer, sizeof e.mine), 0);
        e.go_to_rts();
        ASSERT_EQ(e.receive(1, 0, 64), 0);
        e.meet("ready");
        e.wait(1);
      });
}

}  // namespace
}  // namespace sys::test
