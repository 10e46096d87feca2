// SPDX-License-Identifier: Apache-2.0
#include "experiment/program_result.h"

#include "system/verbs_names.h"

namespace experiment {
namespace {

using sim::Json;

Json ns(sim::Picos t) { return t.n % 1000 == 0 ? Json(t.n / 1000) : Json(static_cast<double>(t.n) / 1000.0); }

Json flags_of(unsigned flags) {
  Json out = Json::array();
  for (const auto& [flag, name] : sim::EnumNames<ibv_wc_flags>::values)
    if ((flags & flag) != 0) out.push_back(name);
  return out;
}

/// Of a failed completion only wr_id, status, vendor_err and the QP mean anything (S-QP-43).
Json completion(const sys::PolledWc& w) {
  Json j = Json::object();
  j["time_ns"] = ns(w.time);
  j["cq"] = w.cq;
  j["qp"] = w.qp;
  j["wr_id"] = w.wr_id;
  j["status"] = sim::enum_name(w.status);
  if (w.status != IBV_WC_SUCCESS) {
    j["vendor_err"] = w.vendor_err;
    return j;
  }
  j["opcode"] = sim::enum_name(w.opcode);
  const bool received = (w.opcode & IBV_WC_RECV) != 0;
  if (received || w.opcode == IBV_WC_RDMA_READ) j["byte_len"] = w.byte_len;
  if (received) j["wc_flags"] = flags_of(w.wc_flags);
  if ((w.wc_flags & IBV_WC_WITH_IMM) != 0) j["imm_data"] = w.imm_data;
  return j;
}

Json regions(const std::map<std::string, sys::MrAddresses>& addresses) {
  Json out = Json::object();
  for (const auto& [name, a] : addresses) {
    Json& j = out[name] = Json::object();
    j["addr"] = a.addr;
    j["iova"] = a.iova;
    j["dma"] = a.dma;
    j["phys"] = a.phys;
    j["lkey"] = a.lkey;
    j["rkey"] = a.rkey;
  }
  return out;
}

}  // namespace

std::vector<ProgramResult> program_results(sys::Programs& programs, sim::Picos now) {
  std::vector<ProgramResult> all;
  for (const auto& record : programs.records()) {
    ProgramResult& p = all.emplace_back();
    p.name = record->name;
    p.host = record->host;
    p.finished = record->finished;
    p.killed = record->killed;
    p.at = record->at;
    p.steps = record->steps;
    p.started = record->started;
    p.ended = record->ended;
    p.cpu = record->cpu.read(now);
    p.completions = Json::array();
    for (const sys::PolledWc& w : record->completions) p.completions.push_back(completion(w));
    p.events = Json::array();
    for (const sys::CompletionEvent& e : record->events) {
      Json j = Json::object();
      j["time_ns"] = ns(e.time);
      j["cq"] = e.cq;
      p.events.push_back(std::move(j));
    }
    p.mr = regions(programs.addresses(record->name));
    p.wc_status = record->wc_status;
    p.marks = record->marks;
    p.plugin = record->plugin;
    p.exit_code = record->exit_code;
    for (const sys::FailedStep& f : record->failures) p.failures.push_back({f.at, f.path, f.message});
  }
  return all;
}

}  // namespace experiment
