// SPDX-License-Identifier: Apache-2.0
// The objects of one golden vector: how they are made, and the steps that its set-up lists.
#include <cstring>
#include <utility>

#include "golden_harness.h"

namespace verbs::test {

Bench::Bench(Machine& m, const Json& setup) : machine(m), kernel(m.space) {
  ProcessState& s = machine.state;
  s.syscalls = &kernel;
  s.config = &machine.config;
  s.context = &machine.context;
  s.tap = &recorder;
  s.env.clear();
  s.devices.clear();
  const Json q = setup.value("qp", Json::object());
  const Json env = q.value("env", Json::object());
  for (const auto& [k, v] : env.items()) s.env[k] = v.get<std::string>();
  if (q.contains("cqe_size")) s.env["MLX5_CQE_SIZE"] = std::to_string(q["cqe_size"].get<int>());
  kernel.bfreg_index = q.value("bfreg_index", 24U);
  kernel.cqe_version = q.value("cqe_version", 1U);
  kernel.atomic_cap = q.value("device_atomic_cap", 1U);
  if (q.value("link_layer", "") == "Ethernet") kernel.link_layer = 2;
  if (setup.contains("cqn")) kernel.first_cqn = static_cast<std::uint32_t>(number(setup["cqn"]));

  mr = static_cast<std::byte*>(machine.space.alloc(65536, 4096));
  for (unsigned i = 0; i < 65536; ++i) mr[i] = static_cast<std::byte>(i + 1);
  int n = 0;
  ibv_device** list = ibv_get_device_list(&n);
  context = n > 0 ? ibv_open_device(list[0]) : nullptr;
  ibv_free_device_list(list);
  if (context == nullptr) {
    problem("the device does not open");
    return;
  }
  pd = ibv_alloc_pd(context);
  mr_object = {context, pd, mr, 65536, 9, 0x1a01, 0x1a02};
}

Bench::~Bench() {
  settle();
  machine.state.tap = nullptr;
  if (ah != nullptr) ibv_destroy_ah(ah);
  if (other_qp != nullptr) ibv_destroy_qp(other_qp);
  if (qp != nullptr) ibv_destroy_qp(qp);
  if (srq != nullptr) ibv_destroy_srq(srq);
  if (recv_cq != nullptr && recv_cq != send_cq) ibv_destroy_cq(recv_cq);
  if (send_cq != nullptr) ibv_destroy_cq(send_cq);
  if (pd != nullptr) ibv_dealloc_pd(pd);
  if (context != nullptr) ibv_close_device(context);
  settle();
  machine.space.free(mr);
}

std::uint64_t Bench::local(std::uint64_t a) const { return reinterpret_cast<std::uint64_t>(mr) + (a - 0x200000000ULL); }

void Bench::settle() { cpu::current().sleep(sim::Picos{2'000'000}); }

void Bench::modify(ibv_qp* q, ibv_qp_state state) {
  ibv_qp_attr a{};
  a.qp_state = state;
  equal(ibv_modify_qp(q, &a, IBV_QP_STATE), 0, "modify_qp");
}

void Bench::to_state(ibv_qp* q, const std::string& state) {
  static const std::map<std::string, std::vector<ibv_qp_state>> kPaths{
      {"RESET", {}},
      {"INIT", {IBV_QPS_INIT}},
      {"RTR", {IBV_QPS_INIT, IBV_QPS_RTR}},
      {"RTS", {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}},
      {"SQD", {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD}},
      {"SQE", {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQE}},
      {"ERR", {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}},
  };
  for (const ibv_qp_state s : kPaths.at(state)) modify(q, s);
}

namespace {

ibv_qp_type type_named(const std::string& name) {
  static const std::map<std::string, ibv_qp_type> kTypes{{"RC", IBV_QPT_RC},
                                                         {"UC", IBV_QPT_UC},
                                                         {"UD", IBV_QPT_UD},
                                                         {"XRC_SEND", IBV_QPT_XRC_SEND},
                                                         {"RAW_PACKET", IBV_QPT_RAW_PACKET}};
  return kTypes.at(name);
}

}  // namespace

ibv_qp* Bench::make_qp(const Json& q) {
  const bool shared = q.contains("send_cq==recv_cq");
  const int entries = q.value("cq_entries", 15);
  if (send_cq == nullptr) {
    if (q.value("cq", "") == "ibv_create_cq_ex") {
      ibv_cq_init_attr_ex a{};
      a.cqe = static_cast<std::uint32_t>(entries);
      a.wc_flags = number(q["wc_flags"]);
      send_cq = ibv_cq_ex_to_cq(::ibv_create_cq_ex(context, &a));
      recv_cq = shared ? send_cq : ibv_cq_ex_to_cq(::ibv_create_cq_ex(context, &a));
    } else {
      send_cq = ibv_create_cq(context, entries, nullptr, nullptr, 0);
      recv_cq = shared ? send_cq : ibv_create_cq(context, entries, nullptr, nullptr, 0);
    }
  }
  if (q.contains("srq_max_wr") || q.contains("srq")) {
    ibv_srq_init_attr init{};
    init.attr = {q.value("srq_max_wr", 4U), q.value("srq_max_sge", 1U), 0};
    srq = ibv_create_srq(pd, &init);
  }
  ibv_qp_init_attr_ex a{};
  a.srq = srq;
  a.send_cq = send_cq;
  a.recv_cq = recv_cq;
  a.qp_type = type_named(q.value("qp_type", "RC"));
  a.sq_sig_all = q.value("sq_sig_all", 0);
  a.cap.max_send_wr = q.value("max_send_wr", 16U);
  a.cap.max_send_sge = q.value("max_send_sge", 3U);
  a.cap.max_recv_wr = q.value("max_recv_wr", 4U);
  a.cap.max_recv_sge = q.value("max_recv_sge", 1U);
  a.cap.max_inline_data = q.value("max_inline_data", 0U);
  ibv_qp* made = nullptr;
  if (q.contains("send_ops_flags")) {
    a.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    a.pd = pd;
    a.send_ops_flags = number(q["send_ops_flags"]);
    made = ::ibv_create_qp_ex(context, &a);
    granted = a.cap;
  } else {
    ibv_qp_init_attr legacy{};
    legacy.srq = a.srq;
    legacy.send_cq = a.send_cq;
    legacy.recv_cq = a.recv_cq;
    legacy.cap = a.cap;
    legacy.qp_type = a.qp_type;
    legacy.sq_sig_all = a.sq_sig_all;
    made = ibv_create_qp(pd, &legacy);
    granted = legacy.cap;
  }
  return made;
}

void Bench::poison() {
  settle();
  mlx5::Qp* q = qp != nullptr ? &mqp() : nullptr;
  if (q != nullptr) {
    std::memset(q->rq.buf, std::to_integer<int>(kPoison), std::size_t{q->rq.wqe_cnt} << q->rq.wqe_shift);
    std::memset(q->sq.buf, std::to_integer<int>(kPoison), std::size_t{q->sq.wqe_cnt} * 64);
    std::memset(q->dbr, std::to_integer<int>(kPoison), 8);
  }
  if (srq != nullptr) {
    mlx5::Srq& s = msrq();
    std::vector<std::uint16_t> links;
    // The links of the free list are not poison: they are what the driver reads.
    for (std::uint32_t i = 0; i < s.wqe_cnt; ++i) {
      std::uint16_t next;
      std::memcpy(&next, s.wqe(i) + 2, 2);
      links.push_back(next);
    }
    std::memset(s.buf, std::to_integer<int>(kPoison), std::size_t{s.wqe_cnt} << s.wqe_shift);
    for (std::uint32_t i = 0; i < s.wqe_cnt; ++i) std::memcpy(s.wqe(i) + 2, &links[i], 2);
    std::memset(s.dbr, std::to_integer<int>(kPoison), 4);
  }
  for (ibv_cq* c : {send_cq, recv_cq})
    if (c != nullptr) std::memset(mlx5::cq_of(c).dbr, std::to_integer<int>(kPoison), 8);
  recorder.shadow.clear();
  recorder.events.clear();
}

void Bench::post_plain_sends(unsigned n, bool signaled, bool reap) {
  const bool was_on = std::exchange(recorder.on, false);
  machine.state.tap = nullptr;
  for (unsigned i = 0; i < n; ++i) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = signaled ? IBV_SEND_SIGNALED : 0;
    wr.wr.ud.ah = ah;
    ibv_send_wr* bad = nullptr;
    if (::ibv_post_send(qp, &wr, &bad) != 0) problem("a preparing send is refused");
    if (reap) mqp().sq.tail = mqp().sq.head;
  }
  machine.state.tap = &recorder;
  recorder.on = was_on;
}

void Bench::post_shared(unsigned n) {
  machine.state.tap = nullptr;
  for (unsigned i = 0; i < n; ++i) {
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    equal(ibv_post_srq_recv(srq, &wr, &bad), 0, "preparing receive");
  }
  machine.state.tap = &recorder;
}

void Bench::complete_shared(std::uint32_t index) {
  settle();
  mlx5::Cq& cq = mlx5::cq_of(recv_cq);
  mlx5_cqe64 cqe{};
  cqe.sop_drop_qpn = mlx5::be32(qp->qp_num);
  cqe.wqe_counter = mlx5::be16(static_cast<std::uint16_t>(index));
  cqe.op_own = static_cast<std::uint8_t>(0x20 | ((cq.cons_index & cq.entries) != 0 ? 1 : 0));
  write_cqe(recv_cq, cq.cons_index & (cq.entries - 1), hex(reinterpret_cast<const std::byte*>(&cqe), sizeof cqe));
  ibv_wc wc{};
  equal(::ibv_poll_cq(recv_cq, 1, &wc), 1, "preparing poll");
}

void Bench::write_cqe(ibv_cq* cq, std::uint32_t slot, const std::string& text) {
  const std::vector<std::byte> bytes = unhex(text);
  mlx5::Cq& c = mlx5::cq_of(cq);
  std::byte* at = c.buf + std::size_t{slot} * c.cqe_size;
  std::memcpy(bytes.size() == c.cqe_size ? at : at + (c.cqe_size - bytes.size()), bytes.data(), bytes.size());
}

namespace {

unsigned leading_number(const std::string& s) { return static_cast<unsigned>(std::stoul(s)); }
bool has(const std::string& s, const char* part) { return s.find(part) != std::string::npos; }

/// "[SEND wr_id 0x1 unsignaled,RDMA_READ wr_id 0x2]" as a list of WRs.
Json parse_wr_list(const std::string& text) {
  Json list = Json::array();
  std::string rest = text.substr(text.find('[') + 1);
  rest.resize(rest.rfind(']'));
  while (!rest.empty()) {
    const std::string one = rest.substr(0, rest.find(','));
    rest = one.size() < rest.size() ? rest.substr(one.size() + 1) : "";
    Json wr{{"opcode", one.substr(0, one.find(' '))},
            {"flags", has(one, "unsignaled") ? Json::array() : Json::array({"SIGNALED"})}};
    wr["wr_id"] = one.substr(one.find("wr_id ") + 6, one.find(' ', one.find("wr_id ") + 6) - one.find("wr_id ") - 6);
    list.push_back(wr);
  }
  return list;
}

/// "… sge [0x200000000,8,0x1a01] [0x200001000,64,0x1a01]" as a list of [address, length, key].
Json parse_sges(const std::string& text) {
  Json list = Json::array();
  for (std::size_t at = text.find('['); at != std::string::npos; at = text.find('[', at + 1)) {
    const std::string one = text.substr(at + 1, text.find(']', at) - at - 1);
    const auto c1 = one.find(','), c2 = one.rfind(',');
    list.push_back({one.substr(0, c1), std::stoul(one.substr(c1 + 1, c2 - c1 - 1)), one.substr(c2 + 1)});
  }
  return list;
}

/// What a vector's WR has when it does not say: the operands of its opcode.
void default_operands(Json& wr) {
  const std::string op = wr["opcode"];
  if (op != "SEND") {
    wr["remote_addr"] = "0x4000001000";
    wr["rkey"] = "0x5b02";
  }
  if (op == "LOCAL_INV") wr["invalidate_rkey"] = "0x2c01";
  if (op == "BIND_MW")
    wr["bind_mw"] = {{"mw_type", 2},       {"mw_rkey", "0x2b00"},      {"new_rkey", "0x2b01"}, {"addr", "0x200000000"},
                     {"length", "0x1000"}, {"mw_access_flags", "0x6"}, {"mr_lkey", "0x1a01"}};
}

}  // namespace

void Bench::run_setup_step(const std::string& step) {
  const bool was_on = std::exchange(recorder.on, false);
  const auto send = [&](Json wr, int want) {
    default_operands(wr);
    SendChain chain(*this, Json::array({wr}));
    ibv_send_wr* bad = nullptr;
    equal(::ibv_post_send(qp, chain.first(), &bad), want, "preparing call");
  };
  const Json sge64 = Json::array({{{"addr", "0x200000000"}, {"length", 64}, {"lkey", "0x1a01"}}});
  if (step.starts_with("advanced to the last WQEBB")) {
    post_plain_sends(mqp().sq.wqe_cnt - 1, true, true);
  } else if (step.starts_with("advanced by ")) {
    const unsigned n = leading_number(step.substr(12));
    if (n < 256) {
      post_plain_sends(n, true, true);
    } else {
      mlx5::WorkQueue& sq = mqp().sq;
      sq.head = sq.tail = sq.cur_post = n;
      mqp().bf->half = n % 2 != 0 ? mqp().bf->half_size : 0;
    }
  } else if (has(step, "LOCAL_INV") && step.starts_with("ibv_post_send LOCAL_INV")) {
    send({{"opcode", "LOCAL_INV"}, {"flags", {"SIGNALED"}}}, 0);
  } else if (has(step, "opcode 200")) {
    send({{"opcode", "SEND"}, {"opcode_number", 200}}, EINVAL);
  } else if (has(step, "inline 500")) {
    send({{"opcode", "SEND"},
          {"flags", {"INLINE"}},
          {"sge", Json::array({{{"addr", "0x200000000"}, {"length", 500}, {"lkey", "0x1a01"}}})}},
         ENOMEM);
  } else if (has(step, "2^31+1")) {
    Json wr{{"opcode", "BIND_MW"}};
    default_operands(wr);
    wr["bind_mw"]["length"] = "0x80000001";
    SendChain chain(*this, Json::array({wr}));
    ibv_send_wr* bad = nullptr;
    equal(::ibv_post_send(qp, chain.first(), &bad), EOPNOTSUPP, "preparing call");
  } else if (step == "ibv_post_send SEND -> 0" || step == "one SEND before") {
    send({{"opcode", "SEND"}, {"flags", {"SIGNALED"}}, {"sge", sge64}}, 0);
    if (step == "one SEND before") mqp().sq.tail = mqp().sq.head;
  } else if (has(step, "doorbells before")) {
    post_plain_sends(leading_number(step), true, true);
  } else if (has(step, "same bfreg_index")) {
    other_qp = qp;
    qp = make_qp({{"qp_type", "RC"}});
    to_state(qp, "RTS");
    post_plain_sends(1, true, true);
    std::swap(other_qp, qp);
  } else if (step == "queue full" || has(step, "unsignaled SENDs posted")) {
    post_plain_sends(granted.max_send_wr, false, false);
  } else if (step == "4 unsignaled sends posted, queue of 4 full") {
    ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
    for (int i = 0; i < 4; ++i) {
      ibv_wr_start(ex);
      ex->wr_flags = 0;
      ibv_wr_send(ex);
      ibv_wr_set_sge(ex, 0, 0, 0);
      ibv_wr_complete(ex);
    }
  } else if (has(step, "SENDs posted and completed")) {
    post_plain_sends(leading_number(step), true, true);
  } else if (has(step, "SENDs posted") || step == "3 SENDs") {
    post_plain_sends(leading_number(step), true, false);
  } else if (step == "CQE for WQE 3 polled") {
    mlx5_cqe64 cqe{};
    cqe.sop_drop_qpn = mlx5::be32(0x0a000123);
    cqe.wqe_counter = mlx5::be16(3);
    settle();
    write_cqe(send_cq, 0, hex(reinterpret_cast<const std::byte*>(&cqe), sizeof cqe));
    ibv_wc wc{};
    equal(::ibv_poll_cq(send_cq, 1, &wc), 1, "preparing poll");
  } else if (step == "modify_qp RESET, INIT, RTR, RTS") {
    modify(qp, IBV_QPS_RESET);
    to_state(qp, "RTS");
  } else if (step.starts_with("modify_qp RESET")) {
    modify(qp, IBV_QPS_RESET);
  } else if (step == "65536 receives posted and completed, in order") {
    msrq().counter = 0;  // 65536 of them; the list has come round to where it began
  } else if (step.starts_with("CQEs for WQE ")) {
    for (std::size_t at = step.find("WQE "); at != std::string::npos; at = step.find("WQE ", at + 1))
      complete_shared(static_cast<std::uint32_t>(std::stoul(step.substr(at + 4))));
  } else if (has(step, "receives posted") && srq != nullptr) {
    post_shared(leading_number(step));
  } else if (step.starts_with("ibv_post_srq_recv wr_id ")) {
    const std::string id = step.substr(24, step.find(' ', 24) - 24);
    RecvChain chain(*this, Json::array({{{"wr_id", id}, {"sge", parse_sges(step)}}}), true);
    ibv_recv_wr* bad = nullptr;
    equal(ibv_post_srq_recv(srq, chain.first(), &bad), 0, "preparing receive");
  } else if (has(step, "receives posted")) {
    const unsigned n = leading_number(step);
    machine.state.tap = nullptr;
    for (unsigned i = 0; i < n; ++i) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad = nullptr;
      equal(::ibv_post_recv(qp, &wr, &bad), 0, "preparing receive");
      if (has(step, "completed")) mqp().rq.tail = mqp().rq.head;
    }
    machine.state.tap = &recorder;
  } else if (step.starts_with("ibv_post_send [")) {
    Json list = parse_wr_list(step);
    for (Json& wr : list) default_operands(wr);
    for (Json& wr : list)
      if (setup_sges.contains(wr["opcode"])) wr["sge"] = setup_sges[wr["opcode"]];
    SendChain chain(*this, list);
    ibv_send_wr* bad = nullptr;
    equal(::ibv_post_send(qp, chain.first(), &bad), 0, "preparing send");
  } else if (step.starts_with("ibv_post_recv wr_id ")) {
    const std::string id = step.substr(20, step.find(' ', 20) - 20);
    RecvChain chain(*this, Json::array({{{"wr_id", id}, {"sge", parse_sges(step)}}}), true);
    ibv_recv_wr* bad = nullptr;
    equal(::ibv_post_recv(qp, chain.first(), &bad), 0, "preparing receive");
  } else {
    problem("unknown set-up step: " + step);
  }
  recorder.on = was_on;
}

}  // namespace verbs::test
