// SPDX-License-Identifier: Apache-2.0
// Responder: executes request packets, scatters data, posts receive completions. RC in PSN order, with acknowledgements,
// READs and atomics; the order of checks is that of S-RC-10. UC and UD are in unreliable.cpp.
#pragma once

#include <cstdint>

#include "hca/completion/completion_unit.h"
#include "hca/completion/event_unit.h"
#include "hca/device.h"
#include "hca/dma/translation.h"
#include "hca/transport/atomics.h"
#include "hca/transport/receive_queue.h"
#include "hca/transport/refusal.h"
#include "hca/transport/tx_port.h"

namespace hca {

class Responder {
 public:
  Responder(Device& device, DmaEngine& dma, Translation& translation, CompletionUnit& completions, EventUnit& events,
            TxPort& tx, ReceiveQueue& receive_queue, QpControl& control, const std::string& path);
  sim::Context& context() { return device_.context; }

  /// A request packet for a QP in RTR, RTS or SQD.
  void request(Qp& qp, RxPtr packet);
  /// The payload of a READ response could not be read.
  void payload_failed(Qp& qp, Psn psn, sim::trace::Cause why);
  void reset(Qp& qp);
  /// In ERR: reports the receive WQE in progress and all posted ones as flushed.
  void flush(Qp& qp);

 private:
  sim::Flow serve(Qp& qp);
  sim::Task<void> on_request(Qp& qp, RxPacket& rx);
  bool in_sequence(Qp& qp, const RxPacket& rx);
  bool opcode_fits(const Qp& qp, const RxPacket& rx) const;
  sim::Task<void> on_send(Qp& qp, RxPacket& rx);
  sim::Task<void> on_write(Qp& qp, RxPacket& rx);
  sim::Task<bool> take_receive_wqe(Qp& qp, const RxPacket& rx);
  sim::Task<bool> scatter(Qp& qp, RxPacket& rx);
  bool fits_receive(Qp& qp, RxPacket& rx);
  sim::Task<bool> invalidate(Qp& qp, RxPacket& rx);
  void advance(Qp& qp, RxPacket& rx);
  void rnr_nak(Qp& qp, const RxPacket& rx);
  void post_receive(Qp& qp, const RxPacket& rx);
  void post_receive_error(Qp& qp, std::uint8_t syndrome, std::uint8_t vendor, std::uint64_t up);
  /// NAK for a fault, async event when no receive WQE can carry it, QP to ERR.
  void refuse(Qp& qp, const RxPacket& rx, const Refusal& why);

  // READ and atomic requests: responder_resources.cpp, atomics.cpp
  sim::Task<void> on_read(Qp& qp, RxPacket& rx);
  sim::Task<void> on_atomic(Qp& qp, RxPacket& rx);
  void accept(Qp& qp, const RxPacket& rx, const ResponderResource& resource);
  ResponderResource* find_resource(Qp& qp, Psn psn);
  bool select_srq(Qp& qp, const RxPacket& rx);
  void duplicate(Qp& qp, const RxPacket& rx);

  // unreliable.cpp
  sim::Task<void> on_unreliable_request(Qp& qp, RxPacket& rx);
  bool continues_uc(Qp& qp, const RxPacket& rx);
  void drop_message(Qp& qp, const RxPacket& rx);
  void refuse_unreliable(Qp& qp, const RxPacket& rx, const Refusal& why);
  void prepend_network_header(RxPacket& rx);

  sim::Flow flush_receives(Qp& qp);
  static void look_for_receives(void* self, std::uint64_t generation_and_qpn);
  void answer(Qp& qp, ResponseJob job);
  sim::Flow respond(Qp& qp);
  sim::Task<void> send_read_data(Qp& qp, const ResponseJob& job);
  sim::Task<void> send_atomic_result(Qp& qp, const ResponseJob& job);
  void send_ack(Qp& qp, const ResponseJob& job);
  void response_failed(Qp& qp, Psn psn, Fault fault, sim::trace::Cause why);

  Device& device_;
  DmaEngine& dma_;
  Translation& translation_;
  CompletionUnit& completions_;
  EventUnit& events_;
  TxPort& tx_;
  ReceiveQueue& receive_queue_;
  QpControl& control_;
  AtomicUnit atomics_;
  sim::trace::Source trace_;
  sim::Counter& requests_;
  sim::Counter& duplicates_;
  sim::Counter& out_of_sequence_;
  sim::Counter& naks_;
  sim::Counter& rnr_naks_;
  sim::Counter& coalesced_;
  sim::Counter& broken_messages_;
  sim::Counter& dropped_packets_;
};

}  // namespace hca
