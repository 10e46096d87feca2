// SPDX-License-Identifier: Apache-2.0
// Commands that create and destroy PDs, CQs and AHs. Each creation holds its parents.
// Source: ib_uverbs uverbs_cmd.c; rules S-OBJ-20 … S-OBJ-36, S-OBJ-61.
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

// PD ----------------------------------------------------------------------------------------------------------------------

int UverbsFile::alloc_pd(Io& io) {
  std::unique_ptr<Pd> pd;
  if (const int error = ib_alloc_pd(*device_, consumer(), &io.udata, pd); error != 0) return error;
  io.respond(ib_uverbs_alloc_pd_resp{add(std::move(pd))});
  return 0;
}

int UverbsFile::dealloc_pd(Io& io) { return destroy(ObjectType::pd, io.request<ib_uverbs_dealloc_pd>().pd_handle); }

// CQ ----------------------------------------------------------------------------------------------------------------------

namespace {

void completion(Cq& cq, sim::trace::Cause cause, const EventTimes& times) {
  Uobject& u = cq.uobject;
  if (u.channel == nullptr) return;
  Kernel& kernel = cq.device->kernel;
  if (kernel.atomic_alloc_fails()) return kernel.counter("events_lost").add();
  u.channel->push({u.user_handle, 0, cq.cqn, &cq, &u.comp_events_reported, cause, times},
                  &kernel.comp_eq(cq.comp_vector).core());
}

}  // namespace

int UverbsFile::create_cq_common(const ib_uverbs_ex_create_cq& cmd, Io& io, ib_uverbs_create_cq_resp& resp) {
  if (cmd.comp_vector >= kernel_.comp_vectors()) return -EINVAL;
  std::shared_ptr<EventFile> channel;
  if (cmd.comp_channel >= 0) {
    channel = descriptors_.channel(cmd.comp_channel);
    if (channel == nullptr) return -EINVAL;
  }
  std::unique_ptr<Cq> cq;
  const CqInitAttr attr{cmd.cqe, cmd.comp_vector, cmd.flags};
  if (const int error = ib_create_cq(*device_, attr, consumer(), &io.udata, cq); error != 0) return error;
  cq->comp_handler = &completion;
  cq->uobject.channel = std::move(channel);
  resp.cqe = cq->cqe;
  resp.cq_handle = add(std::move(cq), cmd.user_handle);
  return 0;
}

int UverbsFile::create_cq(Io& io) {
  const auto legacy = io.request<ib_uverbs_create_cq>();
  ib_uverbs_ex_create_cq cmd{};
  cmd.user_handle = legacy.user_handle;
  cmd.cqe = legacy.cqe;
  cmd.comp_vector = legacy.comp_vector;
  cmd.comp_channel = legacy.comp_channel;
  ib_uverbs_create_cq_resp resp{};
  const int error = create_cq_common(cmd, io, resp);
  if (error == 0) io.respond(resp);
  return error;
}

int UverbsFile::create_cq_ex(Io& io) {
  const auto cmd = io.request<ib_uverbs_ex_create_cq>();
  if (cmd.comp_mask != 0 || cmd.reserved != 0) return -EINVAL;
  ib_uverbs_ex_create_cq_resp resp{};
  resp.response_length = sizeof resp;
  const int error = create_cq_common(cmd, io, resp.base);
  if (error == 0) io.respond(resp);
  return error;
}

int UverbsFile::destroy_cq(Io& io) {
  const auto cmd = io.request<ib_uverbs_destroy_cq>();
  ib_uverbs_destroy_cq_resp resp{};
  const auto report = [](const Uobject& u, void* arg) {
    auto& r = *static_cast<ib_uverbs_destroy_cq_resp*>(arg);
    r.comp_events_reported = u.comp_events_reported;
    r.async_events_reported = u.async_events_reported;
  };
  const int error = destroy(ObjectType::cq, cmd.cq_handle, report, &resp);
  if (error == 0) io.respond(resp);
  return error;
}

// AH ----------------------------------------------------------------------------------------------------------------------

int UverbsFile::create_ah(Io& io) {
  const auto cmd = io.request<ib_uverbs_create_ah>();
  if (cmd.attr.port_num == 0 || cmd.attr.port_num > device_->attr.ex.orig_attr.phys_port_cnt) return -EINVAL;
  Use<Pd> pd;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  ibv_ah_attr attr{};
  std::memcpy(attr.grh.dgid.raw, cmd.attr.grh.dgid, sizeof attr.grh.dgid.raw);
  attr.grh.flow_label = cmd.attr.grh.flow_label;
  attr.grh.sgid_index = cmd.attr.grh.sgid_index;
  attr.grh.hop_limit = cmd.attr.grh.hop_limit;
  attr.grh.traffic_class = cmd.attr.grh.traffic_class;
  attr.sl = cmd.attr.sl;
  attr.static_rate = cmd.attr.static_rate;
  attr.is_global = cmd.attr.is_global;
  attr.port_num = cmd.attr.port_num;
  std::unique_ptr<Ah> ah;
  if (const int error = ib_create_ah(*pd, attr, consumer(), &io.udata, ah); error != 0) return error;
  io.respond(ib_uverbs_create_ah_resp{add(std::move(ah), cmd.user_handle)});
  return 0;
}

int UverbsFile::destroy_ah(Io& io) { return destroy(ObjectType::ah, io.request<ib_uverbs_destroy_ah>().ah_handle); }

}  // namespace kernel
