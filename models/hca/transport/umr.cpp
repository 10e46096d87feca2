// SPDX-License-Identifier: Apache-2.0
// UMR WQEs: binding and freeing memory windows from the send queue (S-MW-4). The key changes umr_execute after the WQE was
// decoded, beside the WQEs behind it; one with a small fence waits for it (S-RC-76). The program sees BIND_MW or LOCAL_INV
// completions in queue order.
#include <utility>

#include "hca/dma/memory_window.h"
#include "hca/trace_points.h"
#include "hca/transport/requester.h"

namespace hca {
namespace {

bool alive(const Qp& qp) { return qp.state != QpState::err && qp.state != QpState::reset; }

SentWqe* executing(Qp& qp) {
  for (std::size_t i = 0; i < qp.sent.size(); ++i)
    if (qp.sent[i].executing) return &qp.sent[i];
  return nullptr;
}

}  // namespace

void Requester::start_umr(Qp& qp, const SendWqe& wqe, sim::trace::Cause cause) {
  SentWqe s;
  s.index = wqe.index;
  s.opcode = wqe.opcode;
  s.signaled = wqe.signaled;
  s.msg = cause.msg;
  s.span = cause.parent;
  s.wqe = wqe.bytes.buffer;
  s.wqe_offset = wqe.bytes.offset;
  s.first_psn = s.last_psn = qp.next_psn - 1U;
  s.no_packet = s.executing = true;
  push_sent(qp, std::move(s));
  qp.umr_executing = true;
  execute_umr(qp);
}

sim::Flow Requester::execute_umr(Qp& qp) {
  const std::uint32_t life = qp.generation;
  const sim::Picos start = device_.context.now();
  const KeyConfig& keys = device_.config.keys;
  const SentWqe& sent = *executing(qp);
  const sim::trace::Cause cause{sent.msg, sent.span, false};
  const SendWqe wqe = parse_send_wqe({sent.wqe, sent.wqe_offset});
  const auto request = parse_umr(wqe);
  const bool frees = request && request->frees();
  bool done = false;
  if (request) {
    bool found = co_await translation_.load(request->key >> 8, cause);
    if (found && request->klm_count > 0) found = co_await translation_.load(request->klm(0).key >> 8, cause);
    co_await device_.context.delay(keys.umr_execute);
    if (life == qp.generation && alive(qp) && found) {
      done = hca::execute_umr(device_.mkeys, *request, qp.pd, qp.qpn);
      translation_.mpt().dirty(request->key >> 8);
    }
  }
  qp.umr_executing = false;
  if (life != qp.generation || !alive(qp)) co_return;
  const std::uint64_t span =
      trace_.span(points::umr, cause, start, start, device_.context.now(), qp.qpn, request ? request->key : 0, done);
  if (SentWqe* umr = executing(qp)) {
    umr->executing = false;
    if (span != 0) umr->span = span;
    if (!done) {
      const bool bind = request && (!frees || keys.invalidate_error == InvalidateError::bind);
      umr->failed_syndrome = bind ? prm::kSynMwBind : prm::kSynLocalQpOp;
      umr->failed_vendor = bind ? kVendorBind : kVendorLocalQpOp;
      qp.sq_error = true;
    }
  }
  complete(qp, span);
  kick(qp);
}

}  // namespace hca
