// SPDX-License-Identifier: Apache-2.0
// Operations that a provider does not have: each refuses with EOPNOTSUPP instead of crashing (S-DEV-3). Entries of
// verbs_context that stay null are refused by the header's own inline functions.
#include <cerrno>

#include "verbs_frontend/libibverbs/provider.h"

namespace verbs {
namespace {

/// A function of any pointer signature that refuses.
template <class F>
struct Refuse;
template <class R, class... A>
struct Refuse<R* (*)(A...)> {
  static R* call(A...) { return fail(EOPNOTSUPP); }
};
template <class... A>
struct Refuse<int (*)(A...)> {
  static int call(A...) { return EOPNOTSUPP; }
};
template <class... A>
struct Refuse<void (*)(A...)> {
  static void call(A...) {}
};
template <class F>
constexpr void refuse(F& slot) {
  slot = Refuse<F>::call;
}

constexpr ProviderOps make_dummy_ops() {
  ProviderOps o{};
  refuse(o.query_device);
  refuse(o.query_port);
  refuse(o.alloc_pd);
  refuse(o.dealloc_pd);
  refuse(o.reg_mr);
  refuse(o.rereg_mr);
  refuse(o.dereg_mr);
  refuse(o.create_cq);
  refuse(o.create_cq_ex);
  refuse(o.resize_cq);
  refuse(o.destroy_cq);
  refuse(o.cq_event);
  refuse(o.create_qp);
  refuse(o.create_qp_ex);
  refuse(o.modify_qp);
  refuse(o.query_qp);
  refuse(o.destroy_qp);
  refuse(o.create_ah);
  refuse(o.destroy_ah);
  refuse(o.create_srq);
  refuse(o.modify_srq);
  refuse(o.query_srq);
  refuse(o.destroy_srq);
  refuse(o.attach_mcast);
  refuse(o.detach_mcast);
  refuse(o.close);
  return o;
}

}  // namespace

constinit const ProviderOps kDummyOps = make_dummy_ops();

void fill_dummy_ops(verbs_context& c) {
  ibv_context_ops& o = c.context.ops;
  refuse(o.alloc_mw);
  refuse(o.bind_mw);
  refuse(o.dealloc_mw);
  o.poll_cq = [](ibv_cq*, int, ibv_wc*) { return -EOPNOTSUPP; };
  refuse(o.req_notify_cq);
  refuse(o.post_srq_recv);
  refuse(o.post_send);
  refuse(o.post_recv);
  refuse(c.advise_mr);
  refuse(c.alloc_null_mr);
  refuse(c.alloc_dm);
  refuse(c.alloc_td);
  refuse(c.alloc_parent_domain);
  refuse(c.modify_cq);
  refuse(c.query_rt_values);
  refuse(c.open_qp);
  refuse(c.get_srq_num);
  refuse(c.create_srq_ex);
  refuse(c.open_xrcd);
  refuse(c.create_wq);
  refuse(c.create_rwq_ind_table);
  refuse(c.ibv_create_flow);
}

}  // namespace verbs
