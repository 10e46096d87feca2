// SPDX-License-Identifier: Apache-2.0
// Group E: granted capabilities, ring sizes, what the create commands carry, initial ring contents, errno.
#include <gtest/gtest.h>

#include <algorithm>

#include "golden_harness.h"

namespace verbs::test {
namespace {

void check_cap(Bench& b, const Json& want, const ibv_qp_cap& got, const char* what) {
  const auto field = [&](const char* name, std::uint32_t v) {
    if (want.contains(name)) b.equal(std::uint64_t{v}, number(want[name]), std::string(what) + " " + name);
  };
  field("max_send_wr", got.max_send_wr);
  field("max_send_sge", got.max_send_sge);
  field("max_recv_wr", got.max_recv_wr);
  field("max_recv_sge", got.max_recv_sge);
  field("max_inline_data", got.max_inline_data);
}

void qp_case(Bench& b, const Json& c) {
  Json q = c["call"];
  if (c["id"] == "E-type-unknown") q["qp_type"] = "RC";
  b.send_cq = b.recv_cq = ibv_create_cq(b.context, 15, nullptr, nullptr, 0);
  if (c["id"].get<std::string>().starts_with("E-rc-sig")) b.machine.state.env["MLX5_QP_SIGNATURE"] = "1";
  if (c["id"] == "E-rc-noscat") b.machine.state.env["MLX5_SCATTER_TO_CQE"] = "0";
  const std::size_t before = b.kernel.commands.size() + (q.contains("srq") ? 1 : 0);  // the SRQ's own command
  errno = 0;
  if (c["id"] == "E-type-unknown") {
    ibv_qp_init_attr a{};
    a.qp_type = static_cast<ibv_qp_type>(77);
    a.send_cq = a.recv_cq = b.send_cq;
    a.cap = {16, 4, 1, 1, 0};
    b.qp = ibv_create_qp(b.pd, &a);
  } else {
    b.qp = b.make_qp(q);
  }
  const Json& r = c["result"];
  const int error = errno;
  b.equal(b.kernel.commands.size() - before, r["kernel_commands"].get<std::size_t>(), "kernel commands");
  b.expect((b.qp != nullptr) == (r["result"] == "ok"), "result");
  if (b.qp == nullptr) return b.equal(error, r["errno"].get<int>(), "errno");

  check_cap(b, r["granted"], b.granted, "granted");
  check_cap(b, r["caps_in_create_command"], b.kernel.qp_caps, "in command");
  const mlx5_ib_create_qp& d = b.kernel.qp_driver;
  const Json& u = r["create_udata"];
  b.equal(d.sq_wqe_count, u["sq_wqe_count"].get<std::uint32_t>(), "sq_wqe_count");
  b.equal(d.rq_wqe_count, u["rq_wqe_count"].get<std::uint32_t>(), "rq_wqe_count");
  b.equal(d.rq_wqe_shift, u["rq_wqe_shift"].get<std::uint32_t>(), "rq_wqe_shift");
  b.equal(std::uint64_t{d.flags}, number(u["flags"]), "flags");
  b.equal(std::uint64_t{d.uidx}, number(u["uidx"]), "uidx");
  b.expect(d.db_addr % 64 == 0 && d.buf_addr % 4096 == 0, "alignment of buffer and record");
  mlx5::Qp& qp = b.mqp();
  b.equal(qp.buf + r["sq_offset"].get<std::size_t>() == qp.sq.buf, true, "sq_offset");
  const std::size_t bytes = r["buf_bytes"];
  b.expect(std::all_of(qp.buf, qp.buf + bytes, [](std::byte x) { return x == std::byte{0}; }), "initial ring");
  b.equal(std::uint64_t{*reinterpret_cast<std::uint64_t*>(qp.dbr)}, std::uint64_t{0}, "initial record");
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ibv_query_qp(b.qp, &attr, IBV_QP_CAP, &init);
  check_cap(b, r["query_qp_init_attr_provider_fields"], init.cap, "query");
  if (!r.contains("recv_posts_accepted")) return;
  b.machine.state.tap = nullptr;
  b.modify(b.qp, IBV_QPS_INIT);
  std::uint32_t posts = 0;
  for (ibv_recv_wr* bad = nullptr;; ++posts) {
    ibv_recv_wr wr{};
    if (::ibv_post_recv(b.qp, &wr, &bad) != 0) break;
  }
  b.equal(posts, r["recv_posts_accepted"].get<std::uint32_t>(), "receives accepted");
}

void check_read_functions(Bench& b, const Json& list, const ibv_cq_ex& q) {
  const std::map<std::string, bool> got{{"opcode", q.read_opcode != nullptr},
                                        {"vendor_err", q.read_vendor_err != nullptr},
                                        {"wc_flags", q.read_wc_flags != nullptr},
                                        {"byte_len", q.read_byte_len != nullptr},
                                        {"imm_data", q.read_imm_data != nullptr},
                                        {"qp_num", q.read_qp_num != nullptr},
                                        {"src_qp", q.read_src_qp != nullptr},
                                        {"slid", q.read_slid != nullptr},
                                        {"sl", q.read_sl != nullptr},
                                        {"dlid_path_bits", q.read_dlid_path_bits != nullptr},
                                        {"completion_ts", q.read_completion_ts != nullptr},
                                        {"cvlan", q.read_cvlan != nullptr},
                                        {"flow_tag", q.read_flow_tag != nullptr},
                                        {"wallclock", q.read_completion_wallclock_ns != nullptr}};
  for (const Json& f : list) b.expect(got.at(f[0]) == f[1].get<bool>(), "read function " + f[0].get<std::string>());
}

void cq_case(Bench& b, const Json& c) {
  const Json& call = c["call"];
  const Json& r = c["result"];
  if (call.contains("env MLX5_CQE_SIZE"))
    b.machine.state.env["MLX5_CQE_SIZE"] = std::to_string(number(call["env MLX5_CQE_SIZE"]));
  const std::size_t before = b.kernel.commands.size();
  errno = 0;
  if (call["verb"] == "ibv_create_cq_ex") {
    ibv_cq_init_attr_ex a{};
    a.cqe = static_cast<std::uint32_t>(call["cqe"].get<std::int64_t>());
    a.wc_flags = number(call["wc_flags"]);
    a.comp_mask = static_cast<std::uint32_t>(number(call["comp_mask"]));
    a.flags = static_cast<std::uint32_t>(number(call["flags"]));
    b.send_cq = ibv_cq_ex_to_cq(::ibv_create_cq_ex(b.context, &a));
  } else {
    b.send_cq = ibv_create_cq(b.context, call["cqe"].get<int>(), nullptr, nullptr, 0);
  }
  const int error = errno;
  b.equal(b.kernel.commands.size() - before, r["kernel_commands"].get<std::size_t>(), "kernel commands");
  b.expect((b.send_cq != nullptr) == (r["result"] == "ok"), "result");
  if (b.send_cq == nullptr) return b.equal(error, r["errno"].get<int>(), "errno");
  mlx5::Cq& cq = mlx5::cq_of(b.send_cq);
  b.equal(b.send_cq->cqe, r["cq_cqe"].get<int>(), "cqe");
  b.equal(std::uint64_t{b.kernel.cq_request.cqe}, number(r["cqe_in_create_command"]), "cqe in command");
  b.equal(b.kernel.cq_driver.cqe_size, r["cqe_size"].get<std::uint32_t>(), "cqe_size");
  const std::size_t bytes = r["buf_bytes"];
  b.equal(std::size_t{cq.entries} * cq.cqe_size, bytes, "ring bytes");
  b.expect(b.kernel.cq_driver.db_addr % 64 == 0, "alignment of the record");
  for (std::size_t i = 0; i < bytes; ++i)
    if (cq.buf[i] != ((i + 1) % cq.cqe_size == 0 ? std::byte{0xf0} : std::byte{0}))
      return b.problem("initial ring at " + std::to_string(i));
  if (r.contains("read_functions_set")) check_read_functions(b, r["read_functions_set"], cq.base.cq_ex);
}

void srq_case(Bench& b, const Json& c) {
  ibv_srq_init_attr init{};
  init.attr = {c["call"]["max_wr"].get<std::uint32_t>(), c["call"]["max_sge"].get<std::uint32_t>(), 0};
  const std::size_t before = b.kernel.commands.size();
  errno = 0;
  b.srq = ibv_create_srq(b.pd, &init);
  const int error = errno;
  const Json& r = c["result"];
  b.equal(b.kernel.commands.size() - before, r["kernel_commands"].get<std::size_t>(), "kernel commands");
  b.expect((b.srq != nullptr) == (r["result"] == "ok"), "result");
  if (b.srq == nullptr) return b.equal(error, r["errno"].get<int>(), "errno");
  b.equal(init.attr.max_wr, r["granted"]["max_wr"].get<std::uint32_t>(), "granted max_wr");
  b.equal(init.attr.max_sge, r["granted"]["max_sge"].get<std::uint32_t>(), "granted max_sge");
  b.equal(b.kernel.srq_request.max_wr, r["create_command"]["max_wr"].get<std::uint32_t>(), "max_wr in command");
  b.equal(b.kernel.srq_request.max_sge, r["create_command"]["max_sge"].get<std::uint32_t>(), "max_sge in command");
  b.equal(std::uint64_t{b.kernel.srq_driver.flags}, number(r["create_command"]["udata_flags"]), "flags");
  b.equal(b.kernel.srq_driver.uidx, r["create_command"]["uidx"].get<std::uint32_t>(), "uidx");
  mlx5::Srq& srq = b.msrq();
  b.equal(1U << srq.wqe_shift, r["wqe_bytes"].get<std::uint32_t>(), "WQE bytes");
  b.equal(srq.wqe_cnt, r["buf_wqes"].get<std::uint32_t>(), "WQEs");
  const Json links = r.value("initial_next_wqe_index", Json::array());
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    std::uint16_t next;
    std::memcpy(&next, srq.wqe(i) + 2, 2);
    b.equal(std::uint32_t{mlx5::be16(next)}, links[i].get<std::uint32_t>(), "link of WQE " + std::to_string(i));
  }
  b.expect(hex(reinterpret_cast<const std::byte*>(srq.dbr), 4) == r.value("initial_dbr", "00000000"), "initial record");
  b.machine.state.tap = nullptr;
  std::uint32_t posts = 0;
  for (ibv_recv_wr* bad = nullptr;; ++posts) {
    ibv_recv_wr wr{};
    if (ibv_post_srq_recv(b.srq, &wr, &bad) != 0) break;
  }
  b.settle();
  b.equal(posts, r["posts_accepted"].get<std::uint32_t>(), "receives accepted");
  b.expect(hex(reinterpret_cast<const std::byte*>(srq.dbr), 4) == r["dbr_after_posts"], "record after the posts");
}

TEST(Golden, Sizes) {
  replay_group("E", [](Bench& b, const Json& c) {
    const std::string verb = c["call"]["verb"];
    if (verb.starts_with("ibv_create_qp")) qp_case(b, c);
    else if (verb.starts_with("ibv_create_cq")) cq_case(b, c);
    else if (verb == "ibv_create_srq") srq_case(b, c);
    else b.problem("not built: " + verb);
  });
}

}  // namespace
}  // namespace verbs::test
