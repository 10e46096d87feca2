// SPDX-License-Identifier: Apache-2.0
// Scatter-to-CQE: small messages and results travel in the CQE, and the library copies them to the buffers (S-CQE-16).
#pragma once

#include <cstdint>

#include "hca/context/objects.h"

namespace hca {

/// Puts `n` bytes into a CQE of a CQ: the 32-byte format if `most` is 32, otherwise the 64-byte one of 128-byte CQEs.
void scatter_to_cqe(sim::Context& context, PendingCqe& cqe, const std::byte* data, std::uint32_t n, std::uint8_t most);

/// Whether a received message of one packet goes into the CQE.
inline bool receives_in_cqe(const Qp& qp, const wire::OpcodeInfo& op, std::uint32_t n) {
  return n > 0 && n <= qp.receive_in_cqe && op.kind == wire::MessageKind::send && op.starts() && op.ends();
}
/// Whether a result of `n` bytes goes into the CQE.
inline bool result_goes_in_cqe(const Qp& qp, const SentWqe& s, std::uint32_t n) {
  return n > 0 && n <= qp.result_in_cqe && s.signaled;
}

}  // namespace hca
