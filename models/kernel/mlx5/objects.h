// SPDX-License-Identifier: Apache-2.0
// The mlx5 driver's objects: what it adds to those of the RDMA core.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernel/core/objects.h"
#include "kernel/dma_map.h"
#include "kernel/mlx5/bfreg.h"
#include "kernel/mlx5/kernel_queues.h"

namespace kernel {

/// User memory that is pinned and DMA-mapped.
struct UserRegion {
  memory::Va start{};
  std::uint64_t length = 0;
  DmaMapping mapping;
};

/// A page of doorbell records; several objects share it.
struct DbrPage {
  UserRegion region;
  std::uint32_t users = 0;
};

struct Mlx5Ucontext final : Ucontext {
  BfregPool bfregs;
  std::vector<std::uint32_t> uars;                              ///< static pages, by page of the context
  std::map<std::uint32_t, std::uint32_t> dynamic_uars;          ///< allocated by mmap, by page
  std::map<std::uint64_t, std::unique_ptr<DbrPage>> dbr_pages;  ///< by page address
  std::uint32_t null_key = 0;                                   ///< 0: the device has none
  std::uint8_t cqe_version = 0;
};

struct Mlx5Mr final : Mr {
  UserRegion region;
};

struct Mlx5Cq final : Cq {
  std::uint32_t entries = 0, cqe_size = 64;  ///< slots of the ring, bytes of each
  std::uint32_t arm_sn = 0;                  ///< the kernel's own count of events
  UserRegion buffer;
  DbrPage* dbr = nullptr;
  bool resizing = false;
  bool listed = false;               ///< on its event queue's tasklet list
  std::unique_ptr<KernelCq> kernel;  ///< of a kernel consumer; else the ring is the user's
};

struct Mlx5Srq final : Srq {
  UserRegion buffer;
  DbrPage* dbr = nullptr;
};

struct Mlx5Qp final : Qp {
  UserRegion buffer;
  DbrPage* dbr = nullptr;
  std::uint64_t dbr_offset = 0;
  std::int32_t bfreg = -1;
  std::uint32_t user_index = 0, uar = 0;
  std::uint32_t sq_wqebbs = 0, rq_wqes = 0, rq_shift = 0;
  std::uint32_t page_offset = 0;  ///< of the ring in its first page, in 64-byte units
  std::uint32_t flags = 0;        ///< MLX5_QP_FLAG_*
  std::uint16_t pkey_index = 0;   ///< attributes as last set by modify_qp
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint32_t access = 0;
  std::uint32_t dest_qpn = 0;
  std::unique_ptr<KernelQp> kernel;  ///< of a kernel consumer; else the rings are the user's
};

}  // namespace kernel
