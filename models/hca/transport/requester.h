// SPDX-License-Identifier: Apache-2.0
// Requester half of RC: executes send WQEs in order, packetises messages, takes acknowledgements and READ responses,
// completes WQEs. Retransmission and RNR back-off are in retransmission.cpp and rnr.cpp.
#pragma once

#include <cstdint>

#include "hca/completion/completion_unit.h"
#include "hca/context/context_cache.h"
#include "hca/device.h"
#include "hca/dma/translation.h"
#include "hca/transport/send_wqe.h"
#include "hca/transport/tx_port.h"
#include "hca/transport/vendor_errors.h"
#include "hca/uar/blueflame.h"

namespace hca {

class Requester {
 public:
  Requester(Device& device, DmaEngine& dma, Translation& translation, CompletionUnit& completions, TxPort& tx,
            ContextCache& qpc, BlueflameBuffers& blueflame, QpControl& control, const std::string& path);
  sim::Context& context() { return device_.context; }

  /// Work may have become possible: new WQEs, acknowledgements, the end of a wait.
  void kick(Qp& qp);
  /// ACK, NAK or READ response.
  void response(Qp& qp, RxPtr packet);
  /// The payload of a request packet could not be read.
  void payload_failed(Qp& qp, Psn psn, sim::trace::Cause why);
  /// UC, UD: the last packet of a message has left (S-UC-2, S-UD-7), in the span `up`.
  void packet_left(Qp& qp, Psn psn, std::uint64_t up);
  /// Drops all requester state of a QP that is reset.
  void reset(Qp& qp);
  /// In ERR and SQE: reports every outstanding and posted WQE as flushed.
  void flush(Qp& qp);

 private:
  // One send queue
  sim::Flow serve(Qp& qp);
  bool can_work(const Qp& qp) const;
  sim::Task<bool> fetch_wqe(Qp& qp, std::uint16_t index, sim::trace::Cause cause);
  sim::Task<bool> read_wqebbs(Qp& qp, std::uint16_t index, std::uint32_t count, sim::BufferRef& to,
                              sim::trace::Cause cause);
  sim::Task<void> start_wqe(Qp& qp);
  // wqe_trace.cpp
  sim::trace::Cause begin_wqe(Qp& qp, sim::MsgId msg);
  void end_wqe(Qp& qp, std::uint16_t index, std::uint8_t opcode, std::uint64_t length, sim::Picos start,
               std::span<const std::byte> bytes);
  static sim::trace::Cause doorbell_of(const Qp& qp, sim::MsgId msg);
  sim::Task<void> send_message(Qp& qp, const SendWqe& wqe, Psn first, std::uint32_t from_packet,
                               sim::trace::Cause cause);
  sim::Task<bool> gather_packet(Qp& qp, const SendWqe& wqe, GatherCursor& cursor, std::uint32_t n, OutPacket& p,
                                Extents& out, Fault& fault);
  void address_datagram(Qp& qp, const SendWqe& wqe, OutPacket& p);
  void send_read_request(Qp& qp, const SendWqe& wqe, Psn psn, std::uint32_t already, sim::trace::Cause cause);
  void send_atomic_request(Qp& qp, const SendWqe& wqe, Psn psn, sim::trace::Cause cause);
  std::uint8_t check_wqe(const Qp& qp, const SendWqe& wqe) const;
  static void skip_wqe(Qp& qp, std::uint32_t ds);
  bool must_wait(const Qp& qp, const SendWqe& wqe) const;
  sim::Task<void> flush_next(Qp& qp);
  // umr.cpp
  void start_umr(Qp& qp, const SendWqe& wqe, sim::trace::Cause cause);
  sim::Flow execute_umr(Qp& qp);

  // Answers
  sim::Flow take_responses(Qp& qp);
  void on_ack(Qp& qp, const RxPacket& rx);
  void on_nak(Qp& qp, const RxPacket& rx, std::uint8_t syndrome);
  sim::Task<void> on_read_response(Qp& qp, RxPacket& rx);
  sim::Task<void> on_atomic_response(Qp& qp, RxPacket& rx);
  // `up`: the span that caused this, 0 = none known.
  void atomic_done(Qp& qp, SentWqe& s, Psn psn, std::uint64_t up);
  void data_complete(Qp& qp, SentWqe& s, std::uint64_t up);
  bool acknowledge(Qp& qp, Psn up_to, std::uint64_t up);
  void complete(Qp& qp, std::uint64_t up);
  SentWqe* find(Qp& qp, Psn psn);
  void post_success(Qp& qp, const SentWqe& s, std::uint64_t up);
  void post_error(Qp& qp, const SentWqe& s, std::uint8_t syndrome, std::uint8_t vendor);
  void fail(Qp& qp, Psn psn, std::uint8_t syndrome, std::uint8_t vendor, std::uint64_t up);
  void fail_result(Qp& qp, Psn psn, std::uint64_t up);
  void push_sent(Qp& qp, SentWqe s);
  SentWqe pop_sent(Qp& qp);
  void set_reads(Qp& qp, std::uint32_t outstanding);

  // retransmission.cpp
  sim::Task<void> resend(Qp& qp);
  void rewind(Qp& qp, Psn to);
  void send_again(Qp& qp, Psn from, unsigned cause, std::uint64_t up);
  bool retry(Qp& qp, Psn from, unsigned cause, std::uint64_t up);
  void ask_again(Qp& qp, Psn missing, std::uint64_t up);
  void progress(Qp& qp);
  void start_timer(Qp& qp);
  static void timer_fired(void* self, std::uint64_t qpn_and_generation);
  // rnr.cpp
  void on_rnr_nak(Qp& qp, const RxPacket& rx, std::uint8_t timer);
  static void rnr_wait_over(void* self, std::uint64_t qpn_and_generation);

  static std::uint64_t timer_key(const Qp& qp) { return std::uint64_t{qp.generation} << 32 | qp.qpn; }
  Qp* find_by_key(std::uint64_t key);

  Device& device_;
  DmaEngine& dma_;
  Translation& translation_;
  CompletionUnit& completions_;
  TxPort& tx_;
  ContextCache& qpc_;
  BlueflameBuffers& blueflame_;
  QpControl& control_;
  sim::Semaphore engines_;
  sim::Pool<wire::FrameTemplate>& frames_;
  sim::trace::Source trace_;
  sim::Counter& wqes_;
  sim::Counter& wqe_fetches_;
  sim::Counter& retransmits_;
  sim::Counter& timeouts_;
  sim::Counter& rnr_naks_;
  sim::Counter& sequence_naks_;
  sim::Counter& stale_;
  sim::BusyTime& busy_;
};

}  // namespace hca
