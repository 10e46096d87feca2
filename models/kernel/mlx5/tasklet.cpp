// SPDX-License-Identifier: Apache-2.0
// Softirq half of completion handling: after the hard interrupt, the listed CQs' handlers run one after the other on the
// same core; a hard interrupt may come between them. After its budget the tasklet gives way and is scheduled again.
// Source: mlx5_core (mlx5_cq_tasklet_cb), rule S-CE-10. Not modelled: ksoftirqd.
#include "kernel/mlx5/tasklet.h"

#include "kernel/mlx5/eq.h"
#include "kernel/trace_points.h"

namespace kernel {

Tasklet::Tasklet(sim::Context& context, const KernelConfig& config, InterruptContext& where, EventClient& client,
                 std::int32_t host, std::uint16_t vector)
    : context_(context),
      config_(config),
      host_(host),
      where_(where),
      client_(client),
      trace_(context, host, host_lane(host, "kernel.tasklet" + std::to_string(vector)),
             sim::trace::TrackKind::exclusive),
      runs_(context.stats.counter("host" + std::to_string(host) + ".kernel.tasklet_runs")),
      reschedules_(context.stats.counter("host" + std::to_string(host) + ".kernel.tasklet_reschedules")),
      vector_(vector) {}

void Tasklet::schedule(sim::Picos handler_end) {
  for (std::size_t n = list_.size(); n > 0 && list_[n - 1].times.handler_end.n == 0; --n)
    list_[n - 1].times.handler_end = handler_end;
  if (scheduled_ || list_.empty()) return;
  scheduled_ = true;
  run();
}

void Tasklet::remove(std::uint32_t cqn) {
  for (std::size_t n = list_.size(); n > 0; --n) {
    const Entry e = list_.pop_front();
    if (e.cqn != cqn) list_.push_back(e);
  }
}

sim::Flow Tasklet::run() {
  for (;;) {
    const sim::Picos enqueued = context_.now();
    co_await context_.delay(config_.interrupt.tasklet_delay + context_.jitter.draw(sim::JitterPlace::tasklet, host_));
    co_await where_.soft.acquire();
    const sim::Picos begin = context_.now();
    const sim::trace::Cause why = list_.empty() ? sim::trace::Cause{} : list_.front().cause;
    std::uint64_t handled = 0;
    runs_.add();
    while (!list_.empty()) {
      co_await where_.hard.acquire();  // a hard interrupt that runs is over first
      const sim::Picos d = config_.interrupt.comp_handler;
      const sim::Picos start = where_.core.steal(context_.now(), d);
      co_await context_.delay(start + d - context_.now());
      where_.hard.release();
      // The CQ may have been destroyed during the delay.
      if (list_.empty()) break;
      const Entry e = list_.pop_front();
      sim::trace::Cause cause = e.cause;
      if (const std::uint64_t id =
              trace_.span(trace_points::comp_handler, cause, enqueued, start, context_.now(), e.cqn);
          id != 0)
        cause.parent = id;
      client_.completion_handler(e.cqn, cause, e.times);
      ++handled;
      if (context_.now() - begin >= config_.interrupt.tasklet_budget) break;
    }
    trace_.span(trace_points::tasklet, why, enqueued, begin, context_.now(), vector_, handled);
    where_.soft.release();
    if (list_.empty()) break;
    reschedules_.add();
  }
  scheduled_ = false;
}

}  // namespace kernel
