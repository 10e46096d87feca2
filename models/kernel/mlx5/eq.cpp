// SPDX-License-Identifier: Apache-2.0
// The interrupt handler of an event queue, one step after the other as in mlx5_core (eq.c): entry, then per entry the
// owner check, dma_rmb and dispatch, at most 128 of them, then the consumer index doorbell with arm, then the tasklet.
// Entries that remain make the device fire again when the arm arrives (S-EQE-7). Steps occupy the core that the vector is
// bound to. Not modelled: threaded interrupts, interrupt coalescing in software.
#include "kernel/mlx5/eq.h"

#include <algorithm>

#include "kernel/trace_points.h"
#include "sim/check.h"

namespace kernel {

namespace prm = hca::prm;

Eq::Eq(sim::Context& context, const KernelConfig& config, InterruptContext& where, EventClient& client,
       memory::AddressSpace& space, DmaBuffer ring, unsigned log_size, std::uint16_t vector, std::int32_t host)
    : context_(context),
      config_(config),
      host_(host),
      where_(where),
      client_(client),
      ring_(std::move(ring)),
      log_size_(log_size),
      vector_(vector),
      trace_(context, host, host_lane(host, "kernel.irq" + std::to_string(vector)), sim::trace::TrackKind::exclusive),
      interrupts_(context.stats.counter("host" + std::to_string(host) + ".kernel.interrupts")),
      entries_(context.stats.counter("host" + std::to_string(host) + ".kernel.eqes")),
      tasklet_(context, config, where, client, host, vector),
      memory_(space.memory()) {
  SIM_CHECK(ring_.size >= sizeof(prm::Eqe) << log_size, "event queue ring too small");
  // Every entry starts as not owned by software in the first lap (S-EQE-4).
  for (std::size_t i = 0; i < std::size_t{1} << log_size; ++i)
    ring_.bytes[i * sizeof(prm::Eqe) + offsetof(prm::Eqe, owner)] = std::byte{1};
  // Whose message an entry serves and when it came is not in its bytes; what the device writes tells.
  for (std::size_t page = 0; page < ring_.size; page += memory::kPageSize)
    watches_.push_back(memory_.watch(space.phys_of(memory::va_of(ring_.bytes + page)),
                                     std::min<std::size_t>(ring_.size - page, memory::kPageSize), &Eq::on_entry, this));
}

Eq::~Eq() {
  for (const memory::WatchId id : watches_) memory_.unwatch(id);
}

// Entries come in ring order: posted writes do not pass each other.
void Eq::on_entry(void* self, std::uint64_t, sim::trace::Cause cause) {
  auto* const eq = static_cast<Eq*>(self);
  eq->arrivals_.push_back({cause, eq->context_.now()});
}

void Eq::attach(std::uint8_t eqn, memory::Phys uar_page) {
  eqn_ = eqn;
  uar_page_ = uar_page;
}

std::uint32_t Eq::doorbell_value() const { return prm::be32(std::uint32_t{eqn_} << 24 | (ci_ & 0xffffff)); }

std::uint64_t Eq::doorbell_address(bool arm) const {
  return uar_page_.v + (arm ? prm::kUarEqDoorbellArm : prm::kUarEqDoorbell);
}

bool Eq::next_valid() const {
  const std::size_t slot = ci_ & ((1U << log_size_) - 1);
  const auto owner = std::to_integer<unsigned>(ring_.bytes[slot * sizeof(prm::Eqe) + offsetof(prm::Eqe, owner)]);
  return ((owner ^ (ci_ >> log_size_)) & 1) == 0;
}

sim::Delay Eq::occupy(sim::Picos d) {
  return context_.delay(where_.core.steal(context_.now(), d) + d - context_.now());
}

void Eq::ring_doorbell(bool arm, sim::trace::Cause cause) {
  const std::uint32_t value = doorbell_value();
  where_.core.mmio->mmio_write({doorbell_address(arm)}, std::as_bytes(std::span(&value, 1)), cause);
}

void Eq::on_interrupt(sim::trace::Cause cause) {
  interrupts_.add();
  on_irq(cause);
}

sim::Task<> Eq::handle(const prm::Eqe& eqe, sim::trace::Cause cause, const EventTimes& times) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&eqe);
  switch (eqe.type) {
    case prm::kEventComp: {
      const std::uint32_t cqn = prm::get(bytes, prm::kEqeCompCqn);
      switch (client_.completion_event(cqn)) {
        case EventClient::Handling::none:
          break;
        case EventClient::Handling::tasklet:
          tasklet_.add(cqn, cause, times);
          break;
        case EventClient::Handling::at_once:
          co_await occupy(config_.cq_poll.comp_handler);
          client_.completion_handler(cqn, cause, times);
          break;
      }
      break;
    }
    case prm::kEventCmd:
      co_await occupy(config_.driver.command_complete);
      client_.command_event(prm::get(bytes, prm::kEqeCmdVector), cause);
      break;
    default:
      client_.async_event(eqe, cause);
      break;
  }
}

sim::Flow Eq::on_irq(sim::trace::Cause cause) {
  const sim::Picos arrived = context_.now();
  ++handlers_;
  co_await where_.hard.acquire();
  const sim::Picos begin = context_.now();
  co_await occupy(config_.interrupt.irq_entry + context_.jitter.draw(sim::JitterPlace::interrupt, host_));
  EventTimes times{.interrupt = arrived, .handler_begin = context_.now()};
  for (std::uint32_t n = 0; n < config_.interrupt.eqe_budget && next_valid(); ++n) {
    const sim::Picos start = context_.now();
    co_await occupy(config_.interrupt.eqe);
    prm::Eqe eqe;
    std::memcpy(&eqe, ring_.bytes + (ci_ & ((1U << log_size_) - 1)) * sizeof eqe, sizeof eqe);
    const Arrival entry = arrivals_.empty() ? Arrival{cause, arrived} : arrivals_.pop_front();
    times.eqe = entry.at;
    sim::trace::Cause why = entry.cause;
    if (const std::uint64_t id = trace_.span(trace_points::eqe, why, arrived, start, context_.now(), eqn_, eqe.type,
                                             prm::get(reinterpret_cast<const std::byte*>(&eqe), prm::kEqeCompCqn), ci_);
        id != 0)
      why.parent = id;
    co_await handle(eqe, why, times);
    ++ci_;
    entries_.add();
  }
  co_await occupy(config_.interrupt.eq_rearm);
  ring_doorbell(true, {cause.msg, cause.parent, false});  // re-arming delays nobody's message
  trace_.span(trace_points::irq, cause, arrived, begin, context_.now(), vector_, eqn_);
  where_.hard.release();
  tasklet_.schedule(context_.now());
  --handlers_;
}

}  // namespace kernel
