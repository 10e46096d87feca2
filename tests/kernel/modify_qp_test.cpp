// SPDX-License-Identifier: Apache-2.0
#include "kernel/core/qp_state.h"
#include "machine.h"

namespace {

using namespace test;

struct Fixture : Verbs {
  explicit Fixture(Machine& machine) : Verbs(machine) {
    EXPECT_EQ(open(), 0);
    EXPECT_EQ(alloc_pd(pd), 0);
    EXPECT_EQ(create_cq(cq), 0);
  }
  Qp make(ibv_qp_type type, ibv_qp_state state) {
    Qp qp;
    EXPECT_EQ(create_qp(qp, pd, cq.handle, cq.handle, type), 0);
    if (state == IBV_QPS_SQE || state == IBV_QPS_SQD) {
      // Hardware enters these states; a query tells the driver.
      bring(qp.handle, type, IBV_QPS_RTS);
      prm::set(m.device.qps.at(qp.qpn).data(), prm::kQpcState, state == IBV_QPS_SQE ? prm::kQpSqer : prm::kQpSqd);
      EXPECT_EQ(query(qp.handle).qp_state, state);
    } else {
      bring(qp.handle, type, state);
    }
    return qp;
  }
  std::uint32_t pd = 0;
  Cq cq;
};

void try_all_pairs(ibv_qp_type type, bool no_sqd = false) {
  kernel::KernelConfig config = default_config();
  config.driver.mlx5_no_sqd = no_sqd;
  Machine m(config);
  m.device.command_time = sim::Picos{1'000'000};
  m.run([&] {
    Fixture f(m);
    constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                        IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
    for (const ibv_qp_state from : kStates)
      for (const ibv_qp_state to : kStates) {
        const auto qp = f.make(type, from);
        const auto masks = kernel::transition(type, from, to);
        auto c = Verbs::good();
        c.qp_state = static_cast<std::uint8_t>(to);
        const std::uint32_t mask = (masks ? masks->required : 0U) | IBV_QP_STATE;
        const bool possible = masks && !(no_sqd && to == IBV_QPS_SQD);
        if (masks) {
          for (unsigned bit = 0; bit < 21; ++bit) {
            const std::uint32_t b = 1U << bit;
            if ((masks->required & b) != 0) {
              EXPECT_EQ(f.modify(qp.handle, c, mask & ~b), -EINVAL) << from << "->" << to << " without bit " << bit;
            } else if ((b & (masks->optional | IBV_QP_STATE)) == 0) {
              EXPECT_EQ(f.modify(qp.handle, c, mask | b), -EINVAL) << from << "->" << to << " with bit " << bit;
            }
          }
          EXPECT_EQ(f.query(qp.handle).qp_state, from);  // nothing has changed
        }
        EXPECT_EQ(f.modify(qp.handle, c, mask), possible ? 0 : -EINVAL) << "type " << type << " " << from << "->" << to;
        EXPECT_EQ(f.query(qp.handle).qp_state, possible ? to : from);
        ASSERT_EQ(f.destroy_qp(qp.handle), 0);
      }
  });
}

TEST(ModifyQp, A10_A11_Rc) { try_all_pairs(IBV_QPT_RC); }
TEST(ModifyQp, A10_A11_Uc) { try_all_pairs(IBV_QPT_UC); }
TEST(ModifyQp, A10_A11_Ud) { try_all_pairs(IBV_QPT_UD); }
TEST(ModifyQp, TheRealDriverHasNoWayIntoSqd_S_QP_6) { try_all_pairs(IBV_QPT_RC, true); }

TEST(ModifyQp, ContextOfInitToRtrAndRtrToRts) {
  Machine m;
  m.run([&] {
    Fixture f(m);
    const auto qp = f.make(IBV_QPT_RC, IBV_QPS_RTR);
    const auto* qpc = m.device.qps.at(qp.qpn).data();
    const auto* path = qpc + prm::kQpcPath;
    EXPECT_EQ(prm::get(qpc, prm::kQpcMtu), 3U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcRemoteQpn), 0x102U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcNextRcvPsn), 0x111111U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcMinRnrNak), 12U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcLogAckReqFreq), 8U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcRre), 1U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcRwe), 1U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcRae), 0U);
    EXPECT_EQ(prm::get(path, prm::kAdsRmacHigh), 0x0200U);
    EXPECT_EQ(prm::get(path, prm::kAdsRmacLow), 0x2U);
    EXPECT_EQ(prm::get(path, prm::kAdsSrcAddrIndex), 3U);
    EXPECT_EQ(prm::get(path, prm::kAdsHopLimit), 64U);  // S-ROCE-5
    EXPECT_EQ(prm::get(path, prm::kAdsUdpSport), kernel::udp_source_port(0, qp.qpn, 0x102));
    EXPECT_EQ(prm::get(path, prm::kAdsPort), 1U);
    EXPECT_EQ(m.device.qp_opt_mask.at(qp.qpn), prm::kOptRre | prm::kOptRwe | prm::kOptRae);
    auto c = Verbs::good();
    c.qp_state = IBV_QPS_RTS;
    c.max_rd_atomic = 12;
    ASSERT_EQ(f.modify(qp.handle, c,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC),
              0);
    qpc = m.device.qps.at(qp.qpn).data();
    EXPECT_EQ(prm::get(qpc, prm::kQpcNextSendPsn), 0x222222U);
    EXPECT_EQ(prm::get(qpc, prm::kQpcLogSraMax), 4U);  // S-QP-30
    EXPECT_EQ(prm::get(qpc + prm::kQpcPath, prm::kAdsAckTimeout), 14U);
    EXPECT_EQ(f.query(qp.handle).max_rd_atomic, 16);
    EXPECT_EQ(f.query(qp.handle).timeout, 14);
  });
}

TEST(ModifyQp, NoReadServiceWithoutDestinationDepth) {  // S-QP-29
  Machine m;
  m.run([&] {
    Fixture f(m);
    const auto qp = f.make(IBV_QPT_RC, IBV_QPS_INIT);
    auto c = Verbs::good();
    c.qp_state = IBV_QPS_RTR;
    c.max_dest_rd_atomic = 0;
    ASSERT_EQ(f.modify(qp.handle, c,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    EXPECT_EQ(prm::get(m.device.qps.at(qp.qpn).data(), prm::kQpcRre), 0U);
    EXPECT_EQ(prm::get(m.device.qps.at(qp.qpn).data(), prm::kQpcRwe), 1U);
  });
}

TEST(ModifyQp, ValueChecks) {  // S-QP-20 … S-QP-28
  kernel::KernelConfig config = default_config();
  config.driver.privileged = false;
  Machine m(config);
  m.run([&] {
    Fixture f(m);
    const auto bad = [&](ibv_qp_state from, std::uint32_t mask, auto change) {
      const auto qp = f.make(IBV_QPT_RC, from);
      auto c = Verbs::good();
      c.qp_state = static_cast<std::uint8_t>(from == IBV_QPS_RESET  ? IBV_QPS_INIT
                                             : from == IBV_QPS_INIT ? IBV_QPS_RTR
                                                                    : IBV_QPS_RTS);
      change(c);
      const auto before = m.device.opcodes.size();
      EXPECT_EQ(f.modify(qp.handle, c, mask | IBV_QP_STATE), -EINVAL);
      EXPECT_EQ(m.device.opcodes.size(), before);
    };
    const std::uint32_t init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    const std::uint32_t rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    const std::uint32_t rts =
        IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    using C = ib_uverbs_modify_qp;
    bad(IBV_QPS_RESET, init, [](C& c) { c.port_num = 0; });
    bad(IBV_QPS_RESET, init, [](C& c) { c.port_num = 2; });
    bad(IBV_QPS_RESET, init, [](C& c) { c.pkey_index = 1; });
    bad(IBV_QPS_RESET, init, [](C& c) { c.qp_state = 7; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.dest.port_num = 2; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.dest.is_global = 0; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.dest.sgid_index = 4; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.dest.sgid_index = 200; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.path_mtu = 0; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.path_mtu = 6; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.max_dest_rd_atomic = 17; });
    bad(IBV_QPS_INIT, rtr, [](C& c) { c.min_rnr_timer = 32; });
    bad(IBV_QPS_INIT, rtr | IBV_QP_ALT_PATH, [](C&) {});
    bad(IBV_QPS_RTR, rts, [](C& c) { c.max_rd_atomic = 17; });
    bad(IBV_QPS_RTR, rts, [](C& c) { c.timeout = 32; });
    bad(IBV_QPS_RTR, rts, [](C& c) { c.retry_cnt = 8; });
    bad(IBV_QPS_RTR, rts, [](C& c) { c.rnr_retry = 8; });
    bad(IBV_QPS_INIT, rtr | IBV_QP_CUR_STATE, [](C& c) { c.cur_qp_state = IBV_QPS_INIT; });
    const auto ud = f.make(IBV_QPT_UD, IBV_QPS_RESET);
    auto c = Verbs::good();
    c.qp_state = IBV_QPS_INIT;
    c.qkey = 0x80000000;
    EXPECT_EQ(f.modify(ud.handle, c, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), -EPERM);  // S-QP-26
    EXPECT_EQ(f.modify(ud.handle, c, IBV_QP_STATE | 1U << 25), -EOPNOTSUPP);                                  // S-QP-15
  });
}

TEST(ModifyQp, WrongCurrentStateIsRefusedByTheDevice) {  // S-QP-11
  Machine m;
  m.run([&] {
    Fixture f(m);
    const auto qp = f.make(IBV_QPT_RC, IBV_QPS_RTR);
    auto c = Verbs::good();
    c.cur_qp_state = IBV_QPS_RTS;
    c.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(f.modify(qp.handle, c, IBV_QP_STATE | IBV_QP_CUR_STATE), -EINVAL);
    EXPECT_EQ(f.query(qp.handle).qp_state, IBV_QPS_RTR);
  });
}

TEST(ModifyQp, UnknownNeighbourTimesOut) {
  Machine m;
  m.run([&] {
    Fixture f(m);
    const auto qp = f.make(IBV_QPT_RC, IBV_QPS_INIT);
    auto c = Verbs::good();
    c.dest.dgid[15] = 77;
    c.qp_state = IBV_QPS_RTR;
    const sim::Picos before = cpu::current().now();
    EXPECT_EQ(f.modify(qp.handle, c,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              -ETIMEDOUT);
    EXPECT_GE((cpu::current().now() - before).n, 1'000'000'000'000);
    EXPECT_EQ(f.query(qp.handle).qp_state, IBV_QPS_INIT);
  });
}

}  // namespace
