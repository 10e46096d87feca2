// SPDX-License-Identifier: Apache-2.0
// Segments of a send WQE (S-WQE-2 to S-WQE-12): each function stores one segment field by field, in the order in which
// the real driver does, since another agent may look between two stores.
#pragma once

#include "verbs_frontend/mlx5/mlx5.h"

namespace verbs::mlx5 {

/// fm_ce_se bits of the control segment.
inline constexpr std::uint8_t kFmSmallFence = 0x20, kFmFence = 0x80, kCeAlways = 0x08, kSolicited = 0x02;

inline std::uint32_t index_opcode(std::uint32_t index, std::uint8_t opcode) {
  return be32((index & 0xffff) << 8 | opcode);
}
inline std::uint32_t qpn_ds(std::uint32_t qpn, std::uint32_t ds) { return be32(qpn << 8 | ds); }

/// XRC segment: the SRQ that is to receive.
inline void put_xrc(Machine& m, std::byte* seg, std::uint32_t srqn) { m.store(seg, be32(srqn)); }
/// Remote address segment.
inline void put_remote(Machine& m, std::byte* seg, std::uint64_t va, std::uint32_t rkey) {
  m.store<std::uint32_t>(seg + 12, 0);
  m.store(seg, be64(va));
  m.store(seg + 8, be32(rkey));
}
/// Remote address and atomic segments. FETCH_ADD leaves the compare half as it is in the ring.
inline void put_atomic(Machine& m, std::byte* seg, std::uint64_t va, std::uint32_t rkey, std::uint64_t swap_or_add,
                       const std::uint64_t* compare) {
  m.store<std::uint32_t>(seg + 12, 0);
  m.store(seg + 8, be32(rkey));
  m.store(seg, be64(va));
  if (compare != nullptr) m.store(seg + 24, be64(*compare));
  m.store(seg + 16, be64(swap_or_add));
}
inline void put_data(Machine& m, std::byte* seg, std::uint32_t length, std::uint32_t lkey, std::uint64_t addr) {
  m.store(seg, be32(length));
  m.store(seg + 4, be32(lkey));
  m.store(seg + 8, be64(addr));
}

/// Ends a receive WQE's list of segments.
inline void put_terminator(Machine& m, std::byte* seg) {
  m.store(seg, std::uint64_t{be32(hca::prm::kInvalidLkey)} << 32);
  m.store<std::uint64_t>(seg + 8, 0);
}

/// Verbs opcode -> mlx5 opcode; DRIVER1 makes an UMR WQE. Entries beyond the table are refused.
struct OpcodeInfo {
  std::uint8_t mlx5;
  bool known;
};
OpcodeInfo mlx5_opcode(ibv_wr_opcode op);

/// Copies `n` bytes of the program's memory to `to`, wrapping at the end of the ring. Returns where it ended.
std::byte* copy_inline(Machine& m, const WorkQueue& sq, std::byte* to, std::uint64_t from, std::uint32_t n);

// UMR segments of BIND_MW and LOCAL_INV after the control segment; each returns the DS of the whole WQE.
/// `check_qpn`: the key belongs to this QP (LOCAL_INV, type 2 windows), so the HCA is to check and clear the binding.
std::uint32_t put_invalidate(Machine& m, const WorkQueue& sq, std::byte* ctrl, std::uint32_t new_key, bool check_qpn);
std::uint32_t put_bind(Machine& m, const WorkQueue& sq, std::byte* ctrl, const ibv_mw_bind_info& info, ibv_mw_type type,
                       std::uint32_t new_key, std::uint32_t qpn);
/// The only check in posting a bind: EOPNOTSUPP beyond 2 GiB (S-PS-8).
inline int check_bind(const ibv_mw_bind_info& info) { return info.length > (1ULL << 31) ? EOPNOTSUPP : 0; }

}  // namespace verbs::mlx5
