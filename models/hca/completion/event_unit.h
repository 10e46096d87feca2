// SPDX-License-Identifier: Apache-2.0
// Event queues: writes EQEs with the owner bit, raises the MSI-X of an armed queue, takes consumer index doorbells
// (S-EQE-1…8).
#pragma once

#include <cstdint>

#include "hca/context/objects.h"
#include "hca/dma/dma_engine.h"
#include "hca/hca_config.h"

namespace hca {

class EventUnit {
 public:
  EventUnit(sim::Context& context, const CompletionConfig& config, DmaEngine& dma, ObjectTable<Eq>& eqs,
            std::int32_t host, const std::string& path);
  sim::Context& context() { return context_; }

  /// COMP event of a CQ on its EQ.
  void completion(std::uint32_t eqn, std::uint32_t cqn, sim::trace::Cause cause);
  /// Async event on every EQ whose mask has the type: QP events (qpn in `object`), CQ errors (cqn, `detail` = syndrome),
  /// command completions (slot vector in `object`), internal errors.
  void async(prm::EventType type, std::uint32_t object, std::uint8_t detail = 0);
  /// The port has lost its link, or has it again.
  void port_change(bool up);
  /// The device has failed; told once.
  void internal_error();
  /// Some EQ takes events of this type.
  bool wanted(prm::EventType type);
  /// EQ doorbell of a UAR page: eqn<<24 | ci. False, and nothing done, if there is no such EQ or it belongs to another page.
  bool doorbell(std::uint32_t value, bool arm, std::uint32_t uar_page = 0);

 private:
  void to_takers(const prm::Eqe& eqe, std::uint32_t object);
  sim::Flow post(Eq& eq, prm::Eqe eqe, std::uint32_t object, sim::trace::Cause cause);
  bool has_room(Eq& eq, const prm::Eqe& eqe);
  void overflow(Eq& eq, std::uint32_t object, sim::trace::Cause cause);
  void announce(Eq& eq);
  static void period_over(void* self, std::uint64_t eqn);
  void fire(Eq& eq);

  sim::Context& context_;
  const CompletionConfig& config_;
  DmaEngine& dma_;
  ObjectTable<Eq>& eqs_;
  sim::trace::Source trace_;
  sim::Counter& eqes_;
  sim::Counter& interrupts_;
  sim::Counter& overruns_;
  bool fatal_reported_ = false;
};

}  // namespace hca
