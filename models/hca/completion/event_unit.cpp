// SPDX-License-Identifier: Apache-2.0
// An EQE leaves eqe_build after its cause, behind the CQE that it announces (posted writes keep their order), and the
// MSI-X follows it. Arming is one-shot; an arm that finds unconsumed entries fires at once (S-EQE-7, policy), unless the
// queue is moderated: then the MSI-X waits for the end of a period or for a number of events. An EQ that is full is dead, and the
// device reports an internal error once; with one outstanding event per CQ and room for all of them this cannot happen
// (S-EQE-8). The signature byte of an EQE stays zero.
#include "hca/completion/event_unit.h"

#include <cstring>
#include <utility>

#include "hca/trace_points.h"

namespace hca {

EventUnit::EventUnit(sim::Context& context, const CompletionConfig& config, DmaEngine& dma, ObjectTable<Eq>& eqs,
                     std::int32_t host, const std::string& path)
    : context_(context),
      config_(config),
      dma_(dma),
      eqs_(eqs),
      trace_(context, host, path),
      eqes_(context.stats.counter(path + ".eqes")),
      interrupts_(context.stats.counter(path + ".interrupts")),
      overruns_(context.stats.counter(path + ".eq_overruns")) {}

void EventUnit::completion(std::uint32_t eqn, std::uint32_t cqn, sim::trace::Cause cause) {
  Eq* eq = eqs_.find(eqn);
  if (eq == nullptr) return;
  prm::Eqe eqe{};
  eqe.type = prm::kEventComp;
  prm::set(reinterpret_cast<std::byte*>(&eqe), prm::kEqeCompCqn, cqn);
  cause.event = cause.critical;  // the message waits for the CQE; for the event it waits only if the program reads it
  cause.critical = false;
  post(*eq, eqe, cqn, cause);
}

void EventUnit::async(prm::EventType type, std::uint32_t object, std::uint8_t detail) {
  prm::Eqe eqe{};
  auto* bytes = reinterpret_cast<std::byte*>(&eqe);
  eqe.type = type;
  if (type == prm::kEventCmd) {
    prm::set(bytes, prm::kEqeCmdVector, object);
  } else if (type == prm::kEventCqError) {
    prm::set(bytes, prm::kEqeCqErrCqn, object);
    prm::set(bytes, prm::kEqeCqErrSyndrome, detail);
  } else if (type != prm::kEventInternalError) {
    prm::set(bytes, prm::kEqeQpn, object);
    prm::set(bytes, prm::kEqeQpType, detail);
  }
  to_takers(eqe, object);
}

void EventUnit::to_takers(const prm::Eqe& eqe, std::uint32_t object) {
  eqs_.for_each([&](Eq& eq) {
    if (eq.takes(static_cast<prm::EventType>(eqe.type))) post(eq, eqe, object, {});
  });
}

void EventUnit::port_change(bool up) {
  prm::Eqe eqe{};
  eqe.type = prm::kEventPortChange;
  eqe.sub_type = up ? prm::kPortActive : prm::kPortDown;
  prm::set(reinterpret_cast<std::byte*>(&eqe), prm::kEqePort, 1);
  to_takers(eqe, 1);
}

void EventUnit::internal_error() {
  if (!std::exchange(fatal_reported_, true)) async(prm::kEventInternalError, 0);
}

bool EventUnit::wanted(prm::EventType type) {
  bool found = false;
  eqs_.for_each([&](const Eq& eq) { found |= eq.takes(type); });
  return found;
}

sim::Flow EventUnit::post(Eq& eq, prm::Eqe eqe, std::uint32_t object, sim::trace::Cause cause) {
  const sim::Picos start = context_.now();
  const std::uint32_t eqn = eq.eqn;
  co_await context_.delay(config_.eqe_build);
  Eq* live = eqs_.find(eqn);  // the queue may have been destroyed meanwhile
  if (live == nullptr) co_return;
  if (!has_room(*live, eqe)) {
    overflow(*live, object, cause);
    co_return;
  }
  const std::uint32_t size = 1U << live->log_size;
  eqe.owner = static_cast<std::uint8_t>(live->producer >> live->log_size & 1);
  std::array<std::byte, sizeof eqe> bytes;
  std::memcpy(bytes.data(), &eqe, sizeof eqe);
  const std::uint64_t span = trace_.span(points::eqe, cause, start, start, context_.now(), eqn, eqe.type, object);
  trace_.bytes(span, cause.msg, context_.now(), bytes);
  if (span != 0) cause.parent = span;
  dma_.write_inline(live->buffer.at(std::uint64_t{live->producer & (size - 1)} * sizeof eqe), bytes, cause);
  ++live->producer;
  live->occupancy.set(context_.now(), live->producer - live->consumer);
  eqes_.add();
  live->newest = cause;
  announce(*live);
}

// The last entry of the queue that takes internal errors is kept for one: its own overflow can be told.
bool EventUnit::has_room(Eq& eq, const prm::Eqe& eqe) {
  const bool fatal = eqe.type == prm::kEventInternalError;
  const std::uint32_t kept = !fatal && eq.takes(prm::kEventInternalError) ? 1 : 0;
  return (!eq.overrun || fatal) && eq.producer - eq.consumer + kept < 1U << eq.log_size;
}

void EventUnit::overflow(Eq& eq, std::uint32_t object, sim::trace::Cause cause) {
  overruns_.add();
  trace_.instant(points::eq_overflow, cause, context_.now(), eq.eqn, eq.producer, eq.consumer, object);
  if (config_.eq_overflow == EqOverflow::drop) return;
  eq.overrun = true;
  internal_error();
}

// Interrupts, if the queue is armed and holds something, at once or when its moderation lets it.
void EventUnit::announce(Eq& eq) {
  if (!eq.armed || eq.producer == eq.consumer) return;
  const bool moderated = config_.eq_moderation_period.n != 0 && eq.takes(prm::kEventComp);
  const bool enough = config_.eq_moderation_count != 0 && eq.producer - eq.announced >= config_.eq_moderation_count;
  if (!moderated || enough || eq.next_interrupt <= context_.now()) return fire(eq);
  if (std::exchange(eq.scheduled, true)) return;
  context_.scheduler.at(eq.next_interrupt, &EventUnit::period_over, this, eq.eqn);
}

void EventUnit::period_over(void* self, std::uint64_t eqn) {
  auto* const u = static_cast<EventUnit*>(self);
  Eq* const eq = u->eqs_.find(static_cast<std::uint32_t>(eqn));
  if (eq == nullptr) return;
  eq->scheduled = false;
  u->announce(*eq);
}

// The interrupt announces the newest entry, whether that came now, waited for the moderation, or was there before the arm.
void EventUnit::fire(Eq& eq) {
  eq.armed = false;
  eq.announced = eq.producer;
  eq.next_interrupt = context_.now() + config_.eq_moderation_period;
  interrupts_.add();
  dma_.raise_msix(eq.vector, eq.newest);
}

bool EventUnit::doorbell(std::uint32_t value, bool arm, std::uint32_t uar_page) {
  Eq* eq = eqs_.find(value >> 24);
  if (eq == nullptr || eq->uar_page != uar_page) return false;
  const std::uint32_t ahead = (value - eq->consumer) & 0xFFFFFF;
  if (ahead <= eq->producer - eq->consumer) eq->consumer += ahead;  // an index that was never produced is nonsense
  eq->occupancy.set(context_.now(), eq->producer - eq->consumer);
  if (!arm) return true;
  eq->armed = true;
  announce(*eq);
  return true;
}

}  // namespace hca
