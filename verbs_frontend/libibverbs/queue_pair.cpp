// SPDX-License-Identifier: Apache-2.0
// Queue pairs, and the exported functions of objects that only some providers have.
#include <cerrno>

#include "verbs_frontend/libibverbs/provider.h"

using verbs::ops_of;

extern "C" {

struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr) {
  return ops_of(pd->context).create_qp(pd, attr);
}

struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp) {
  auto& base = *reinterpret_cast<verbs::QpBase*>(qp);
  return base.extended ? &base.qp_ex : nullptr;
}

int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int attr_mask, struct ibv_qp_init_attr* init_attr) {
  const int e = ops_of(qp->context).query_qp(qp, attr, attr_mask, init_attr);
  if (e == 0 && (attr_mask & IBV_QP_STATE)) qp->state = attr->qp_state;
  return e;
}

int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int attr_mask) {
  const int e = ops_of(qp->context).modify_qp(qp, attr, attr_mask);
  if (e == 0 && (attr_mask & IBV_QP_STATE)) qp->state = attr->qp_state;
  return e;
}

int ibv_destroy_qp(struct ibv_qp* qp) { return ops_of(qp->context).destroy_qp(qp); }

struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr) {
  return ops_of(pd->context).create_ah(pd, attr);
}
int ibv_destroy_ah(struct ibv_ah* ah) { return ops_of(ah->context).destroy_ah(ah); }

struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* attr) {
  return ops_of(pd->context).create_srq(pd, attr);
}
int ibv_modify_srq(struct ibv_srq* srq, struct ibv_srq_attr* attr, int mask) {
  return ops_of(srq->context).modify_srq(srq, attr, mask);
}
int ibv_query_srq(struct ibv_srq* srq, struct ibv_srq_attr* attr) { return ops_of(srq->context).query_srq(srq, attr); }
int ibv_destroy_srq(struct ibv_srq* srq) { return ops_of(srq->context).destroy_srq(srq); }

int ibv_attach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  return ops_of(qp->context).attach_mcast(qp, gid, lid);
}
int ibv_detach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  return ops_of(qp->context).detach_mcast(qp, gid, lid);
}

}  // extern "C"
