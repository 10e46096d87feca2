// SPDX-License-Identifier: Apache-2.0
// Completion channels, CQs, and completion and asynchronous events (S-CE-12, S-CE-30, S-AE-1).
#include <cerrno>

#include "cpu/call_span.h"
#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/libibverbs/provider.h"
#include "verbs_frontend/trace_points.h"

using verbs::context_of;
using verbs::ops_of;

namespace {

verbs::AckWaiters& waiters_of(ibv_cq* cq) { return reinterpret_cast<verbs::CqBase*>(cq)->ack_waiters; }

unsigned errno_of(long result) { return result < 0 ? static_cast<unsigned>(-result) : 0; }

int error_return(int error) {
  errno = error;
  return -1;
}

}  // namespace

extern "C" {

struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* context) {
  cpu::CallSpan call(cpu::current(), verbs::points::create_comp_channel);
  verbs::Command c(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL);
  auto& req = c.add<ib_uverbs_create_comp_channel>();
  const auto& resp = c.expect<ib_uverbs_create_comp_channel_resp>();
  req.response = c.response_address();
  const int e = c.issue(*context_of(context).syscalls, context->cmd_fd);
  call.end(0, resp.fd, e);
  return e == 0 ? new ibv_comp_channel{context, static_cast<int>(resp.fd), 0} : nullptr;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel* channel) {
  cpu::CallSpan call(cpu::current(), verbs::points::destroy_comp_channel);
  const int e = channel->refcnt != 0 ? EBUSY : 0;
  if (e == 0) context_of(channel->context).syscalls->close(channel->fd);
  call.end(0, static_cast<unsigned>(channel->fd), e);
  if (e == 0) delete channel;
  return e;
}

struct ibv_cq* ibv_create_cq(struct ibv_context* context, int cqe, void* cq_context, struct ibv_comp_channel* channel,
                             int comp_vector) {
  ibv_cq* cq = ops_of(context).create_cq(context, cqe, channel, comp_vector);
  if (cq == nullptr) return nullptr;
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  cq->comp_events_completed = 0;
  cq->async_events_completed = 0;
  if (channel != nullptr) ++channel->refcnt;
  return cq;
}

int ibv_resize_cq(struct ibv_cq* cq, int cqe) { return ops_of(cq->context).resize_cq(cq, cqe); }

int ibv_destroy_cq(struct ibv_cq* cq) {
  ibv_comp_channel* channel = cq->channel;
  const int e = ops_of(cq->context).destroy_cq(cq);
  if (e == 0 && channel != nullptr) --channel->refcnt;
  return e;
}

int ibv_get_cq_event(struct ibv_comp_channel* channel, struct ibv_cq** cq, void** cq_context) {
  cpu::CallSpan call(cpu::current(), verbs::points::get_cq_event);
  ib_uverbs_comp_event_desc event{};
  const long n = context_of(channel->context).syscalls->read(channel->fd, &event, sizeof event);
  call.end(0, static_cast<unsigned>(channel->fd), errno_of(n));
  if (n < 0) return error_return(static_cast<int>(-n));
  if (n != sizeof event) return -1;
  *cq = reinterpret_cast<ibv_cq*>(event.cq_handle);
  *cq_context = (*cq)->cq_context;
  ops_of((*cq)->context).cq_event(*cq);
  return 0;
}

void ibv_ack_cq_events(struct ibv_cq* cq, unsigned int nevents) {
  cpu::Thread& t = cpu::current();
  t.trace().instant(verbs::points::ack_cq_events, t.cause(), t.now(), nevents);
  cq->comp_events_completed += nevents;
  verbs::wake_ack_waiters(waiters_of(cq));
}

int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event) {
  cpu::CallSpan call(cpu::current(), verbs::points::get_async_event);
  ib_uverbs_async_event_desc desc{};
  const long n = context_of(context).syscalls->read(context->async_fd, &desc, sizeof desc);
  call.end(0, desc.event_type, errno_of(n));
  if (n < 0) return error_return(static_cast<int>(-n));
  if (n != sizeof desc) return -1;
  event->event_type = static_cast<ibv_event_type>(desc.event_type);
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      event->element.cq = reinterpret_cast<ibv_cq*>(desc.element);
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      event->element.qp = reinterpret_cast<ibv_qp*>(desc.element);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      event->element.srq = reinterpret_cast<ibv_srq*>(desc.element);
      break;
    case IBV_EVENT_WQ_FATAL:
      event->element.wq = reinterpret_cast<ibv_wq*>(desc.element);
      break;
    default:
      event->element.port_num = static_cast<int>(desc.element);
  }
  return 0;
}

void ibv_ack_async_event(struct ibv_async_event* event) {
  cpu::Thread& t = cpu::current();
  t.trace().instant(verbs::points::ack_async_event, t.cause(), t.now(), static_cast<unsigned>(event->event_type));
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      ++event->element.cq->async_events_completed;
      verbs::wake_ack_waiters(waiters_of(event->element.cq));
      break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      ++event->element.qp->events_completed;
      verbs::wake_ack_waiters(reinterpret_cast<verbs::QpBase*>(event->element.qp)->ack_waiters);
      break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      ++event->element.srq->events_completed;
      verbs::wake_ack_waiters(reinterpret_cast<verbs::SrqBase*>(event->element.srq)->ack_waiters);
      break;
    default:
      break;
  }
}

}  // extern "C"
