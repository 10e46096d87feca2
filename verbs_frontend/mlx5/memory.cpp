// SPDX-License-Identifier: Apache-2.0
// Memory regions and windows of the provider: kernel commands and the program's structs (S-MR-1…12, S-MW-1).
#include <cerrno>
#include <memory>

#include "verbs_frontend/libibverbs/provider.h"
#include "verbs_frontend/mlx5/mlx5.h"
#include "verbs_frontend/mlx5/verbs.h"

namespace verbs::mlx5 {

ibv_mr* reg_mr(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access) {
  auto mr = std::make_unique<Mr>();
  return cmd_reg_mr(pd, addr, length, iova, access, mr->mr) == 0 ? &mr.release()->mr : nullptr;
}

int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  if (reinterpret_cast<Mr*>(mr)->null) return EINVAL;
  return cmd_rereg_mr(*mr, flags, pd, addr, length, access);
}

int dereg_mr(ibv_mr* mr) {
  Mr& m = *reinterpret_cast<Mr*>(mr);
  const int e = m.null ? 0 : cmd_dereg_mr(mr);
  if (e == 0) delete &m;
  return e;
}

// No command: the key is the device's own, usable in every domain (S-OBJ-64).
ibv_mr* alloc_null_mr(ibv_pd* pd) {
  const Mlx5Context& c = mlx5_of(pd->context);
  if (!c.has_null_key) return fail(EOPNOTSUPP);
  auto mr = std::make_unique<Mr>();
  mr->mr.context = pd->context;
  mr->mr.pd = pd;
  mr->mr.lkey = c.null_key;
  mr->null = true;
  return &mr.release()->mr;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  auto mw = std::make_unique<ibv_mw>();
  return cmd_alloc_mw(pd, type, *mw) == 0 ? mw.release() : nullptr;
}

int dealloc_mw(ibv_mw* mw) {
  const int e = cmd_dealloc_mw(mw);
  if (e == 0) delete mw;
  return e;
}

}  // namespace verbs::mlx5
