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

// Negative results of enum ibv_rereg_mr_err_code, with errno (S-OBJ-3, S-MR-12).
int ibv_rereg_mr(struct ibv_mr* mr, int flags, struct ibv_pd* pd, void* addr, size_t length, int access) {
  const bool move = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool rights = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  const bool other_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  constexpr int kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                               IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                               IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | static_cast<int>(IBV_ACCESS_OPTIONAL_RANGE);
  const bool writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  const bool writes = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
  if (flags == 0 || (access & ~kKnownAccess) != 0 || (writes && !writable) ||
      (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || (move && (addr == nullptr || length == 0)) ||
      (other_pd && pd == nullptr) || (access != 0 && !rights)) {
    errno = EINVAL;
    return IBV_REREG_MR_ERR_INPUT;
  }
  if (const int e = ops_of(mr->context).rereg_mr(mr, flags, pd, addr, length, access)) {
    errno = e;
    return IBV_REREG_MR_ERR_CMD;
  }
  if (other_pd) mr->pd = pd;
  if (move) {
    mr->addr = addr;
    mr->length = length;
  }
  return 0;
}

int ibv_dereg_mr(struct ibv_mr* mr) { return ops_of(mr->context).dereg_mr(mr); }

}  // extern "C"
