// SPDX-License-Identifier: Apache-2.0
// modify_qp through the whole stack, exhaustively: each pair of states, each required attribute left out, each other one
// added, for each service; what a query tells afterwards. The table is the model's own.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "kernel/core/gid_table.h"
#include "system/cluster.h"
#include "tests/properties/verbs_model.h"

namespace sys::test {
namespace {

constexpr ibv_qp_state kStates[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                    IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};

/// One program with the objects that a QP needs.
class Matrix {
 public:
  Matrix(Process& process, ibv_qp_type type) : type_(type) {
    int n = 0;
    ibv_device** devices = ibv_get_device_list(&n);
    context_ = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 15, nullptr, nullptr, 0);
    buffer_ = process.space.alloc(64, 64);
    const auto gid = *kernel::gid_of_ipv4(Host::ipv4(1));
    std::memcpy(peer_.raw, gid.data(), gid.size());
  }

  ibv_qp_attr attributes() const {
    ibv_qp_attr a{};
    a.port_num = a.ah_attr.port_num = 1;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = 0xBEEF;
    a.qkey = 0x1234;
    a.rq_psn = 0x123;
    a.sq_psn = 0x456;
    a.max_dest_rd_atomic = a.max_rd_atomic = 4;
    a.min_rnr_timer = 12;
    a.retry_cnt = a.rnr_retry = 7;
    a.path_mig_state = IBV_MIG_MIGRATED;
    a.ah_attr.is_global = 1;
    a.ah_attr.grh.dgid = peer_;
    a.ah_attr.grh.sgid_index = 3;
    return a;
  }
  int modify(ibv_qp_state from, ibv_qp_state to, int mask) {
    ibv_qp_attr a = attributes();
    a.qp_state = to;
    a.cur_qp_state = from;
    return ibv_modify_qp(qp_, &a, mask);
  }
  int query(ibv_qp_attr& a) {
    ibv_qp_init_attr init{};
    return ibv_query_qp(qp_, &a, 0, &init);
  }
  ibv_qp_state state() {
    ibv_qp_attr a{};
    EXPECT_EQ(query(a), 0);
    return a.qp_state;
  }

  /// A QP in `to`, or none if nothing leads there.
  bool bring(ibv_qp_state to) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = type_;
    init.cap = {4, 4, 1, 1, 0};
    qp_ = ibv_create_qp(pd_, &init);
    if (qp_ == nullptr) ADD_FAILURE() << "no QP";
    const auto go = [&](ibv_qp_state s) {
      const ibv_qp_state from = qp_->state;
      EXPECT_EQ(modify(from, s, model_transition(type_, from, s)->required | IBV_QP_STATE), 0);
    };
    if (to == IBV_QPS_RESET) return true;
    go(IBV_QPS_INIT);
    if (to == IBV_QPS_INIT) return true;
    if (to == IBV_QPS_ERR) {
      go(IBV_QPS_ERR);
      return true;
    }
    go(IBV_QPS_RTR);
    if (to == IBV_QPS_RTR) return true;
    go(IBV_QPS_RTS);
    if (to == IBV_QPS_SQD) go(IBV_QPS_SQD);
    if (to == IBV_QPS_SQE) return fail_a_send();
    return true;
  }
  void drop() { EXPECT_EQ(ibv_destroy_qp(qp_), 0); }
  void close() {
    EXPECT_EQ(ibv_destroy_cq(cq_), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
    EXPECT_EQ(ibv_close_device(context_), 0);
  }

  /// Tries everything that may be done to a QP in `from` on the way to `to`.
  void try_pair(ibv_qp_state from, ibv_qp_state to) {
    const auto masks = model_transition(type_, from, to);
    const int good = (masks ? masks->required : 0) | IBV_QP_STATE;
    const std::string pair = std::to_string(from) + " to " + std::to_string(to);
    if (!bring(from)) {
      drop();
      return;
    }
    ibv_qp_attr before{};
    EXPECT_EQ(query(before), 0);
    for (int bit = 0; masks && bit <= 20; ++bit) {
      const int b = 1 << bit;
      const bool needed = (masks->required & b) != 0;
      if (b == IBV_QP_STATE || (masks->optional & b) != 0) continue;
      EXPECT_EQ(modify(from, to, needed ? good & ~b : good | b), EINVAL)
          << pair << (needed ? " without " : " with ") << bit;
      ibv_qp_attr after{};
      EXPECT_EQ(query(after), 0);
      EXPECT_EQ(std::memcmp(&before, &after, sizeof after), 0) << pair << " bit " << bit << " changed the QP";
    }
    EXPECT_EQ(modify(from, to, good), masks ? 0 : EINVAL) << pair;
    EXPECT_EQ(state(), masks ? to : from) << pair;
    drop();
    for (int bit = 0; masks && bit <= 20; ++bit) {
      const int b = 1 << bit;
      if ((masks->optional & b) == 0) continue;
      bring(from);
      // Alternate paths do not exist on RoCE (S-QP-25). A new address vector alone brings the port with it, which UC has
      // not among its attributes.
      const bool refused = b == IBV_QP_ALT_PATH || (b == IBV_QP_AV && (masks->optional & IBV_QP_PORT) == 0);
      EXPECT_EQ(modify(from, to, good | b), refused ? EINVAL : 0) << pair << " with optional " << bit;
      EXPECT_EQ(state(), refused ? from : to) << pair << " with optional " << bit;
      drop();
    }
  }

 private:
  // Only a failure of the device leads into SQE, and never on RC (S-QP-51).
  bool fail_a_send() {
    if (type_ != IBV_QPT_UC) return false;
    ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer_), 8, 0xFFFFFF00};
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    EXPECT_EQ(ibv_post_send(qp_, &wr, &bad), 0);
    cpu::current().sleep(sim::Picos{50'000'000});
    EXPECT_EQ(state(), IBV_QPS_SQE);
    return true;
  }

  const ibv_qp_type type_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  void* buffer_ = nullptr;
  ibv_gid peer_{};
};

class QpMatrix : public testing::TestWithParam<ibv_qp_type> {};
TEST_P(QpMatrix, EachTransitionAndEachAttribute_A_10_A_11) {
  sim::Context context;
  Cluster cluster(context, ScenarioConfig{}, sim::EngineMode::run_ahead);
  bool ended = false;
  cluster.on_ready([&](sim::Picos t) {
    Process& process = cluster.host(0).create_process();
    cluster.host(0)
        .create_thread(process, 0, "matrix",
                       [&] {
                         Matrix m(process, GetParam());
                         for (const ibv_qp_state from : kStates)
                           for (const ibv_qp_state to : kStates) m.try_pair(from, to);
                         m.close();
                         ended = true;
                       })
        .start(t);
  });
  cluster.start();
  cluster.engine().run();
  EXPECT_TRUE(ended);
}
INSTANTIATE_TEST_SUITE_P(Services, QpMatrix, testing::Values(IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD), [](const auto& i) {
  return i.param == IBV_QPT_RC ? "Rc" : i.param == IBV_QPT_UC ? "Uc" : "Ud";
});

}  // namespace
}  // namespace sys::test
