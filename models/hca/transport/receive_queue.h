// SPDX-License-Identifier: Apache-2.0
// Where the responder of every service gets receive WQEs: the QP's own RQ, or the SRQ that it is on. Own WQEs are noticed
// by reading the doorbell record (there is no receive doorbell, S-DBR-4), read ahead, and handed out in order.
#pragma once

#include <cstdint>

#include "hca/device.h"
#include "hca/dma/dma_engine.h"
#include "hca/transport/shared_receive_queue.h"

namespace hca {

class ReceiveQueue {
 public:
  ReceiveQueue(Device& device, DmaEngine& dma, SharedReceiveQueue& shared, const std::string& path);
  sim::Context& context() { return device_.context; }

  /// Makes the next receive WQE the current one (qp.rx_wqe, rx_wqe_valid) if one is on chip; reads ahead when few are left.
  bool take_ready(Qp& qp, sim::trace::Cause cause);
  /// The same, waiting for host memory if need be. False when none is posted or memory cannot be read, and when the QP was
  /// reset or entered ERR meanwhile (the WQE then stays in its queue).
  sim::Task<bool> take(Qp& qp, sim::trace::Cause cause);
  /// The queue, or the SRQ, of the QP can give no more WQEs: its ring or record cannot be read.
  bool failed(const Qp& qp) const;
  void reset(Qp& qp);

 private:
  sim::Task<bool> ensure(Qp& qp, sim::trace::Cause cause);
  sim::Flow refill(Qp& qp, sim::trace::Cause cause);
  sim::Task<void> fetch(Qp& qp, sim::trace::Cause cause);

  Device& device_;
  DmaEngine& dma_;
  SharedReceiveQueue& shared_;
  sim::trace::Source trace_;
  sim::Counter& record_reads_;
  sim::Counter& wqe_fetches_;
  sim::Counter& bad_records_;
};

}  // namespace hca
