// SPDX-License-Identifier: Apache-2.0
// QP creation, state changes as user space sees them, query and destruction (S-OBJ-40 to S-OBJ-49, S-QP-41, S-QP-46,
// S-QP-47). RC, UC, UD and XRC. Refused with EOPNOTSUPP: raw packet QPs, TSO.
#include <rdma/mlx5-abi.h>

#include <bit>
#include <cerrno>
#include <memory>

#include "verbs_frontend/libibverbs/command.h"
#include "verbs_frontend/mlx5/srq.h"
#include "verbs_frontend/mlx5/verbs.h"
#include "verbs_frontend/mlx5/xrc.h"
#include "verbs_frontend/trace_points.h"

namespace verbs::mlx5 {
namespace {

constexpr std::uint64_t kSendOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr std::uint64_t kUcOps = kSendOps | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
                                 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
constexpr std::uint64_t kAtomicOps = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr std::uint64_t kRcOps = kUcOps | IBV_QP_EX_WITH_RDMA_READ | kAtomicOps;

/// 0, EINVAL for a type that does not exist, EOPNOTSUPP for one that is not built.
int check_type(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return 0;
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
      return EOPNOTSUPP;
    default:
      return EINVAL;
  }
}

int check_ops(const Mlx5Context& c, ibv_qp_type type, std::uint64_t ops) {
  const bool reliable = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
  const std::uint64_t allowed = reliable ? kRcOps : type == IBV_QPT_UC ? kUcOps : kSendOps;
  if (ops & ~allowed) return EOPNOTSUPP;
  if ((ops & kAtomicOps) && c.atomic_cap == IBV_ATOMIC_NONE) return EOPNOTSUPP;
  return 0;
}

void init_sq(Qp& qp, const QpSizes& s, std::uint32_t max_sge) {
  WorkQueue& sq = qp.sq;
  sq.buf = qp.buf + s.rq_bytes;
  sq.wqe_cnt = s.sq_wqebbs;
  sq.wqe_shift = 6;
  sq.max_post = s.sq_max_post;
  sq.max_gs = static_cast<std::int32_t>(max_sge);
  sq.wrid.resize(sq.wqe_cnt);
  sq.wqe_head.resize(sq.wqe_cnt);
  sq.wrs.resize(std::bit_ceil(std::max(1U, sq.max_post)));
}

void init_rq(Qp& qp, const QpSizes& s) {
  WorkQueue& rq = qp.rq;
  rq.buf = qp.buf;
  rq.wqe_cnt = rq.max_post = s.rq_wqes;
  rq.wqe_shift = s.rq_stride != 0 ? static_cast<std::uint32_t>(std::countr_zero(s.rq_stride)) : 0;
  rq.max_gs = static_cast<std::int32_t>(s.granted.max_recv_sge);
  rq.wrid.resize(rq.wqe_cnt);
}

void reset_indices(Qp& qp) {
  for (WorkQueue* wq : {&qp.sq, &qp.rq}) {
    wq->head = wq->tail = wq->cur_post = 0;
    wq->state_max_gs = -1;
    wq->trace_occupancy(cpu::current().now());
  }
}

void open_gauges(const ProcessState& s, Qp& qp) {
  if (!s.context->tracer.on(sim::trace::Category::verbs)) return;
  const std::string lane = "host" + std::to_string(s.host) + ".verbs.qp" + std::to_string(qp.qp().qp_num);
  const sim::Picos now = cpu::current().now();
  if (qp.sq.wqe_cnt != 0) qp.sq.occupancy.open(*s.context, points::sq_occupancy, s.host, lane + ".sq", now);
  if (qp.rq.wqe_cnt != 0) qp.rq.occupancy.open(*s.context, points::rq_occupancy, s.host, lane + ".rq", now);
}

void release(Mlx5Context& c, Qp& qp) {
  if (qp.dbr != nullptr) c.dbrs.free(qp.dbr);
  if (qp.buf != nullptr) c.space().free(qp.buf);
}

int command(Mlx5Context& c, Qp& qp, const ibv_qp_init_attr_ex& a, const QpSizes& s) {
  Command cmd(IB_USER_VERBS_CMD_CREATE_QP);
  auto& req = cmd.add<ib_uverbs_create_qp>();
  auto& driver = cmd.add<mlx5_ib_create_qp>();
  const auto& resp = cmd.expect<ib_uverbs_create_qp_resp>();
  const auto& result = cmd.expect<mlx5_ib_create_qp_resp>();
  req.response = cmd.response_address();
  req.user_handle = reinterpret_cast<std::uint64_t>(&qp.qp());
  req.pd_handle = a.pd->handle;
  req.send_cq_handle = a.send_cq != nullptr ? a.send_cq->handle : 0;
  req.recv_cq_handle = a.recv_cq != nullptr ? a.recv_cq->handle : 0;
  req.is_srq = a.srq != nullptr;
  req.srq_handle = a.srq != nullptr ? a.srq->handle : 0;
  req.max_send_wr = a.cap.max_send_wr;
  req.max_recv_wr = a.cap.max_recv_wr;
  req.max_send_sge = a.cap.max_send_sge;
  req.max_recv_sge = a.cap.max_recv_sge;
  req.max_inline_data = s.granted.max_inline_data;
  req.sq_sig_all = a.sq_sig_all != 0;
  req.qp_type = static_cast<std::uint8_t>(a.qp_type);
  driver.buf_addr = reinterpret_cast<std::uint64_t>(qp.buf);
  driver.db_addr = reinterpret_cast<std::uint64_t>(qp.dbr);
  driver.sq_wqe_count = s.sq_wqebbs;
  driver.rq_wqe_count = s.rq_wqes;
  driver.rq_wqe_shift = qp.rq.wqe_shift;
  const char* scatter = process().getenv("MLX5_SCATTER_TO_CQE");
  if (scatter == nullptr || set(scatter)) driver.flags |= MLX5_QP_FLAG_SCATTER_CQE;
  if (qp.signature) driver.flags |= MLX5_QP_FLAG_SIGNATURE;
  driver.uidx = c.cqe_version != 0 ? qp.user_index : 0xffffff;
  BfReg* const dedicated = dedicated_register(a.pd);
  if (dedicated != nullptr) {
    driver.flags |= MLX5_QP_FLAG_BFREG_INDEX;
    driver.bfreg_index = dedicated->dynamic_index;
  }
  if (const int e = cmd.issue(*c.base.syscalls, c.base.vctx.context.cmd_fd)) return e;
  if (dedicated == nullptr && result.bfreg_index >= c.bfregs.size()) return EINVAL;
  qp.bf = dedicated != nullptr ? dedicated : c.bfregs[result.bfreg_index].get();
  qp.qp().handle = resp.qp_handle;
  qp.qp().qp_num = resp.qpn;
  return 0;
}

void fill_public(Qp& qp, const ibv_qp_init_attr_ex& a, ibv_context* context) {
  ibv_qp& q = qp.qp();
  q.context = context;
  q.qp_context = a.qp_context;
  q.pd = a.pd;
  q.send_cq = a.send_cq;
  q.recv_cq = a.recv_cq;
  q.srq = a.srq;
  q.state = IBV_QPS_RESET;
  q.qp_type = a.qp_type;
}

/// `ops` = send_ops_flags, or all operations of the type for the legacy interface. The granted capabilities go back in `a`.
ibv_qp* create(ibv_context* context, ibv_qp_init_attr_ex& a, bool extended) {
  Mlx5Context& c = mlx5_of(context);
  ProcessState& s = process();
  cpu::current().compute(s.config->control_call);
  if (const int e = check_type(a.qp_type)) return fail(e);
  if (a.qp_type == IBV_QPT_XRC_RECV) return create_xrc_target(context, a);
  if (a.pd == nullptr) return fail(EINVAL);
  if (a.qp_type == IBV_QPT_XRC_SEND) {  // nothing is received
    a.srq = nullptr;
    a.recv_cq = nullptr;
    a.cap.max_recv_wr = a.cap.max_recv_sge = 0;
  }
  const bool signature = set(s.getenv("MLX5_QP_SIGNATURE"));
  const std::uint64_t ops = extended ? a.send_ops_flags : ~0ULL;
  if (extended)
    if (const int e = check_ops(c, a.qp_type, ops)) return fail(e);
  if ((a.cap.max_send_wr != 0 && a.send_cq == nullptr) ||
      (a.cap.max_recv_wr != 0 && a.srq == nullptr && a.recv_cq == nullptr))
    return fail(EINVAL);
  QpSizes sizes;
  if (const int e = size_qp(c, a.qp_type, a.cap, ops, a.srq != nullptr, signature, sizes)) return fail(e);

  auto qp = std::make_unique<Qp>();
  fill_public(*qp, a, context);
  qp->buf = static_cast<std::byte*>(c.space().alloc(std::max(sizes.buf_bytes, 1U), memory::kPageSize));
  qp->dbr = c.dbrs.alloc(c.space(), c.cache_line);
  if (qp->buf == nullptr || qp->dbr == nullptr) {
    release(c, *qp);
    return fail(ENOMEM);
  }
  init_sq(*qp, sizes, a.cap.max_send_sge);
  init_rq(*qp, sizes);
  qp->max_inline = sizes.granted.max_inline_data;
  qp->granted = sizes.granted;
  qp->signal_bits = a.sq_sig_all ? MLX5_WQE_CTRL_CQ_UPDATE : 0;
  qp->signature = signature;
  qp->atomics = c.atomic_cap != IBV_ATOMIC_NONE;
  qp->flow = s.flow;
  qp->sq.lock.needed = qp->rq.lock.needed = locks_needed(a.pd);
  qp->user_index = c.take_user_index({qp.get(), nullptr});
  if (const int e = command(c, *qp, a, sizes)) {
    c.give_user_index(qp->user_index);
    release(c, *qp);
    return fail(e);
  }
  if (c.cqe_version == 0) {
    c.give_user_index(qp->user_index);
    qp->user_index = qp->qp().qp_num;
    c.by_number[qp->user_index] = {qp.get(), nullptr};
  }
  enter_domain(a.pd);
  qp->tags = &s.context->wqe_tags.sq.of(s.host, qp->qp().qp_num);
  qp->tags->clear();
  qp->tags->reserve(qp->sq.wqe_cnt);
  qp->new_msgs.reserve(64);
  open_gauges(s, *qp);
  if (extended) {
    qp->base.extended = true;
    set_builders(*qp, ops);
  }
  const std::uint32_t max_send_sge = a.cap.max_send_sge;
  a.cap = sizes.granted;
  a.cap.max_send_sge = max_send_sge;
  return &qp.release()->qp();
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr_ex a{};
  a.qp_context = attr->qp_context;
  a.send_cq = attr->send_cq;
  a.recv_cq = attr->recv_cq;
  a.srq = attr->srq;
  a.cap = attr->cap;
  a.qp_type = attr->qp_type;
  a.sq_sig_all = attr->sq_sig_all;
  a.comp_mask = IBV_QP_INIT_ATTR_PD;
  a.pd = pd;
  ibv_qp* qp = create(pd->context, a, false);
  if (qp != nullptr) attr->cap = a.cap;
  return qp;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  constexpr std::uint32_t kMask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (attr->comp_mask & ~kMask) return fail(EINVAL);
  const bool target = attr->qp_type == IBV_QPT_XRC_RECV;
  if (!(attr->comp_mask & (target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD))) return fail(EINVAL);
  return create(context, *attr, (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0);
}

namespace {

/// Removes the QP's completions from its CQs (S-OBJ-23, S-QP-46).
void clean_cqs(Machine& m, Qp& qp) {
  ibv_qp& q = qp.qp();
  Srq* const srq = q.srq != nullptr ? &srq_of(q.srq) : nullptr;
  if (q.recv_cq != nullptr) clean_cq(m, cq_of(q.recv_cq), qp.user_index, srq);
  if (q.send_cq != nullptr && q.send_cq != q.recv_cq) clean_cq(m, cq_of(q.send_cq), qp.user_index, nullptr);
}

/// What user space does when its QP has reached `state`.
void follow(Machine& m, Qp& qp, ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      clean_cqs(m, qp);
      reset_indices(qp);
      qp.tags->clear();
      m.store<std::uint32_t>(qp.dbr + kRecvWord, 0);
      m.store<std::uint32_t>(qp.dbr + kSendWord, 0);
      break;
    case IBV_QPS_INIT:
      qp.rq.state_max_gs = qp.rq.max_gs;
      break;
    case IBV_QPS_RTS:
      qp.sq.state_max_gs = qp.sq.max_gs;
      break;
    default:
      break;
  }
}

constexpr unsigned kNoState = 255;  // in the trace: the call leaves the state alone

}  // namespace

int modify_qp(ibv_qp* ibqp, ibv_qp_attr* attr, int mask) {
  Machine m = machine_for(ibqp->context);
  cpu::CallSpan call(m.thread(), points::modify_qp);
  m.compute(m.config().control_call);
  const int e = cmd_modify_qp(ibqp, *attr, mask);
  const bool moves = (mask & IBV_QP_STATE) != 0;
  if (e == 0 && moves && ibqp->qp_type != IBV_QPT_XRC_RECV) follow(m, qp_of(ibqp), attr->qp_state);
  call.end(0, ibqp->qp_num, e, moves ? static_cast<unsigned>(attr->qp_state) : kNoState);
  return e;
}

int query_qp(ibv_qp* ibqp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) {
  const Qp& qp = qp_of(ibqp);
  cpu::current().compute(process().config->control_call);
  if (const int e = cmd_query_qp(ibqp, *attr, mask, *init)) return e;
  init->cap.max_send_wr = qp.sq.max_post;
  init->cap.max_send_sge = static_cast<std::uint32_t>(qp.sq.wqe_cnt != 0 ? qp.sq.max_gs : 0);
  init->cap.max_inline_data = qp.sq.wqe_cnt != 0 ? qp.max_inline : 0;
  attr->cap = init->cap;
  return 0;
}

int destroy_qp(ibv_qp* ibqp) {
  Machine m = machine_for(ibqp->context);
  Qp& qp = qp_of(ibqp);
  Mlx5Context& c = qp.context();
  m.compute(m.config().control_call);
  if (const int e = cmd_destroy_qp(ibqp)) return e;
  if (ibqp->qp_type != IBV_QPT_XRC_RECV) {
    clean_cqs(m, qp);
    reset_indices(qp);
    if (c.cqe_version == 0) c.by_number.erase(qp.user_index);
    else c.give_user_index(qp.user_index);
    qp.tags->clear();
    release(c, qp);
    leave_domain(ibqp->pd);
  }
  delete &qp;
  return 0;
}

}  // namespace verbs::mlx5
