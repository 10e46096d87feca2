// SPDX-License-Identifier: Apache-2.0
// The driver's side of the device command interface: slots, mailboxes, doorbell, completion, status to errno.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hca/prm.h"
#include "kernel/dma_map.h"
#include "kernel/kernel_config.h"
#include "kernel/wait.h"
#include "sim/context.h"

namespace kernel {

/// One device command: input and output bytes, and its outcome.
struct Command {
  Command(std::uint16_t opcode, std::size_t in_size, std::size_t out_size, std::uint32_t op_mod = 0);

  std::vector<std::byte> in, out;  ///< whole input and output, heads included
  std::uint8_t status = 0;         ///< enum hca::prm::CmdStatus
  std::uint32_t syndrome = 0;
  bool done = false;

  void set(hca::prm::Field f, std::uint32_t v, std::size_t base = 0) { hca::prm::set(in.data() + base, f, v); }
  void set64(std::size_t at, std::uint64_t v) { hca::prm::set64(in.data(), at, v); }
  std::uint32_t get(hca::prm::Field f, std::size_t base = 0) const { return hca::prm::get(out.data() + base, f); }
  std::uint16_t opcode() const { return static_cast<std::uint16_t>(hca::prm::get(in.data(), hca::prm::kInOpcode)); }

 private:
  friend class CommandInterface;
  Waiter* waiter = nullptr;
  sim::Picos enqueued{0}, issued{0};
  sim::trace::Cause cause;  ///< who asked for it
};

/// Negative errno of a command status, 0 for success. Source: mlx5_core.
int errno_of_status(std::uint8_t status);

/// Commands are issued by one kernel thread (mlx5_core's command work queue) and may overlap; whoever asked for one
/// sleeps until the command event queue reports it.
class CommandInterface {
 public:
  CommandInterface(sim::Context& context, const KernelConfig& config, DmaMapper& dma, Waiters& waiters,
                   std::int32_t host);

  /// Allocates the queue and tells the device where it is. `init_segment`: mapping of BAR page 0. From the kernel thread.
  void start(memory::Va init_segment);
  /// From now on completions come from the command event queue.
  void use_events() { events_ = true; }
  /// Back to polling, before the command event queue goes.
  void stop_events() { events_ = false; }
  /// The device does not answer any more: commands under way and queued end with -EIO; of later ones those that release
  /// something succeed, because nothing is left to release, and the others fail with -EIO.
  void device_lost();
  /// Gives back the queue and its mailboxes. No command is under way.
  void release();
  /// Runs a command to its end; blocks the calling thread. 0 or -errno.
  int execute(Command& command);
  /// Body of the kernel thread once the device is up: issues what others queue. Does not return.
  [[noreturn]] void serve();
  /// The command event queue reports `slots`. Wakes the owners `wake` after now.
  void on_event(std::uint32_t slots, sim::Picos wake, sim::trace::Cause cause);
  void set_worker(cpu::Thread& worker) { worker_ = &waiters_.of(worker); }

  unsigned in_flight() const;
  unsigned most_in_flight() const { return most_in_flight_; }

 private:
  static constexpr unsigned kSlots = 1U << hca::prm::kLogCmdqSize;
  struct Mailboxes {
    std::vector<std::uint32_t> index;  ///< into pool_
  };
  struct Slot {
    Command* command = nullptr;
    Mailboxes in, out;
  };

  void issue(Command& command);
  void wait_done(Command& command);
  unsigned take_slot();
  Mailboxes take_mailboxes(std::size_t bytes_beyond_slot);
  void give_mailboxes(Mailboxes& m);
  void write_mailboxes(const Mailboxes& m, const std::byte* data, std::size_t size, std::uint8_t token);
  void complete(unsigned slot);
  bool finished(unsigned slot);
  std::byte* mailbox(std::uint32_t index) const;
  memory::Iova mailbox_address(std::uint32_t index) const;
  std::byte* entry(unsigned slot) const { return queue_.bytes + (std::size_t{slot} << hca::prm::kLogCmdqStride); }

  sim::Context& context_;
  const KernelConfig& config_;
  DmaMapper& dma_;
  Waiters& waiters_;
  sim::trace::Source trace_;
  sim::Counter& commands_;
  sim::Counter& failures_;
  Waiter* worker_ = nullptr;
  memory::Va init_segment_;
  DmaBuffer queue_;
  std::vector<DmaBuffer> pool_;
  std::vector<std::uint32_t> free_mailboxes_;
  std::array<Slot, kSlots> slots_;
  sim::Ring<Command*> queued_;
  bool events_ = false, lost_ = false;
  std::uint8_t token_ = 0;
  unsigned most_in_flight_ = 0;
};

}  // namespace kernel
