// SPDX-License-Identifier: Apache-2.0
// Changing a CQ: moderation, and resizing by the marker protocol (S-MOD-1, S-OBJ-36, S-OVR-12). During the command the device
// writes a RESIZE_CQ CQE as the last of the old ring and goes on in the new one, one number up; what is not consumed moves
// after it, with new owner bits, and the consumer index counts the marker.
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <limits>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/mlx5/mlx5.h"
#include "verbs_frontend/mlx5/verbs.h"

namespace verbs::mlx5 {
namespace {

int command(Cq& cq, std::byte* buf, std::uint32_t entries) {
  ibv_context* context = cq.cq().context;
  Command cmd(IB_USER_VERBS_CMD_RESIZE_CQ);
  auto& req = cmd.add<ib_uverbs_resize_cq>();
  auto& driver = cmd.add<mlx5_ib_resize_cq>();
  cmd.expect<ib_uverbs_resize_cq_resp>();
  req.response = cmd.response_address();
  req.cq_handle = cq.cq().handle;
  req.cqe = entries - 1;
  driver.buf_addr = reinterpret_cast<std::uint64_t>(buf);
  driver.cqe_size = static_cast<std::uint16_t>(cq.cqe_size);
  return cmd.issue(*context_of(context).syscalls, context->cmd_fd);
}

/// Moves the CQEs from the consumer index to the marker. Stops at a CQE that the device owns, as the driver does.
void move_cqes(Machine& m, Cq& cq, std::byte* to, std::uint32_t entries) {
  m.thread().sync();
  for (std::uint32_t n = cq.cons_index;; ++n) {
    const std::byte* from = cq.buf + std::size_t{n & (cq.entries - 1)} * cq.cqe_size;
    const auto op_own = m.load<std::uint8_t>(from + cq.cqe_size - 1);
    const bool ours = op_own >> 4 != MLX5_CQE_INVALID &&
                      (op_own & MLX5_CQE_OWNER_MASK) == static_cast<std::uint8_t>((n & cq.entries) != 0);
    if (!ours || n - cq.cons_index >= cq.entries) return;
    if (op_own >> 4 == MLX5_CQE_RESIZE_CQ) {
      ++cq.cons_index;
      return;
    }
    std::byte* slot = to + std::size_t{(n + 1) & (entries - 1)} * cq.cqe_size;
    m.thread().copy(slot, from, cq.cqe_size);
    const std::uint8_t owner = ((n + 1) & entries) != 0 ? 1 : 0;
    m.store(slot + cq.cqe_size - 1, static_cast<std::uint8_t>((op_own & ~MLX5_CQE_OWNER_MASK) | owner));
  }
}

}  // namespace

int modify_cq(ibv_cq* ibcq, ibv_modify_cq_attr* attr) {
  cpu::current().compute(process().config->control_call);
  return cmd_modify_cq(ibcq, *attr);
}

int resize_cq(ibv_cq* ibcq, int cqe) {
  Machine m = machine_for(ibcq->context);
  Cq& cq = cq_of(ibcq);
  Mlx5Context& c = mlx5_of(ibcq->context);
  m.compute(m.config().control_call);
  if (cqe < 0 || std::int64_t{cqe} * 64 > std::numeric_limits<int>::max()) return errno = EINVAL;
  const std::uint32_t entries = std::bit_ceil(static_cast<std::uint32_t>(cqe) + 1);
  m.lock(cq.lock);
  int error = 0;
  if (entries != cq.entries) {
    const std::size_t bytes = std::size_t{entries} * cq.cqe_size;
    auto* buf = static_cast<std::byte*>(c.space().alloc(bytes, memory::kPageSize));
    error = buf == nullptr ? ENOMEM : 0;
    if (error == 0) {
      for (std::uint32_t i = 1; i <= entries; ++i)
        buf[std::size_t{i} * cq.cqe_size - 1] = std::byte{MLX5_CQE_INVALID << 4};
      error = command(cq, buf, entries);
    }
    if (error == 0) {
      move_cqes(m, cq, buf, entries);
      std::swap(cq.buf, buf);
      cq.entries = entries;
      ibcq->cqe = static_cast<int>(entries - 1);
      forget_empty_polls(cq);
    }
    if (buf != nullptr) c.space().free(buf);
  }
  m.unlock(cq.lock);
  if (error != 0) errno = error;
  return error;
}

}  // namespace verbs::mlx5
