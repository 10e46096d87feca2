// SPDX-License-Identifier: Apache-2.0
// The completion handler schedules the poll context; the poll context handles what is there, arms the CQ when there is
// nothing more, and goes on if the arm came too late (S-CE-20). Adaptive moderation measures each event and changes the CQ's
// moderation by a work item, since that takes a command. Source: ib_core cq.c (__ib_process_cq, ib_poll_handler,
// ib_cq_poll_work, rdma_dim_init), lib/dim.
#include "kernel/core/cq_poll.h"

#include <algorithm>
#include <cerrno>

#include "kernel/core/verbs.h"
#include "kernel/kernel.h"

namespace kernel {

namespace {

constexpr std::uint32_t kArmFlags = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;

const CqPollConfig& config_of(Cq& cq) { return cq.device->kernel.config().cq_poll; }

/// Handles up to `budget` work completions, `batch` of one poll at a time. -1: without a limit.
int process(Cq& cq, int budget, int batch) {
  CqPoll& p = *cq.poll;
  int done = 0;
  for (;;) {
    const int n = ib_poll_cq(cq, budget < 0 ? batch : std::min(batch, budget - done), p.wc.data());
    if (n <= 0) return done;
    for (int i = 0; i < n; ++i) {
      const ibv_wc& wc = p.wc[static_cast<std::size_t>(i)];
      auto* const cqe = reinterpret_cast<WrCqe*>(wc.wr_id);
      cpu::current().compute(config_of(cq).done_call);
      if (cqe != nullptr) cqe->done(cq, wc);
    }
    done += n;
    p.polled += static_cast<std::uint64_t>(n);
    if (n != batch || (budget >= 0 && done >= budget)) return done;
  }
}

void measure(Cq& cq, int completions) {
  CqPoll& p = *cq.poll;
  if (p.dim == nullptr || !p.dim->event(cpu::current().now(), static_cast<std::uint64_t>(completions))) return;
  cpu::current().sync();
  cq.device->kernel.system_work().queue(p.core, p.dim_work);
}

/// The message whose event led here has waited for the steps up to now.
void arrived(Cq& cq, sim::trace::Cause& cause, EventTimes& times, sim::Stage last) {
  cpu::Thread& t = cpu::current();
  t.sync();
  times.charge_poll(cq.device->kernel.context().journeys, cause, last, t.now());
  cause = {};
  times = {};
}

int poll_in_softirq(IrqPoll& item, int budget) {
  Cq& cq = *static_cast<Cq*>(item.owner);
  arrived(cq, item.cause, item.times, sim::Stage::softirq);
  const int done = process(cq, budget, static_cast<int>(config_of(cq).batch));
  if (done < budget) {
    Softirq& softirq = cq.device->kernel.softirq(cq.poll->core);
    cpu::current().sync();
    softirq.complete(item);  // an event from now on schedules it again
    if (ib_req_notify_cq(cq, kArmFlags) > 0) softirq.schedule(item, {}, {});
  }
  measure(cq, done);
  return done;
}

void poll_in_work(Work& work) {
  Cq& cq = *static_cast<Cq*>(work.owner);
  arrived(cq, work.cause, work.times, sim::Stage::wake_up);
  const auto budget = static_cast<int>(config_of(cq).work_budget);
  const int done = process(cq, budget, static_cast<int>(config_of(cq).batch));
  const bool again = done >= budget || ib_req_notify_cq(cq, kArmFlags) > 0;
  if (!again) return measure(cq, done);
  cpu::current().sync();
  cq.device->kernel.completion_work().queue(cq.poll->core, work);
}

// Completion handlers, in the hard interrupt.
void to_softirq(Cq& cq, sim::trace::Cause cause, const EventTimes& times) {
  cq.device->kernel.softirq(cq.poll->core).schedule(cq.poll->irq_poll, cause, times);
}
void to_work(Cq& cq, sim::trace::Cause cause, const EventTimes& times) {
  Kernel& kernel = cq.device->kernel;
  Work& work = cq.poll->work;
  if (!kernel.completion_work().queue(cq.poll->core, work)) return;
  work.cause = cause;
  work.times = times;
  work.times.handler_end = kernel.context().now();  // the kworker waits for no more than that
}

void apply_profile(Work& work) {
  Cq& cq = *static_cast<Cq*>(work.owner);
  Dim& dim = *cq.poll->dim;
  const DimProfile profile = dim.profile();
  dim.applied();
  if (ib_modify_cq(cq, profile.comps, profile.usec) != 0) cq.device->kernel.counter("dim_failures").add();
  cq.device->kernel.counter("dim_changes").add();
}

}  // namespace

int ib_alloc_cq(Device& device, const PolledCqAttr& attr, const Consumer& who, void* consumer,
                std::unique_ptr<Cq>& cq) {
  std::unique_ptr<Cq> made;
  const CqInitAttr init{.cqe = attr.cqe, .comp_vector = attr.comp_vector};
  if (const int error = ib_create_cq(device, init, who, nullptr, made); error != 0) return error;
  const CqPollConfig& config = device.kernel.config().cq_poll;
  made->context = consumer;
  made->poll = std::make_unique<CqPoll>();
  CqPoll& p = *made->poll;
  p.context = attr.context;
  p.core = device.kernel.core_of_vector(attr.comp_vector);
  p.wc.resize(attr.context == PollContext::direct ? config.direct_batch : config.batch);
  p.irq_poll.poll = &poll_in_softirq;
  p.irq_poll.weight = static_cast<int>(config.irq_poll_budget);
  p.work.fn = &poll_in_work;
  p.dim_work.fn = &apply_profile;
  p.irq_poll.owner = p.work.owner = p.dim_work.owner = made.get();
  if (attr.dim && attr.context != PollContext::direct && device.ops.modify_cq != nullptr)
    p.dim = std::make_unique<Dim>();
  if (attr.context == PollContext::softirq) made->comp_handler = &to_softirq;
  if (attr.context == PollContext::workqueue) made->comp_handler = &to_work;
  if (attr.context != PollContext::direct) ib_req_notify_cq(*made, IB_CQ_NEXT_COMP);
  cq = std::move(made);
  return 0;
}

int ib_free_cq(Cq& cq) {
  if (cq.usecnt != 0) return -EBUSY;
  Kernel& kernel = cq.device->kernel;
  if (cq.poll->context == PollContext::softirq) kernel.softirq(cq.poll->core).disable(cq.poll->irq_poll);
  if (cq.poll->context == PollContext::workqueue) kernel.completion_work().cancel_sync(cq.poll->work);
  if (cq.poll->dim != nullptr) kernel.system_work().cancel_sync(cq.poll->dim_work);
  return ib_destroy_cq(cq);
}

int ib_process_cq_direct(Cq& cq, int budget) {
  return process(cq, budget, static_cast<int>(config_of(cq).direct_batch));
}

}  // namespace kernel
