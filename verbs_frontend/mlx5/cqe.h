// SPDX-License-Identifier: Apache-2.0
// Reading a CQE of version 1 (S-CQE-1 to S-CQE-16).
#pragma once

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {

/// skipped: a receive that the device will do again in another WQE; no completion of the program's.
enum class Seen : std::uint8_t { empty, found, error, skipped };

/// A CQE resolved to its WR: what both polling interfaces need.
struct Completion {
  mlx5_cqe64 cqe;
  Qp* qp = nullptr;             ///< null for an XRC SRQ
  Srq* srq = nullptr;           ///< of a receive
  bool counted = true;          ///< false: an opcode that names no WR; only qp_num and wc_flags are reported
  bool is_error = false;        ///< an error CQE
  bool scatter_failed = false;  ///< inline data that did not fit
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint8_t umr_opcode = 0;

  std::uint8_t opcode() const { return cqe.op_own >> 4; }
  std::uint32_t qpn() const { return be32(cqe.sop_drop_qpn) & 0xffffff; }
  std::uint8_t send_opcode() const { return static_cast<std::uint8_t>(be32(cqe.sop_drop_qpn) >> 24); }
  std::uint8_t vendor_error() const { return reinterpret_cast<const mlx5_err_cqe&>(cqe).vendor_err_synd; }
};

inline bool is_receive(const mlx5_cqe64& cqe) {
  const std::uint8_t opcode = cqe.op_own >> 4;
  return (opcode >= MLX5_CQE_RESP_WR_IMM && opcode <= MLX5_CQE_RESP_SEND_INV) || opcode == MLX5_CQE_RESP_ERR;
}

/// Takes the next CQE, if there is one: consumer index, barrier, copy of the CQE, WR look-up, reclaim of its slots.
/// `entry` is the time at which the poll call began and tells a loop of empty polls (see poll_cq.cpp).
Seen take_completion(Machine& m, Cq& cq, sim::Picos entry, Completion& out);
/// A poll begins at `entry`.
inline void begin_poll(Cq& cq, sim::Picos entry) { cq.polled = {entry}; }
/// Records the poll that returns now as a span, unless it found nothing.
void trace_poll(Machine& m, const Cq& cq);
/// Ends the journeys that the poll delivered, at the time it returns.
void settle_journeys(Machine& m, Cq& cq);
void store_consumer_index(Machine& m, Cq& cq);
ibv_wc_status status_of(std::uint8_t syndrome);
/// wc_opcode of a requester CQE; false = the opcode is left as it is.
bool requester_opcode(const Completion& c, ibv_wc_opcode& out);

/// Inline data of a CQE into the buffers of its receive or send WQE (S-CQE-16).
ibv_wc_status scatter_to_receive(Machine& m, Qp& qp, const std::byte* data, std::uint32_t n);
ibv_wc_status scatter_to_send(Machine& m, Qp& qp, std::uint32_t idx, const std::byte* data, std::uint32_t n);

}  // namespace verbs::mlx5
