// SPDX-License-Identifier: Apache-2.0
// Group H: the order of stores, read-backs, fences and locks. The recording is of instructions: a store shows the bytes
// that it changed; loads of the CQE are one 64-byte copy here, and stores to the program's ibv_wc are not simulated, so
// both are left out of the comparison.
#include <gtest/gtest.h>

#include "golden_harness.h"

namespace verbs::test {
namespace {

/// "store sq 0x8 00000000", "sfence", "lock", …: one line per event of a vector.
std::vector<std::string> expected(const Json& order) {
  std::vector<std::string> out;
  for (const Json& e : order) {
    const std::string op = e["op"];
    const std::string where = e.value("where", "");
    if (op == "locked instruction") out.push_back("lock");
    else if (op == "pthread_spin_unlock") out.push_back("unlock");
    else if (op == "sfence" || op == "lfence") out.push_back(op);
    else if (op == "store" && where != "ibv_wc" && where != "wc")
      out.push_back("store " + where + " " + e["offset"].get<std::string>() + " " + e["value"].get<std::string>());
    else if (op == "load" && (where == "sq" || where == "rq" || where == "srq"))
      out.push_back("load " + where + " " + e["offset"].get<std::string>());
  }
  return out;
}

std::string hex_number(std::uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

/// Region and offset of an address.
std::pair<std::string, std::uint64_t> locate(Bench& b, std::uint64_t at) {
  const mlx5::Qp& q = b.mqp();
  const auto inside = [at](const void* base, std::size_t n) { return at - reinterpret_cast<std::uint64_t>(base) < n; };
  const auto offset = [at](const void* base) { return at - reinterpret_cast<std::uint64_t>(base); };
  if (inside(q.sq.buf, std::size_t{q.sq.wqe_cnt} * 64)) return {"sq", offset(q.sq.buf)};
  if (inside(q.rq.buf, std::size_t{q.rq.wqe_cnt} << q.rq.wqe_shift)) return {"rq", offset(q.rq.buf)};
  if (b.srq != nullptr) {
    const mlx5::Srq& s = b.msrq();
    if (inside(s.buf, std::size_t{s.wqe_cnt} << s.wqe_shift)) return {"srq", offset(s.buf)};
    if (inside(s.dbr, 4)) return {"srq_dbr", offset(s.dbr)};
  }
  if (inside(q.dbr, 8)) return {"qp_dbr", offset(q.dbr)};
  if (inside(mlx5::cq_of(b.send_cq).dbr, 8)) return {"send_cq_dbr", offset(mlx5::cq_of(b.send_cq).dbr)};
  if (inside(mlx5::cq_of(b.recv_cq).dbr, 8)) return {"recv_cq_dbr", offset(mlx5::cq_of(b.recv_cq).dbr)};
  for (std::size_t i = 0; i < b.kernel.uar_pages.size(); ++i)
    if (at - b.kernel.uar_pages[i].v < 4096) return {"uar" + std::to_string(i), at - b.kernel.uar_pages[i].v};
  return {"elsewhere", at};
}

std::vector<std::string> recorded(Bench& b) {
  std::vector<std::string> out;
  for (const Recorder::Event& e : b.recorder.events) {
    const auto [where, offset] = locate(b, e.at);
    switch (e.kind) {
      case Recorder::Event::lock:
        out.push_back("lock");
        break;
      case Recorder::Event::unlock:
        out.push_back("unlock");
        break;
      case Recorder::Event::barrier: {
        const cpu::Instruction i = cpu::expand(cpu::Arch::x86_64, e.which);
        if (i == cpu::Instruction::sfence) out.push_back("sfence");
        if (i == cpu::Instruction::lfence) out.push_back("lfence");
        break;
      }
      case Recorder::Event::mmio:
      case Recorder::Event::store: {
        // Bytes that a store left as they were are not part of its line.
        std::size_t from = 0, to = e.n;
        if (e.kind == Recorder::Event::store)
          while (to > from && e.bytes[to - 1] == e.old[to - 1]) --to;
        if (e.kind == Recorder::Event::store)
          while (from < to && e.bytes[from] == e.old[from]) ++from;
        out.push_back("store " + where + " " + hex_number(offset + from) + " " + hex(e.bytes.data() + from, to - from));
        break;
      }
      case Recorder::Event::load:
        if (where == "sq" || where == "rq" || where == "srq") out.push_back("load " + where + " " + hex_number(offset));
        break;
    }
  }
  return out;
}

/// Equal, where ".." of the vector stands for stale bytes.
bool same(const std::string& got, const std::string& want) {
  if (got.size() != want.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (want[i] != '.' && got[i] != want[i]) return false;
  return true;
}

void act(Bench& b, const std::string& id) {
  Json wr{{"opcode", "SEND"},
          {"flags", {"SIGNALED"}},
          {"remote_addr", "0x4000001000"},
          {"rkey", "0x5b02"},
          {"sge", Json::array({{{"addr", "0x200000000"}, {"length", 64}, {"lkey", "0x1a01"}}})}};
  Json list = Json::array();
  const auto has = [&id](const char* s) { return id.find(s) != std::string::npos; };
  if (has("inline60") || has("inline16")) {
    wr["flags"].push_back("INLINE");
    wr["sge"][0]["length"] = has("inline60") ? 60 : 16;
  }
  if (has("-write")) wr["opcode"] = "RDMA_WRITE";
  if (has("-cas")) {
    wr["opcode"] = "ATOMIC_CMP_AND_SWP";
    wr["compare_add"] = "0x1111111122222222";
    wr["swap"] = "0x3333333344444444";
  }
  if (has("-local_inv")) {
    wr["opcode"] = "LOCAL_INV";
    wr["sge"] = Json::array();
    wr["invalidate_rkey"] = "0x2c01";
  }
  if (has("-refused"))
    while (wr["sge"].size() < 4) wr["sge"].push_back(wr["sge"][0]);
  list.push_back(wr);
  if (has("chain2")) list.push_back(wr);
  SendChain chain(b, list);
  ibv_send_wr* bad = nullptr;
  ibv_recv_wr* bad_recv = nullptr;
  ibv_sge sge{0x200000000, 64, 0x1a01};
  ibv_recv_wr recv{1, nullptr, &sge, 1};
  ibv_wc wc[2] = {};
  b.recorder.on = true;
  if (id.starts_with("H-post_send")) {
    ::ibv_post_send(b.qp, chain.first(), &bad);
  } else if (id == "H-wr-send") {
    ibv_qp_ex* q = ibv_qp_to_qp_ex(b.qp);
    ibv_wr_start(q);
    q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(q);
    ibv_wr_set_sge(q, 0x1a01, 0x200000000, 64);
    ibv_wr_complete(q);
  } else if (id == "H-post_recv") {
    ::ibv_post_recv(b.qp, &recv, &bad_recv);
  } else if (id == "H-post_srq_recv") {
    ibv_post_srq_recv(b.srq, &recv, &bad_recv);
  } else if (id == "H-arm") {
    ::ibv_req_notify_cq(b.send_cq, 0);
  } else if (id == "H-ex-poll") {
    auto* q = reinterpret_cast<ibv_cq_ex*>(b.send_cq);
    ibv_poll_cq_attr attr{};
    ibv_start_poll(q, &attr);
    ibv_next_poll(q);
    ibv_end_poll(q);
  } else {
    ::ibv_poll_cq(id == "H-poll-recv" ? b.recv_cq : b.send_cq, id == "H-poll-req2" ? 2 : 1, wc);
  }
  b.recorder.on = false;
}

TEST(Golden, OrderOfStoresAndFences) {
  replay_group("H", [](Bench& b, const Json& c) {
    const std::string id = c["id"];
    b.qp = b.make_qp(c["setup"]["qp"]);
    b.to_state(b.qp, "RTS");
    const bool polls = id.find("poll") != std::string::npos;
    if (polls) {
      b.post_plain_sends(id == "H-poll-req2" ? 2 : 1, true, false);
      ibv_recv_wr recv{};
      ibv_recv_wr* bad = nullptr;
      ::ibv_post_recv(b.qp, &recv, &bad);
    }
    b.poison();
    mlx5_cqe64 cqe{};
    for (std::uint32_t i = 0; i < (id == "H-poll-req2" ? 2U : 1U) && polls && id != "H-poll-empty"; ++i) {
      cqe.sop_drop_qpn = mlx5::be32(0x0a000123);
      cqe.wqe_counter = mlx5::be16(static_cast<std::uint16_t>(i));
      cqe.op_own = id == "H-poll-recv" ? MLX5_CQE_RESP_SEND << 4 : 0;
      b.write_cqe(id == "H-poll-recv" ? b.recv_cq : b.send_cq, i,
                  hex(reinterpret_cast<const std::byte*>(&cqe), sizeof cqe));
    }
    act(b, id);
    const std::vector<std::string> got = recorded(b), want = expected(c["order"]);
    for (std::size_t i = 0; i < std::max(got.size(), want.size()); ++i) {
      const std::string g = i < got.size() ? got[i] : "nothing", w = i < want.size() ? want[i] : "nothing";
      if (!same(g, w)) return b.problem("event " + std::to_string(i) + ": got \"" + g + "\", want \"" + w + "\"");
    }
  });
}

}  // namespace
}  // namespace verbs::test
