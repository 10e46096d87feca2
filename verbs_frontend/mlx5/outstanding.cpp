// SPDX-License-Identifier: Apache-2.0
// WRs between head and tail of each work queue (S-PS-40, S-PR-9). Whether one is signaled says its WQE, which is still in the
// ring: a slot is written again only when it has been given back.
#include "verbs_frontend/mlx5/outstanding.h"

#include <algorithm>

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {
namespace {

constexpr std::size_t kFlagsByte = 11;     // of the control segment: fm_ce_se
constexpr std::uint8_t kCqeAlways = 0x08;  // CE = 2

QpOutstanding look_at(const Qp& qp) {
  QpOutstanding o;
  o.qp = &qp.base.qp_ex.qp_base;
  o.sends = qp.sq.head - qp.sq.tail;
  o.max_sends = qp.sq.max_post;
  o.receives = qp.rq.head - qp.rq.tail;
  std::vector<bool> seen(o.sends, false);
  for (std::uint32_t i = 0; o.sends != 0 && i < qp.sq.wqe_cnt; ++i) {
    const std::uint32_t number = qp.sq.wqe_head[i] - qp.sq.tail;
    if (number >= o.sends || seen[number]) continue;
    seen[number] = true;
    const auto flags = std::to_integer<std::uint8_t>(qp.sq.slot(i)[kFlagsByte]);
    if ((flags & kCqeAlways) != 0) ++o.signaled;
    if (number == 0) o.first_wr_id = qp.sq.wrid[i];
    if (number == o.sends - 1) o.last_wr_id = qp.sq.wrid[i];
  }
  return o;
}

void look_at(const ibv_cq* cq, std::vector<CqOutstanding>& out) {
  if (cq == nullptr || std::ranges::find(out, cq, &CqOutstanding::cq) != out.end()) return;
  const Cq& c = cq_of(const_cast<ibv_cq*>(cq));
  const std::byte* slot = c.buf + std::size_t{c.cons_index & (c.entries - 1)} * c.cqe_size;
  const auto op_own =
      std::to_integer<std::uint8_t>(slot[c.cqe_size - sizeof(mlx5_cqe64) + offsetof(mlx5_cqe64, op_own)]);
  const std::uint32_t lap = (c.cons_index & c.entries) != 0 ? 1 : 0;
  out.push_back({cq, c.cqn, op_own >> 4 != MLX5_CQE_INVALID && (op_own & MLX5_CQE_OWNER_MASK) == lap});
}

}  // namespace

Outstanding outstanding(const ProcessState& process) {
  Outstanding o;
  for (ibv_context* context : process.contexts)
    for (const Resource& resource : mlx5_of(context).by_user_index) {
      if (resource.qp == nullptr) continue;
      const QpOutstanding q = look_at(*resource.qp);
      if (q.sends != 0 || q.receives != 0) o.qps.push_back(q);
      look_at(q.qp->send_cq, o.cqs);
      look_at(q.qp->recv_cq, o.cqs);
    }
  return o;
}

}  // namespace verbs::mlx5
