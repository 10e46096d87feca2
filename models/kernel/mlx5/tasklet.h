// SPDX-License-Identifier: Apache-2.0
// The tasklet of a completion event queue: a list of CQs whose handlers are to run in softirq context.
#pragma once

#include <cstdint>

#include "kernel/event_times.h"
#include "kernel/kernel_config.h"
#include "sim/context.h"
#include "sim/pool.h"

namespace kernel {

struct EventClient;
struct InterruptContext;

class Tasklet {
 public:
  Tasklet(sim::Context& context, const KernelConfig& config, InterruptContext& where, EventClient& client,
          std::int32_t host, std::uint16_t vector);
  /// Appends a CQ; the caller sees to it that a CQ is listed once.
  void add(std::uint32_t cqn, sim::trace::Cause cause, const EventTimes& times) {
    list_.push_back({cqn, cause, times});
  }
  /// Called at the end of the hard interrupt: runs the tasklet if something is listed and it is not scheduled yet.
  void schedule(sim::Picos handler_end);
  /// Takes a CQ that is destroyed off the list.
  void remove(std::uint32_t cqn);
  bool scheduled() const { return scheduled_; }
  std::size_t listed() const { return list_.size(); }
  sim::Context& context() { return context_; }

 private:
  struct Entry {
    std::uint32_t cqn = 0;
    sim::trace::Cause cause;
    EventTimes times;
  };
  sim::Flow run();

  sim::Context& context_;
  const KernelConfig& config_;
  const std::int32_t host_;
  InterruptContext& where_;
  EventClient& client_;
  sim::trace::Source trace_;
  sim::Counter &runs_, &reschedules_;
  std::uint16_t vector_;
  sim::Ring<Entry> list_;
  bool scheduled_ = false;
};

}  // namespace kernel
