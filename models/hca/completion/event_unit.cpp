// SPDX-License-Identifier: Apache-2.0
// An EQE leaves eqe_build after its cause, behind the CQE that it announces (posted writes keep their order), and the
// MSI-X follows it. Arming is one-shot; an arm that finds unconsumed entries fires at once (S-EQE-7, policy). An EQ that
// is full loses the event and counts it: with one outstanding event per CQ this cannot happen (S-EQE-8).
#include "hca/completion/event_unit.h"

#include <cstring>

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
  } else {
    prm::set(bytes, prm::kEqeQpn, object);
    prm::set(bytes, prm::kEqeQpType, detail);
  }
  eqs_.for_each([&](Eq& eq) {
    if ((eq.event_mask >> type & 1) != 0) post(eq, eqe, object, {});
  });
}

bool EventUnit::wanted(prm::EventType type) {
  bool found = false;
  eqs_.for_each([&](const Eq& eq) { found |= (eq.event_mask >> type & 1) != 0; });
  return found;
}

sim::Flow EventUnit::post(Eq& eq, prm::Eqe eqe, std::uint32_t object, sim::trace::Cause cause) {
  const sim::Picos start = context_.now();
  const std::uint32_t eqn = eq.eqn;
  co_await context_.delay(config_.eqe_build);
  Eq* live = eqs_.find(eqn);  // the queue may have been destroyed meanwhile
  if (live == nullptr) co_return;
  const std::uint32_t size = 1U << live->log_size;
  if (live->producer - live->consumer >= size) {
    live->overrun = true;
    overruns_.add();
    co_return;
  }
  eqe.owner = static_cast<std::uint8_t>(live->producer >> live->log_size & 1);
  std::array<std::byte, sizeof eqe> bytes;
  std::memcpy(bytes.data(), &eqe, sizeof eqe);
  dma_.write_inline(live->buffer.at(std::uint64_t{live->producer & (size - 1)} * sizeof eqe), bytes, cause);
  ++live->producer;
  eqes_.add();
  trace_.span(points::eqe, cause, start, start, context_.now(), eqn, eqe.type, object);
  if (live->armed) fire(*live, cause);
}

void EventUnit::fire(Eq& eq, sim::trace::Cause cause) {
  eq.armed = false;
  interrupts_.add();
  dma_.raise_msix(eq.vector, cause);
}

bool EventUnit::doorbell(std::uint32_t value, bool arm, std::uint32_t uar_page) {
  Eq* eq = eqs_.find(value >> 24);
  if (eq == nullptr || eq->uar_page != uar_page) return false;
  const std::uint32_t ahead = (value - eq->consumer) & 0xFFFFFF;
  if (ahead <= eq->producer - eq->consumer) eq->consumer += ahead;  // an index that was never produced is nonsense
  if (!arm) return true;
  eq->armed = true;
  if (eq->producer != eq->consumer) fire(*eq, {});
  return true;
}

}  // namespace hca
