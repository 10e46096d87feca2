// SPDX-License-Identifier: Apache-2.0
// Groups F and G: arming, completion events, polling of every kind of CQE, and cleaning of a CQ.
#include <gtest/gtest.h>

#include <cstring>

#include "golden_harness.h"

namespace verbs::test {
namespace {

void make_cqs(Bench& b, const Json& setup) {
  const int entries = setup.value("cq_entries", 16) - 1;
  b.send_cq = ibv_create_cq(b.context, entries, reinterpret_cast<void*>(0x77), nullptr, 0);
}

/// Consumes `n` CQEs of an opcode that needs no QP.
void poll_cqes(Bench& b, unsigned n) {
  mlx5::Cq& cq = mlx5::cq_of(b.send_cq);
  if (n > 1000) {
    cq.cons_index = n;
    return;
  }
  for (unsigned i = 0; i < n; ++i) {
    b.settle();
    cq.buf[(std::size_t{i & (cq.entries - 1)} + 1) * 64 - 1] =
        static_cast<std::byte>(0x70 | ((i & cq.entries) != 0 ? 1 : 0));
    ibv_wc wc{};
    b.equal(::ibv_poll_cq(b.send_cq, 1, &wc), 1, "preparing poll");
  }
}

void take_events(Bench& b, unsigned n) {
  ibv_comp_channel* channel = ibv_create_comp_channel(b.context);
  const auto handle = reinterpret_cast<std::uint64_t>(b.send_cq);
  for (unsigned i = 0; i < n; ++i) {
    std::vector<std::byte> record(8);
    std::memcpy(record.data(), &handle, 8);
    b.kernel.channel.push_back(record);
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    b.expect(ibv_get_cq_event(channel, &cq, &cq_context) == 0 && cq == b.send_cq &&
                 cq_context == reinterpret_cast<void*>(0x77),
             "event");
  }
  ibv_destroy_comp_channel(channel);
}

void event_read(Bench& b) {
  make_cqs(b, Json::object());
  take_events(b, 1);
  ibv_comp_channel* channel = ibv_create_comp_channel(b.context);
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  errno = 0;
  b.kernel.channel.push_back(std::vector<std::byte>(4));
  b.expect(ibv_get_cq_event(channel, &cq, &cq_context) == -1 && errno == 0, "short record");
  b.expect(ibv_get_cq_event(channel, &cq, &cq_context) == -1 && errno == 0, "end of file");
  ibv_destroy_comp_channel(channel);
}

TEST(Golden, ArmAndEvents) {
  replay_group("F", [](Bench& b, const Json& c) {
    if (c["call"]["verb"] == "ibv_get_cq_event") return event_read(b);
    make_cqs(b, c["setup"]);
    bool empty_poll = false;
    for (const Json& j : c["setup"].value("pre", Json::array())) {
      const std::string step = j;
      if (step.find("CQEs polled") != std::string::npos)
        poll_cqes(b, static_cast<unsigned>(std::stoul(step, nullptr, 0)));
      else if (step.find("events taken") != std::string::npos) take_events(b, static_cast<unsigned>(std::stoul(step)));
      else if (step.find("armed once before") == 0) ::ibv_req_notify_cq(b.send_cq, 0);
      else if (step.find("one empty poll") == 0) empty_poll = true;
      else b.problem("unknown set-up step: " + step);
    }
    b.poison();
    b.recorder.on = true;
    ibv_wc wc{};
    if (empty_poll) b.equal(::ibv_poll_cq(b.send_cq, 1, &wc), 0, "empty poll");
    b.equal(::ibv_req_notify_cq(b.send_cq, c["call"].value("solicited_only", 0)), c["result"].value("ret", 0),
            "return value");
    b.recorder.on = false;
    b.check_written(c["written"]);
  });
}

template <class T>
std::string shown(T v, T poison) {
  return v == poison ? "untouched" : std::to_string(v);
}

void check_wc(Bench& b, const Json& want, const ibv_wc& wc) {
  ibv_wc p;
  std::memset(&p, std::to_integer<int>(kPoison), sizeof p);
  const auto field = [&](const char* name, std::uint64_t got, std::uint64_t poison) {
    const Json& w = want[name];
    const std::string text = w == "untouched" ? "untouched" : std::to_string(number(w));
    const std::string seen = got == poison ? "untouched" : std::to_string(got);
    b.expect(seen == text, std::string("wc.") + name + ": got " + seen + ", want " + text);
  };
  field("wr_id", wc.wr_id, p.wr_id);
  field("status", static_cast<std::uint32_t>(wc.status), static_cast<std::uint32_t>(p.status));
  field("opcode", static_cast<std::uint32_t>(wc.opcode), static_cast<std::uint32_t>(p.opcode));
  field("vendor_err", wc.vendor_err, p.vendor_err);
  field("byte_len", wc.byte_len, p.byte_len);
  field("qp_num", wc.qp_num, p.qp_num);
  field("src_qp", wc.src_qp, p.src_qp);
  field("wc_flags", wc.wc_flags, p.wc_flags);
  field("pkey_index", wc.pkey_index, p.pkey_index);
  field("slid", wc.slid, p.slid);
  field("sl", wc.sl, p.sl);
  field("dlid_path_bits", wc.dlid_path_bits, p.dlid_path_bits);
  const std::string imm = hex(reinterpret_cast<const std::byte*>(&wc.imm_data), 4);
  const std::string want_imm = want["imm_data_or_inv_rkey"];
  b.expect(imm == (want_imm == "untouched" ? hex(reinterpret_cast<const std::byte*>(&p.imm_data), 4) : want_imm),
           "wc.imm_data " + imm);
}

/// Accepted posts from now on, as the vectors count free slots.
void check_free_slots(Bench& b, const Json& result) {
  b.machine.state.tap = nullptr;
  if (result.contains("send_posts_accepted_after")) {
    int n = 0;
    for (;; ++n) {
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_SEND;
      ibv_send_wr* bad = nullptr;
      if (::ibv_post_send(b.qp, &wr, &bad) != 0) break;
    }
    b.equal(n, result["send_posts_accepted_after"].get<int>(), "send posts accepted");
  }
  if (result.contains("recv_posts_accepted_after")) {
    int n = 0;
    for (;; ++n) {
      ibv_recv_wr wr{};
      ibv_recv_wr* bad = nullptr;
      if (::ibv_post_recv(b.qp, &wr, &bad) != 0) break;
    }
    b.equal(n, result["recv_posts_accepted_after"].get<int>(), "receive posts accepted");
  }
  b.machine.state.tap = &b.recorder;
}

/// Scatter lists of the READs and atomics of the inline vectors; the vectors tell them only by their effect.
void inline_scatter_lists(Bench& b, const std::string& id) {
  const auto sge = [](const char* addr, int n) {
    return Json{{"addr", addr}, {"length", n}, {"lkey", "0x1a01"}, {"local", true}};
  };
  Json list = Json::array({sge("0x200000000", 64)});
  if (id == "G-inl32-read-32-2sge") list = {sge("0x200000000", 8), sge("0x200001000", 64)};
  if (id == "G-inl32-read-too-small") list = {sge("0x200000000", 8)};
  if (id == "G-inl32-read-wrap") list = {sge("0x200000000", 8), sge("0x200001000", 8), sge("0x200000000", 64)};
  for (const char* op : {"RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD"}) b.setup_sges[op] = list;
}

void check_memory(Bench& b, const Json& written) {
  b.check_region(b.mr, 64, written.value("mem_0x200000000", Json::array()), "memory at 0x200000000");
  b.check_region(b.mr + 4096, 64, written.value("mem_0x200001000", Json::array()), "memory at 0x200001000");
}

ibv_cq* cq_named(Bench& b, const Json& call) { return call["cq"] == "send_cq" ? b.send_cq : b.recv_cq; }

void prepare(Bench& b, const Json& c) {
  Json q = c["setup"]["qp"];
  q["cq_entries"] = c["setup"]["granted"].value("cq_entries", 16) - 1;
  b.qp = b.make_qp(q);
  if (b.qp == nullptr) return b.problem("the QP is refused");
  b.to_state(b.qp, "RTS");
  inline_scatter_lists(b, c["id"]);
  for (const Json& step : c["setup"].value("pre", Json::array())) {
    b.run_setup_step(step);
    // The recording advanced the rings by whole laps of completions, and the CQ with them.
    const std::string s = step;
    if (s.starts_with("advanced by ")) {
      mlx5::Cq& cq = mlx5::cq_of(b.send_cq);
      cq.cons_index += c["id"] == "G-inl32-read-wrap" ? 16 : 1;
      cq.buf[cq.cqe_size - 1] = std::byte{0};
    }
  }
  b.settle();
  std::memset(b.mr, std::to_integer<int>(kPoison), 8192);
  for (ibv_cq* cq : {b.send_cq, b.recv_cq}) std::memset(mlx5::cq_of(cq).dbr, std::to_integer<int>(kPoison), 8);
  for (const Json& cqe : c["call"].value("cqes", Json::array())) {
    ibv_cq* cq = cq_named(b, c["call"]);
    b.write_cqe(cq, cqe["slot"].get<std::uint32_t>(), cqe["hex"]);
    // 128-byte CQEs: the first half holds the data of the 64-byte format.
    if (mlx5::cq_of(cq).cqe_size == 128 && cqe["format"] == 2) {
      const std::vector<std::byte> data = unhex(
          "b0b3b6b9bcbfa2a5a8abae9194979a9d808386898c8ff2f5f8fbfee1e4e7eaed"
          "d0d3d6d9dcdfc2c5c8cbce3134373a3d202326292c2f1215181b1e0104070a0d");
      std::memcpy(mlx5::cq_of(cq).buf + cqe["slot"].get<std::size_t>() * 128, data.data(), data.size());
    }
  }
}

void check_ci(Bench& b, const Json& written) {
  b.settle();
  for (const auto& [cq, key] : {std::pair{b.send_cq, "send_cq_dbr"}, std::pair{b.recv_cq, "recv_cq_dbr"}}) {
    if (cq == b.send_cq && std::string(key) == "recv_cq_dbr") continue;
    const Json line = written.contains(key) ? Json::array({{{"offset", 0}, {"bytes", written[key]}}}) : Json::array();
    b.check_region(reinterpret_cast<const std::byte*>(mlx5::cq_of(cq).dbr), 8, line, key);
  }
}

void poll(Bench& b, const Json& c) {
  prepare(b, c);
  if (b.qp == nullptr) return;
  const int n = c["call"]["num_entries"];
  std::vector<ibv_wc> wc(static_cast<std::size_t>(std::max(n, 1)));
  std::memset(static_cast<void*>(wc.data()), std::to_integer<int>(kPoison), wc.size() * sizeof wc[0]);
  b.equal(::ibv_poll_cq(cq_named(b, c["call"]), n, wc.data()), c["result"]["ret"].get<int>(), "return value");
  check_ci(b, c["written"]);
  check_memory(b, c["written"]);
  const Json list = c["written"].value("wc", Json::array());
  for (std::size_t i = 0; i < list.size() && i < wc.size(); ++i) {
    if (list[i].is_string()) {
      const std::vector<std::byte> untouched(sizeof wc[i], kPoison);
      b.expect(std::memcmp(&wc[i], untouched.data(), sizeof wc[i]) == 0, "wc " + std::to_string(i) + " was written");
    } else {
      check_wc(b, list[i], wc[i]);
    }
  }
  const Json links = c["result"].value("srq_next_wqe_index_after", Json::array());
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    std::uint16_t next;
    std::memcpy(&next, b.msrq().wqe(i) + 2, sizeof next);
    b.equal(std::uint32_t{mlx5::be16(next)}, links[i].get<std::uint32_t>(), "link of WQE " + std::to_string(i));
  }
  check_free_slots(b, c["result"]);
}

void check_ex_fields(Bench& b, const Json& w, ibv_cq_ex* q) {
  const auto field = [&](const char* name, std::uint64_t got) {
    b.expect(got == number(w[name]),
             std::string(name) + ": got " + std::to_string(got) + ", want " + std::to_string(number(w[name])));
  };
  field("wr_id", q->wr_id);
  field("status", q->status);
  field("opcode", ibv_wc_read_opcode(q));
  field("vendor_err", ibv_wc_read_vendor_err(q));
  field("byte_len", ibv_wc_read_byte_len(q));
  const std::uint32_t imm = ibv_wc_read_imm_data(q);
  b.expect(hex(reinterpret_cast<const std::byte*>(&imm), 4) == w["imm_data_be"], "imm_data");
  field("qp_num", ibv_wc_read_qp_num(q));
  field("src_qp", ibv_wc_read_src_qp(q));
  field("wc_flags", ibv_wc_read_wc_flags(q));
  field("slid", ibv_wc_read_slid(q));
  field("sl", ibv_wc_read_sl(q));
  field("dlid_path_bits", ibv_wc_read_dlid_path_bits(q));
  field("completion_ts", ibv_wc_read_completion_ts(q));
  field("cvlan", ibv_wc_read_cvlan(q));
  field("flow_tag", ibv_wc_read_flow_tag(q));
}

void poll_ex(Bench& b, const Json& c) {
  prepare(b, c);
  if (b.qp == nullptr) return;
  auto* q = reinterpret_cast<ibv_cq_ex*>(cq_named(b, c["call"]));
  ibv_poll_cq_attr attr{};
  for (const Json& s : c["result"]["sequence"]) {
    int ret = 0;
    if (s["call"] == "ibv_start_poll") ret = ibv_start_poll(q, &attr);
    else if (s["call"] == "ibv_next_poll") ret = ibv_next_poll(q);
    else ibv_end_poll(q);
    if (s.contains("ret")) b.equal(ret, s["ret"].get<int>(), s["call"]);
    if (s.contains("wr_id")) check_ex_fields(b, s, q);
    b.settle();
    const auto* dbr = reinterpret_cast<const std::byte*>(mlx5::cq_of(ibv_cq_ex_to_cq(q)).dbr);
    const std::string ci = hex(dbr, 4), want = s["ci_dbr"];
    b.expect(want == "untouched" ? ci == hex(std::vector<std::byte>(4, kPoison).data(), 4) : ci == want,
             "CI record after " + s["call"].get<std::string>());
    std::memset(mlx5::cq_of(ibv_cq_ex_to_cq(q)).dbr, std::to_integer<int>(kPoison), 4);
  }
  check_memory(b, c["written"]);
  check_free_slots(b, c["result"]);
}

void clean(Bench& b, const Json& c) {
  Json q = c["setup"]["qp"];
  q["cq_entries"] = 7;
  b.qp = b.make_qp(q);
  b.other_qp = b.make_qp(q);
  b.to_state(b.qp, "RTS");
  b.to_state(b.other_qp, "RTS");
  mlx5::Cq& cq = mlx5::cq_of(b.send_cq);
  b.settle();
  // Six CQEs of the other QP were consumed before: what the first lap left behind.
  mlx5_cqe64 old{};
  old.srqn_uidx = mlx5::be32(1);
  old.sop_drop_qpn = mlx5::be32(0x0a000124);
  for (std::uint32_t i = 0; i < 6; ++i)
    b.write_cqe(b.send_cq, i, hex(reinterpret_cast<const std::byte*>(&old), sizeof old));
  cq.cons_index = 6;
  for (const Json& cqe : c["call"]["cqes"]) b.write_cqe(b.send_cq, cqe["slot"].get<std::uint32_t>(), cqe["hex"]);
  std::memset(cq.dbr, std::to_integer<int>(kPoison), 8);
  if (c["call"]["verb"] == "ibv_destroy_qp") {
    b.equal(ibv_destroy_qp(b.qp), 0, "destroy");
    b.qp = b.other_qp;
    b.other_qp = nullptr;
  } else {
    b.modify(b.qp, IBV_QPS_RESET);
  }
  check_ci(b, c["written"]);
  for (const Json& s : c["result"]["cq_slots_after"]) {
    const std::byte* at = cq.buf + s["slot"].get<std::size_t>() * 64;
    const std::string got = hex(at + 32, 4) + " " + hex(at + 56, 4) + " " + hex(at + 60, 2) + " " + hex(at + 63, 1);
    b.expect(got == s["uidx_qpn_wqe_op_own"],
             "slot " + s["slot"].dump() + ": got " + got + ", want " + s["uidx_qpn_wqe_op_own"].get<std::string>());
  }
  ibv_wc wc[8] = {};
  b.equal(::ibv_poll_cq(b.send_cq, 8, wc), c["result"]["poll_after"].get<int>(), "polled afterwards");
}

void quoted_dump(Bench& b, const Json& c) {
  // Six QPs with user indexes 0 to 5 share the CQ.
  Json q{{"send_cq==recv_cq", "yes"}, {"cq_entries", 15}};
  std::vector<ibv_qp*> qps;
  for (int i = 0; i < 6; ++i) qps.push_back(b.make_qp(q));
  b.settle();
  const std::string tail = c["call"]["cqe_last_32_bytes"];
  mlx5::Cq& cq = mlx5::cq_of(b.send_cq);
  std::string all = std::string(64, '0') + tail;
  if ((unhex(tail).back() & std::byte{1}) != std::byte{0}) cq.cons_index = cq.entries;  // the dump is of an odd lap
  b.write_cqe(b.send_cq, 0, all);
  ibv_wc wc;
  std::memset(static_cast<void*>(&wc), std::to_integer<int>(kPoison), sizeof wc);
  b.equal(::ibv_poll_cq(b.send_cq, 1, &wc), c["result"]["ret"].get<int>(), "return value");
  std::memset(&wc.wr_id, std::to_integer<int>(kPoison), sizeof wc.wr_id);  // not recorded
  check_wc(b, c["written"]["wc"][0], wc);
  for (ibv_qp* made : qps) ibv_destroy_qp(made);
}

// Three CQEs wait in a ring of eight when it is resized.
void resize(Bench& b, const Json& c) {
  Json q = c["setup"]["qp"];
  q["cq_entries"] = 7;
  b.qp = b.make_qp(q);
  b.to_state(b.qp, "RTS");
  b.post_plain_sends(3, true, false);
  b.settle();
  mlx5::Cq& cq = mlx5::cq_of(b.send_cq);
  for (std::uint16_t i = 0; i < 3; ++i) {
    mlx5_cqe64 cqe{};
    cqe.sop_drop_qpn = mlx5::be32(0x0a000123);
    cqe.wqe_counter = mlx5::be16(i);
    b.write_cqe(b.send_cq, i, hex(reinterpret_cast<const std::byte*>(&cqe), sizeof cqe));
  }
  b.kernel.resize_marker = cq.buf + 4 * 64 - 1;
  const Json& r = c["result"];
  const std::size_t before = b.kernel.commands.size();
  b.equal(ibv_resize_cq(b.send_cq, c["call"]["cqe"]), r["ret"].get<int>(), "return value");
  b.equal(b.kernel.commands.size() - before, r["kernel_commands"].get<std::size_t>(), "kernel commands");
  b.equal(b.send_cq->cqe, r["cq_cqe"].get<int>(), "cqe");
  b.settle();
  if (r.contains("cqe_in_command")) {
    b.equal(b.kernel.resize.cqe, r["cqe_in_command"].get<std::uint32_t>(), "cqe in command");
    b.equal(b.kernel.resize.driver.cqe_size, r["cqe_size"].get<std::uint16_t>(), "cqe_size");
    std::size_t slot = 0;
    for (const Json& want : r["new_ring_wqe_counter_op_own"]) {
      const std::byte* at = cq.buf + slot++ * 64;
      const std::string got = hex(at + 60, 2) + " " + hex(at + 63, 1);
      b.expect(got == want, "slot " + std::to_string(slot - 1) + ": got " + got + ", want " + want.get<std::string>());
    }
  }
  ibv_wc wc[8] = {};
  b.equal(::ibv_poll_cq(b.send_cq, 8, wc), r["poll_after"].get<int>(), "polled afterwards");
  b.settle();
  const std::string ci = hex(reinterpret_cast<const std::byte*>(cq.dbr), 4);
  b.expect(ci == r["ci_dbr_after_poll"], "CI record " + ci);
}

TEST(Golden, PollCq) {
  replay_group("G", [](Bench& b, const Json& c) {
    const std::string verb = c["call"]["verb"];
    if (c["call"].contains("cqe_last_32_bytes")) quoted_dump(b, c);
    else if (verb == "ibv_resize_cq") resize(b, c);
    else if (c["call"].contains("what")) clean(b, c);
    else if (verb == "ibv_poll_cq") poll(b, c);
    else if (verb == "ibv_start_poll") {
      prepare(b, c);
      ibv_poll_cq_attr attr{1};
      b.equal(ibv_start_poll(reinterpret_cast<ibv_cq_ex*>(b.send_cq), &attr), c["result"]["ret"].get<int>(),
              "return value");
    } else if (verb.starts_with("ibv_start_poll/")) poll_ex(b, c);
    else b.problem("unknown call " + verb);
  });
}

}  // namespace
}  // namespace verbs::test
