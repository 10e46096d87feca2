// SPDX-License-Identifier: Apache-2.0
// Receive WQEs of a QP: notices new ones by reading the doorbell record (there is no receive doorbell, S-DBR-4), reads
// them ahead, hands them out in order.
#pragma once

#include <cstdint>

#include "hca/device.h"
#include "hca/dma/dma_engine.h"

namespace hca {

class ReceiveQueue {
 public:
  ReceiveQueue(Device& device, DmaEngine& dma, const std::string& path);
  sim::Context& context() { return device_.context; }

  /// Makes qp.rq_ready non-empty if a receive is posted: waits for a read-ahead under way, else reads record and WQEs.
  /// False if none is posted or host memory cannot be read.
  sim::Task<bool> ensure(Qp& qp);
  /// Called after a WQE was taken: reads ahead when few are left.
  void taken(Qp& qp);
  void reset(Qp& qp);

 private:
  sim::Flow refill(Qp& qp);
  sim::Task<void> fetch(Qp& qp);

  Device& device_;
  DmaEngine& dma_;
  sim::trace::Source trace_;
  sim::Counter& record_reads_;
  sim::Counter& wqe_fetches_;
};

}  // namespace hca
