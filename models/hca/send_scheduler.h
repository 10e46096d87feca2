// SPDX-License-Identifier: Apache-2.0
// From a doorbell to a queue pair with work: decodes it, moves the producer index forward, starts the requester.
#pragma once

#include "hca/device.h"
#include "hca/transport/requester.h"
#include "hca/uar/uar.h"

namespace hca {

class SendScheduler final : public DoorbellSink {
 public:
  SendScheduler(Device& device, DmaEngine& dma, Requester& requester, BlueflameBuffers& blueflame,
                const std::string& path);
  sim::Context& context() { return device_.context; }
  void ring(const Doorbell& doorbell) override;

 private:
  sim::Flow dispatch(Doorbell doorbell);
  sim::Task<void> read_record(std::uint32_t qpn, sim::trace::Cause cause);

  Device& device_;
  DmaEngine& dma_;
  Requester& requester_;
  BlueflameBuffers& blueflame_;
  sim::Counter& unknown_;
  sim::Counter& stale_;
  sim::Counter& foreign_;
  sim::Counter& bad_records_;
};

}  // namespace hca
