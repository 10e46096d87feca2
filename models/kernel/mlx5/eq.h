// SPDX-License-Identifier: Apache-2.0
// One event queue: its ring, its interrupt handler, its tasklet.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/core.h"
#include "hca/prm.h"
#include "kernel/dma_map.h"
#include "kernel/event_times.h"
#include "kernel/kernel_config.h"
#include "kernel/mlx5/tasklet.h"
#include "sim/context.h"
#include "sim/pool.h"

namespace kernel {

/// Who takes what the event queues report.
struct EventClient {
  virtual ~EventClient() = default;
  /// Where the completion handler of a CQ runs.
  enum class Handling : std::uint8_t {
    none,     ///< nowhere: there is no such CQ, or it is on the list already
    tasklet,  ///< CQs of programs: in the tasklet, which has them on its list
    at_once,  ///< CQs of kernel consumers: in the hard interrupt
  };
  virtual Handling completion_event(std::uint32_t cqn) = 0;
  /// The completion handler of a CQ.
  virtual void completion_handler(std::uint32_t cqn, sim::trace::Cause cause, const EventTimes& times) = 0;
  virtual void command_event(std::uint32_t slots, sim::trace::Cause cause) = 0;
  virtual void async_event(const hca::prm::Eqe& eqe, sim::trace::Cause cause) = 0;
};

/// A core's interrupt context: one hard interrupt and one softirq at a time.
struct InterruptContext {
  explicit InterruptContext(cpu::Core& c) : core(c) {}
  cpu::Core& core;
  sim::Semaphore hard{1}, soft{1};
};

class Eq {
 public:
  Eq(sim::Context& context, const KernelConfig& config, InterruptContext& where, EventClient& client,
     memory::AddressSpace& space, DmaBuffer ring, unsigned log_size, std::uint16_t vector, std::int32_t host);

  ~Eq();
  Eq(const Eq&) = delete;
  Eq& operator=(const Eq&) = delete;

  /// The device accepted the queue: its number and the bus address of the UAR page for its doorbells.
  void attach(std::uint8_t eqn, memory::Phys uar_page);
  std::uint8_t eqn() const { return eqn_; }
  std::uint16_t vector() const { return vector_; }
  std::uint32_t consumer() const { return ci_; }
  const DmaBuffer& ring() const { return ring_; }
  DmaBuffer& ring() { return ring_; }
  cpu::Core& core() { return where_.core; }
  Tasklet& tasklet() { return tasklet_; }
  sim::Context& context() { return context_; }
  /// Value of the consumer index doorbell, in memory byte order: be32 eqn<<24 | ci (S-EQE-6).
  std::uint32_t doorbell_value() const;
  std::uint64_t doorbell_address(bool arm) const;

  /// A handler or the tasklet is at work, or about to be.
  bool busy() const { return handlers_ != 0 || tasklet_.scheduled(); }
  /// The interrupt arrived (S-CE-9).
  void on_interrupt(sim::trace::Cause cause);

 private:
  struct Arrival {
    sim::trace::Cause cause;
    sim::Picos at{0};
  };
  static void on_entry(void* self, std::uint64_t, sim::trace::Cause cause);
  sim::Flow on_irq(sim::trace::Cause cause);
  bool next_valid() const;
  sim::Task<> handle(const hca::prm::Eqe& eqe, sim::trace::Cause cause, const EventTimes& times);
  sim::Delay occupy(sim::Picos d);
  void ring_doorbell(bool arm, sim::trace::Cause cause);

  sim::Context& context_;
  const KernelConfig& config_;
  const std::int32_t host_;
  InterruptContext& where_;
  EventClient& client_;
  DmaBuffer ring_;
  const unsigned log_size_;
  const std::uint16_t vector_;
  sim::trace::Source trace_;
  sim::Counter &interrupts_, &entries_;
  Tasklet tasklet_;
  std::uint8_t eqn_ = 0;
  memory::Phys uar_page_{};
  std::uint32_t ci_ = 0;
  unsigned handlers_ = 0;  ///< under way
  memory::HostMemory& memory_;
  std::vector<memory::WatchId> watches_;  // of the ring's pages
  sim::Ring<Arrival> arrivals_;           // entries written and not handled, in ring order
};

}  // namespace kernel
