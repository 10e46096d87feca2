// SPDX-License-Identifier: Apache-2.0
// Receive completions of the responder, successful and failed, and its refusals: NAK once, then ERR (S-RC-26,
// S-ERR-1…11).
#include <cstring>

#include "hca/trace_points.h"
#include "hca/transport/responder.h"
#include "hca/transport/scatter_to_cqe.h"

namespace hca {

void Responder::post_receive(Qp& qp, const RxPacket& rx) {
  const std::uint8_t operation = wire::operation_of(rx.bth().opcode);
  std::uint8_t code = MLX5_CQE_RESP_SEND;
  PendingCqe cqe;
  auto* c = reinterpret_cast<mlx5_cqe64*>(cqe.bytes.data());
  switch (operation) {
    case wire::kSendLastImm:
    case wire::kSendOnlyImm:
      code = MLX5_CQE_RESP_SEND_IMM;
      break;
    case wire::kSendLastInvalidate:
    case wire::kSendOnlyInvalidate:
      code = MLX5_CQE_RESP_SEND_INV;
      break;
    case wire::kWriteLastImm:
    case wire::kWriteOnlyImm:
      code = MLX5_CQE_RESP_WR_IMM;
      break;
    default:
      break;
  }
  if (code == MLX5_CQE_RESP_SEND_INV) c->imm_inval_pkey = prm::be32(rx.parsed.headers.invalidate_rkey);
  else if (code != MLX5_CQE_RESP_SEND) std::memcpy(&c->imm_inval_pkey, &rx.parsed.headers.immediate, 4);
  constexpr std::uint32_t kIpv6Header = 2U << 28, kIpv4Header = 3U << 28;
  const bool datagram = qp.service == prm::kStUd;
  c->flags_rqpn = prm::be32((rx.parsed.ipv4 ? kIpv4Header : kIpv6Header) |
                            (datagram ? rx.parsed.headers.deth.source_qpn : qp.remote_qpn));
  if (rx.multicast) c->ml_path = 0x80;
  c->srqn_uidx = prm::be32(qp.rx_user_index);
  c->byte_cnt = prm::be32(qp.rx_bytes);
  c->sop_drop_qpn = prm::be32(qp.qpn);
  c->wqe_counter = prm::be16(static_cast<std::uint16_t>(qp.rx_wqe.counter));
  c->op_own = static_cast<std::uint8_t>(code << 4);
  if (receives_in_cqe(qp, *rx.parsed.op, rx.packet->payload_length))
    scatter_to_cqe(device_.context, cqe, rx.packet->payload.data() + rx.packet->payload_offset,
                   rx.packet->payload_length, qp.receive_in_cqe);
  cqe.cause = rx.packet->cause;
  cqe.qpn = qp.qpn;
  cqe.solicited = rx.bth().solicited;
  qp.rx_wqe_valid = false;
  qp.rx_wqe.buffer = {};
  completions_.post(qp.rx_cqn, std::move(cqe));
}

void Responder::post_receive_error(Qp& qp, std::uint8_t syndrome, std::uint8_t vendor, std::uint64_t up) {
  PendingCqe cqe;
  auto* c = reinterpret_cast<mlx5_err_cqe*>(cqe.bytes.data());
  c->srqn = prm::be32(qp.rx_user_index);
  c->vendor_err_synd = vendor;
  c->syndrome = syndrome;
  c->s_wqe_opcode_qpn = prm::be32(qp.qpn);
  c->wqe_counter = prm::be16(static_cast<std::uint16_t>(qp.rx_wqe.counter));
  c->op_own = MLX5_CQE_RESP_ERR << 4;
  cqe.cause = {0, up};  // the message fails where it was posted
  cqe.qpn = qp.qpn;
  cqe.solicited = true;
  qp.rx_wqe_valid = false;
  qp.rx_wqe.buffer = {};
  completions_.post(qp.rx_cqn, std::move(cqe));
}

void Responder::refuse(Qp& qp, const RxPacket& rx, const Refusal& why) {
  if (qp.unreliable()) {
    refuse_unreliable(qp, rx, why);
    return;
  }
  naks_.add();
  trace_.instant(points::nak, rx.packet->cause, device_.context.now(), qp.qpn, rx.bth().psn.value(), why.nak);
  answer(qp, {ResponseJob::ack, why.nak, rx.bth().psn, qp.msn, 0, 0, 0, rx.packet->cause});
  if (qp.rx_wqe_valid) post_receive_error(qp, why.syndrome, why.vendor, rx.packet->cause.parent);
  else if (why.event == prm::kEventWqCatas) control_.queue_unreadable(qp);
  else events_.async(why.event, qp.qpn);
  control_.enter_error(qp);
}

}  // namespace hca
