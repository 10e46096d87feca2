// SPDX-License-Identifier: Apache-2.0
// Protection domains and memory regions.
#include <cerrno>

#include "verbs_frontend/libibverbs/provider.h"

using verbs::ops_of;

extern "C" {

struct ibv_pd* ibv_alloc_pd(struct ibv_context* context) {
  return ops_of(context).alloc_pd(context);
}

int ibv_dealloc_pd(struct ibv_pd* pd) { return ops_of(pd->context).dealloc_pd(pd); }

struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access) {
  return ops_of(pd->context).reg_mr(pd, addr, length, iova, static_cast<int>(access));
}

struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* addr, size_t length, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, reinterpret_cast<uint64_t>(addr), static_cast<unsigned>(access));
}

struct ibv_mr* ibv_reg_mr_iova(struct ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
  return ibv_reg_mr_iova2(pd, addr, length, iova, static_cast<unsigned>(access));
}

int ibv_rereg_mr(struct ibv_mr*, int, struct ibv_pd*, void*, size_t, int) {
  errno = EOPNOTSUPP;
  return IBV_REREG_MR_ERR_INPUT;
}

int ibv_dereg_mr(struct ibv_mr* mr) { return ops_of(mr->context).dereg_mr(mr); }

}  // extern "C"
