// SPDX-License-Identifier: Apache-2.0
#include "hca/transport/scatter_to_cqe.h"

#include <cstring>

#include "hca/trace_points.h"
#include "hca/transport/responder.h"
#include "hca/transport/send_wqe.h"

namespace hca {

void scatter_to_cqe(sim::Context& context, PendingCqe& cqe, const std::byte* data, std::uint32_t n, std::uint8_t most) {
  auto* c = reinterpret_cast<mlx5_cqe64*>(cqe.bytes.data());
  if (most == 32) {
    std::memcpy(cqe.bytes.data(), data, n);
    c->op_own |= MLX5_INLINE_SCATTER_32;
    return;
  }
  cqe.data = context.buffers.make(64);
  std::memset(cqe.data.data(), 0, 64);
  std::memcpy(cqe.data.data(), data, n);
  c->op_own |= MLX5_INLINE_SCATTER_64;
}

// A message that goes into the CQE takes room in the receive WQE all the same, but the device does not look at its keys.
bool Responder::fits_receive(Qp& qp, RxPacket& rx) {
  const std::uint32_t n = rx.packet->payload_length;
  ReceiveCursor cursor(qp.rx_wqe.buffer.data() + qp.rx_wqe.offset, qp.rx_wqe.segments);
  std::uint32_t room = 0;
  while (const auto segment = cursor.next(n - room)) room += segment->length;
  if (room < n) {
    refuse(qp, rx, refusals::receive_too_short);
    return false;
  }
  qp.rx_bytes += n;
  return true;
}

}  // namespace hca
