// SPDX-License-Identifier: Apache-2.0
// Groups A to D: bytes that posting writes into rings, doorbell records and UAR, return values and *bad_wr.
#include <gtest/gtest.h>

#include <cstring>

#include "golden_harness.h"

namespace verbs::test {
namespace {

void set_up(Bench& b, const Json& c) {
  const Json& setup = c["setup"];
  if (c["id"] == "A-rule-S-WQE-13-write") b.kernel.first_qpn = 0x101;
  b.qp = b.make_qp(setup["qp"]);
  if (b.qp == nullptr) return b.problem("the QP is refused, errno " + std::to_string(errno));
  if (setup.contains("granted")) {
    const Json& g = setup["granted"];
    b.equal(b.granted.max_send_wr, g.value("max_send_wr", b.granted.max_send_wr), "granted max_send_wr");
    b.equal(b.granted.max_inline_data, g.value("max_inline_data", b.granted.max_inline_data),
            "granted max_inline_data");
    b.equal(b.mqp().sq.wqe_cnt, g.value("sq_wqebb", b.mqp().sq.wqe_cnt), "sq_wqebb");
    if (g.contains("srq_ring_wqes"))
      b.equal(b.msrq().wqe_cnt, g["srq_ring_wqes"].get<std::uint32_t>(), "ring of the SRQ");
    b.equal(b.mqp().rq.wqe_cnt, g.value("rq_wqes", b.mqp().rq.wqe_cnt), "rq_wqes");
  }
  b.to_state(b.qp, setup["qp"].value("state", "RTS"));
  for (const Json& step : setup.value("pre", Json::array())) b.run_setup_step(step);
  b.poison();
}

void post_send(Bench& b, const Json& c) {
  SendChain chain(b, c["call"]["wr"]);
  ibv_send_wr* const untouched = reinterpret_cast<ibv_send_wr*>(1);
  ibv_send_wr* bad = untouched;
  b.recorder.on = true;
  const int ret = ::ibv_post_send(b.qp, chain.first(), &bad);
  b.recorder.on = false;
  b.equal(ret, c["result"]["ret"].get<int>(), "return value");
  if (c["result"].contains("bad_wr_index"))
    b.expect(bad != untouched && chain.index_of(bad) == c["result"]["bad_wr_index"].get<int>(), "bad_wr");
  else b.expect(bad == untouched, "bad_wr was written");
  b.check_written(c["written"]);
}

void bind_mw(Bench& b, const Json& c) {
  const Json& call = c["call"];
  b.mw = {b.context, b.pd, static_cast<std::uint32_t>(number(call["mw_rkey_before"])), 1,
          call["mw_type"] == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2};
  ibv_mw_bind bind{0,
                   static_cast<unsigned>(number(call["send_flags"])),
                   {&b.mr_object, number(call["addr"]), number(call["length"]),
                    static_cast<unsigned>(number(call["mw_access_flags"]))}};
  if (bind.bind_info.length == 0) bind.bind_info.mr = nullptr;
  b.recorder.on = true;
  b.equal(::ibv_bind_mw(b.qp, &b.mw, &bind), c["result"]["ret"].get<int>(), "return value");
  b.recorder.on = false;
  b.equal(b.mw.rkey, static_cast<std::uint32_t>(number(c["result"]["mw_rkey_after"])), "rkey after");
  b.check_written(c["written"]);
}

TEST(Golden, PostSendOnRc) {
  replay_group("A", [](Bench& b, const Json& c) {
    set_up(b, c);
    if (b.qp == nullptr) return;
    if (c["call"]["verb"] == "ibv_bind_mw") bind_mw(b, c);
    else post_send(b, c);
  });
}

/// One call of a builder sequence; the return value of ibv_wr_complete goes to `rets`.
void build(Bench& b, ibv_qp_ex* q, const Json& s, std::vector<int>& rets) {
  constexpr std::uint64_t kRemote = 0x4000001000;
  constexpr std::uint32_t kRkey = 0x5b02;
  const std::uint32_t imm = mlx5::be32(0x11223344);
  const std::string call = s["call"];
  if (s.contains("wr_id")) q->wr_id = number(s["wr_id"]);
  if (s.contains("wr_flags")) q->wr_flags = static_cast<unsigned>(number(s["wr_flags"]));
  ibv_mw_bind_info info{&b.mr_object, 0x200000000, 0x1000, 0x6};
  b.mw = {b.context, b.pd, 0x2b00, 1, IBV_MW_TYPE_2};
  if (call == "ibv_wr_start") ibv_wr_start(q);
  else if (call == "ibv_wr_complete") rets.push_back(ibv_wr_complete(q));
  else if (call == "ibv_wr_abort") ibv_wr_abort(q);
  else if (call == "wr_send") ibv_wr_send(q);
  else if (call == "wr_send_imm") ibv_wr_send_imm(q, imm);
  else if (call == "wr_send_inv") ibv_wr_send_inv(q, 0x2c01);
  else if (call == "wr_rdma_write") ibv_wr_rdma_write(q, kRkey, kRemote);
  else if (call == "wr_rdma_write_imm") ibv_wr_rdma_write_imm(q, kRkey, kRemote, imm);
  else if (call == "wr_rdma_read") ibv_wr_rdma_read(q, kRkey, kRemote);
  else if (call == "wr_atomic_cmp_swp")
    ibv_wr_atomic_cmp_swp(q, kRkey, kRemote, 0x1111111122222222, 0x3333333344444444);
  else if (call == "wr_atomic_fetch_add") ibv_wr_atomic_fetch_add(q, kRkey, kRemote, 0x1111111122222222);
  else if (call == "wr_local_inv") ibv_wr_local_inv(q, 0x2c01);
  else if (call == "wr_bind_mw") ibv_wr_bind_mw(q, &b.mw, 0x2b01, &info);
  else if (call == "wr_bind_mw_too_long") {
    info.length = 0x80000001;
    ibv_wr_bind_mw(q, &b.mw, 0x2b01, &info);
  } else if (call == "set_ud_addr") {
    ibv_wr_set_ud_addr(q, b.ah, static_cast<std::uint32_t>(number(s["remote_qpn"])),
                       static_cast<std::uint32_t>(number(s["remote_qkey"])));
  } else if (call == "set_xrc_srqn") {
    ibv_wr_set_xrc_srqn(q, static_cast<std::uint32_t>(number(s["remote_srqn"])));
  } else if (call == "set_sge") {
    ibv_wr_set_sge(q, static_cast<std::uint32_t>(number(s["lkey"])), number(s["addr"]),
                   static_cast<std::uint32_t>(number(s["length"])));
  } else if (call == "set_sge_list") {
    std::vector<ibv_sge> list;
    for (const Json& e : s["sge"])
      list.push_back(
          {number(e[0]), static_cast<std::uint32_t>(number(e[1])), static_cast<std::uint32_t>(number(e[2]))});
    ibv_wr_set_sge_list(q, list.size(), list.data());
  } else if (call == "set_inline_data") {
    ibv_wr_set_inline_data(q, reinterpret_cast<void*>(b.local(number(s["addr"]))), number(s["length"]));
  } else if (call == "set_inline_data_list") {
    std::vector<ibv_data_buf> list;
    for (const Json& e : s["buf"]) list.push_back({reinterpret_cast<void*>(b.local(number(e[0]))), number(e[1])});
    ibv_wr_set_inline_data_list(q, list.size(), list.data());
  } else {
    b.problem("unknown builder call " + call);
  }
}

void make_default_ah(Bench& b) {
  ibv_ah_attr a{};
  a.dlid = 0x1234;
  a.sl = 3;
  a.port_num = 1;
  b.ah = ibv_create_ah(b.pd, &a);
}

TEST(Golden, WrBuilders) {
  replay_group("B", [](Bench& b, const Json& c) {
    if (c["call"]["verb"] == "ibv_create_qp_ex") {
      b.qp = b.make_qp(c["setup"]["qp"]);
      b.expect(b.qp == nullptr && errno == c["result"]["errno"].get<int>(), "QP creation");
      return;
    }
    if (c["setup"]["qp"]["qp_type"] == "UD") make_default_ah(b);
    set_up(b, c);
    if (b.qp == nullptr) return;
    ibv_qp_ex* q = ibv_qp_to_qp_ex(b.qp);
    std::vector<int> rets;
    b.recorder.on = true;
    for (const Json& s : c["call"]["sequence"]) build(b, q, s, rets);
    b.recorder.on = false;
    b.expect(rets == c["result"]["ibv_wr_complete_ret"].get<std::vector<int>>(), "return values of ibv_wr_complete");
    b.check_written(c["written"]);
  });
}

TEST(Golden, PostRecvAndReset) {
  replay_group("C", [](Bench& b, const Json& c) {
    if (c["id"] == "C-rq-signature") b.machine.state.env["MLX5_QP_SIGNATURE"] = "1";
    set_up(b, c);
    if (b.qp == nullptr) return;
    if (c["call"]["verb"] == "ibv_modify_qp RESET") {
      b.recorder.on = true;
      b.modify(b.qp, IBV_QPS_RESET);
      b.recorder.on = false;
      b.check_written(c["written"]);
      return;
    }
    const Json one = Json::array({{{"wr_id", "0x1"}, {"sge", Json::array()}}});
    RecvChain chain(b, c["call"].value("wr", one), false);
    ibv_recv_wr* const untouched = reinterpret_cast<ibv_recv_wr*>(1);
    ibv_recv_wr* bad = untouched;
    b.recorder.on = true;
    const bool shared = c["call"]["verb"] == "ibv_post_srq_recv";
    const int ret = shared ? ibv_post_srq_recv(b.srq, chain.first(), &bad) : ::ibv_post_recv(b.qp, chain.first(), &bad);
    b.recorder.on = false;
    b.equal(ret, c["result"]["ret"].get<int>(), "return value");
    if (c["result"].contains("bad_wr_index"))
      b.expect(bad != untouched && chain.index_of(bad) == c["result"]["bad_wr_index"].get<int>(), "bad_wr");
    b.check_written(c["written"]);
  });
}

ibv_ah_attr ah_attr(const Json& j) {
  ibv_ah_attr a{};
  a.dlid = static_cast<std::uint16_t>(number(j["dlid"]));
  a.sl = j["sl"].get<std::uint8_t>();
  a.static_rate = j["static_rate"].get<std::uint8_t>();
  a.src_path_bits = j["src_path_bits"].get<std::uint8_t>();
  a.is_global = j["is_global"].get<std::uint8_t>();
  a.port_num = j["port_num"].get<std::uint8_t>();
  if (j.contains("dgid")) std::memcpy(a.grh.dgid.raw, unhex(j["dgid"]).data(), 16);
  a.grh.sgid_index = j.value("sgid_index", std::uint8_t{0});
  a.grh.hop_limit = j.value("hop_limit", std::uint8_t{0});
  a.grh.traffic_class = j.value("traffic_class", std::uint8_t{0});
  if (j.contains("flow_label")) a.grh.flow_label = static_cast<std::uint32_t>(number(j["flow_label"]));
  return a;
}

TEST(Golden, AddressHandlesAndOtherTransports) {
  replay_group("D", [](Bench& b, const Json& c) {
    const Json& call = c["call"];
    if (call.contains("attr")) {
      ibv_ah_attr a = ah_attr(call["attr"]);
      b.ah = ibv_create_ah(b.pd, &a);
      if (c["result"].value("result", "") == "NULL") {
        b.expect(b.ah == nullptr, "the address handle is accepted");
        return;
      }
      if (b.ah == nullptr) return b.problem("the address handle is refused, errno " + std::to_string(errno));
    } else if (c["setup"]["qp"]["qp_type"] == "UD") {
      make_default_ah(b);
    }
    set_up(b, c);
    if (b.qp != nullptr) post_send(b, c);
  });
}

}  // namespace
}  // namespace verbs::test
