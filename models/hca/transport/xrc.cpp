// SPDX-License-Identifier: Apache-2.0
// XRC at the responder: a target QP has no receive queue and no protection domain of its own; each message brings both with
// the SRQ that its packets name.
#include "hca/transport/responder.h"

namespace hca {

// The SRQ of the message gives its receive WQEs, its CQ and its protection domain (S-XRC-2). False: the packet names no SRQ
// of the QP's domain.
bool Responder::select_srq(Qp& qp, const RxPacket& rx) {
  const Srq* srq = device_.srqs.find(rx.parsed.headers.xrc_srqn);
  if (srq == nullptr || !srq->xrc || srq->xrcd != qp.xrcd) return false;
  qp.srqn = srq->srqn;
  qp.pd = srq->pd;
  qp.rx_cqn = srq->cqn;
  qp.rx_user_index = srq->user_index;
  return true;
}

}  // namespace hca
