// SPDX-License-Identifier: Apache-2.0
// When a CQ asks for an event: arm doorbell, solicited CQEs, moderation (S-CE-2…8, S-MOD-2, S-MOD-3). With moderation an
// armed CQ fires when `count` CQEs have come since the last event, or a CQE has waited until the period is over. The
// period starts with the last event or the arm behind it, or with each CQE.
#include "hca/completion/arm.h"
#include "hca/completion/completion_unit.h"
#include "hca/trace_points.h"

namespace hca {

void CompletionUnit::notify(Cq& cq, bool solicited) {
  if (cq.moderation.active()) {
    if (cq.moderation.from_cqe) cq.moderation.origin = context_.now();
    if (solicited && cq.moderation.solicited_breaks && cq.arm != ArmState::fired) return fire(cq);
    return tell(cq);
  }
  if (cq.arm == ArmState::fired || (cq.arm == ArmState::armed_solicited && !solicited)) return;
  fire(cq);
}

// Fires if an armed CQ holds something to tell and moderation does not hold it back; otherwise looks again when the period is over.
void CompletionUnit::tell(Cq& cq) {
  if (cq.arm == ArmState::fired) return;
  CqModeration& m = cq.moderation;
  const std::uint32_t newest = cq.arm == ArmState::armed_solicited ? cq.last_solicited : cq.producer;
  if (static_cast<std::int32_t>(newest - m.told) <= 0) return;
  const bool enough = !m.active() || (m.count != 0 && cq.producer - m.told >= m.count);
  const sim::Picos due = m.origin + sim::Picos{m.period * 1'000'000LL};
  if (enough || (m.period != 0 && due <= context_.now())) return fire(cq);
  if (m.period == 0 || m.scheduled) return;
  m.scheduled = true;
  context_.scheduler.at(due, &CompletionUnit::period_over, this, cq.cqn);
}

void CompletionUnit::period_over(void* self, std::uint64_t cqn) {
  auto* u = static_cast<CompletionUnit*>(self);
  Cq* cq = u->cqs_.find(static_cast<std::uint32_t>(cqn));
  if (cq == nullptr) return;
  cq->moderation.scheduled = false;
  u->tell(*cq);
}

// The event announces the newest CQE, whether that came now, waited for the moderation, or was there before the arm.
void CompletionUnit::fire(Cq& cq) {
  cq.arm = ArmState::fired;
  cq.fired_since_arm = true;
  cq.moderation.told = cq.producer;
  cq.moderation.origin = context_.now();
  events_.completion(cq.eqn, cq.cqn, cq.newest);
}

// Producer index up to which CQEs need no event for an arm that arrives now with consumer index ci. By compare_ci that is what
// the program had consumed when it armed; an index ahead of the producer is nonsense and counts as all consumed. By
// next_cqe it is what has left for the bus, where a load behind the arm follows it.
std::uint32_t CompletionUnit::covered(Cq& cq, std::uint32_t ci) const {
  if (config_.arm_rule == ArmRule::compare_ci) {
    const std::uint32_t behind = (cq.producer - ci) & 0xFFFFFF;
    return behind < 1U << 23 ? cq.producer - behind : cq.producer;
  }
  while (!cq.leaving.empty() && cq.leaving.front() <= dma_.issued()) cq.leaving.pop_front();
  return cq.producer - static_cast<std::uint32_t>(cq.leaving.size());
}

bool CompletionUnit::arm(std::uint32_t high, std::uint32_t cqn, std::uint32_t uar_page) {
  Cq* cq = cqs_.find(cqn & 0xFFFFFF);
  if (cq == nullptr || cq->uar_page != uar_page) return false;
  if (cq->overflow) return true;
  const ArmRequest request = decode_arm(high);
  trace_.instant(points::cq_doorbell, {}, context_.now(), cq->cqn, request.ci, request.sn,
                 request.solicited_only ? 1 : 0);
  const bool was_fired = cq->arm == ArmState::fired;
  if (!take_arm(*cq, request)) return true;
  const std::uint32_t old = covered(*cq, request.ci);
  CqModeration& m = cq->moderation;
  if (static_cast<std::int32_t>(old - m.told) > 0 || !m.active()) m.told = old;
  if (was_fired && !m.from_cqe) m.origin = context_.now();
  tell(*cq);
  return true;
}

}  // namespace hca
