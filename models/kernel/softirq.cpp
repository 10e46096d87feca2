// SPDX-License-Identifier: Apache-2.0
// Runs behind the hard interrupt, one softirq of a core at a time; hard interrupts come between. The work itself is that of
// a thread which takes the core away from the others. Source: Linux lib/irq_poll.c. Not modelled: ksoftirqd, the time limit
// of a softirq beside its budget.
#include "kernel/softirq.h"

#include <algorithm>

#include "kernel/mlx5/eq.h"

namespace kernel {

Softirq::Softirq(sim::Context& context, const CqPollConfig& config, InterruptContext& where, const Spawn& spawn)
    : context_(context), config_(config), where_(where), thread_(spawn([this] { run(); })) {
  thread_->take_core();
  thread_->start(context.now());
}

void Softirq::schedule(IrqPoll& item, const sim::trace::Cause& cause, const EventTimes& times) {
  if (item.scheduled || item.disabled) return;
  item.scheduled = true;
  item.cause = cause;
  item.times = times;
  list_.push_back(&item);
  if (!raised_) raise();
}

void Softirq::complete(IrqPoll& item) {
  std::erase(list_, &item);
  item.scheduled = false;
}

void Softirq::disable(IrqPoll& item) {
  constexpr sim::Picos kMillisecond{1'000'000'000};
  item.disabled = true;
  while (item.scheduled) cpu::current().sleep(kMillisecond);
}

sim::Flow Softirq::raise() {
  raised_ = true;
  co_await where_.hard.acquire();  // softirqs run when the hard interrupt has ended
  for (IrqPoll* item : list_)
    if (item->times.handler_end.n == 0) item->times.handler_end = context_.now();
  where_.hard.release();
  co_await context_.delay(config_.softirq_delay + context_.jitter.draw(sim::JitterPlace::tasklet, where_.core.host()));
  co_await where_.soft.acquire();
  thread_->unpark(context_.now());
}

void Softirq::run() {
  for (;;) {
    thread_->park("softirq");
    serve();
    thread_->sync();
    context_.scheduler.at(context_.now(), &Softirq::over, this);
  }
}

void Softirq::over(void* self, std::uint64_t) {
  auto* const s = static_cast<Softirq*>(self);
  s->raised_ = false;
  s->where_.soft.release();
  if (!s->list_.empty()) s->raise();
}

void Softirq::serve() {
  for (int budget = static_cast<int>(config_.irq_poll_budget); budget > 0 && !list_.empty();) {
    IrqPoll& item = *list_.front();
    const int done = item.poll(item, item.weight);
    budget -= done;
    if (done < item.weight) continue;
    complete(item);  // it goes to the end of the list, unless somebody waits for its end
    if (item.disabled) continue;
    item.scheduled = true;
    list_.push_back(&item);
  }
}

}  // namespace kernel
