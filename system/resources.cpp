// SPDX-License-Identifier: Apache-2.0
// The text follows the data member by member, so that both always say the same.
#include "system/resources.h"

#include "kernel/core/resource_tracking.h"

namespace sys {
namespace {

using sim::Json;

/// Member names of the lists, in the order of `rdma resource show`.
constexpr const char* kTypes[] = {"pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"};

template <class List, class Fill>
Json rows(const List& list, Fill&& fill) {
  Json out = Json::array();
  for (const auto& r : list) {
    Json row = Json::object();
    fill(r, row);
    // A kernel consumer is no process; its module's name stands in brackets.
    if (r.owner.pid != 0) row["pid"] = r.owner.pid;
    row["comm"] = r.owner.pid != 0 ? r.owner.comm : "[" + r.owner.comm + "]";
    out.push_back(std::move(row));
  }
  return out;
}

Json of_host(Host& host) {
  const kernel::Resources all = kernel::list_resources(
      host.kernel(), [&](std::uint32_t qpn, std::span<std::byte> qpc) { return host.hca().read_qp(qpn, qpc); });
  Json j = Json::object();
  j["host"] = host.config().name;
  j["device"] = all.device;
  j["pd"] = rows(all.pd, [](const kernel::PdResource& r, Json& row) {
    row["pdn"] = r.pdn;
    row["users"] = r.users;
    if (r.ctxn != 0) row["ctxn"] = r.ctxn;
  });
  j["cq"] = rows(all.cq, [](const kernel::CqResource& r, Json& row) {
    row["cqn"] = r.cqn;
    row["cqe"] = r.cqe;
    row["users"] = r.users;
    row["poll-ctx"] = r.poll_ctx;
    if (r.adaptive_moderation) row["adaptive-moderation"] = "on";
    if (r.ctxn != 0) row["ctxn"] = r.ctxn;
  });
  j["qp"] = rows(all.qp, [](const kernel::QpResource& r, Json& row) {
    row["lqpn"] = r.lqpn;
    if (r.connected) row["rqpn"] = r.rqpn;
    row["type"] = r.type;
    row["state"] = r.state;
    if (r.connected) row["rq-psn"] = r.rq_psn;
    row["sq-psn"] = r.sq_psn;
    if (r.pdn != 0) row["pdn"] = r.pdn;
  });
  j["cm_id"] = Json::array();
  j["mr"] = rows(all.mr, [](const kernel::MrResource& r, Json& row) {
    row["mrn"] = r.mrn;
    row["rkey"] = r.rkey;
    row["iova"] = r.iova;
    row["mrlen"] = r.mrlen;
    row["pdn"] = r.pdn;
  });
  j["ctx"] = rows(all.ctx, [](const kernel::ContextResource& r, Json& row) { row["ctxn"] = r.ctxn; });
  j["srq"] = rows(all.srq, [](const kernel::SrqResource& r, Json& row) {
    row["srqn"] = r.srqn;
    row["type"] = r.type;
    Json& qps = row["lqpn"] = Json::array();
    for (const std::uint32_t qpn : r.lqpn) qps.push_back(qpn);
    row["pdn"] = r.pdn;
    if (r.cqn != 0) row["cqn"] = r.cqn;
  });
  return j;
}

std::string shown(const Json& value) {
  if (value.is_string()) return value.string();
  std::string text = value.compact();
  if (value.is_array()) text = text.substr(1, text.size() - 2);
  return text;
}

}  // namespace

Json resources_of(Cluster& cluster) {
  Json out = Json::array();
  for (std::size_t i = 0; i < cluster.host_names().size(); ++i) out.push_back(of_host(cluster.host(i)));
  return out;
}

std::string resources_text(const Json& resources) {
  std::string out;
  for (const Json& host : resources.items()) {
    std::string device = host.at("/host")->string();
    device.append(" ").append(host.at("/device")->string());
    out.append(device).append(":");
    for (const char* type : kTypes)
      out.append(" ").append(type).append(" ").append(std::to_string(host.find(type)->items().size()));
    out += "\n";
    for (const char* type : kTypes)
      for (const Json& row : host.find(type)->items()) {
        out.append("  ").append(type).append(" dev ").append(device);
        for (const Json::Member& m : row.members()) out.append(" ").append(m.key).append(" ").append(shown(m.value));
        out += "\n";
      }
  }
  return out;
}

}  // namespace sys
