// SPDX-License-Identifier: Apache-2.0
// Commands about memory keys, event queues and completion queues.
#include <algorithm>
#include <cstring>

#include "hca/command/command_unit.h"
#include "hca/completion/arm.h"
#include "hca/dma/memory_window.h"
#include "hca/trace_points.h"

namespace hca {

// Reads `count` page addresses (be64) at byte `at` of the input.
bool CommandUnit::read_pages(const Command& c, std::size_t at, std::size_t count, QueueBuffer& buffer) {
  if (at + count * 8 > prm::be32(c.entry.inlen)) return false;
  buffer.pages.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const memory::Iova page{prm::get64(c.in.data(), at + i * 8)};
    if ((page.v & ((1ULL << buffer.log_page) - 1)) != 0) return false;
    buffer.pages.push_back(page);
  }
  return true;
}

CommandUnit::Status CommandUnit::create_mkey(Command& c) {
  const std::byte* mkc = c.in.data() + prm::kMkcOffset;
  const std::uint32_t mode = prm::get(mkc, prm::kMkcAccessMode);
  if (mode > prm::kMkcModeKlm) return prm::kCmdBadParam;
  // An indirect key begins free: UMR WQEs fill it.
  if (mode == prm::kMkcModeKlm && prm::get(mkc, prm::kMkcFree) == 0) return prm::kCmdBadParam;
  if (device_.pds.find(prm::get(mkc, prm::kMkcPd)) == nullptr) return prm::kCmdBadRes;
  std::uint32_t index = 0;
  Mkey* m = device_.mkeys.create(index);
  if (m == nullptr) return prm::kCmdNoRes;
  std::memcpy(m->image.data(), mkc, m->image.size());
  m->variant = static_cast<std::uint8_t>(prm::get(mkc, prm::kMkcVariant));
  m->mode = static_cast<std::uint8_t>(mode);
  m->free = prm::get(mkc, prm::kMkcFree) != 0;
  m->umr = prm::get(mkc, prm::kMkcUmr) != 0;
  m->remote_invalidate = prm::get(mkc, prm::kMkcRemoteInvalidate) != 0;
  m->lr = prm::get(mkc, prm::kMkcLr) != 0;
  m->lw = prm::get(mkc, prm::kMkcLw) != 0;
  m->rr = prm::get(mkc, prm::kMkcRr) != 0;
  m->rw = prm::get(mkc, prm::kMkcRw) != 0;
  m->atomic = prm::get(mkc, prm::kMkcAtomic) != 0;
  m->relaxed_read = prm::get(mkc, prm::kMkcRelaxedRead) != 0;
  m->relaxed_write = prm::get(mkc, prm::kMkcRelaxedWrite) != 0;
  m->length64 = prm::get(mkc, prm::kMkcLength64) != 0;
  m->qpn = prm::get(mkc, prm::kMkcQpn);
  m->pd = prm::get(mkc, prm::kMkcPd);
  m->start = prm::get64(mkc, prm::kMkcStart);
  m->length = prm::get64(mkc, prm::kMkcLen);
  m->klm_room = mode == prm::kMkcModeKlm ? prm::get(mkc, prm::kMkcTranslations) : 0;
  bool ok = device_.icm.reserve(IcmTable::mpt, index);
  Status failure = prm::kCmdNoRes;
  if (ok && mode == prm::kMkcModeMtt) {
    m->log_page = static_cast<std::uint8_t>(prm::get(mkc, prm::kMkcLogPageSize));
    QueueBuffer pages;
    pages.log_page = m->log_page;
    const std::uint64_t page = 1ULL << m->log_page;
    const bool sane = m->log_page >= memory::kPageShift && m->length > 0 && m->start + m->length > m->start;
    const std::uint64_t count = sane ? ((m->start & (page - 1)) + m->length + page - 1) >> m->log_page : 0;
    if (!sane || !read_pages(c, prm::kCreateMkeyPas, count, pages)) {
      ok = false;
      failure = prm::kCmdBadParam;
    } else {
      ok = translation_.add_translations(*m, std::move(pages.pages));
    }
  }
  if (!ok) {
    device_.mkeys.destroy(index);
    return failure;
  }
  m->allocated = true;
  translation_.mpt().install(index);
  prm::set(c.out.data(), prm::kOutObject, index);
  return prm::kCmdOk;
}

// When the command ends, no read or write through the key is under way any more (S-MR-20).
sim::Task<CommandUnit::Status> CommandUnit::destroy_mkey(Command& c) {
  Mkey* m = device_.mkeys.find(object(c));
  if (m == nullptr) co_return prm::kCmdBadRes;
  if (device_.config.keys.bound_region_is_busy && has_windows(device_.mkeys, object(c))) co_return prm::kCmdResBusy;
  translation_.remove_translations(*m);
  translation_.mpt().invalidate(object(c));
  device_.mkeys.destroy(object(c));
  co_await device_.context.delay(device_.config.receive.scatter);  // writes that were translated before
  co_await dma_.drain();
  co_return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::query_mkey(Command& c) {
  const Mkey* m = device_.mkeys.find(object(c));
  if (m == nullptr) return prm::kCmdBadRes;
  if (c.out.size() < prm::kMkcOffset + prm::kMkcSize) return prm::kCmdBadOutLen;
  std::memcpy(c.out.data() + prm::kMkcOffset, m->image.data(), m->image.size());
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::create_eq(Command& c) {
  const std::byte* eqc = c.in.data() + prm::kEqcOffset;
  const std::uint32_t log_size = prm::get(eqc, prm::kEqcLogSize);
  const std::uint32_t vector = prm::get(eqc, prm::kEqcIntr);
  if (log_size > 22 || vector >= prm::kMsixVectors) return prm::kCmdBadParam;
  std::uint32_t eqn = 0;
  Eq* eq = device_.eqs.create(eqn);
  if (eq == nullptr) return prm::kCmdNoRes;
  eq->eqn = eqn;
  eq->log_size = log_size;
  eq->uar_page = prm::get(eqc, prm::kEqcUarPage);
  eq->vector = static_cast<std::uint16_t>(vector);
  eq->event_mask = prm::get64(c.in.data(), prm::kCreateEqMask);
  eq->buffer.log_page = prm::get(eqc, prm::kEqcLogPageSize) + memory::kPageShift;
  const std::uint64_t page = 1ULL << eq->buffer.log_page;
  if (!read_pages(c, prm::kCreateEqPas, ((64ULL << log_size) + page - 1) >> eq->buffer.log_page, eq->buffer)) {
    device_.eqs.destroy(eqn);
    return prm::kCmdBadParam;
  }
  eq->occupancy.open(device_.context, points::eq_occupancy, device_.host,
                     device_.path + ".eq" + std::to_string(eqn) + ".occupancy", device_.context.now());
  prm::set(c.out.data(), prm::kOutEqn, eqn);
  if (eq->takes(prm::kEventPortChange) && !device_.port_up) events_.port_change(false);  // the driver takes it for up
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::destroy_eq(Command& c) {
  const std::uint32_t eqn = prm::get(c.in.data(), prm::kInEqn);
  if (device_.eqs.find(eqn) == nullptr) return prm::kCmdBadRes;
  bool used = false;
  device_.cqs.for_each([&](const Cq& cq) { used |= cq.eqn == eqn; });
  if (used) return prm::kCmdResBusy;
  device_.eqs.find(eqn)->occupancy.set(device_.context.now(), 0);
  device_.eqs.destroy(eqn);
  return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::query_eq(Command& c) {
  const Eq* eq = device_.eqs.find(prm::get(c.in.data(), prm::kInEqn));
  if (eq == nullptr) return prm::kCmdBadRes;
  if (c.out.size() < prm::kEqcOffset + prm::kEqcSize) return prm::kCmdBadOutLen;
  std::byte* eqc = c.out.data() + prm::kEqcOffset;
  prm::set(eqc, prm::kEqcState, eq->armed ? prm::kEqStateArmed : prm::kEqStateFired);
  prm::set(eqc, prm::kEqcLogSize, eq->log_size);
  prm::set(eqc, prm::kEqcIntr, eq->vector);
  prm::set(eqc, prm::kEqcConsumer, eq->consumer);
  prm::set(eqc, prm::kEqcProducer, eq->producer);
  return prm::kCmdOk;
}

// The page list of a CQ's ring.
bool CommandUnit::read_cq_pages(const Command& c, const Cq& cq, unsigned log_size, QueueBuffer& buffer) {
  const std::uint64_t page = 1ULL << buffer.log_page;
  const std::uint64_t bytes = (std::uint64_t{cq.cqe_bytes} << log_size) + buffer.offset;
  return read_pages(c, prm::kCreateCqPas, (bytes + page - 1) >> buffer.log_page, buffer);
}

CommandUnit::Status CommandUnit::create_cq(Command& c) {
  const std::byte* cqc = c.in.data() + prm::kCqcOffset;
  const std::uint32_t log_size = prm::get(cqc, prm::kCqcLogSize);
  const std::uint32_t eqn = prm::get(cqc, prm::kCqcEqn);
  const std::uint32_t cqe_size = prm::get(cqc, prm::kCqcCqeSize);
  if (log_size > device_.config.caps.log_max_cq_sz || cqe_size > prm::kCqeSize128) return prm::kCmdBadParam;
  if (prm::get(cqc, prm::kCqcPeriodMode) > prm::kCqPeriodFromCqe) return prm::kCmdBadParam;
  if (device_.eqs.find(eqn) == nullptr) return prm::kCmdBadRes;
  std::uint32_t cqn = 0;
  Cq* cq = device_.cqs.create(cqn);
  if (cq == nullptr) return prm::kCmdNoRes;
  cq->cqn = cqn;
  cq->log_size = log_size;
  cq->uar_page = prm::get(cqc, prm::kCqcUarPage);
  cq->eqn = eqn;
  cq->dbr = {prm::get64(cqc, prm::kCqcDbrAddr)};
  cq->ignore_overrun = prm::get(cqc, prm::kCqcOi) != 0;
  cq->cqe_bytes = cqe_size == prm::kCqeSize128 ? 128 : 64;
  cq->moderation.count = static_cast<std::uint16_t>(prm::get(cqc, prm::kCqcMaxCount));
  cq->moderation.period = static_cast<std::uint16_t>(prm::get(cqc, prm::kCqcPeriod));
  cq->moderation.from_cqe = prm::get(cqc, prm::kCqcPeriodMode) == prm::kCqPeriodFromCqe;
  cq->moderation.solicited_breaks = prm::get(cqc, prm::kCqcSolicitedBreaks) != 0;
  cq->buffer.log_page = prm::get(cqc, prm::kCqcLogPageSize) + memory::kPageShift;
  cq->buffer.offset = prm::get(cqc, prm::kCqcPageOffset) * 64;
  std::memcpy(cq->image.data(), cqc, cq->image.size());
  if (!read_cq_pages(c, *cq, log_size, cq->buffer)) {
    device_.cqs.destroy(cqn);
    return prm::kCmdBadParam;
  }
  if (!device_.icm.reserve(IcmTable::cqc, cqn)) {
    device_.cqs.destroy(cqn);
    return prm::kCmdNoRes;
  }
  cq->tags = &device_.context.wqe_tags.cq.of(device_.host, cqn);
  cq->tags->reserve(1U << log_size);
  cq->tags->occupancy.open(device_.context, points::cq_unseen, device_.host,
                           device_.path + ".cq" + std::to_string(cqn) + ".unseen", device_.context.now());
  completions_.cqc().install(cqn);
  cq->occupancy.open(device_.context, points::cq_occupancy, device_.host,
                     device_.path + ".cq" + std::to_string(cqn) + ".occupancy", device_.context.now());
  prm::set(c.out.data(), prm::kOutObject, cqn);
  return prm::kCmdOk;
}

sim::Task<CommandUnit::Status> CommandUnit::destroy_cq(Command& c) {
  const std::uint32_t cqn = object(c);
  if (device_.cqs.find(cqn) == nullptr) co_return prm::kCmdBadRes;
  bool used = false;
  device_.qps.for_each([&](const Qp& q) { used |= q.cqn_send == cqn || q.cqn_recv == cqn; });
  device_.srqs.for_each([&](const Srq& s) { used |= s.cqn == cqn; });
  if (used) co_return prm::kCmdResBusy;
  const auto busy = [&] { return device_.cqs.find(cqn)->writing || device_.cqs.find(cqn)->refreshing; };
  while (busy()) co_await device_.context.delay(device_.config.context.cqc_hit + sim::Picos{1});
  completions_.cqc().invalidate(cqn);
  device_.context.wqe_tags.cq.forget(device_.host, cqn);
  device_.cqs.find(cqn)->occupancy.set(device_.context.now(), 0);
  device_.cqs.destroy(cqn);
  co_return prm::kCmdOk;
}

CommandUnit::Status CommandUnit::query_cq(Command& c) {
  const Cq* cq = device_.cqs.find(object(c));
  if (cq == nullptr) return prm::kCmdBadRes;
  if (c.out.size() < prm::kCqcOffset + prm::kCqcSize) return prm::kCmdBadOutLen;
  std::byte* cqc = c.out.data() + prm::kCqcOffset;
  std::memcpy(cqc, cq->image.data(), cq->image.size());
  prm::set(cqc, prm::kCqcStatus, cq->overflow ? prm::kCqStatusOverflow : prm::kCqStatusOk);
  prm::set(cqc, prm::kCqcState, cqc_state(cq->arm));
  prm::set(cqc, prm::kCqcLogSize, cq->log_size);
  prm::set(cqc, prm::kCqcConsumer, cq->consumer);
  prm::set(cqc, prm::kCqcProducer, cq->producer);
  return prm::kCmdOk;
}

// The CQ stays where it is until the CQE that ends its old buffer is written, so nothing destroys it meanwhile.
sim::Task<CommandUnit::Status> CommandUnit::resize_cq(Command& c, Cq& cq) {
  const std::byte* cqc = c.in.data() + prm::kCqcOffset;
  const std::uint32_t log_size = prm::get(cqc, prm::kCqcLogSize);
  if (cq.resize != nullptr || cq.overflow) co_return prm::kCmdBadResState;
  auto resize = std::make_unique<CqResize>();
  resize->log_size = log_size;
  resize->buffer.log_page = prm::get(cqc, prm::kCqcLogPageSize) + memory::kPageShift;
  resize->buffer.offset = prm::get(cqc, prm::kCqcPageOffset) * 64;
  if (log_size > device_.config.caps.log_max_cq_sz || !read_cq_pages(c, cq, log_size, resize->buffer))
    co_return prm::kCmdBadParam;
  cq.resize = std::move(resize);
  completions_.begin_resize(cq);
  sim::Completion<bool>& moved = cq.resize->done;
  const bool done = co_await moved;
  cq.resize.reset();
  co_return done ? prm::kCmdOk : prm::kCmdBadParam;
}

sim::Task<CommandUnit::Status> CommandUnit::modify_cq(Command& c) {
  Cq* cq = device_.cqs.find(object(c));
  if (cq == nullptr) co_return prm::kCmdBadRes;
  const std::byte* cqc = c.in.data() + prm::kCqcOffset;
  if (prm::get(c.in.data(), prm::kInOpMod) == prm::kModifyCqResize) co_return co_await resize_cq(c, *cq);
  const std::uint32_t fields = prm::get(c.in.data(), prm::kModifyCqSelect);
  if ((fields & ~(prm::kModifyCqPeriod | prm::kModifyCqCount)) != 0) co_return prm::kCmdBadParam;
  if ((fields & prm::kModifyCqPeriod) != 0)
    cq->moderation.period = static_cast<std::uint16_t>(prm::get(cqc, prm::kCqcPeriod));
  if ((fields & prm::kModifyCqCount) != 0)
    cq->moderation.count = static_cast<std::uint16_t>(prm::get(cqc, prm::kCqcMaxCount));
  prm::set(cq->image.data(), prm::kCqcPeriod, cq->moderation.period);
  prm::set(cq->image.data(), prm::kCqcMaxCount, cq->moderation.count);
  completions_.cqc().dirty(cq->cqn);
  completions_.moderation_changed(*cq);
  co_return prm::kCmdOk;
}

}  // namespace hca
