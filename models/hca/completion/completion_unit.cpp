// SPDX-License-Identifier: Apache-2.0
// One flow per CQ writes its CQEs in order: context, build, room, owner bit, 64-byte posted write, event. The consumer
// index is read from the doorbell record in the background when the ring looks half full, and waited for only when it
// looks full (S-OVR-8). Overrun puts the CQ into error for
// good, raises CQ_ERROR once and fails every QP that needs the CQ from then on (S-OVR-1…6).
#include "hca/completion/completion_unit.h"

#include <cstring>

#include "hca/completion/arm.h"
#include "hca/trace_points.h"

namespace hca {

CompletionUnit::CompletionUnit(sim::Context& context, const CompletionConfig& config,
                               const ContextConfig& context_config, DmaEngine& dma, Icm& icm, ObjectTable<Cq>& cqs,
                               EventUnit& events, std::int32_t host, const std::string& path)
    : context_(context),
      config_(config),
      context_config_(context_config),
      host_(host),
      dma_(dma),
      cqs_(cqs),
      events_(events),
      cqc_(context, dma, icm, IcmTable::cqc, context_config.cqc_entries, 1, &encode_cqc, this, host, path + ".cqc"),
      trace_(context, host, path),
      cqes_(context.stats.counter(path + ".cqes")),
      cqe_bytes_(context.stats.counter(path + ".cqe_bytes")),
      overruns_(context.stats.counter(path + ".cq_overruns")),
      lost_(context.stats.counter(path + ".cqes_lost")) {}

void CompletionUnit::encode_cqc(void* self, std::uint32_t index, std::byte* out) {
  const Cq* cq = static_cast<CompletionUnit*>(self)->cqs_.find(index);
  if (cq == nullptr) return;
  std::memcpy(out, cq->image.data(), cq->image.size());
  prm::set(out, prm::kCqcStatus,
           !cq->overflow           ? prm::kCqStatusOk
           : cq->record_unreadable ? prm::kCqStatusWriteFail
                                   : prm::kCqStatusOverflow);
  prm::set(out, prm::kCqcState, cqc_state(cq->arm));
  prm::set(out, prm::kCqcProducer, cq->producer);
  prm::set(out, prm::kCqcConsumer, cq->consumer);
}

void CompletionUnit::post(std::uint32_t cqn, PendingCqe cqe) {
  Cq* cq = cqs_.find(cqn);
  if (cq == nullptr || cq->overflow) {
    lost_.add();
    if (failures_ != nullptr) failures_->cq_failed(cqe.qpn);
    return;
  }
  cqe.since = context_.now();
  cq->pending.push_back(std::move(cqe));
  if (!cq->writing) write(*cq);
}

sim::Flow CompletionUnit::write(Cq& cq) {
  cq.writing = true;
  while (!cq.pending.empty()) {
    if (!cqc_.hit(cq.cqn)) co_await cqc_.fill(cq.cqn, cq.pending.front().cause);
    co_await context_.delay(context_config_.cqc_hit + config_.cqe_build +
                            context_.jitter.draw(sim::JitterPlace::cqe_write, host_));
    if (cq.pending.front().resizes) co_await read_consumer(cq, {});
    const bool room = co_await has_room(cq);
    if (cq.pending.front().resizes && (!room || cq.producer + 1 - cq.consumer > 1U << cq.resize->log_size)) {
      cq.pending.pop_front();  // the CQEs that are not consumed yet would not fit
      cq.resize->done.complete(false);
      continue;
    }
    if (!room) {
      overrun(cq);
      break;
    }
    PendingCqe cqe = cq.pending.pop_front();
    const std::uint32_t size = 1U << cq.log_size;
    auto* view = reinterpret_cast<mlx5_cqe64*>(cqe.bytes.data());
    const std::uint8_t opcode = view->op_own >> 4;
    if (opcode != MLX5_CQE_REQ_ERR && opcode != MLX5_CQE_RESP_ERR)  // an error CQE has its syndrome there
      view->timestamp = prm::be64(static_cast<std::uint64_t>(context_.now() / config_.clock_period));
    view->op_own = static_cast<std::uint8_t>((view->op_own & 0xFE) | (cq.producer >> cq.log_size & 1));
    if (cqe.solicited) view->op_own |= 2;
    if (cq.tags != nullptr) cq.tags->publish(cq.producer, cqe.cause.msg);
    if (cqe.cause.critical) context_.journeys.mark(cqe.cause.msg, sim::Stage::cqe_write, context_.now());
    const bool failed = opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR;
    const unsigned syndrome = failed ? reinterpret_cast<const mlx5_err_cqe*>(view)->syndrome : 0;
    const std::uint64_t span = trace_.span(points::cqe, cqe.cause, cqe.since, cqe.since, context_.now(), cq.cqn,
                                           cqe.qpn, view->op_own >> 4, syndrome);
    trace_.bytes(span, cqe.cause.msg, context_.now(), cqe.bytes);
    sim::trace::Cause cause = cqe.cause;
    if (span != 0) cause.parent = span;
    put(cq, cqe, cause);
    if (config_.arm_rule == ArmRule::next_cqe) {
      covered(cq, 0);  // forgets those that have left
      cq.leaving.push_back(dma_.posted());
    }
    ++cq.producer;
    level(cq, context_.now());
    if (cqe.resizes) {
      finish_resize(cq);
      continue;
    }
    if (cq.tags != nullptr) cq.tags->occupancy.add(context_.now(), 1);
    if (cqe.solicited) cq.last_solicited = cq.producer;
    cqc_.dirty(cq.cqn);
    cqes_.add();
    cq.newest = cause;
    notify(cq, cqe.solicited);
    if (!cq.ignore_overrun && !cq.refreshing && cq.producer - cq.consumer >= size / 2) refresh(cq);
  }
  cq.writing = false;
}

// Writes a CQE into its slot: the last 64 bytes of it, and what lies before them in one write with it.
void CompletionUnit::put(Cq& cq, const PendingCqe& cqe, sim::trace::Cause cause) {
  const std::uint64_t slot = cq.producer & ((1U << cq.log_size) - 1);
  const memory::Iova at = cq.buffer.at(slot * cq.cqe_bytes);
  cqe_bytes_.add(cqe.data ? 128 : cqe.bytes.size());
  if (!cqe.data) {
    dma_.write_inline(at + (cq.cqe_bytes - cqe.bytes.size()), cqe.bytes, cause);
    return;
  }
  const sim::BufferRef both = context_.buffers.make(128);
  std::memcpy(both.data(), cqe.data.data(), 64);
  std::memcpy(both.data() + 64, cqe.bytes.data(), cqe.bytes.size());
  dma_.write(at, 128, both, 0, cause);
}

// True if the ring has a free slot; consults the doorbell record when it looks full.
sim::Task<bool> CompletionUnit::has_room(Cq& cq) {
  const std::uint32_t size = 1U << cq.log_size;
  if (cq.ignore_overrun || cq.producer - cq.consumer < size) co_return true;
  co_return co_await read_consumer(cq, cq.pending.front().cause) && cq.producer - cq.consumer < size;
}

sim::Task<bool> CompletionUnit::read_consumer(Cq& cq, sim::trace::Cause cause) {
  sim::BufferRef record = context_.buffers.make(8);
  cq.record_unreadable = co_await dma_.fetch(cq.dbr, 8, record, 0, cause) != DmaStatus::ok;
  if (cq.record_unreadable) co_return false;
  std::uint32_t ci;
  std::memcpy(&ci, record.data() + prm::kCqSetCi, 4);
  const std::uint32_t ahead = (prm::be32(ci) - cq.consumer) & 0xFFFFFF;
  if (ahead <= cq.producer - cq.consumer) cq.consumer += ahead;  // an older read may end later; nonsense is ignored
  level(cq, context_.now());
  co_return true;
}

sim::Flow CompletionUnit::refresh(Cq& cq) {
  cq.refreshing = true;
  co_await read_consumer(cq, {0, cq.newest.parent});
  cq.refreshing = false;
}

void CompletionUnit::overrun(Cq& cq) {
  cq.overflow = true;
  overruns_.add();
  trace_.instant(points::cq_overrun, cq.pending.front().cause, context_.now(), cq.cqn, cq.producer, cq.consumer);
  events_.async(prm::kEventCqError, cq.cqn, cq.record_unreadable ? prm::kCqErrorAccess : prm::kCqErrorOverrun);
  while (!cq.pending.empty()) {
    const PendingCqe cqe = cq.pending.pop_front();
    if (cqe.resizes) {
      cq.resize->done.complete(false);
      continue;
    }
    lost_.add();
    context_.journeys.fail(cqe.cause.msg, sim::kLost, context_.now());
    if (failures_ != nullptr) failures_->cq_failed(cqe.qpn);
  }
}

}  // namespace hca
