// SPDX-License-Identifier: Apache-2.0
// Recorder, byte comparison, WR chains and the loop over the cases of the golden vectors.
#include "golden_harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

namespace verbs::test {

std::uint64_t number(const Json& v) {
  return v.is_string() ? std::stoull(v.get<std::string>(), nullptr, 0) : v.get<std::uint64_t>();
}

std::vector<std::byte> unhex(const std::string& text) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned v = 0;
    std::from_chars(text.data() + i, text.data() + i + 2, v, 16);
    out.push_back(static_cast<std::byte>(v));
  }
  return out;
}

std::string hex(const std::byte* p, std::size_t n) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string s;
  for (std::size_t i = 0; i < n; ++i) {
    s += kDigits[std::to_integer<unsigned>(p[i]) >> 4];
    s += kDigits[std::to_integer<unsigned>(p[i]) & 15];
  }
  return s;
}

// Recorder ------------------------------------------------------------------------------------------------------------

void Recorder::on_store(const void* at, const void* bytes, std::size_t n) {
  const auto* b = static_cast<const std::byte*>(bytes);
  const auto address = reinterpret_cast<std::uint64_t>(at);
  Event e{Event::store, address, {b, b + n}, {}, n, {}};
  for (std::size_t i = 0; i < n; ++i) {
    const auto it = shadow.find(address + i);
    e.old.push_back(it != shadow.end() ? it->second : kPoison);
    shadow[address + i] = b[i];
  }
  if (on) events.push_back(std::move(e));
}
void Recorder::on_load(const void* at, std::size_t n) {
  if (on) events.push_back({Event::load, reinterpret_cast<std::uint64_t>(at), {}, {}, n, {}});
}
void Recorder::on_mmio_store(memory::Va at, std::uint64_t bytes) {
  Event e{Event::mmio, at.v, std::vector<std::byte>(8), {}, 8, {}};
  std::memcpy(e.bytes.data(), &bytes, 8);
  if (on) events.push_back(std::move(e));
}
void Recorder::on_barrier(cpu::Barrier b) {
  if (on) events.push_back({Event::barrier, 0, {}, {}, 0, b});
}
void Recorder::on_lock() {
  if (on) events.push_back({Event::lock, 0, {}, {}, 0, {}});
}
void Recorder::on_unlock() {
  if (on) events.push_back({Event::unlock, 0, {}, {}, 0, {}});
}

// Comparison ----------------------------------------------------------------------------------------------------------

namespace {

/// Compares with one line of a vector. `stale` = what ".." must be.
std::string compare(const std::byte* got, const std::string& pattern, const std::byte* stale, bool written_known,
                    const std::uint8_t* written) {
  std::string p;
  for (const char c : pattern)
    if (c != ' ') p += c;
  for (std::size_t i = 0; i * 2 < p.size(); ++i) {
    const std::string two = p.substr(2 * i, 2);
    const bool was_written = written_known ? written[i] != 0 : got[i] != kPoison;
    bool ok = false;
    if (two == "--") ok = written_known ? !was_written : got[i] == kPoison;
    else if (two == "..") ok = was_written && got[i] == stale[0];
    else if (two == "??") ok = true;
    else ok = (!written_known || was_written) && hex(got + i, 1) == two;
    if (!ok) return "byte " + std::to_string(i) + ": got " + hex(got, p.size() / 2) + ", want " + pattern;
  }
  return "";
}

}  // namespace

void Bench::check_region(const std::byte* base, std::size_t size, const Json& blocks, const std::string& what) {
  std::vector<bool> covered(size, false);
  for (const Json& b : blocks) {
    const std::size_t at = number(b["offset"]);
    const std::string pattern = b["bytes"];
    const std::string diff = compare(base + at, pattern, &kPoison, false, nullptr);
    if (!diff.empty()) problem(what + " at " + std::to_string(at) + ", " + diff);
    std::size_t n = 0;
    for (const char c : pattern) n += c != ' ';
    for (std::size_t i = 0; i < n / 2; ++i) covered[at + i] = true;
  }
  for (std::size_t i = 0; i < size; ++i)
    if (!covered[i] && base[i] != kPoison)
      return problem(what + " at " + std::to_string(i) + " was written: " + hex(base + i, 1));
}

void Bench::check_written(const Json& w) {
  settle();
  const auto line = [&w](const char* key) {
    return w.contains(key) ? Json::array({{{"offset", 0}, {"bytes", w[key]}}}) : Json::array();
  };
  if (qp != nullptr) {
    const mlx5::Qp& q = mqp();
    check_region(q.sq.buf, std::size_t{q.sq.wqe_cnt} * 64, w.value("sq", Json::array()), "sq");
    check_region(q.rq.buf, std::size_t{q.rq.wqe_cnt} << q.rq.wqe_shift, w.value("rq", Json::array()), "rq");
    check_region(reinterpret_cast<const std::byte*>(q.dbr), 8, line("qp_dbr"), "qp_dbr");
  }
  if (srq != nullptr) {
    const mlx5::Srq& s = msrq();
    const Json blocks = w.value("srq", Json::array());
    std::vector<std::byte> ring(s.buf, s.wqe(s.wqe_cnt));
    // Links of WQEs that the vector does not show are there all the same.
    for (std::uint32_t i = 0; i < s.wqe_cnt; ++i) {
      const std::size_t at = std::size_t{i} << s.wqe_shift;
      const bool shown =
          std::any_of(blocks.begin(), blocks.end(), [&](const Json& b) { return number(b["offset"]) == at; });
      if (!shown) std::fill_n(ring.begin() + static_cast<std::ptrdiff_t>(at) + 2, 2, kPoison);
    }
    check_region(ring.data(), ring.size(), blocks, "srq");
    check_region(reinterpret_cast<const std::byte*>(s.dbr), 4, line("srq_dbr"), "srq_dbr");
  }
  if (send_cq != nullptr)
    check_region(reinterpret_cast<const std::byte*>(mlx5::cq_of(send_cq).dbr), 8, line("send_cq_dbr"), "send_cq_dbr");
  if (recv_cq != nullptr && recv_cq != send_cq)
    check_region(reinterpret_cast<const std::byte*>(mlx5::cq_of(recv_cq).dbr), 8, line("recv_cq_dbr"), "recv_cq_dbr");

  std::map<std::size_t, std::vector<std::byte>> content;
  std::map<std::size_t, std::vector<std::uint8_t>> written;
  for (const Recorder::Event& e : recorder.events) {
    if (e.kind != Recorder::Event::mmio) continue;
    for (std::size_t page = 0; page < kernel.uar_pages.size(); ++page) {
      const std::uint64_t offset = e.at - kernel.uar_pages[page].v;
      if (offset >= 4096) continue;
      content[page].resize(4096);
      written[page].resize(4096);
      std::memcpy(content[page].data() + offset, e.bytes.data(), 8);
      std::memset(written[page].data() + offset, 1, 8);
    }
  }
  for (const Json& b : w.value("uar", Json::array())) {
    const auto page = b["page"].get<std::size_t>();
    const std::size_t at = number(b["offset"]);
    content[page].resize(4096);
    written[page].resize(4096);
    const std::string diff = compare(content[page].data() + at, b["bytes"], &kPoison, true, written[page].data() + at);
    if (!diff.empty()) problem("uar page " + std::to_string(page) + " at " + std::to_string(at) + ", " + diff);
    std::size_t n = 0;
    for (const char c : b["bytes"].get<std::string>()) n += c != ' ';
    std::memset(written[page].data() + at, 0, n / 2);
  }
  for (const auto& [page, bytes] : written)
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != 0)
        return problem("uar page " + std::to_string(page) + " at " + std::to_string(i) + " was written");
}

// WR chains -----------------------------------------------------------------------------------------------------------

namespace {

ibv_wr_opcode opcode_named(const std::string& name) {
  static const std::map<std::string, ibv_wr_opcode> kOpcodes{{"SEND", IBV_WR_SEND},
                                                             {"SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM},
                                                             {"SEND_WITH_INV", IBV_WR_SEND_WITH_INV},
                                                             {"RDMA_WRITE", IBV_WR_RDMA_WRITE},
                                                             {"RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM},
                                                             {"RDMA_READ", IBV_WR_RDMA_READ},
                                                             {"ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP},
                                                             {"ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD},
                                                             {"LOCAL_INV", IBV_WR_LOCAL_INV},
                                                             {"BIND_MW", IBV_WR_BIND_MW}};
  return kOpcodes.at(name);
}

unsigned flag_named(const std::string& name) {
  static const std::map<std::string, unsigned> kFlags{{"FENCE", IBV_SEND_FENCE},
                                                      {"SIGNALED", IBV_SEND_SIGNALED},
                                                      {"SOLICITED", IBV_SEND_SOLICITED},
                                                      {"INLINE", IBV_SEND_INLINE},
                                                      {"IP_CSUM", IBV_SEND_IP_CSUM}};
  return kFlags.at(name);
}

}  // namespace

SendChain::SendChain(Bench& b, const Json& list) : wrs(list.size()), sges(list.size()), mws(list.size()) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& j = list[i];
    ibv_send_wr& w = wrs[i];
    w = {};
    w.next = i + 1 < list.size() ? &wrs[i + 1] : nullptr;
    w.wr_id = j.contains("wr_id") ? number(j["wr_id"]) : 0;
    w.opcode = j.contains("opcode_number") ? static_cast<ibv_wr_opcode>(number(j["opcode_number"]))
                                           : opcode_named(j["opcode"]);
    for (const Json& f : j.value("flags", Json::array())) w.send_flags |= flag_named(f);
    for (const Json& s : j.value("sge", Json::array())) {
      const std::uint64_t a = number(s["addr"]);
      const bool touched = (w.send_flags & IBV_SEND_INLINE) || s.contains("local");
      sges[i].push_back({touched ? b.local(a) : a, static_cast<std::uint32_t>(number(s["length"])),
                         static_cast<std::uint32_t>(number(s["lkey"]))});
    }
    if (b.qp != nullptr && b.qp->qp_type == IBV_QPT_XRC_SEND) w.qp_type.xrc.remote_srqn = 0x789;
    w.sg_list = sges[i].data();
    w.num_sge = j.value("num_sge", static_cast<int>(sges[i].size()));
    if (j.contains("imm_data_be")) std::memcpy(&w.imm_data, unhex(j["imm_data_be"]).data(), 4);
    if (j.contains("invalidate_rkey")) w.invalidate_rkey = static_cast<std::uint32_t>(number(j["invalidate_rkey"]));
    if (j.contains("compare_add")) {
      w.wr.atomic.remote_addr = number(j["remote_addr"]);
      w.wr.atomic.rkey = static_cast<std::uint32_t>(number(j["rkey"]));
      w.wr.atomic.compare_add = number(j["compare_add"]);
      if (j.contains("swap")) w.wr.atomic.swap = number(j["swap"]);
    } else if (j.contains("remote_addr")) {
      w.wr.rdma.remote_addr = number(j["remote_addr"]);
      w.wr.rdma.rkey = static_cast<std::uint32_t>(number(j["rkey"]));
    }
    if (j.contains("remote_qpn")) {
      w.wr.ud.ah = b.ah;
      w.wr.ud.remote_qpn = static_cast<std::uint32_t>(number(j["remote_qpn"]));
      w.wr.ud.remote_qkey = static_cast<std::uint32_t>(number(j["remote_qkey"]));
    }
    if (j.contains("bind_mw")) {
      const Json& m = j["bind_mw"];
      mws[i] = {b.context, b.pd, static_cast<std::uint32_t>(number(m["mw_rkey"])), 1,
                number(m["mw_type"]) == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2};
      w.bind_mw.mw = &mws[i];
      w.bind_mw.rkey = static_cast<std::uint32_t>(number(m["new_rkey"]));
      w.bind_mw.bind_info = {&b.mr_object, number(m["addr"]), number(m["length"]),
                             static_cast<unsigned>(number(m["mw_access_flags"]))};
    }
  }
}

RecvChain::RecvChain(Bench& b, const Json& list, bool translate) : wrs(list.size()), sges(list.size()) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& j = list[i];
    for (const Json& s : j.value("sge", Json::array())) {
      const std::uint64_t a = number(s[0]);
      sges[i].push_back({translate ? b.local(a) : a, static_cast<std::uint32_t>(number(s[1])),
                         static_cast<std::uint32_t>(number(s[2]))});
    }
    wrs[i] = {number(j["wr_id"]), i + 1 < list.size() ? &wrs[i + 1] : nullptr, sges[i].data(),
              j.value("num_sge", static_cast<int>(sges[i].size()))};
  }
}

// Groups --------------------------------------------------------------------------------------------------------------

namespace {

Json read_json(const std::string& name) {
  std::ifstream in(std::string(RDMASIM_SOURCE_DIR) + "/tests/verbs_frontend/golden/" + name);
  return Json::parse(in);
}

}  // namespace

void replay_group(const std::string& group, const std::function<void(Bench&, const Json&)>& replay) {
  const Json cases = read_json(group + ".json")["cases"];
  std::map<std::string, std::string> not_built;
  const Json allowed = read_json("not_built.json");
  for (const auto& [reason, ids] : allowed.items())
    for (const Json& id : ids) not_built[id] = reason;
  Machine machine;
  std::size_t passed = 0, skipped = 0;
  std::vector<std::string> failures;
  machine.program([&] {
    for (const Json& c : cases) {
      const std::string id = c["id"];
      if (not_built.contains(id)) {
        ++skipped;
        continue;
      }
      Bench bench(machine, c.value("setup", Json::object()));
      try {
        replay(bench, c);
      } catch (const nlohmann::json::exception& e) {
        bench.problem(e.what());
      }
      if (bench.problems.empty()) ++passed;
      else failures.push_back(id + ": " + bench.problems.front());
    }
  });
  machine.run();
  for (const std::string& f : failures) ADD_FAILURE() << f;
  std::cout << "group " << group << ": " << passed << " of " << cases.size() << " vectors equal, " << skipped
            << " not built\n";
  EXPECT_EQ(passed + skipped + failures.size(), cases.size());
}

}  // namespace verbs::test
