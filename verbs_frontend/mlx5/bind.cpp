// SPDX-License-Identifier: Apache-2.0
// BIND_MW and LOCAL_INV: UMR WQEs of a control, an UMR-control (48), an mkey-context (64) and for BIND a KLM segment
// padded to 64 bytes (S-WQE-12, S-MW-4). Only the context fields that the mask selects are written.
#include <cerrno>

#include "verbs_frontend/mlx5/verbs.h"
#include "verbs_frontend/mlx5/wqe.h"

namespace verbs::mlx5 {
namespace {

constexpr std::uint8_t kUmrInline = 0x80, kUmrCheckFree = 0x20, kUmrTranslationOffset = 0x10, kUmrCheckQpn = 0x08;
constexpr std::uint64_t kMaskLen = 1ULL << 0, kMaskStart = 1ULL << 6, kMaskKey = 1ULL << 13, kMaskQpn = 1ULL << 14,
                        kMaskLocalWrite = 1ULL << 18, kMaskRemoteRead = 1ULL << 19, kMaskRemoteWrite = 1ULL << 20,
                        kMaskAtomic = 1ULL << 21, kMaskFree = 1ULL << 29;
constexpr std::uint8_t kContextFree = 0x40;
constexpr std::uint32_t kAnyQp = 0xffffff00;

void put_umr_ctrl(Machine& m, std::byte* umr, std::uint8_t flags, std::uint16_t klm_octowords, std::uint64_t mask) {
  m.store<std::uint16_t>(umr + 1, 0);
  m.store<std::uint8_t>(umr + 3, 0);
  const std::array<std::byte, 16> zeros{};
  m.store_bytes(umr + 16, zeros.data(), zeros.size());
  m.store_bytes(umr + 32, zeros.data(), zeros.size());
  m.store<std::uint32_t>(umr + 4, be32(std::uint32_t{klm_octowords} << 16));
  m.store(umr + 8, be64(mask));
  m.store(umr, flags);
}

std::byte* wrapped(const WorkQueue& sq, std::byte* p) { return p == sq.end() ? sq.buf : p; }

std::uint8_t context_access(unsigned verbs_access) {
  std::uint8_t a = 0;
  if (verbs_access & IBV_ACCESS_LOCAL_WRITE) a |= 0x08;
  if (verbs_access & IBV_ACCESS_REMOTE_READ) a |= 0x10;
  if (verbs_access & IBV_ACCESS_REMOTE_WRITE) a |= 0x20;
  if (verbs_access & IBV_ACCESS_REMOTE_ATOMIC) a |= 0x40;
  return a;
}

}  // namespace

std::uint32_t put_invalidate(Machine& m, const WorkQueue& sq, std::byte* ctrl, std::uint32_t new_key, bool check_qpn) {
  const std::uint8_t flags = kUmrInline | kUmrTranslationOffset | (check_qpn ? kUmrCheckQpn : 0);
  put_umr_ctrl(m, ctrl + 16, flags, 0, kMaskKey | kMaskFree | (check_qpn ? kMaskQpn : 0));
  std::byte* context = wrapped(sq, ctrl + hca::prm::kWqebb);
  m.store(context, kContextFree);
  m.store(context + 4, be32(kAnyQp | (new_key & 0xff)));
  return 8;
}

std::uint32_t put_bind(Machine& m, const WorkQueue& sq, std::byte* ctrl, const ibv_mw_bind_info& info, ibv_mw_type type,
                       std::uint32_t new_key, std::uint32_t qpn) {
  if (info.length == 0) return put_invalidate(m, sq, ctrl, new_key, type == IBV_MW_TYPE_2);
  std::uint64_t mask =
      kMaskLen | kMaskStart | kMaskKey | kMaskLocalWrite | kMaskRemoteRead | kMaskRemoteWrite | kMaskAtomic | kMaskFree;
  std::uint8_t flags = kUmrInline | kUmrTranslationOffset;
  if (type == IBV_MW_TYPE_2) {
    mask |= kMaskQpn;
    flags |= kUmrCheckFree;
  }
  put_umr_ctrl(m, ctrl + 16, flags, 4, mask);

  std::byte* context = wrapped(sq, ctrl + hca::prm::kWqebb);
  m.store<std::uint8_t>(context, 0);
  m.store(context + 2, context_access(info.mw_access_flags));
  m.store(context + 4, be32((type == IBV_MW_TYPE_2 ? qpn << 8 : kAnyQp) | (new_key & 0xff)));
  m.store(context + 16, be64(info.mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info.addr));
  m.store(context + 24, be64(info.length));

  std::byte* klm = wrapped(sq, context + hca::prm::kWqebb);
  m.store(klm, be32(static_cast<std::uint32_t>(info.length)));
  m.store(klm + 4, be32(info.mr->lkey));
  m.store(klm + 8, be64(info.addr));
  const std::array<std::byte, 48> padding{};
  m.store_bytes(klm + 16, padding.data(), padding.size());
  return 12;
}

int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  const ibv_mw_bind_info& info = bind->bind_info;
  if (mw->type != IBV_MW_TYPE_1) return EINVAL;
  if (info.mr == nullptr && (info.addr != 0 || info.length != 0)) return EINVAL;
  if (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) return EINVAL;
  if (info.mr != nullptr && mw->pd != info.mr->pd) return EPERM;
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_BIND_MW;
  wr.wr_id = bind->wr_id;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = info;
  ibv_send_wr* bad = nullptr;
  const int e = post_send(qp, &wr, &bad);
  if (e == 0) mw->rkey = wr.bind_mw.rkey;
  return e;
}

}  // namespace verbs::mlx5
