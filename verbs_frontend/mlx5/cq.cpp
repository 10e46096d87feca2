// SPDX-License-Identifier: Apache-2.0
// CQ creation and destruction, and the removal of a QP's CQEs when it is reset or destroyed (S-OBJ-30 to S-OBJ-35,
// S-QP-46). Not built: timestamps in wall-clock units.
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <memory>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/libibverbs/ex_command.h"
#include "verbs_frontend/mlx5/srq.h"
#include "verbs_frontend/mlx5/verbs.h"

namespace verbs::mlx5 {
namespace {

constexpr std::int32_t kMaxEntries = 1 << 24;
constexpr std::uint8_t kInvalidOpOwn = MLX5_CQE_INVALID << 4;

/// 64 or 128; 0 when MLX5_CQE_SIZE asks for anything else.
std::uint32_t wanted_cqe_size(const ProcessState& s) {
  const char* v = s.getenv("MLX5_CQE_SIZE");
  const int n = v == nullptr ? 64 : std::atoi(v);
  return n == 64 || n == 128 ? static_cast<std::uint32_t>(n) : 0;
}

/// What the command asks for and what it answered.
struct Creation {
  ibv_comp_channel* channel;
  int vector;
  bool ignore_overrun = false;
};

void fill(mlx5_ib_create_cq& driver, const Cq& cq) {
  driver.buf_addr = reinterpret_cast<std::uint64_t>(cq.buf);
  driver.db_addr = reinterpret_cast<std::uint64_t>(cq.dbr);
  driver.cqe_size = cq.cqe_size;
}

void take(Cq& cq, const ib_uverbs_create_cq_resp& resp, const mlx5_ib_create_cq_resp& result) {
  cq.cqn = result.cqn;
  cq.cq().handle = resp.cq_handle;
  cq.cq().cqe = static_cast<int>(resp.cqe);
}

int command(Mlx5Context& c, Cq& cq, const Creation& k) {
  Command cmd(IB_USER_VERBS_CMD_CREATE_CQ);
  auto& req = cmd.add<ib_uverbs_create_cq>();
  auto& driver = cmd.add<mlx5_ib_create_cq>();
  const auto& resp = cmd.expect<ib_uverbs_create_cq_resp>();
  const auto& result = cmd.expect<mlx5_ib_create_cq_resp>();
  req.response = cmd.response_address();
  req.user_handle = reinterpret_cast<std::uint64_t>(&cq.cq());
  req.cqe = cq.entries - 1;
  req.comp_vector = static_cast<std::uint32_t>(k.vector);
  req.comp_channel = k.channel != nullptr ? k.channel->fd : -1;
  fill(driver, cq);
  if (const int e = cmd.issue(*c.base.syscalls, c.base.vctx.context.cmd_fd)) return e;
  take(cq, resp, result);
  return 0;
}

/// The same with flags, which the older command has no room for.
int command_with_flags(Mlx5Context& c, Cq& cq, const Creation& k) {
  ExCommand cmd(IB_USER_VERBS_EX_CMD_CREATE_CQ);
  auto& req = cmd.add<ib_uverbs_ex_create_cq>();
  const auto& resp = cmd.expect<ib_uverbs_ex_create_cq_resp>();
  cmd.driver();
  auto& driver = cmd.add<mlx5_ib_create_cq>();
  const auto& result = cmd.expect<mlx5_ib_create_cq_resp>();
  req.user_handle = reinterpret_cast<std::uint64_t>(&cq.cq());
  req.cqe = cq.entries - 1;
  req.comp_vector = static_cast<std::uint32_t>(k.vector);
  req.comp_channel = k.channel != nullptr ? k.channel->fd : -1;
  req.flags = IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
  fill(driver, cq);
  if (const int e = cmd.issue(*c.base.syscalls, c.base.vctx.context.cmd_fd)) return e;
  take(cq, resp.base, result);
  return 0;
}

void invalidate(std::byte* buf, std::uint64_t entries, std::uint32_t size) {
  for (std::uint64_t i = 0; i < entries; ++i) buf[(i + 1) * size - 1] = std::byte{kInvalidOpOwn};
}

void release(Mlx5Context& c, Cq& cq) {
  if (cq.dbr != nullptr) c.dbrs.free(cq.dbr);
  if (cq.buf != nullptr) c.space().free(cq.buf);
}

/// `slots` as the driver computes it, in 32 bits: a count that wrapped to 2^31 passes its check, and the kernel refuses.
Cq* create(ibv_context* context, std::uint32_t slots, const Creation& k) {
  Mlx5Context& c = mlx5_of(context);
  ProcessState& s = process();
  cpu::current().compute(s.config->control_call);
  const std::uint32_t size = wanted_cqe_size(s);
  if (static_cast<std::int32_t>(slots) > kMaxEntries || size == 0) return fail(EINVAL);
  const std::uint32_t entries = slots > static_cast<std::uint32_t>(kMaxEntries) ? 1 : slots;
  auto cq = std::make_unique<Cq>();
  cq->cq().context = context;
  cq->entries = slots;
  cq->cqe_size = size;
  cq->buf = static_cast<std::byte*>(c.space().alloc(std::uint64_t{entries} * size, memory::kPageSize));
  cq->dbr = c.dbrs.alloc(c.space(), c.cache_line);
  int error = cq->buf == nullptr || cq->dbr == nullptr ? ENOMEM : 0;
  if (error == 0) {
    invalidate(cq->buf, entries, size);
    error = k.ignore_overrun ? command_with_flags(c, *cq, k) : command(c, *cq, k);
  }
  if (error != 0) {
    release(c, *cq);
    return fail(error);
  }
  cq->tags = &s.context->wqe_tags.cq.of(s.host, cq->cqn);
  cq->tags->clear();
  cq->tags->reserve(cq->entries);
  const std::string counters = "host" + std::to_string(s.host) + ".verbs.";
  cq->empty_polls = &s.context->stats.counter(counters + "empty_polls");
  cq->sq_slots_freed = &s.context->stats.counter(counters + "sq_slots_freed");
  cq->sq_slot_time_ps = &s.context->stats.counter(counters + "sq_slot_time_ps");
  cq->delivered.reserve(64);
  return cq.release();
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector) {
  if (cqe <= 0) return fail(EINVAL);
  Cq* cq = create(context, std::bit_ceil(static_cast<std::uint32_t>(cqe) + 1), {channel, vector});
  return cq != nullptr ? &cq->cq() : nullptr;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  constexpr std::uint64_t kFlags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                   IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG;
  if (attr->cqe == 0) return fail(EINVAL);
  if (attr->comp_mask & ~static_cast<std::uint32_t>(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
    return fail(EINVAL);
  if (attr->wc_flags & ~kFlags) return fail(EOPNOTSUPP);
  constexpr std::uint32_t kSupported = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~kSupported)) return fail(EINVAL);
  ibv_pd* const domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : nullptr;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) && !is_parent_domain(domain)) return fail(EINVAL);
  const bool ignore_overrun =
      (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
  Cq* cq = create(context, std::bit_ceil(attr->cqe + 1),
                  {attr->channel, static_cast<int>(attr->comp_vector), ignore_overrun});
  if (cq == nullptr) return nullptr;
  const bool single_threaded =
      (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
  cq->lock.needed = !single_threaded && locks_needed(domain);
  cq->domain = domain;
  enter_domain(domain);
  set_cq_ex_ops(*cq, attr->wc_flags);
  return &cq->base.cq_ex;
}

ibv_cq_ex* create_cq_ex_checked(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* cq = ops_of(context).create_cq_ex(context, attr);
  if (cq == nullptr) return nullptr;
  cq->context = context;
  cq->channel = attr->channel;
  cq->cq_context = attr->cq_context;
  if (attr->channel != nullptr) ++attr->channel->refcnt;
  return cq;
}

int destroy_cq(ibv_cq* ibcq) {
  Cq& cq = cq_of(ibcq);
  cpu::current().compute(process().config->control_call);
  if (const int e = cmd_destroy_cq(ibcq)) return e;
  leave_domain(cq.domain);
  cq.tags->clear();
  cq.tags->occupancy.set(process().context->now(), 0);  // a device that went before left its CQEs in the ring
  release(mlx5_of(ibcq->context), cq);
  delete &cq;
  return 0;
}

void clean_cq(Machine& m, Cq& cq, std::uint32_t user_index, Srq* srq) {
  m.lock(cq.lock);
  m.thread().sync();
  const auto slot = [&cq](std::uint32_t n) { return cq.buf + std::size_t{n & (cq.entries - 1)} * cq.cqe_size; };
  const auto op_own = [&](std::uint32_t n) { return slot(n) + cq.cqe_size - 1; };
  const auto valid = [&](std::uint32_t n) {
    const auto v = m.load<std::uint8_t>(op_own(n));
    return v >> 4 != MLX5_CQE_INVALID && (v & MLX5_CQE_OWNER_MASK) == static_cast<std::uint8_t>((n & cq.entries) != 0);
  };
  std::uint32_t producer = cq.cons_index;
  while (producer - cq.cons_index < cq.entries && valid(producer)) ++producer;
  const sim::Picos seen = m.state().context->now();
  std::uint32_t removed = 0;
  for (std::uint32_t n = producer; n-- != cq.cons_index;) {
    mlx5_cqe64 cqe;
    std::byte* from = slot(n);
    m.load_bytes(from + cq.cqe_size - sizeof cqe, &cqe, sizeof cqe);
    if (mlx5_of(cq.cq().context).index_of(cqe) == user_index) {
      if (srq != nullptr && is_receive(cqe)) free_srq_wqe(m, *srq, be16(cqe.wqe_counter) & (srq->wqe_cnt - 1));
      ++removed;
    } else if (removed != 0) {
      // The CQE moves towards the producer; each slot keeps its own owner bit.
      std::byte* to = slot(n + removed);
      const auto owner = static_cast<std::uint8_t>(m.load<std::uint8_t>(op_own(n + removed)) & MLX5_CQE_OWNER_MASK);
      if (cq.cqe_size == 128) m.thread().copy(to, from, 64);
      cqe.op_own = static_cast<std::uint8_t>((cqe.op_own & ~MLX5_CQE_OWNER_MASK) | owner);
      m.store_bytes(to + cq.cqe_size - sizeof cqe, &cqe, sizeof cqe);
      cq.tags->publish(n + removed, cq.tags->find(n));
    }
  }
  if (removed != 0) {
    cq.cons_index += removed;
    cq.tags->occupancy.add(seen, -std::int64_t{removed});
    m.barrier(cpu::Barrier::udma_to_device);
    m.store(cq.dbr + kCiWord, be32(cq.cons_index & 0xffffff));
  }
  cq.current = nullptr;
  forget_empty_polls(cq);
  m.unlock(cq.lock);
}

}  // namespace verbs::mlx5
