// SPDX-License-Identifier: Apache-2.0
// Receive WQEs of SRQs: whichever QP needs one gets the oldest (S-SRQ-2). New WQEs are noticed by reading the doorbell
// record; the armed limit raises an event once (S-SRQ-3).
#pragma once

#include <cstdint>
#include <optional>

#include "hca/completion/event_unit.h"
#include "hca/device.h"
#include "hca/dma/dma_engine.h"

namespace hca {

class SharedReceiveQueue {
 public:
  SharedReceiveQueue(Device& device, DmaEngine& dma, EventUnit& events, const std::string& path);
  sim::Context& context() { return device_.context; }

  /// The next WQE if one is on chip.
  std::optional<RqWqe> take_ready(Srq& srq, sim::trace::Cause cause);
  /// Makes srq.ready non-empty if a WQE is posted. False if none is, or the queue has failed.
  sim::Task<bool> ensure(Srq& srq, sim::trace::Cause cause);
  /// ARM_RQ: an event when fewer than `limit` WQEs are in the queue; 0 disarms.
  void arm(Srq& srq, std::uint16_t limit);

 private:
  sim::Flow refill(Srq& srq, sim::trace::Cause cause);
  sim::Task<void> fetch(Srq& srq, sim::trace::Cause cause);
  sim::Task<bool> read_record(Srq& srq, sim::trace::Cause cause);
  sim::Flow check_limit(Srq& srq, sim::trace::Cause cause);
  void fail(Srq& srq);

  Device& device_;
  DmaEngine& dma_;
  EventUnit& events_;
  sim::trace::Source trace_;
  sim::Counter& record_reads_;
  sim::Counter& wqe_fetches_;
  sim::Counter& limit_events_;
};

}  // namespace hca
