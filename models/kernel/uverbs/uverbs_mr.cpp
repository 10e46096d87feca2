// SPDX-License-Identifier: Apache-2.0
// Commands about memory regions and windows. Checks in the kernel's order (S-MR-2, S-MR-3). Source: ib_uverbs uverbs_cmd.c.
#include <cerrno>

#include "kernel/core/verbs.h"
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

}  // namespace

int UverbsFile::reg_mr(Io& io) {
  const auto cmd = io.request<ib_uverbs_reg_mr>();
  if (!same_page_offset(cmd.start, cmd.hca_va)) return -EINVAL;
  if (const int error = check_mr_access(cmd.access_flags); error != 0) return error;
  Use<Pd> pd;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  std::unique_ptr<Mr> mr;
  const UserMrAttr attr{cmd.start, cmd.length, cmd.hca_va, cmd.access_flags};
  if (const int error = ib_reg_user_mr(*pd, attr, consumer(), &io.udata, mr); error != 0) return error;
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
  if (mr->uobject.commands > 1) return -EBUSY;
  if ((cmd.flags & IBV_REREG_MR_CHANGE_ACCESS) != 0)
    if (const int error = check_mr_access(cmd.access_flags); error != 0) return error;
  Use<Pd> pd;
  if ((cmd.flags & IBV_REREG_MR_CHANGE_PD) != 0)
    if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  mr->uobject.destroying = true;  // no other command may use it now
  Undo unlock([&] { mr->uobject.destroying = false; });
  const UserMrAttr attr{cmd.start, cmd.length, cmd.hca_va, cmd.access_flags};
  if (const int error = ib_rereg_user_mr(*mr, static_cast<int>(cmd.flags), attr, pd ? *pd : *mr->pd, &io.udata);
      error != 0)
    return error;
  io.respond(ib_uverbs_rereg_mr_resp{mr->key, mr->key});
  return 0;
}

int UverbsFile::dereg_mr(Io& io) { return destroy(ObjectType::mr, io.request<ib_uverbs_dereg_mr>().mr_handle); }

int UverbsFile::alloc_mw(Io& io) {
  const auto cmd = io.request<ib_uverbs_alloc_mw>();
  if (cmd.mw_type != IBV_MW_TYPE_1 && cmd.mw_type != IBV_MW_TYPE_2) return -EINVAL;
  Use<Pd> pd;
  if (const int error = parent(ObjectType::pd, cmd.pd_handle, pd); error != 0) return error;
  std::unique_ptr<Mw> mw;
  if (const int error = ib_alloc_mw(*pd, static_cast<ibv_mw_type>(cmd.mw_type), consumer(), &io.udata, mw); error != 0)
    return error;
  const std::uint32_t key = mw->key;
  io.respond(ib_uverbs_alloc_mw_resp{add(std::move(mw)), key});
  return 0;
}

int UverbsFile::dealloc_mw(Io& io) { return destroy(ObjectType::mw, io.request<ib_uverbs_dealloc_mw>().mw_handle); }

}  // namespace kernel
