// SPDX-License-Identifier: Apache-2.0
// The driver's part of an opened context: UAR pages, doorbell registers, the mapping of device pages. UAR pages beyond the
// static ones are allocated by mmap (thread domains). No core clock page; user space does without.
// Source: mlx5_ib main.c (alloc_ucontext, mmap).
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "hca/prm.h"
#include "kernel/mlx5/mlx5_ib.h"

namespace kernel::mlx5_ib {

namespace prm = hca::prm;

namespace {

constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint32_t kDynamicRegisters = 512;  // beyond the static ones

// The page offset of an mmap of the device file: command in bits 15:8, page index in bits 7:0 and 23:16.
constexpr unsigned kMapCommandShift = 8;

void release_uars(Mlx5Ucontext& context) {
  Kernel& kernel = context.device->kernel;
  const auto drop = [&](std::uint32_t uar) {
    if (dealloc_uar(kernel.commands(), uar) != 0) kernel.counter("uar_release_failures").add();
  };
  for (const std::uint32_t uar : context.uars) drop(uar);
  for (const auto& [page, uar] : context.dynamic_uars) drop(uar);
  context.uars.clear();
  context.dynamic_uars.clear();
}

mlx5_ib_alloc_ucontext_resp response(const Mlx5Ucontext& context, const DeviceCaps& caps) {
  mlx5_ib_alloc_ucontext_resp resp{};
  resp.qp_tab_size = 1U << caps.log_max_qp;
  resp.bf_reg_size = caps.blue_flame ? 1U << caps.log_bf_reg_size : 0;
  resp.tot_bfregs = context.bfregs.total();
  resp.cache_line_size = kCacheLine;
  resp.max_sq_desc_sz = static_cast<std::uint16_t>(caps.max_wqe_sz_sq);
  resp.max_rq_desc_sz = static_cast<std::uint16_t>(caps.max_wqe_sz_rq);
  resp.max_send_wqebb = 1U << caps.log_max_qp_sz;
  resp.max_recv_wr = 1U << caps.log_max_qp_sz;
  resp.max_srq_recv_wr = (1U << caps.log_max_srq_sz) - 1;
  resp.num_ports = static_cast<std::uint16_t>(caps.num_ports);
  resp.cqe_version = context.cqe_version;
  resp.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
  if (context.null_key != 0) {
    resp.comp_mask |= MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY;
    resp.dump_fill_mkey = context.null_key;
  }
  resp.log_uar_size = memory::kPageShift;
  resp.num_uars_per_page = 1;
  resp.num_dyn_bfregs = kDynamicRegisters;
  return resp;
}

}  // namespace

int alloc_ucontext(Ucontext& core, const Udata* udata) {
  auto& context = static_cast<Mlx5Ucontext&>(core);
  Kernel& kernel = context.device->kernel;
  mlx5_ib_alloc_ucontext_req_v2 req{};
  const bool v1 = udata->in.size() == sizeof(mlx5_ib_alloc_ucontext_req);
  if (!v1 && udata->in.size() < offsetof(mlx5_ib_alloc_ucontext_req_v2, max_cqe_version)) return -EINVAL;
  std::memcpy(&req, udata->in.data(), std::min(udata->in.size(), sizeof req));
  if ((req.flags & ~static_cast<std::uint32_t>(MLX5_IB_ALLOC_UCTX_DEVX)) != 0 || req.comp_mask != 0 ||
      req.reserved0 != 0 || req.reserved1 != 0 || req.reserved2 != 0)
    return -EOPNOTSUPP;
  if (const int error = context.bfregs.init(req.total_num_bfregs, req.num_low_latency_bfregs, !v1); error != 0)
    return error;
  int error = 0;
  for (std::uint32_t i = 0; error == 0 && i < context.bfregs.pages(); ++i) {
    std::uint32_t uar = 0;
    error = alloc_uar(kernel.commands(), uar);
    if (error == 0) context.uars.push_back(uar);
  }
  const DeviceCaps& caps = kernel.caps();
  if (error == 0 && caps.dump_fill_mkey) error = query_null_key(kernel.commands(), context.null_key);
  if (error != 0) {
    release_uars(context);
    return error;
  }
  context.cqe_version = static_cast<std::uint8_t>(std::min<std::uint32_t>(req.max_cqe_version, caps.cqe_version));
  auto resp = response(context, caps);
  resp.response_length = static_cast<std::uint32_t>(std::min(sizeof resp, udata->out.size()));
  udata->respond(resp);
  return 0;
}

void dealloc_ucontext(Ucontext& context) { release_uars(static_cast<Mlx5Ucontext&>(context)); }

namespace {

long map_uar(Mlx5Ucontext& context, std::uint32_t uar, memory::MemoryType type) {
  Kernel& kernel = context.device->kernel;
  charge(kernel.config().syscall.map_page);
  const memory::Phys bus = kernel.platform().bar0 + std::uint64_t{uar} * prm::kUarPageSize;
  return static_cast<long>(context.user->map_mmio(bus, memory::kPageSize, type).v);
}

// A page of registers of its own, for a thread domain; it lives as long as the context.
long map_dynamic(Mlx5Ucontext& context, std::size_t length, std::uint64_t index) {
  const auto page = static_cast<std::uint32_t>(index);
  if (length != memory::kPageSize || index >= kDynamicRegisters / 2) return -EINVAL;
  if (!context.dynamic_uars.emplace(page, 0).second) return -EINVAL;
  std::uint32_t uar = 0;
  const int error = alloc_uar(context.device->kernel.commands(), uar);
  if (error != 0) {
    context.dynamic_uars.erase(page);
    return error == -EAGAIN ? -ENOMEM : error;
  }
  context.dynamic_uars[page] = uar;
  return map_uar(context, uar, memory::MemoryType::write_combining);
}

}  // namespace

long mmap(Ucontext& core, std::size_t length, std::uint64_t offset) {
  auto& context = static_cast<Mlx5Ucontext&>(core);
  if (offset % memory::kPageSize != 0) return -EINVAL;
  const std::uint64_t page = offset >> memory::kPageShift;
  const auto command = static_cast<unsigned>(page >> kMapCommandShift & 0xff);
  const std::uint64_t index = (page & 0xff) | (page >> 16 & 0xff) << 8;
  memory::MemoryType type{};
  switch (command) {
    case MLX5_IB_MMAP_REGULAR_PAGE:
    case MLX5_IB_MMAP_WC_PAGE:
      type = memory::MemoryType::write_combining;
      break;
    case MLX5_IB_MMAP_NC_PAGE:
      type = memory::MemoryType::uncached;
      break;
    case MLX5_IB_MMAP_ALLOC_WC:
      return map_dynamic(context, length, index);
    case MLX5_IB_MMAP_CORE_CLOCK:
    case MLX5_IB_MMAP_CLOCK_INFO:
      return -EOPNOTSUPP;
    default:
      return -EINVAL;
  }
  if (length != memory::kPageSize || index >= context.uars.size()) return -EINVAL;
  return map_uar(context, context.uars[index], type);
}

}  // namespace kernel::mlx5_ib
