// SPDX-License-Identifier: Apache-2.0
// Completion queues: writes CQEs with the owner bit, detects overrun, keeps the arm state and asks for events.
#pragma once

#include <cstdint>

#include "hca/completion/event_unit.h"
#include "hca/context/context_cache.h"
#include "hca/context/objects.h"
#include "hca/hca_config.h"

namespace hca {

/// Told when a QP must report to a CQ that has failed (S-OVR-3).
struct CqFailureSink {
  virtual ~CqFailureSink() = default;
  virtual void cq_failed(std::uint32_t qpn) = 0;
};

class CompletionUnit {
 public:
  CompletionUnit(sim::Context& context, const CompletionConfig& config, const ContextConfig& context_config,
                 DmaEngine& dma, Icm& icm, ObjectTable<Cq>& cqs, EventUnit& events, std::int32_t host,
                 const std::string& path);
  sim::Context& context() { return context_; }
  void bind(CqFailureSink& sink) { failures_ = &sink; }

  /// Queues a CQE; it is written in order after cqe_build. A CQ in error swallows it and fails the QP.
  void post(std::uint32_t cqn, PendingCqe cqe);
  /// Arm doorbell of a UAR page: high word sn<<28 | cmd<<24 | ci, low word cqn (S-CE-4…8). False, and nothing done, if there
  /// is no such CQ or it belongs to another page.
  bool arm(std::uint32_t high, std::uint32_t cqn, std::uint32_t uar_page = 0);
  /// Queues the RESIZE_CQ CQE behind those that wait; cq.resize->done tells when the CQ has moved (resize.cpp).
  void begin_resize(Cq& cq);
  /// The CQ's moderation has been set anew.
  void moderation_changed(Cq& cq) { tell(cq); }
  ContextCache& cqc() { return cqc_; }

 private:
  sim::Flow write(Cq& cq);
  sim::Task<bool> has_room(Cq& cq);
  sim::Task<bool> read_consumer(Cq& cq, sim::trace::Cause cause);
  static void level(Cq& cq, sim::Picos t) {
    if (!cq.ignore_overrun) cq.occupancy.set(t, cq.producer - cq.consumer);  // nobody looks where it is ignored
  }
  sim::Flow refresh(Cq& cq);
  void overrun(Cq& cq);
  void put(Cq& cq, const PendingCqe& cqe, sim::trace::Cause cause);
  // resize.cpp
  void finish_resize(Cq& cq);
  // notification.cpp
  void notify(Cq& cq, bool solicited);
  void tell(Cq& cq);
  void fire(Cq& cq);
  std::uint32_t covered(Cq& cq, std::uint32_t ci) const;
  static void period_over(void* self, std::uint64_t cqn);
  static void encode_cqc(void* self, std::uint32_t index, std::byte* out);

  sim::Context& context_;
  const CompletionConfig& config_;
  const ContextConfig& context_config_;
  const std::int32_t host_;
  DmaEngine& dma_;
  ObjectTable<Cq>& cqs_;
  EventUnit& events_;
  CqFailureSink* failures_ = nullptr;
  ContextCache cqc_;
  sim::trace::Source trace_;
  sim::Counter& cqes_;
  sim::Counter& cqe_bytes_;
  sim::Counter& overruns_;
  sim::Counter& lost_;
};

}  // namespace hca
