// SPDX-License-Identifier: Apache-2.0
// The device commands behind the RDMA core's objects: one function per command, which builds the context in the layout of
// hca/prm.h and runs it. All return 0 or -errno and block the calling thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/core/gid_table.h"
#include "kernel/dma_map.h"
#include "kernel/mlx5/command.h"

namespace kernel {

int alloc_uar(CommandInterface& c, std::uint32_t& index);
int dealloc_uar(CommandInterface& c, std::uint32_t index);
int destroy_eq(CommandInterface& c, std::uint8_t eqn);
int alloc_pd(CommandInterface& c, std::uint32_t& pdn);
int dealloc_pd(CommandInterface& c, std::uint32_t pdn);

struct MkeyParams {
  std::uint32_t pdn = 0;
  std::uint32_t access = 0;  ///< enum ibv_access_flags
  std::uint64_t start = 0, length = 0;
  std::uint8_t variant = 0;
};
/// `key` receives index<<8 | variant.
int create_mkey(CommandInterface& c, const MkeyParams& p, const DmaMapping& pages, std::uint32_t& key);
/// A key whose addresses are DMA addresses, all of them.
int create_dma_key(CommandInterface& c, std::uint32_t pdn, std::uint32_t access, std::uint8_t variant,
                   std::uint32_t& key);
/// An indirect key without translations, for a memory window; type 2 may be invalidated by a remote SEND.
int create_window_key(CommandInterface& c, std::uint32_t pdn, bool type_2, std::uint8_t variant, std::uint32_t& key);
int destroy_mkey(CommandInterface& c, std::uint32_t key);
/// The key that reads as zeros and drops what is written (QUERY_SPECIAL_CONTEXTS).
int query_null_key(CommandInterface& c, std::uint32_t& key);

struct CqParams {
  unsigned log_size = 0;
  std::uint32_t cqe_size = 64, page_offset = 0, uar = 0;
  std::uint8_t eqn = 0;
  bool ignore_overrun = false;
  bool period_from_cqe = false, solicited_breaks = false;  ///< moderation
  std::uint64_t dbr = 0;                                   ///< bus address
};
int create_cq(CommandInterface& c, const CqParams& p, const DmaMapping& pages, std::uint32_t& cqn);
int destroy_cq(CommandInterface& c, std::uint32_t cqn);
/// Moves a CQ to another buffer; uses log_size, page_offset of `p`. -EINVAL if what is not consumed does not fit.
int resize_cq(CommandInterface& c, std::uint32_t cqn, const CqParams& p, const DmaMapping& pages);
int modify_cq_moderation(CommandInterface& c, std::uint32_t cqn, std::uint16_t count, std::uint16_t period);

/// A shared receive queue; with `xrcdn` and `cqn` an XRC one.
struct SrqParams {
  bool xrc = false;
  std::uint32_t pdn = 0, log_size = 0, wqe_shift = 0, page_offset = 0;  ///< bytes of a WQE: 1 << wqe_shift
  std::uint32_t xrcdn = 0, cqn = 0, user_index = 0;
  std::uint64_t dbr = 0;  ///< bus address
};
int create_srq(CommandInterface& c, const SrqParams& p, const DmaMapping& pages, std::uint32_t& srqn);
int destroy_srq(CommandInterface& c, std::uint32_t srqn, bool xrc);
/// `limit` receives the armed limit, 0 = not armed.
int query_srq(CommandInterface& c, std::uint32_t srqn, bool xrc, std::uint32_t& limit);
int arm_srq(CommandInterface& c, std::uint32_t srqn, bool xrc, std::uint32_t limit);
int alloc_xrcd(CommandInterface& c, std::uint32_t& xrcdn);
int dealloc_xrcd(CommandInterface& c, std::uint32_t xrcdn);

/// CREATE_QP with a context of hca::prm::kQpcSize bytes.
int create_qp(CommandInterface& c, std::span<const std::byte> qpc, const DmaMapping& pages, std::uint32_t& qpn);
int destroy_qp(CommandInterface& c, std::uint32_t qpn);
int modify_qp(CommandInterface& c, std::uint16_t opcode, std::uint32_t qpn, std::uint32_t opt_mask,
              std::span<const std::byte> qpc, std::uint32_t op_mod = 0);
/// `qpc` receives hca::prm::kQpcSize bytes.
int query_qp(CommandInterface& c, std::uint32_t qpn, std::span<std::byte> qpc);

/// ATTACH_TO_MCG and DETACH_FROM_MCG.
int attach_to_group(CommandInterface& c, std::uint32_t qpn, const Gid& group);
int detach_from_group(CommandInterface& c, std::uint32_t qpn, const Gid& group);

/// Writes a page list into a command.
void put_pages(Command& command, std::size_t at, const DmaMapping& pages);

}  // namespace kernel
