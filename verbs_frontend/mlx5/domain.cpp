// SPDX-License-Identifier: Apache-2.0
// Registers of thread domains come from UAR pages that the kernel allocates on mmap, two registers per page; a register of
// a destroyed domain serves the next one. Not built: allocators of parent domains.
#include "verbs_frontend/mlx5/domain.h"

#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>

namespace verbs::mlx5 {
namespace {

constexpr std::uint32_t kRegsPerPage = 2;

/// Offset of an mmap: command in bits 15:8 of the page number, index in 7:0 and 23:16.
std::uint64_t map_offset(std::uint32_t command, std::uint32_t index) {
  return (std::uint64_t{index >> 8} << 16 | command << 8 | (index & 0xff)) * memory::kPageSize;
}

/// Two more registers; 0 or a positive errno.
int add_page(Mlx5Context& c) {
  const auto page = static_cast<std::uint32_t>(c.dynamic_pages.size());
  if (page >= c.dynamic_bfregs / kRegsPerPage) return ENOMEM;
  const long at =
      c.base.syscalls->mmap(c.base.vctx.context.cmd_fd, memory::kPageSize, map_offset(MLX5_IB_MMAP_ALLOC_WC, page));
  if (at < 0) return static_cast<int>(-at);
  c.dynamic_pages.push_back(memory::Va{static_cast<std::uint64_t>(at)});
  for (std::uint32_t i = 0; i < kRegsPerPage; ++i) {
    auto bf = std::make_unique<BfReg>();
    bf->reg = c.dynamic_pages.back() + hca::prm::kUarBfBase + std::uint64_t{i} * c.bf_reg_size;
    bf->half_size = c.bf_reg_size / 2;
    bf->dynamic_index = page * kRegsPerPage + i;
    bf->number = static_cast<std::uint32_t>(c.bfregs.size()) + bf->dynamic_index;
    c.free_dynamic.push_back(bf.get());
    c.dynamic_regs.push_back(std::move(bf));
  }
  std::ranges::sort(c.free_dynamic, [](const BfReg* a, const BfReg* b) { return a->number > b->number; });
  return 0;
}

}  // namespace

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  Mlx5Context& c = mlx5_of(context);
  cpu::current().compute(process().config->control_call);
  if (attr->comp_mask != 0) return fail(EINVAL);
  if (c.free_dynamic.empty())
    if (const int e = add_page(c)) return fail(e);
  auto* td = new Td{{context}, c.free_dynamic.back()};
  c.free_dynamic.pop_back();
  return &td->td;
}

int dealloc_td(ibv_td* ibtd) {
  Td& td = td_of(ibtd);
  if (td.users != 0) return EBUSY;
  mlx5_of(ibtd->context).free_dynamic.push_back(td.bf);
  delete &td;
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  cpu::current().compute(process().config->control_call);
  constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (attr->pd == nullptr || (attr->comp_mask & ~kKnown) != 0) return fail(EINVAL);
  if (attr->comp_mask != 0) return fail(EOPNOTSUPP);
  Pd& protection = pd_of(attr->pd);
  if (attr->pd->context != context || protection.protection != nullptr) return fail(EINVAL);
  if (attr->td != nullptr && attr->td->context != context) return fail(EINVAL);
  auto* parent = new Pd{{context, attr->pd->handle}, protection.pdn};
  parent->protection = &protection;
  ++protection.users;
  if (attr->td != nullptr) {
    parent->td = &td_of(attr->td);
    ++parent->td->users;
  }
  return &parent->pd;
}

int dealloc_parent_domain(ibv_pd* ibpd) {
  Pd& parent = pd_of(ibpd);
  if (parent.protection == nullptr) return EINVAL;
  if (parent.users != 0) return EBUSY;
  --parent.protection->users;
  if (parent.td != nullptr) --parent.td->users;
  delete &parent;
  return 0;
}

bool is_parent_domain(ibv_pd* pd) { return pd != nullptr && pd_of(pd).protection != nullptr; }
void enter_domain(ibv_pd* pd) {
  if (is_parent_domain(pd)) ++pd_of(pd).users;
}
void leave_domain(ibv_pd* pd) {
  if (is_parent_domain(pd)) --pd_of(pd).users;
}
bool locks_needed(const ibv_pd* pd) { return pd == nullptr || reinterpret_cast<const Pd*>(pd)->td == nullptr; }
BfReg* dedicated_register(ibv_pd* pd) { return pd != nullptr && pd_of(pd).td != nullptr ? pd_of(pd).td->bf : nullptr; }

}  // namespace verbs::mlx5
