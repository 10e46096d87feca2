// SPDX-License-Identifier: Apache-2.0
// Shared receive queues of the mlx5 provider. Free WQEs form a list through the ring: posting takes its head, a completion
// appends at its tail, and one WQE always stays in it (S-SRQ-7).
#pragma once

#include "verbs_frontend/mlx5/cqe.h"

namespace verbs::mlx5 {

struct Srq {
  verbs::SrqBase base;  // ibv_srq first
  ibv_srq_type type = IBV_SRQT_BASIC;
  ibv_xrcd* xrcd = nullptr;  ///< XRC only, with `cq`
  ibv_cq* cq = nullptr;
  std::byte* buf = nullptr;
  Dbr* dbr = nullptr;
  std::uint32_t srqn = 0, user_index = 0;  ///< user index: XRC only
  std::uint32_t wqe_cnt = 0, wqe_shift = 5;
  std::uint32_t head = 0, tail = 0;  ///< of the free list
  std::uint32_t spare_head = 0, spare_tail = 0;
  bool spare = false;         ///< there is a second list of WQEs, which take the place of those that page-faulted
  std::uint16_t counter = 0;  ///< WQEs posted
  ibv_srq_attr granted{};
  std::vector<std::uint64_t> wrid;
  sim::trace::Gauge occupancy;  ///< WQEs posted and not completed
  Lock lock;

  ibv_srq& srq() { return base.srq; }
  std::byte* wqe(std::uint32_t i) const { return buf + (static_cast<std::size_t>(i) << wqe_shift); }
};
inline Srq& srq_of(ibv_srq* s) { return *reinterpret_cast<Srq*>(s); }

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr* attr);
int destroy_srq(ibv_srq* srq);
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);

/// Appends a completed WQE to the free list.
void free_srq_wqe(Machine& m, Srq& srq, std::uint32_t index);
/// A WQE that met a page fault gives its place in the list to a spare one and becomes a spare itself.
void exchange_srq_wqe(Machine& m, Srq& srq, std::uint32_t index);
/// Inline data of a CQE into the buffers of an SRQ's WQE.
ibv_wc_status scatter_to_shared(Machine& m, const Srq& srq, std::uint32_t index, const std::byte* data,
                                std::uint32_t n);

}  // namespace verbs::mlx5
