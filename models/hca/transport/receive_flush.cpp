// SPDX-License-Identifier: Apache-2.0
// Receives of a QP in ERR: those posted before are flushed at once; those posted later must be found, as there is no receive
// doorbell (S-QP-43). The device looks at the doorbell record again `error_poll` after anything else has happened. A look
// is background work, so it does not keep a simulation alive, and a QP that is not in ERR costs nothing.
#include "hca/transport/responder.h"
#include "hca/transport/vendor_errors.h"

namespace hca {

void Responder::flush(Qp& qp) {
  qp.rx.clear();
  qp.rx_kind = 0xFF;
  if (qp.rx_wqe_valid) post_receive_error(qp, prm::kSynFlush, kVendorReceiveFlush, 0);
  // The WQEs of an SRQ belong to no QP: this one takes no more, and says so (S-SRQ-5, S-ERR-24).
  if (qp.srqn != 0 || qp.xrc_target()) events_.async(prm::kEventSrqLastWqe, qp.qpn);
  else flush_receives(qp);
}

sim::Flow Responder::flush_receives(Qp& qp) {
  if (qp.flushing_receives || qp.rq_wqes == 0) co_return;
  sim::Scheduler& scheduler = device_.context.scheduler;
  const std::uint32_t life = qp.generation;
  std::uint64_t seen = scheduler.work();
  qp.flushing_receives = true;
  for (;;) {
    const bool taken = co_await receive_queue_.take(qp, {});
    if (!taken) break;
    scheduler.promote();
    post_receive_error(qp, prm::kSynFlush, kVendorReceiveFlush, 0);
    if (life != qp.generation || qp.state != QpState::err) break;
    seen = scheduler.work();
  }
  if (life != qp.generation) co_return;
  qp.flushing_receives = false;
  scheduler.after_work(seen, device_.config.receive.error_poll, &Responder::look_for_receives, this,
                       std::uint64_t{life} << 32 | qp.qpn);
}

void Responder::look_for_receives(void* self, std::uint64_t key) {
  auto* r = static_cast<Responder*>(self);
  Qp* qp = r->device_.qps.find(static_cast<std::uint32_t>(key));
  if (qp != nullptr && qp->generation == key >> 32 && qp->state == QpState::err) r->flush_receives(*qp);
}

}  // namespace hca
