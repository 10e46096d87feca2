// SPDX-License-Identifier: Apache-2.0
// SRQ creation, limit, query, destruction (S-OBJ-60, S-SRQ-4): the ring holds twice the WQEs that may be posted, as far as
// the device allows; the second half is the list of spare WQEs. The kernel learns the ring, the program the half.
#include "verbs_frontend/mlx5/srq.h"

#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <memory>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

constexpr std::uint32_t kHead = hca::prm::kSrqHeadSize, kSegment = hca::prm::kDs, kSmallestWqe = 32;

/// Links the slots [first, last] one behind the other. Nobody else sees the ring yet.
void link(Srq& srq, std::uint32_t first, std::uint32_t last) {
  for (std::uint32_t i = first; i < last; ++i) {
    const std::uint16_t next = be16(static_cast<std::uint16_t>(i + 1));
    std::memcpy(srq.wqe(i) + hca::prm::kSrqNextIndex, &next, sizeof next);
  }
}

/// Sizes and lists. 0, EINVAL or ENOMEM.
int build_ring(Mlx5Context& c, Srq& srq, const ibv_srq_attr& wanted) {
  if (wanted.max_wr > c.max_srq_recv_wr) return EINVAL;
  if (wanted.max_sge > (1U << 20)) return EINVAL;
  const std::uint32_t usable = std::bit_ceil(wanted.max_wr + 1);
  const std::uint64_t with_spares = std::bit_ceil(2 * std::uint64_t{wanted.max_wr} + 1);
  srq.spare = wanted.max_wr != 0 && 2 * std::uint64_t{wanted.max_wr} + 1 <= c.max_srq_recv_wr;
  srq.wqe_cnt = srq.spare ? static_cast<std::uint32_t>(with_spares) : usable;
  const std::uint32_t bytes = std::bit_ceil(std::max(kSmallestWqe, kHead + kSegment * wanted.max_sge));
  srq.wqe_shift = static_cast<std::uint32_t>(std::countr_zero(bytes));
  srq.granted = {usable - 1, (bytes - kHead) / kSegment, 0};
  srq.buf = static_cast<std::byte*>(c.space().alloc(std::size_t{srq.wqe_cnt} * bytes, memory::kPageSize));
  srq.dbr = c.dbrs.alloc(c.space(), c.cache_line);
  if (srq.buf == nullptr || srq.dbr == nullptr) return ENOMEM;
  srq.wrid.resize(srq.wqe_cnt);
  srq.tail = usable - 1;
  link(srq, srq.head, srq.tail);
  if (!srq.spare) return 0;
  srq.spare_head = srq.tail + 1;
  srq.spare_tail = srq.wqe_cnt - 1;
  link(srq, srq.spare_head, srq.spare_tail);
  return 0;
}

void release(Mlx5Context& c, Srq& srq) {
  if (srq.dbr != nullptr) c.dbrs.free(srq.dbr);
  if (srq.buf != nullptr) c.space().free(srq.buf);
}

template <class Request>
int command(std::uint32_t number, Srq& srq, std::uint32_t pd_handle, void (*fill)(Request&, const Srq&)) {
  Mlx5Context& c = mlx5_of(srq.srq().context);
  Command cmd(number);
  auto& req = cmd.add<Request>();
  auto& driver = cmd.add<mlx5_ib_create_srq>();
  const auto& resp = cmd.expect<ib_uverbs_create_srq_resp>();
  const auto& result = cmd.expect<mlx5_ib_create_srq_resp>();
  req.response = cmd.response_address();
  req.user_handle = reinterpret_cast<std::uint64_t>(&srq.srq());
  req.pd_handle = pd_handle;
  req.max_wr = srq.wqe_cnt - 1;
  req.max_sge = srq.granted.max_sge;
  fill(req, srq);
  driver.buf_addr = reinterpret_cast<std::uint64_t>(srq.buf);
  driver.db_addr = reinterpret_cast<std::uint64_t>(srq.dbr);
  driver.uidx = srq.user_index;
  if (const int e = cmd.issue(*c.base.syscalls, c.base.vctx.context.cmd_fd)) return e;
  srq.srqn = result.srqn;
  srq.srq().handle = resp.srq_handle;
  return 0;
}

int command(Srq& srq, ibv_pd* pd) {
  if (srq.type == IBV_SRQT_BASIC)
    return command<ib_uverbs_create_srq>(IB_USER_VERBS_CMD_CREATE_SRQ, srq, pd->handle,
                                         [](ib_uverbs_create_srq&, const Srq&) {});
  return command<ib_uverbs_create_xsrq>(IB_USER_VERBS_CMD_CREATE_XSRQ, srq, pd->handle,
                                        [](ib_uverbs_create_xsrq& req, const Srq& s) {
                                          req.srq_type = IBV_SRQT_XRC;
                                          req.xrcd_handle = xrcd_of(s.xrcd).handle;
                                          req.cq_handle = s.cq->handle;
                                        });
}

void open_gauge(const ProcessState& s, Srq& srq) {
  if (!s.context->tracer.on(sim::trace::Category::verbs)) return;
  const std::string lane = "host" + std::to_string(s.host) + ".verbs.srq" + std::to_string(srq.srqn);
  srq.occupancy.open(*s.context, points::srq_occupancy, s.host, lane, cpu::current().now());
}

/// The granted sizes go back in `attr`.
ibv_srq* create(ibv_context* context, ibv_srq_init_attr_ex& a) {
  Mlx5Context& c = mlx5_of(context);
  cpu::current().compute(process().config->control_call);
  if (set(process().getenv("MLX5_SRQ_SIGNATURE"))) return fail(EOPNOTSUPP);
  auto srq = std::make_unique<Srq>();
  srq->srq().context = context;
  srq->srq().srq_context = a.srq_context;
  srq->srq().pd = a.pd;
  srq->type = a.srq_type;
  srq->lock.needed = locks_needed(a.pd);
  if (a.srq_type == IBV_SRQT_XRC) {
    srq->xrcd = a.xrcd;
    srq->cq = a.cq;
  }
  int error = build_ring(c, *srq, a.attr);
  const bool xrc = srq->type == IBV_SRQT_XRC;
  if (error == 0 && xrc) srq->user_index = c.take_user_index({nullptr, srq.get()});
  if (error == 0 && (error = command(*srq, a.pd)) != 0 && xrc) c.give_user_index(srq->user_index);
  if (error != 0) {
    release(c, *srq);
    return fail(error);
  }
  enter_domain(a.pd);
  a.attr.max_wr = srq->granted.max_wr;
  a.attr.max_sge = srq->granted.max_sge;
  open_gauge(process(), *srq);
  return &srq.release()->srq();
}

}  // namespace

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex a{};
  a.srq_context = attr->srq_context;
  a.attr = attr->attr;
  a.srq_type = IBV_SRQT_BASIC;
  a.pd = pd;
  ibv_srq* srq = create(pd->context, a);
  if (srq != nullptr) attr->attr = a.attr;
  return srq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  constexpr std::uint32_t kKnown =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const auto given = [&](std::uint32_t bits) { return (attr->comp_mask & bits) == bits; };
  if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TM) return fail(EOPNOTSUPP);
  if ((attr->comp_mask & ~kKnown) != 0 || !given(IBV_SRQ_INIT_ATTR_PD)) return fail(EINVAL);
  if (!given(IBV_SRQ_INIT_ATTR_TYPE)) attr->srq_type = IBV_SRQT_BASIC;
  if (attr->srq_type == IBV_SRQT_TM) return fail(EOPNOTSUPP);
  if (attr->srq_type != IBV_SRQT_BASIC && attr->srq_type != IBV_SRQT_XRC) return fail(EINVAL);
  if (attr->srq_type == IBV_SRQT_XRC && !given(IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ)) return fail(EINVAL);
  return create(context, *attr);
}

int modify_srq(ibv_srq* ibsrq, ibv_srq_attr* attr, int mask) {
  cpu::current().compute(process().config->control_call);
  // The kernel knows the ring, spare WQEs included; a limit that the program's half can never reach is refused here.
  if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit >= srq_of(ibsrq).granted.max_wr) return EINVAL;
  return cmd_modify_srq(ibsrq, *attr, mask);
}

int query_srq(ibv_srq* ibsrq, ibv_srq_attr* attr) {
  cpu::current().compute(process().config->control_call);
  if (const int e = cmd_query_srq(ibsrq, *attr)) return e;
  attr->max_wr = srq_of(ibsrq).granted.max_wr;  // of the ring, the part that may be posted
  return 0;
}

int destroy_srq(ibv_srq* ibsrq) {
  Machine m = machine_for(ibsrq->context);
  Srq& srq = srq_of(ibsrq);
  Mlx5Context& c = mlx5_of(ibsrq->context);
  m.compute(m.config().control_call);
  if (const int e = cmd_destroy_srq(ibsrq)) return e;
  if (srq.type == IBV_SRQT_XRC) {
    clean_cq(m, cq_of(srq.cq), srq.user_index, nullptr);
    c.give_user_index(srq.user_index);
  }
  leave_domain(ibsrq->pd);
  srq.occupancy.set(m.now(), 0);
  release(c, srq);
  delete &srq;
  return 0;
}

int get_srq_num(ibv_srq* ibsrq, std::uint32_t* number) {
  const Srq& srq = srq_of(ibsrq);
  if (srq.type != IBV_SRQT_XRC) return EINVAL;
  *number = srq.srqn;
  return 0;
}

}  // namespace verbs::mlx5
