// SPDX-License-Identifier: Apache-2.0
// Commands about shared receive queues: create (basic and XRC), arm the limit, query, destroy.
// Source: ib_uverbs uverbs_cmd.c.
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

int UverbsFile::create_srq(Io& io) {
  const auto basic = io.request<ib_uverbs_create_srq>();
  ib_uverbs_create_xsrq cmd{};
  cmd.user_handle = basic.user_handle;
  cmd.srq_type = IBV_SRQT_BASIC;
  cmd.pd_handle = basic.pd_handle;
  cmd.max_wr = basic.max_wr;
  cmd.max_sge = basic.max_sge;
  return create_srq_common(cmd, io);
}

int UverbsFile::create_xsrq(Io& io) {
  const auto cmd = io.request<ib_uverbs_create_xsrq>();
  if (cmd.srq_type != IBV_SRQT_BASIC && cmd.srq_type != IBV_SRQT_XRC)
    return cmd.srq_type == IBV_SRQT_TM ? -EOPNOTSUPP : -EINVAL;
  return create_srq_common(cmd, io);
}

int UverbsFile::create_srq_common(const ib_uverbs_create_xsrq& cmd, Io& io) {
  const bool xrc = cmd.srq_type == IBV_SRQT_XRC;
  Use<Pd> pd;
  Use<Xrcd> xrcd;
  Use<Cq> cq;
  if (xrc)
    if (const int error = parent(ObjectType::xrcd, cmd.xrcd_handle, xrcd); error != 0) return error;
  if (xrc)
    if (const int error = parent(ObjectType::cq, cmd.cq_handle, cq); error != 0) return error;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  std::unique_ptr<Srq> srq;
  const SrqInitAttr attr{static_cast<ibv_srq_type>(cmd.srq_type), cmd.max_wr, cmd.max_sge, xrcd.get(), cq.get()};
  if (const int error = ib_create_srq(*pd, attr, consumer(), &io.udata, srq); error != 0) return error;
  ib_uverbs_create_srq_resp resp{};
  resp.max_wr = srq->max_wr;
  resp.max_sge = srq->max_sge;
  resp.srqn = xrc ? srq->srqn : 0;
  resp.srq_handle = add(std::move(srq), cmd.user_handle);
  io.respond(resp);
  return 0;
}

int UverbsFile::modify_srq(Io& io) {
  const auto cmd = io.request<ib_uverbs_modify_srq>();
  Use<Srq> srq;
  if (const int error = use(ObjectType::srq, cmd.srq_handle, srq); error != 0) return error;
  return ib_modify_srq(*srq, {cmd.max_wr, 0, cmd.srq_limit}, cmd.attr_mask, &io.udata);
}

int UverbsFile::query_srq(Io& io) {
  const auto cmd = io.request<ib_uverbs_query_srq>();
  Use<Srq> srq;
  if (const int error = use(ObjectType::srq, cmd.srq_handle, srq); error != 0) return error;
  ibv_srq_attr attr{};
  if (const int error = ib_query_srq(*srq, attr); error != 0) return error;
  io.respond(ib_uverbs_query_srq_resp{attr.max_wr, attr.max_sge, attr.srq_limit, 0});
  return 0;
}

int UverbsFile::destroy_srq(Io& io) {
  ib_uverbs_destroy_srq_resp resp{};
  const auto report = [](const Uobject& u, void* arg) {
    static_cast<ib_uverbs_destroy_srq_resp*>(arg)->events_reported = u.async_events_reported;
  };
  const int error = destroy(ObjectType::srq, io.request<ib_uverbs_destroy_srq>().srq_handle, report, &resp);
  if (error == 0) io.respond(resp);
  return error;
}

}  // namespace kernel
