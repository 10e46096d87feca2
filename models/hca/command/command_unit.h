// SPDX-License-Identifier: Apache-2.0
// Command interface: slots of the command queue are read by DMA with their mailboxes, executed by firmware one at a time
// per slot, and answered by DMA with a command event.
#pragma once

#include <cstdint>
#include <vector>

#include "hca/completion/completion_unit.h"
#include "hca/completion/event_unit.h"
#include "hca/device.h"
#include "hca/dma/translation.h"
#include "hca/transport/shared_receive_queue.h"
#include "hca/uar/uar.h"

namespace hca {

class CommandUnit {
 public:
  CommandUnit(Device& device, DmaEngine& dma, Translation& translation, CompletionUnit& completions, EventUnit& events,
              Uar& uar, QpControl& qp_control, ContextCache& qpc, SharedReceiveQueue& shared_receive_queue);
  sim::Context& context() { return device_.context; }
  /// The QP context as QUERY_QP returns it and the ICM holds it (kQpcSize bytes).
  static void encode_qpc(const Qp& qp, std::byte* out);

  /// Writes to the initialisation segment (bar offset, 4 bytes big endian).
  void init_segment_write(std::uint64_t offset, std::uint32_t value);
  std::uint32_t init_segment_read(std::uint64_t offset) const;

 private:
  /// A command being executed: complete input, and the output to return.
  struct Command {
    unsigned slot = 0;
    prm::CmdEntry entry{};
    std::vector<std::byte> in, out;
    std::vector<memory::Iova> out_mailboxes;
  };
  using Status = prm::CmdStatus;

  sim::Flow run(unsigned slot);
  sim::Task<bool> read_input(Command& c);
  sim::Task<bool> find_output(Command& c);
  void write_output(Command& c, Status status);
  sim::Task<Status> execute(Command& c);
  sim::Picos duration(std::uint16_t opcode) const;

  // Device and pages (command_device.cpp)
  Status query_hca_cap(Command& c);
  Status query_special_contexts(Command& c);
  Status query_pages(Command& c);
  Status manage_pages(Command& c);
  Status alloc_uar(Command& c);
  Status set_roce_address(Command& c);
  Status alloc_pd(Command& c);
  Status dealloc_pd(Command& c);
  // Keys and queues (command_queues.cpp)
  Status create_mkey(Command& c);
  sim::Task<Status> destroy_mkey(Command& c);
  Status query_mkey(Command& c);
  Status create_eq(Command& c);
  Status destroy_eq(Command& c);
  Status query_eq(Command& c);
  Status create_cq(Command& c);
  sim::Task<Status> destroy_cq(Command& c);
  Status query_cq(Command& c);
  sim::Task<Status> modify_cq(Command& c);
  sim::Task<Status> resize_cq(Command& c, Cq& cq);
  // Shared receive queues and XRC domains (command_srq.cpp)
  Status create_srq(Command& c, bool xrc);
  sim::Task<Status> destroy_srq(Command& c, bool xrc);
  Status query_srq(Command& c, bool xrc);
  Status arm_srq(Command& c, bool xrc);
  Status alloc_xrcd(Command& c);
  Status dealloc_xrcd(Command& c);
  Srq* find_srq(const Command& c, bool xrc) const;
  // Multicast (command_multicast.cpp)
  Status attach_to_mcg(Command& c);
  Status detach_from_mcg(Command& c);
  // Queue pairs (command_qp.cpp)
  Status create_qp(Command& c);
  sim::Task<Status> destroy_qp(Command& c);
  Status query_qp(Command& c);
  sim::Task<void> stop(Qp& qp);
  // Their state changes (modify_qp.cpp)
  sim::Task<Status> modify_qp(Command& c, std::uint16_t opcode);
  void set_path(Qp& qp, const std::byte* path);
  bool apply_qpc(Qp& qp, const std::byte* qpc, std::uint16_t opcode, std::uint32_t optional);
  bool check_path(const Qp& qp, const std::byte* path) const;

  static bool read_cq_pages(const Command& c, const Cq& cq, unsigned log_size, QueueBuffer& buffer);
  static bool read_pages(const Command& c, std::size_t at, std::size_t count, QueueBuffer& buffer);
  std::uint32_t object(const Command& c) const { return prm::get(c.in.data(), prm::kInObject); }

  Device& device_;
  DmaEngine& dma_;
  Translation& translation_;
  CompletionUnit& completions_;
  EventUnit& events_;
  Uar& uar_;
  QpControl& qp_control_;
  ContextCache& qpc_;
  SharedReceiveQueue& shared_receive_queue_;
  memory::Iova queue_{0};
  std::uint32_t queue_high_ = 0;
  std::vector<bool> busy_;
  std::uint32_t next_generation_ = 0;
  sim::trace::Source trace_;
  sim::Counter& commands_;
  sim::Counter& failures_;
};

}  // namespace hca
