// SPDX-License-Identifier: Apache-2.0
// Commands about shared receive queues, basic and XRC (CREATE_XRC_SRQ differs by its domain, CQ and user index), and XRC
// domains. An SRQ that a QP is on, or a domain with members, is busy.
#include <algorithm>
#include <cstring>

#include "hca/command/command_unit.h"

namespace hca {

CommandUnit::Status CommandUnit::create_srq(Command& c, bool xrc) {
  const std::byte* srqc = c.in.data() + prm::kSrqcOffset;
  const CapabilityConfig& caps = device_.config.caps;
  const std::uint32_t log_size = prm::get(srqc, prm::kSrqcLogSize), pd = prm::get(srqc, prm::kSrqcPd);
  const std::uint32_t stride = 16U << prm::get(srqc, prm::kSrqcLogStride);
  const bool sane = log_size <= caps.log_max_srq_sz && stride > prm::kSrqHeadSize &&
                    stride <= 2 * std::bit_ceil(caps.max_wqe_sz_rq) && prm::get(srqc, prm::kSrqcWqSignature) == 0;
  if (!sane) return prm::kCmdBadParam;
  const std::uint32_t xrcd = prm::get(srqc, prm::kSrqcXrcd), cqn = prm::get(srqc, prm::kSrqcCqn);
  if (device_.pds.find(pd) == nullptr) return prm::kCmdBadRes;
  if (xrc && (device_.xrcds.find(xrcd) == nullptr || device_.cqs.find(cqn) == nullptr)) return prm::kCmdBadRes;
  std::uint32_t srqn = 0;
  Srq* srq = device_.srqs.create(srqn);
  if (srq == nullptr) return prm::kCmdNoRes;
  srq->srqn = srqn;
  srq->pd = pd;
  srq->wqes = 1U << log_size;
  srq->stride = stride;
  srq->dbr = {prm::get64(srqc, prm::kSrqcDbrAddr)};
  srq->xrc = xrc;
  if (xrc) {
    srq->xrcd = xrcd;
    srq->cqn = cqn;
    srq->user_index = prm::get(srqc, prm::kSrqcUserIndex);
  }
  srq->buffer.log_page = prm::get(srqc, prm::kSrqcLogPageSize) + memory::kPageShift;
  srq->buffer.offset = prm::get(srqc, prm::kSrqcPageOffset) * 64;
  std::memcpy(srq->image.data(), srqc, srq->image.size());
  const std::uint64_t bytes = std::uint64_t{srq->wqes} * stride + srq->buffer.offset;
  const std::uint64_t page = 1ULL << srq->buffer.log_page;
  if (!read_pages(c, prm::kCreateSrqPas, (bytes + page - 1) >> srq->buffer.log_page, srq->buffer)) {
    device_.srqs.destroy(srqn);
    return prm::kCmdBadParam;
  }
  prm::set(c.out.data(), prm::kOutObject, srqn);
  return prm::kCmdOk;
}

Srq* CommandUnit::find_srq(const Command& c, bool xrc) const {
  Srq* srq = device_.srqs.find(object(c));
  return srq != nullptr && srq->xrc == xrc ? srq : nullptr;
}

sim::Task<CommandUnit::Status> CommandUnit::destroy_srq(Command& c, bool xrc) {
  const std::uint32_t srqn = object(c);
  Srq* srq = find_srq(c, xrc);
  if (srq == nullptr) co_return prm::kCmdBadRes;
  bool used = false;
  if (!xrc) device_.qps.for_each([&](const Qp& q) { used |= q.srqn == srqn && !q.xrc_target(); });
  if (used) co_return prm::kCmdResBusy;
  while (!srq->idle()) co_await device_.context.delay(sim::Picos{100'000});
  device_.srqs.destroy(srqn);
  co_return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::query_srq(Command& c, bool xrc) {
  const Srq* srq = find_srq(c, xrc);
  if (srq == nullptr) return prm::kCmdBadRes;
  if (c.out.size() < prm::kSrqcOffset + prm::kSrqcSize) return prm::kCmdBadOutLen;
  std::byte* srqc = c.out.data() + prm::kSrqcOffset;
  std::memcpy(srqc, srq->image.data(), srq->image.size());
  prm::set(srqc, prm::kSrqcState, srq->failed ? prm::kSrqStateError : prm::kSrqStateGood);
  prm::set(srqc, prm::kSrqcLwm, srq->limit);
  prm::set(srqc, prm::kSrqcWqeCount, srq->in_queue());
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::arm_srq(Command& c, bool xrc) {
  Srq* srq = find_srq(c, xrc);
  if (srq == nullptr) return prm::kCmdBadRes;
  const std::uint32_t limit = prm::get(c.in.data(), prm::kArmSrqLimit);
  if (prm::get(c.in.data(), prm::kInOpMod) != prm::kArmSrq || limit >= srq->wqes) return prm::kCmdBadParam;
  shared_receive_queue_.arm(*srq, static_cast<std::uint16_t>(limit));
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::alloc_xrcd(Command& c) {
  std::uint32_t xrcdn = 0;
  if (device_.xrcds.create(xrcdn) == nullptr) return prm::kCmdNoRes;
  prm::set(c.out.data(), prm::kOutObject, xrcdn);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::dealloc_xrcd(Command& c) {
  const std::uint32_t xrcdn = object(c);
  if (device_.xrcds.find(xrcdn) == nullptr) return prm::kCmdBadRes;
  bool used = false;
  device_.srqs.for_each([&](const Srq& s) { used |= s.xrcd == xrcdn; });
  device_.qps.for_each([&](const Qp& q) { used |= q.xrcd == xrcdn; });
  if (used) return prm::kCmdResBusy;
  device_.xrcds.destroy(xrcdn);
  return prm::kCmdOk;
}

}  // namespace hca
