// SPDX-License-Identifier: Apache-2.0
// Memory windows of type 1 and 2B: a free indirect key, which UMR WQEs of the program bind (S-MW-1, S-MW-2).
// Source: ib_uverbs uverbs_cmd.c, mlx5_ib mr.c (mlx5_ib_alloc_mw).
#include <cerrno>

#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

int UverbsFile::alloc_mw(Io& io) {
  const auto cmd = io.request<ib_uverbs_alloc_mw>();
  const auto driver = io.driver_request<mlx5_ib_alloc_mw>();
  if (cmd.mw_type != IBV_MW_TYPE_1 && cmd.mw_type != IBV_MW_TYPE_2) return -EINVAL;
  if (driver.comp_mask != 0 || driver.num_klms > 4 || driver.reserved1 != 0 || driver.reserved2 != 0)
    return -EOPNOTSUPP;
  Use<Pd> pd;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  auto mw = std::make_unique<Mw>();
  const bool type_2 = cmd.mw_type == IBV_MW_TYPE_2;
  if (const int error = create_window_key(kernel_.commands(), pd->pdn, type_2, kernel_.next_key_variant(), mw->key);
      error != 0)
    return error == -EAGAIN ? -ENOMEM : error;
  mw->pd = pd.get();
  ++pd->usecnt;
  const std::uint32_t key = mw->key;
  io.respond(ib_uverbs_alloc_mw_resp{add(std::move(mw)), key});
  return 0;
}

int UverbsFile::dealloc_mw(Io& io) { return destroy(ObjectType::mw, io.request<ib_uverbs_dealloc_mw>().mw_handle); }

}  // namespace kernel
