// SPDX-License-Identifier: Apache-2.0
// The irq_poll softirq of one core: a list of instances that have something to poll, each served up to its weight, all
// together up to a budget; what is left waits for the next softirq.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cpu/thread.h"
#include "kernel/event_times.h"
#include "kernel/kernel_verbs_config.h"
#include "sim/context.h"

namespace kernel {

struct InterruptContext;

/// Something that irq_poll serves (struct irq_poll).
struct IrqPoll {
  /// Handles up to `budget` completions and returns how many. Fewer: it has called complete() and may be scheduled again.
  int (*poll)(IrqPoll&, int budget) = nullptr;
  void* owner = nullptr;
  int weight = 0;
  bool scheduled = false;
  bool disabled = false;    ///< somebody waits for its end
  sim::trace::Cause cause;  ///< of the event that scheduled it
  EventTimes times;
};

class Softirq {
 public:
  /// `spawn` makes a kernel thread on the core of `where`; it is started.
  using Spawn = std::function<std::unique_ptr<cpu::Thread>(std::function<void()>)>;
  Softirq(sim::Context& context, const CqPollConfig& config, InterruptContext& where, const Spawn& spawn);

  /// Puts the instance on the list and raises the softirq; nothing if it is there already (irq_poll_sched).
  void schedule(IrqPoll& item, const sim::trace::Cause& cause, const EventTimes& times);
  /// The instance has nothing more; from its poll function (irq_poll_complete).
  void complete(IrqPoll& item);
  /// Waits until the instance is idle and keeps it so (irq_poll_disable). From a thread that may sleep.
  void disable(IrqPoll& item);
  sim::Context& context() { return context_; }
  sim::Picos last_activity() const { return thread_->now(); }

 private:
  sim::Flow raise();
  void run();
  void serve();
  static void over(void* self, std::uint64_t);

  sim::Context& context_;
  const CqPollConfig& config_;
  InterruptContext& where_;
  std::vector<IrqPoll*> list_;
  std::unique_ptr<cpu::Thread> thread_;
  bool raised_ = false;
};

}  // namespace kernel
