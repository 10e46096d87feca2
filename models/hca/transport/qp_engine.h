// SPDX-License-Identifier: Apache-2.0
// A queue pair as a whole: what state changes mean for its requester and responder, how it enters ERR, and how it stops.
#pragma once

#include "hca/completion/completion_unit.h"
#include "hca/completion/event_unit.h"
#include "hca/device.h"
#include "hca/transport/requester.h"
#include "hca/transport/responder.h"
#include "hca/transport/rx_port.h"
#include "hca/transport/tx_port.h"

namespace hca {

class QpEngine final : public QpControl, public TransportSink, public TransmitSink, public CqFailureSink {
 public:
  QpEngine(Device& device, EventUnit& events, const std::string& path);
  void bind(Requester& requester, Responder& responder) {
    requester_ = &requester;
    responder_ = &responder;
  }

  void enter_error(Qp& qp) override;
  void send_failed(Qp& qp) override;
  void drained(Qp& qp) override;
  void queue_unreadable(Qp& qp) override;
  void state_changed(Qp& qp, QpState from) override;
  bool idle(const Qp& qp) const override;

  void request(Qp& qp, RxPtr packet) override { responder_->request(qp, std::move(packet)); }
  void response(Qp& qp, RxPtr packet) override { requester_->response(qp, std::move(packet)); }
  void payload_failed(Qp& qp, const OutPacket& packet) override;
  void packet_left(std::uint32_t qpn, std::uint32_t generation, Psn psn, std::uint64_t span) override;
  void cq_failed(std::uint32_t qpn) override;

 private:
  void set_state(Qp& qp, QpState to);
  void trace_state(Qp& qp);

  Device& device_;
  EventUnit& events_;
  Requester* requester_ = nullptr;
  Responder* responder_ = nullptr;
  sim::trace::Source trace_;
};

}  // namespace hca
