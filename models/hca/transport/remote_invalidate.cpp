// SPDX-License-Identifier: Apache-2.0
// SEND with invalidate at the responder: the window is freed before the receive completion is written (S-MW-6).
#include "hca/dma/memory_window.h"
#include "hca/transport/requester.h"
#include "hca/transport/responder.h"

namespace hca {

// False when the key names no window of this QP: the receive ends in error, the QP too (S-ERR-21).
sim::Task<bool> Responder::invalidate(Qp& qp, RxPacket& rx) {
  const std::uint32_t life = qp.generation, key = rx.parsed.headers.invalidate_rkey;
  const bool known = co_await translation_.load(key >> 8, rx.packet->cause);
  if (qp.ended(life)) co_return false;
  if (known && remote_invalidate(device_.mkeys, key, qp.pd, qp.qpn)) {
    translation_.mpt().dirty(key >> 8);
    co_return true;
  }
  if (device_.config.keys.bad_remote_invalidate == BadRemoteInvalidate::nak) {
    refuse(qp, rx, refusals::bad_invalidate);
    co_return false;
  }
  advance(qp, rx);
  post_receive_error(qp, prm::kSynRemoteInvalReq, kVendorRemoteInvalid, rx.packet->cause.parent);
  control_.enter_error(qp);
  co_return false;
}

}  // namespace hca
