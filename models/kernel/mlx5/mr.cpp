// SPDX-License-Identifier: Apache-2.0
// Memory regions and windows of the driver: pinning, keys. Re-registration makes a new key and then drops the old one, so
// each failure leaves the region as it was (S-MR-12). A window is a free indirect key, which UMR WQEs of the program bind
// (S-MW-1, S-MW-2). Source: mlx5_ib mr.c, ib_core umem.c.
#include <rdma/mlx5-abi.h>

#include <cerrno>

#include "kernel/mlx5/mlx5_ib.h"
#include "kernel/undo.h"

namespace kernel::mlx5_ib {

namespace {

/// The key translates whole pages: both addresses of a region lie at the same place of a page.
bool same_page_offset(std::uint64_t a, std::uint64_t b) { return ((a ^ b) & (memory::kPageSize - 1)) == 0; }

/// First address by which WRs name the region (S-MR-6).
std::uint64_t base_of(std::uint64_t iova, std::uint32_t access) {
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova;
}

int create_key(Kernel& kernel, const Mlx5Mr& mr, const Pd& pd, std::uint32_t& key) {
  const std::uint64_t base = base_of(mr.iova, mr.access);
  if (!same_page_offset(base, mr.region.start.v)) return -EINVAL;
  const MkeyParams params{pd.pdn, mr.access, base, mr.region.length, kernel.next_key_variant()};
  return create_mkey(kernel.commands(), params, mr.region.mapping, key);
}

}  // namespace

int reg_user_mr(Mr& core, const UserMrAttr& attr, const Udata* udata) {
  if (udata == nullptr) return -EOPNOTSUPP;
  auto& mr = static_cast<Mlx5Mr&>(core);
  Kernel& kernel = mr.device->kernel;
  memory::AddressSpace& user = *mr.ucontext->user;
  if (const int error = kernel.acquire(user, {attr.start}, attr.length, mr.region); error != 0) return error;
  Undo undo([&] { kernel.release(user, mr.region); });
  mr.iova = attr.iova;
  mr.length = attr.length;
  mr.access = attr.access;
  if (const int error = create_key(kernel, mr, *mr.pd, mr.key); error != 0) return error;
  undo.dismiss();
  return 0;
}

int rereg_user_mr(Mr& core, int flags, const UserMrAttr& attr, Pd& pd, const Udata* udata) {
  if (udata == nullptr) return -EOPNOTSUPP;
  auto& mr = static_cast<Mlx5Mr&>(core);
  Kernel& kernel = mr.device->kernel;
  memory::AddressSpace& user = *mr.ucontext->user;
  const bool move = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  Mlx5Mr changed;
  changed.region = mr.region;
  changed.iova = move ? attr.iova : mr.iova;
  changed.access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? attr.access : mr.access;
  if (move)
    if (const int error = kernel.acquire(user, {attr.start}, attr.length, changed.region); error != 0) return error;
  Undo undo_region([&] {
    if (move) kernel.release(user, changed.region);
  });
  if (const int error = create_key(kernel, changed, pd, changed.key); error != 0) return error;
  if (const int error = destroy_mkey(kernel.commands(), mr.key); error != 0) {
    if (destroy_mkey(kernel.commands(), changed.key) != 0) kernel.counter("key_release_failures").add();
    return error;
  }
  undo_region.dismiss();
  if (move) kernel.release(user, mr.region);
  mr.region = changed.region;
  mr.length = mr.region.length;
  mr.iova = changed.iova;
  mr.access = changed.access;
  mr.key = changed.key;
  return 0;
}

// The device lets go first, then the memory: nothing is unpinned that the device may still use.
int dereg_mr(Mr& core) {
  auto& mr = static_cast<Mlx5Mr&>(core);
  if (const int error = destroy_mkey(mr.device->kernel.commands(), mr.key); error != 0) return error;
  if (mr.ucontext != nullptr) mr.device->kernel.release(*mr.ucontext->user, mr.region);
  return 0;
}

int reg_phys_mr(Mr& mr, const DmaBuffer& buffer, std::uint64_t iova, std::uint64_t length, std::uint32_t access) {
  Kernel& kernel = mr.device->kernel;
  mr.iova = iova;
  mr.length = length;
  mr.access = access;
  const std::size_t pages = (length + memory::kPageSize - 1) / memory::kPageSize;
  const DmaMapping mapping{
      {buffer.mapping.pages.begin(), buffer.mapping.pages.begin() + static_cast<std::ptrdiff_t>(pages)}};
  return create_mkey(kernel.commands(), {mr.pd->pdn, access, iova, length, kernel.next_key_variant()}, mapping, mr.key);
}

int get_dma_mr(Mr& mr, std::uint32_t access) {
  Kernel& kernel = mr.device->kernel;
  mr.access = access;
  return create_dma_key(kernel.commands(), mr.pd->pdn, access, kernel.next_key_variant(), mr.key);
}

int alloc_mw(Mw& mw, const Udata* udata) {
  if (udata != nullptr) {
    const auto driver = udata->request<mlx5_ib_alloc_mw>();
    if (driver.comp_mask != 0 || driver.num_klms > 4 || driver.reserved1 != 0 || driver.reserved2 != 0)
      return -EOPNOTSUPP;
  }
  Kernel& kernel = mw.device->kernel;
  return create_window_key(kernel.commands(), mw.pd->pdn, mw.mw_type == IBV_MW_TYPE_2, kernel.next_key_variant(),
                           mw.key);
}

int dealloc_mw(Mw& mw) { return destroy_mkey(mw.device->kernel.commands(), mw.key); }

}  // namespace kernel::mlx5_ib
