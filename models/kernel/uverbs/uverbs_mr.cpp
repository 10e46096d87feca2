// SPDX-License-Identifier: Apache-2.0
// Memory regions: registration, re-registration, deregistration. Checks in the kernel's order (S-MR-2, S-MR-3).
// Re-registration makes a new key and then drops the old one, so each failure leaves the region as it was (S-MR-12).
// Source: ib_uverbs uverbs_cmd.c, ib_core umem.c, mlx5_ib mr.c.
#include <cerrno>

#include "kernel/mlx5/mlx5_commands.h"
#include "kernel/undo.h"
#include "kernel/uverbs/uverbs_file.h"

namespace kernel {

namespace {

constexpr std::uint32_t kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
                                       IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE;

int check_mr_access(std::uint32_t access) {
  if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
    return -EINVAL;
  if ((access & ~kKnownAccess) != 0) return -EINVAL;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return -EOPNOTSUPP;
  return 0;
}

/// The key translates whole pages: both addresses of a region lie at the same place of a page.
bool same_page_offset(std::uint64_t a, std::uint64_t b) { return ((a ^ b) & (memory::kPageSize - 1)) == 0; }

/// First address by which WRs name the region (S-MR-6).
std::uint64_t base_of(std::uint64_t iova, std::uint32_t access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
}

}  // namespace

int UverbsFile::create_key(Mr& mr, std::uint32_t& key) {
  const std::uint64_t base = base_of(mr.iova, mr.access);
  if (!same_page_offset(base, mr.region.start.v)) return -EINVAL;
  const MkeyParams params{mr.pd->pdn, mr.access, base, mr.region.length, kernel_.next_key_variant()};
  const int error = create_mkey(kernel_.commands(), params, mr.region.mapping, key);
  return error == -EAGAIN ? -ENOMEM : error;
}

int UverbsFile::reg_mr(Io& io) {
  const auto cmd = io.request<ib_uverbs_reg_mr>();
  if (!same_page_offset(cmd.start, cmd.hca_va)) return -EINVAL;
  if (const int error = check_mr_access(cmd.access_flags); error != 0) return error;
  Use<Pd> pd;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  auto mr = std::make_unique<Mr>();
  if (const int error = kernel_.acquire(user_, {cmd.start}, cmd.length, mr->region); error != 0) return error;
  Undo undo([&] { kernel_.release(user_, mr->region); });
  mr->pd = pd.get();
  mr->iova = cmd.hca_va;
  mr->access = cmd.access_flags;
  if (const int error = create_key(*mr, mr->key); error != 0) return error;
  undo.dismiss();
  ++pd->usecnt;
  const std::uint32_t key = mr->key;
  io.respond(ib_uverbs_reg_mr_resp{add(std::move(mr)), key, key});
  return 0;
}

int UverbsFile::rereg_mr(Io& io) {
  const auto cmd = io.request<ib_uverbs_rereg_mr>();
  constexpr std::uint32_t kAll = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if (cmd.flags == 0 || (cmd.flags & ~kAll) != 0) return -EINVAL;
  const bool move = (cmd.flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  if (move && (cmd.start == 0 || cmd.length == 0 || !same_page_offset(cmd.start, cmd.hca_va))) return -EINVAL;
  Use<Mr> mr;
  if (const int error = use(ObjectType::mr, cmd.mr_handle, mr); error != 0) return error;
  if (mr->commands > 1) return -EBUSY;
  Mr changed = {};
  changed.pd = mr->pd;
  changed.iova = move ? cmd.hca_va : mr->iova;
  changed.access = mr->access;
  if ((cmd.flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
    if (const int error = check_mr_access(cmd.access_flags); error != 0) return error;
    changed.access = cmd.access_flags;
  }
  Use<Pd> pd;
  if ((cmd.flags & IBV_REREG_MR_CHANGE_PD) != 0) {
    if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
    changed.pd = pd.get();
  }
  mr->destroying = true;  // no other command may use it now
  Undo unlock([&] { mr->destroying = false; });
  changed.region = mr->region;
  if (move)
    if (const int error = kernel_.acquire(user_, {cmd.start}, cmd.length, changed.region); error != 0) return error;
  Undo undo_region([&] {
    if (move) kernel_.release(user_, changed.region);
  });
  if (const int error = create_key(changed, changed.key); error != 0) return error;
  if (const int error = destroy_mkey(kernel_.commands(), mr->key); error != 0) {
    if (destroy_mkey(kernel_.commands(), changed.key) != 0) kernel_.counter("key_release_failures").add();
    return error;
  }
  undo_region.dismiss();
  if (move) kernel_.release(user_, mr->region);
  --mr->pd->usecnt;
  ++changed.pd->usecnt;
  mr->pd = changed.pd;
  mr->region = changed.region;
  mr->iova = changed.iova;
  mr->access = changed.access;
  mr->key = changed.key;
  io.respond(ib_uverbs_rereg_mr_resp{mr->key, mr->key});
  return 0;
}

int UverbsFile::dereg_mr(Io& io) { return destroy(ObjectType::mr, io.request<ib_uverbs_dereg_mr>().mr_handle); }

}  // namespace kernel
