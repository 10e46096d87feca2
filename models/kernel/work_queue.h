// SPDX-License-Identifier: Apache-2.0
// A work queue of the kernel, bound to the cores: each core's kworker runs the items that were queued there, one after the
// other, in process context. Source: Linux kernel/workqueue.c (queue_work, cancel_work_sync).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpu/thread.h"
#include "kernel/event_times.h"
#include "kernel/wait.h"

namespace kernel {

/// Something to do in a kworker (struct work_struct).
struct Work {
  void (*fn)(Work&) = nullptr;
  void* owner = nullptr;
  bool pending = false;     ///< queued and not begun
  sim::trace::Cause cause;  ///< of the event that queued it
  EventTimes times;
};

class WorkQueue {
 public:
  /// `spawn` makes a kernel thread on a core; `delay`: from queueing an item to a sleeping kworker running it.
  using Spawn = std::function<std::unique_ptr<cpu::Thread>(std::size_t core, std::string name, std::function<void()>)>;
  WorkQueue(sim::Context& context, Waiters& waiters, std::string name, sim::Picos delay, Spawn spawn);

  /// False if it is queued already.
  bool queue(std::size_t core, Work& work);
  /// Takes the item off the queue, or waits until it has run. From a thread that may sleep, not from the item itself.
  void cancel_sync(Work& work);
  sim::Picos last_activity() const;

 private:
  struct Worker {
    std::vector<Work*> list;
    Work* current = nullptr;
    std::unique_ptr<cpu::Thread> thread;
    std::vector<Waiter*> cancelling;
  };
  void run(Worker& worker);

  sim::Context& context_;
  Waiters& waiters_;
  const std::string name_;
  const sim::Picos delay_;
  const Spawn spawn_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by core; null until first used
};

}  // namespace kernel
