// SPDX-License-Identifier: Apache-2.0
// Kworkers come into being with their first item. Not modelled: further workers of a core while one sleeps in an item.
#include "kernel/work_queue.h"

#include <utility>

#include "cpu/core.h"
#include "sim/context.h"

namespace kernel {

WorkQueue::WorkQueue(sim::Context& context, Waiters& waiters, std::string name, sim::Picos delay, Spawn spawn)
    : context_(context), waiters_(waiters), name_(std::move(name)), delay_(delay), spawn_(std::move(spawn)) {}

bool WorkQueue::queue(std::size_t core, Work& work) {
  if (work.pending) return false;
  work.pending = true;
  if (workers_.size() <= core) workers_.resize(core + 1);
  std::unique_ptr<Worker>& slot = workers_[core];
  const auto picked = [&](cpu::Thread& t) {
    return context_.now() + delay_ + context_.jitter.draw(sim::JitterPlace::wake_up, t.core().host());
  };
  if (slot == nullptr) {
    slot = std::make_unique<Worker>();
    slot->thread = spawn_(core, name_ + std::to_string(core), [this, w = slot.get()] { run(*w); });
    slot->list.push_back(&work);
    slot->thread->start(picked(*slot->thread));
    return true;
  }
  slot->list.push_back(&work);
  Waiter& w = waiters_.of(*slot->thread);
  if (w.waiting) w.wake(picked(*slot->thread));
  return true;
}

void WorkQueue::run(Worker& worker) {
  Waiter& self = waiters_.current();
  for (;;) {
    while (!worker.list.empty()) {
      worker.current = worker.list.front();
      worker.list.erase(worker.list.begin());
      worker.current->pending = false;
      worker.current->fn(*worker.current);
      self.thread->sync();
      worker.current = nullptr;
      for (Waiter* w : std::exchange(worker.cancelling, {})) w->wake(self.thread->now());
    }
    self.announce();
    self.block("work");
  }
}

sim::Picos WorkQueue::last_activity() const {
  sim::Picos t{0};
  for (const auto& worker : workers_)
    if (worker != nullptr) t = sim::max(t, worker->thread->now());
  return t;
}

void WorkQueue::cancel_sync(Work& work) {
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    if (std::erase(worker->list, &work) != 0) work.pending = false;
    while (worker->current == &work) {
      Waiter& self = waiters_.current();
      self.announce();
      worker->cancelling.push_back(&self);
      self.block("work to end");
    }
  }
}

}  // namespace kernel
