// SPDX-License-Identifier: Apache-2.0
// Resizing a CQ (S-OVR-12): behind the CQEs that wait comes one RESIZE_CQ CQE, the last of the old buffer; the next goes into
// the new one, under the next number. The library moves what is not consumed, one number up. An arm stays (S-OVR-13).
#include <vector>

#include "hca/completion/completion_unit.h"

namespace hca {

void CompletionUnit::begin_resize(Cq& cq) {
  PendingCqe cqe;
  auto* c = reinterpret_cast<mlx5_cqe64*>(cqe.bytes.data());
  c->op_own = MLX5_CQE_RESIZE_CQ << 4;
  cqe.resizes = true;
  cqe.since = context_.now();
  cq.pending.push_back(std::move(cqe));
  if (!cq.writing) write(cq);
}

// The marker is written: moves to the new buffer.
void CompletionUnit::finish_resize(Cq& cq) {
  if (cq.tags != nullptr) {
    std::vector<sim::MsgId> waiting;
    for (std::uint32_t n = cq.consumer; n + 1 != cq.producer; ++n) waiting.push_back(cq.tags->find(n));
    cq.tags->reserve(1U << cq.resize->log_size);
    for (std::uint32_t i = 0; i < waiting.size(); ++i) cq.tags->publish(cq.consumer + 1 + i, waiting[i]);
  }
  cq.buffer = std::move(cq.resize->buffer);
  cq.log_size = cq.resize->log_size;
  prm::set(cq.image.data(), prm::kCqcLogSize, cq.log_size);
  cqc_.dirty(cq.cqn);
  cq.resize->done.complete(true);
}

}  // namespace hca
