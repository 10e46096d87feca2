// SPDX-License-Identifier: Apache-2.0
// The parts of a core put together: where each kind of store goes, what each fence waits for, kernel work, its own and that
// of others, and one idle state.
// A fence costs its own time or the wait for what it orders, whichever ends later.
// Not modelled: pipelines, time slicing of threads, frequency, hyper-threads.
// Sources: Intel SDM volume 3, chapter 9.2 (memory ordering) and 12.3 (memory types); Arm ARM, B2.3.
#include "cpu/core.h"

#include <algorithm>
#include <string>

#include "cpu/thread.h"
#include "cpu/trace_points.h"

namespace cpu {
namespace {
std::string path(std::int32_t host, std::uint32_t index) {
  return "host" + std::to_string(host) + ".cpu" + std::to_string(index);
}
bool lists(const std::vector<Barrier>& list, Barrier b) { return std::find(list.begin(), list.end(), b) != list.end(); }
memory::CoreIndex checked(std::uint32_t index) {
  SIM_CHECK(index < memory::kNoCore, "a host has at most 255 cores");
  return static_cast<memory::CoreIndex>(index);
}
}  // namespace

Core::Core(sc_core::sc_module_name name, sim::Context& context, const CoreConfig& config, memory::HostMemory& memory,
           std::int32_t host, std::uint32_t index)
    : sc_module(name),
      mmio("mmio"),
      context_(context),
      config_(config),
      memory_(memory),
      host_(host),
      index_(checked(index)),
      trace_(context, host, path(host, index)),
      stores_(context, config_, memory, host, index_, trace_),
      wc_(context, config_, mmio, host, index_),
      fences_(context.stats.counter(path(host, index) + ".fences")),
      mmio_stores_(context.stats.counter(path(host, index) + ".mmio_stores")),
      mmio_loads_(context.stats.counter(path(host, index) + ".mmio_loads")),
      kernel_work_(context.stats.counter(path(host, index) + ".kernel_work")),
      cstate_exits_(context.stats.counter(path(host, index) + ".cstate_exits")),
      noise_count_(context.stats.counter(path(host, index) + ".noise")),
      kernel_time_(context.stats.busy(path(host, index) + ".kernel")),
      noise_(context.rng(path(host, index) + ".noise")) {
  for (std::size_t i = 0; i < kBarriers; ++i) {
    const auto b = static_cast<Barrier>(i);
    instructions_[i] = expand(config_.arch, b);
    if (lists(config_.weaken_barriers, b)) instructions_[i] = weaken(instructions_[i]);
    if (lists(config_.omit_barriers, b)) instructions_[i] = Instruction::none;
  }
  if (config_.noise_interval.n != 0) schedule_noise(0);
}

Core::~Core() = default;

sim::Picos Core::steal(sim::Picos at, sim::Picos d, const Thread* worker) {
  const sim::Picos start = wake(sim::max(sim::max(at, context_.now()), kernel_until_));
  kernel_until_ = start + d;
  kernel_work_.add();
  kernel_time_.add(d);
  trace_.span(points::kernel_work, {}, at, start, kernel_until_);
  for (Thread* t : threads_)
    if (t != worker) t->on_steal(start, d);
  return start;
}

// A core is idle while no kernel work runs and each of its threads is blocked; one that polls never is.
sim::Picos Core::wake(sim::Picos at) {
  if (config_.cstate_exit_latency.n == 0) return at;
  if (at < awake_from_) return awake_from_;
  sim::Picos since = sim::max(kernel_until_, awake_from_);
  for (const Thread* t : threads_) since = sim::max(since, t->idle_since());
  if (at < since || at - since < config_.cstate_entry) return at;
  cstate_exits_.add();
  awake_from_ = at + config_.cstate_exit_latency;
  trace_.span(points::cstate_exit, {}, at, at, awake_from_);
  return awake_from_;
}

// Foreign work does not keep a simulation alive: it comes while there is other work.
void Core::schedule_noise(std::uint64_t seen) {
  const auto gap = static_cast<std::int64_t>(2.0 * noise_.uniform() * static_cast<double>(config_.noise_interval.n));
  context_.scheduler.after_work(
      seen, sim::Picos{gap},
      [](void* self, std::uint64_t) {
        auto* const core = static_cast<Core*>(self);
        core->noise_count_.add();
        core->steal({}, core->config_.noise_length);
        core->schedule_noise(core->context_.scheduler.work());
      },
      this);
}

sim::Picos Core::mmio_store(const memory::Translation& to, std::span<const std::byte> bytes, sim::trace::Cause cause,
                            sim::Picos t) {
  SIM_CHECK(to.mmio, "MMIO store to ordinary memory");
  mmio_stores_.add();
  if (to.type == memory::MemoryType::write_combining) {
    t += config_.mmio_store_cost;
    context_.journeys.mark(cause.msg, sim::Stage::cpu_post, t);
    return wc_.store(to.phys, bytes, cause, t, stores_.floor());
  }
  t += config_.uc_store_cost;
  context_.journeys.mark(cause.msg, sim::Stage::cpu_post, t);
  if (config_.arch == Arch::arm64) {
    wc_.send_uncached(to.phys, bytes, cause, t, stores_.floor());
    return t;
  }
  // x86: strongly ordered with all other stores, and the write-combining buffers are flushed first.
  wc_.flush(t);
  stores_.order_after(wc_.send_uncached(to.phys, bytes, cause, t, stores_.drained()));
  return t;
}

sim::Picos Core::before_mmio_load(sim::Picos t) {
  mmio_loads_.add();
  t += config_.mmio_load_overhead;
  return config_.arch == Arch::x86_64 ? sim::max(wc_.flush(t), stores_.drained()) : t;
}

sim::Picos Core::barrier(Barrier b, sim::trace::Cause cause, sim::Picos t) {
  const Instruction i = instruction(b);
  if (i == Instruction::none) return t;
  const sim::Picos end = execute(i, t);
  trace_.span(points::barrier, cause, t, t, end, static_cast<std::uint64_t>(b), static_cast<std::uint64_t>(i));
  return end;
}

sim::Picos Core::execute(Instruction i, sim::Picos t) {
  const auto all_out = [&](sim::Picos cost) { return sim::max(t + cost, sim::max(stores_.drained(), wc_.flush(t))); };
  if (i != Instruction::none) fences_.add();
  switch (i) {
    case Instruction::none:
      return t;
    case Instruction::lfence:
      return t + config_.lfence_cost;
    case Instruction::sfence:
      return all_out(config_.sfence_cost);
    case Instruction::dsb_st:
      return all_out(config_.dsb_cost);
    case Instruction::dmb_oshst:
      stores_.order_after();
      return t + config_.dmb_cost;
    case Instruction::dmb_oshld:
      return t + config_.dmb_cost;
    case Instruction::dsb_ld:  // loads are over when they return
      return t + config_.dsb_cost;
  }
  return t;
}

sim::Picos Core::locked(sim::Picos t) {
  if (config_.arch == Arch::arm64) return t + config_.lock_cost;
  return sim::max(t + config_.lock_cost, sim::max(stores_.drained(), wc_.flush(t)));
}

}  // namespace cpu
