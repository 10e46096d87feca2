// SPDX-License-Identifier: Apache-2.0
// Walks the objects that the device tracks. Source: ib_core nldev.c (fill_res_*_entry) for what is listed.
#include "kernel/core/resource_tracking.h"

#include <algorithm>
#include <array>

#include "hca/prm.h"
#include "kernel/core/cq_poll.h"
#include "kernel/core/qp_state.h"

namespace kernel {
namespace {

namespace prm = hca::prm;

const char* name_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    case IBV_QPT_XRC_SEND:
      return "XRC_INI";
    case IBV_QPT_XRC_RECV:
      return "XRC_TGT";
    default:
      return "UNKNOWN";
  }
}

const char* name_of(ibv_qp_state state) {
  constexpr std::array<const char*, 7> kNames{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto i = static_cast<std::size_t>(state);
  return i < kNames.size() ? kNames[i] : "UNKNOWN";
}

QpResource describe(const Qp& qp, const ResourceOwner& owner, const QpContextReader& read) {
  QpResource r;
  r.lqpn = qp.qpn;
  r.type = name_of(qp.qp_type);
  r.connected = qp.qp_type != IBV_QPT_UD;
  ibv_qp_state state = qp.state;
  std::array<std::byte, prm::kQpcSize> qpc{};
  if (read && read(qp.qpn, qpc)) {
    state = state_of_device(prm::get(qpc.data(), prm::kQpcState));
    r.rqpn = prm::get(qpc.data(), prm::kQpcRemoteQpn);
    r.sq_psn = prm::get(qpc.data(), prm::kQpcNextSendPsn);
    r.rq_psn = prm::get(qpc.data(), prm::kQpcNextRcvPsn);
  }
  r.state = name_of(state);
  r.pdn = qp.pd != nullptr ? qp.pd->pdn : 0;
  r.owner = owner;
  return r;
}

std::string poll_context(const Cq& cq) {
  if (cq.ucontext != nullptr) return "user";
  if (cq.poll == nullptr) return "none";
  switch (cq.poll->context) {
    case PollContext::direct:
      return "DIRECT";
    case PollContext::softirq:
      return "SOFTIRQ";
    case PollContext::workqueue:
      return "WORKQUEUE";
  }
  return "none";
}

void add(Resources& all, const Object& o, const QpContextReader& read) {
  const std::uint32_t ctxn = o.ucontext != nullptr ? o.ucontext->number : 0;
  const ResourceOwner& owner = *o.owner;
  switch (o.type) {
    case ObjectType::pd: {
      const auto& pd = static_cast<const Pd&>(o);
      all.pd.push_back({pd.pdn, pd.usecnt, ctxn, owner});
      return;
    }
    case ObjectType::cq: {
      const auto& cq = static_cast<const Cq&>(o);
      all.cq.push_back(
          {cq.cqn, cq.cqe, cq.usecnt, ctxn, poll_context(cq), cq.poll != nullptr && cq.poll->dim != nullptr, owner});
      return;
    }
    case ObjectType::mr: {
      const auto& mr = static_cast<const Mr&>(o);
      all.mr.push_back({mr.key >> 8, mr.key, mr.pd->pdn, mr.iova, mr.length, owner});
      return;
    }
    case ObjectType::qp: {
      const auto& qp = static_cast<const Qp&>(o);
      all.qp.push_back(describe(qp.real != nullptr ? *qp.real : qp, owner, read));
      return;
    }
    case ObjectType::srq: {
      const auto& srq = static_cast<const Srq&>(o);
      const bool xrc = srq.xrcd != nullptr;
      all.srq.push_back({srq.srqn, srq.pd->pdn, xrc ? srq.cq->cqn : 0, xrc ? "XRC" : "BASIC", {}, owner});
      return;
    }
    default:
      return;
  }
}

}  // namespace

Resources list_resources(const Kernel& kernel, const QpContextReader& read) {
  Resources all;
  if (kernel.device_removed()) return all;
  const Device& device = kernel.device();
  all.device = device.name;
  for (const Ucontext* context : device.contexts()) all.ctx.push_back({context->number, *context->owner});
  for (std::size_t type = 0; type < kObjectTypes; ++type)
    for (const Object* o : device.objects(static_cast<ObjectType>(type))) add(all, *o, read);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> on_srq;  // SRQN, QPN
  for (const Object* o : device.objects(ObjectType::qp))
    if (const auto& qp = static_cast<const Qp&>(*o); qp.srq != nullptr) on_srq.emplace_back(qp.srq->srqn, qp.qpn);
  std::ranges::sort(all.pd, {}, &PdResource::pdn);
  std::ranges::sort(all.cq, {}, &CqResource::cqn);
  std::ranges::stable_sort(all.qp, {}, &QpResource::lqpn);
  std::ranges::sort(all.mr, {}, &MrResource::mrn);
  std::ranges::sort(all.srq, {}, &SrqResource::srqn);
  std::ranges::sort(all.ctx, {}, &ContextResource::ctxn);
  std::ranges::sort(on_srq);
  for (const auto& [srqn, qpn] : on_srq)
    if (const auto s = std::ranges::find(all.srq, srqn, &SrqResource::srqn); s != all.srq.end()) s->lqpn.push_back(qpn);
  return all;
}

}  // namespace kernel
