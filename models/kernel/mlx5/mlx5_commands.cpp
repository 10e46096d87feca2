// SPDX-License-Identifier: Apache-2.0
// Contexts and object commands of the mlx5 driver. Values that verbs do not carry are those of mlx5_ib: keys usable by any
// QP, the largest page that fits, one EQ per completion vector. Source: hca/prm.h for layouts, mlx5_ib for the values.
#include "kernel/mlx5/mlx5_commands.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr std::size_t kShort = 16;

int on_object(CommandInterface& c, std::uint16_t opcode, std::uint32_t number) {
  Command cmd(opcode, kShort, kShort);
  cmd.set(prm::kInObject, number);
  return c.execute(cmd);
}

int run_for_number(CommandInterface& c, Command& cmd, std::uint32_t& number) {
  const int error = c.execute(cmd);
  if (error == 0) number = cmd.get(prm::kOutObject);
  return error;
}
}  // namespace

void put_pages(Command& command, std::size_t at, const DmaMapping& pages) {
  for (std::size_t i = 0; i < pages.pages.size(); ++i) command.set64(at + 8 * i, pages.pages[i].v);
}

int alloc_uar(CommandInterface& c, std::uint32_t& index) {
  Command cmd(prm::kAllocUar, kShort, kShort);
  return run_for_number(c, cmd, index);
}
int dealloc_uar(CommandInterface& c, std::uint32_t index) { return on_object(c, prm::kDeallocUar, index); }

int destroy_eq(CommandInterface& c, std::uint8_t eqn) {
  Command cmd(prm::kDestroyEq, kShort, kShort);
  cmd.set(prm::kInEqn, eqn);
  return c.execute(cmd);
}

int alloc_pd(CommandInterface& c, std::uint32_t& pdn) {
  Command cmd(prm::kAllocPd, kShort, kShort);
  return run_for_number(c, cmd, pdn);
}
int dealloc_pd(CommandInterface& c, std::uint32_t pdn) { return on_object(c, prm::kDeallocPd, pdn); }

namespace {
constexpr unsigned kMaxPageShift = 31;  // what the context can say

/// The largest page by which the region can be translated: inside it, addresses and DMA addresses have the same low bits,
/// and no piece of the DMA mapping ends within it (S-MR-9).
unsigned page_shift(std::uint64_t start, std::uint64_t length, const DmaMapping& m) {
  const std::uint64_t first = start & ~(memory::kPageSize - 1);
  std::uint64_t differ = first ^ m.pages.front().v;
  for (std::size_t i = 1; i < m.pages.size(); ++i)
    if (m.pages[i].v != m.pages[i - 1].v + memory::kPageSize) differ |= (first + i * memory::kPageSize) | m.pages[i].v;
  const auto agree = static_cast<unsigned>(std::countr_zero(differ | 1ULL << kMaxPageShift));
  const unsigned enough = std::max<unsigned>(memory::kPageShift, static_cast<unsigned>(std::bit_width(length - 1)));
  return std::min(agree, enough);
}

/// DMA addresses of the pages of 1 << shift bytes that cover the region. The first may begin before it.
DmaMapping in_pages(std::uint64_t start, std::uint64_t length, const DmaMapping& m, unsigned shift) {
  const std::uint64_t page = 1ULL << shift, base = start & ~(page - 1), first = start & ~(memory::kPageSize - 1);
  DmaMapping out;
  out.pages.push_back({m.pages.front().v - (first - base)});
  for (std::uint64_t at = base + page; at < start + length; at += page)
    out.pages.push_back(m.pages[(at - first) / memory::kPageSize]);
  return out;
}
}  // namespace

int create_mkey(CommandInterface& c, const MkeyParams& p, const DmaMapping& mapping, std::uint32_t& key) {
  const unsigned shift = page_shift(p.start, p.length, mapping);
  const DmaMapping pages = in_pages(p.start, p.length, mapping, shift);
  const auto n = static_cast<std::uint32_t>(pages.pages.size());
  const std::uint32_t octwords = (n + 1) / 2;
  Command cmd(prm::kCreateMkey, prm::kCreateMkeyPas + std::size_t{octwords} * 16, kShort);
  const auto mkc = [&](prm::Field f, std::uint32_t v) { cmd.set(f, v, prm::kMkcOffset); };
  const auto has = [&](std::uint32_t bit) { return (p.access & bit) != 0 ? 1U : 0U; };
  mkc(prm::kMkcRelaxedRead, has(IBV_ACCESS_RELAXED_ORDERING));
  mkc(prm::kMkcRelaxedWrite, has(IBV_ACCESS_RELAXED_ORDERING));
  mkc(prm::kMkcUmr, has(IBV_ACCESS_MW_BIND));
  mkc(prm::kMkcAtomic, has(IBV_ACCESS_REMOTE_ATOMIC));
  mkc(prm::kMkcRw, has(IBV_ACCESS_REMOTE_WRITE));
  mkc(prm::kMkcRr, has(IBV_ACCESS_REMOTE_READ));
  mkc(prm::kMkcLw, has(IBV_ACCESS_LOCAL_WRITE));
  mkc(prm::kMkcLr, 1);
  mkc(prm::kMkcAccessMode, prm::kMkcModeMtt);
  mkc(prm::kMkcQpn, 0xffffff);
  mkc(prm::kMkcVariant, p.variant);
  mkc(prm::kMkcPd, p.pdn);
  cmd.set64(prm::kMkcOffset + prm::kMkcStart, p.start);
  cmd.set64(prm::kMkcOffset + prm::kMkcLen, p.length);
  mkc(prm::kMkcTranslations, octwords);
  mkc(prm::kMkcLogPageSize, shift);
  cmd.set(prm::kCreateMkeyTranslations, octwords);
  put_pages(cmd, prm::kCreateMkeyPas, pages);
  std::uint32_t index = 0;
  const int error = run_for_number(c, cmd, index);
  if (error == 0) key = index << 8 | p.variant;
  return error;
}
int create_dma_key(CommandInterface& c, std::uint32_t pdn, std::uint32_t access, std::uint8_t variant,
                   std::uint32_t& key) {
  Command cmd(prm::kCreateMkey, prm::kCreateMkeyPas, kShort);
  const auto mkc = [&](prm::Field f, std::uint32_t v) { cmd.set(f, v, prm::kMkcOffset); };
  mkc(prm::kMkcRw, (access & IBV_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
  mkc(prm::kMkcRr, (access & IBV_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
  mkc(prm::kMkcLw, (access & IBV_ACCESS_LOCAL_WRITE) != 0 ? 1 : 0);
  mkc(prm::kMkcLr, 1);
  mkc(prm::kMkcAccessMode, prm::kMkcModePa);
  mkc(prm::kMkcQpn, 0xffffff);
  mkc(prm::kMkcVariant, variant);
  mkc(prm::kMkcLength64, 1);
  mkc(prm::kMkcPd, pdn);
  std::uint32_t index = 0;
  const int error = run_for_number(c, cmd, index);
  if (error == 0) key = index << 8 | variant;
  return error;
}
int create_window_key(CommandInterface& c, std::uint32_t pdn, bool type_2, std::uint8_t variant, std::uint32_t& key) {
  constexpr std::uint32_t kEntries = 4;  // as many as a bind WQE carries, padding included
  Command cmd(prm::kCreateMkey, prm::kCreateMkeyPas, kShort);
  const auto mkc = [&](prm::Field f, std::uint32_t v) { cmd.set(f, v, prm::kMkcOffset); };
  mkc(prm::kMkcFree, 1);
  mkc(prm::kMkcUmr, 1);
  mkc(prm::kMkcLr, 1);
  mkc(prm::kMkcAccessMode, prm::kMkcModeKlm);
  mkc(prm::kMkcQpn, 0xffffff);
  mkc(prm::kMkcVariant, variant);
  mkc(prm::kMkcRemoteInvalidate, type_2 ? 1 : 0);
  mkc(prm::kMkcPd, pdn);
  mkc(prm::kMkcTranslations, kEntries);
  std::uint32_t index = 0;
  const int error = run_for_number(c, cmd, index);
  if (error == 0) key = index << 8 | variant;
  return error;
}
int destroy_mkey(CommandInterface& c, std::uint32_t key) { return on_object(c, prm::kDestroyMkey, key >> 8); }

int query_null_key(CommandInterface& c, std::uint32_t& key) {
  Command cmd(prm::kQuerySpecialContexts, kShort, 32);
  const int error = c.execute(cmd);
  if (error == 0) key = cmd.get(prm::kSpecialDumpFillMkey);
  return error;
}

int create_cq(CommandInterface& c, const CqParams& p, const DmaMapping& pages, std::uint32_t& cqn) {
  Command cmd(prm::kCreateCq, prm::kCreateCqPas + 8 * pages.pages.size(), kShort);
  const auto cqc = [&](prm::Field f, std::uint32_t v) { cmd.set(f, v, prm::kCqcOffset); };
  cqc(prm::kCqcCqeSize, p.cqe_size == 128 ? 1 : 0);
  cqc(prm::kCqcOi, p.ignore_overrun ? 1 : 0);
  cqc(prm::kCqcPeriodMode, p.period_from_cqe ? prm::kCqPeriodFromCqe : prm::kCqPeriodFromEqe);
  cqc(prm::kCqcSolicitedBreaks, p.solicited_breaks ? 1 : 0);
  cqc(prm::kCqcPageOffset, p.page_offset);
  cqc(prm::kCqcLogSize, p.log_size);
  cqc(prm::kCqcUarPage, p.uar);
  cqc(prm::kCqcEqn, p.eqn);
  cqc(prm::kCqcLogPageSize, 0);
  cmd.set64(prm::kCqcOffset + prm::kCqcDbrAddr, p.dbr);
  put_pages(cmd, prm::kCreateCqPas, pages);
  return run_for_number(c, cmd, cqn);
}
int destroy_cq(CommandInterface& c, std::uint32_t cqn) { return on_object(c, prm::kDestroyCq, cqn); }

int resize_cq(CommandInterface& c, std::uint32_t cqn, const CqParams& p, const DmaMapping& pages) {
  Command cmd(prm::kModifyCq, prm::kCreateCqPas + 8 * pages.pages.size(), kShort, prm::kModifyCqResize);
  cmd.set(prm::kInObject, cqn);
  cmd.set(prm::kCqcPageOffset, p.page_offset, prm::kCqcOffset);
  cmd.set(prm::kCqcLogSize, p.log_size, prm::kCqcOffset);
  put_pages(cmd, prm::kCreateCqPas, pages);
  return c.execute(cmd);
}

int modify_cq_moderation(CommandInterface& c, std::uint32_t cqn, std::uint16_t count, std::uint16_t period) {
  Command cmd(prm::kModifyCq, prm::kCqcOffset + prm::kCqcSize, kShort);
  cmd.set(prm::kInObject, cqn);
  cmd.set(prm::kModifyCqSelect, prm::kModifyCqPeriod | prm::kModifyCqCount);
  cmd.set(prm::kCqcPeriod, period, prm::kCqcOffset);
  cmd.set(prm::kCqcMaxCount, count, prm::kCqcOffset);
  return c.execute(cmd);
}

int create_srq(CommandInterface& c, const SrqParams& p, const DmaMapping& pages, std::uint32_t& srqn) {
  Command cmd(p.xrc ? prm::kCreateXrcSrq : prm::kCreateSrq, prm::kCreateSrqPas + 8 * pages.pages.size(), kShort);
  const auto srqc = [&](prm::Field f, std::uint32_t v) { cmd.set(f, v, prm::kSrqcOffset); };
  srqc(prm::kSrqcLogSize, p.log_size);
  srqc(prm::kSrqcLogStride, p.wqe_shift - 4);
  srqc(prm::kSrqcXrcd, p.xrcdn);
  srqc(prm::kSrqcPageOffset, p.page_offset);
  srqc(prm::kSrqcCqn, p.cqn);
  srqc(prm::kSrqcLogPageSize, 0);
  srqc(prm::kSrqcUserIndex, p.user_index);
  srqc(prm::kSrqcPd, p.pdn);
  cmd.set64(prm::kSrqcOffset + prm::kSrqcDbrAddr, p.dbr);
  put_pages(cmd, prm::kCreateSrqPas, pages);
  return run_for_number(c, cmd, srqn);
}
int destroy_srq(CommandInterface& c, std::uint32_t srqn, bool xrc) {
  return on_object(c, xrc ? prm::kDestroyXrcSrq : prm::kDestroySrq, srqn);
}
int query_srq(CommandInterface& c, std::uint32_t srqn, bool xrc, std::uint32_t& limit) {
  Command cmd(xrc ? prm::kQueryXrcSrq : prm::kQuerySrq, kShort, prm::kCreateSrqPas);
  cmd.set(prm::kInObject, srqn);
  const int error = c.execute(cmd);
  if (error == 0) limit = cmd.get(prm::kSrqcLwm, prm::kSrqcOffset);
  return error;
}
int arm_srq(CommandInterface& c, std::uint32_t srqn, bool xrc, std::uint32_t limit) {
  Command cmd(xrc ? prm::kArmXrcSrq : prm::kArmRq, kShort, kShort, prm::kArmSrq);
  cmd.set(prm::kInObject, srqn);
  cmd.set(prm::kArmSrqLimit, limit);
  return c.execute(cmd);
}
int alloc_xrcd(CommandInterface& c, std::uint32_t& xrcdn) {
  Command cmd(prm::kAllocXrcd, kShort, kShort);
  return run_for_number(c, cmd, xrcdn);
}
int dealloc_xrcd(CommandInterface& c, std::uint32_t xrcdn) { return on_object(c, prm::kDeallocXrcd, xrcdn); }

int create_qp(CommandInterface& c, std::span<const std::byte> qpc, const DmaMapping& pages, std::uint32_t& qpn) {
  Command cmd(prm::kCreateQp, prm::kCreateQpPas + 8 * pages.pages.size(), kShort);
  std::memcpy(cmd.in.data() + prm::kQpcOffset, qpc.data(), qpc.size());
  put_pages(cmd, prm::kCreateQpPas, pages);
  return run_for_number(c, cmd, qpn);
}
int destroy_qp(CommandInterface& c, std::uint32_t qpn) { return on_object(c, prm::kDestroyQp, qpn); }

int modify_qp(CommandInterface& c, std::uint16_t opcode, std::uint32_t qpn, std::uint32_t opt_mask,
              std::span<const std::byte> qpc, std::uint32_t op_mod) {
  const bool with_context = opcode != prm::kQp2Err && opcode != prm::kQp2Rst;
  Command cmd(opcode, with_context ? prm::kCreateQpPas : kShort, kShort);
  cmd.set(prm::kInOpMod, op_mod);
  cmd.set(prm::kInObject, qpn);
  if (with_context) {
    cmd.set(prm::kQpOptMask, opt_mask);
    std::memcpy(cmd.in.data() + prm::kQpcOffset, qpc.data(), qpc.size());
  }
  return c.execute(cmd);
}

namespace {
int on_group(CommandInterface& c, std::uint16_t opcode, std::uint32_t qpn, const Gid& group) {
  Command cmd(opcode, prm::kMcgGid + group.size(), kShort);
  cmd.set(prm::kInObject, qpn);
  std::memcpy(cmd.in.data() + prm::kMcgGid, group.data(), group.size());
  return c.execute(cmd);
}
}  // namespace

int attach_to_group(CommandInterface& c, std::uint32_t qpn, const Gid& group) {
  return on_group(c, prm::kAttachToMcg, qpn, group);
}
int detach_from_group(CommandInterface& c, std::uint32_t qpn, const Gid& group) {
  return on_group(c, prm::kDetachFromMcg, qpn, group);
}

int query_qp(CommandInterface& c, std::uint32_t qpn, std::span<std::byte> qpc) {
  Command cmd(prm::kQueryQp, kShort, prm::kCreateQpPas);
  cmd.set(prm::kInObject, qpn);
  const int error = c.execute(cmd);
  if (error == 0) std::memcpy(qpc.data(), cmd.out.data() + prm::kQpcOffset, qpc.size());
  return error;
}

}  // namespace kernel
