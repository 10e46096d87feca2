// SPDX-License-Identifier: Apache-2.0
// Transport and dispatch of commands: doorbell bit → 64-byte entry → input mailboxes → firmware time → output mailboxes,
// entry with the ownership bit cleared → command event. A malformed command ends with a status, never with silence.
#include "hca/command/command_unit.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hca/trace_points.h"

namespace hca {
namespace {
constexpr std::uint32_t kMaxLength = 64U << 20;  // the page list of a 32 GiB region
}

CommandUnit::CommandUnit(Device& device, DmaEngine& dma, Translation& translation, CompletionUnit& completions,
                         EventUnit& events, Uar& uar, QpControl& qp_control, ContextCache& qpc,
                         SharedReceiveQueue& shared_receive_queue)
    : device_(device),
      dma_(dma),
      translation_(translation),
      completions_(completions),
      events_(events),
      uar_(uar),
      qp_control_(qp_control),
      qpc_(qpc),
      shared_receive_queue_(shared_receive_queue),
      busy_(1U << prm::kLogCmdqSize),
      trace_(device.context, device.host, device.path + ".command"),
      commands_(device.context.stats.counter(device.path + ".command.commands")),
      failures_(device.context.stats.counter(device.path + ".command.failures")) {}

void CommandUnit::init_segment_write(std::uint64_t offset, std::uint32_t value) {
  switch (offset) {
    case prm::kInitCmdqAddrHigh:
      queue_high_ = value;
      break;
    case prm::kInitCmdqAddrLow:
      queue_ = {std::uint64_t{queue_high_} << 32 | (value & 0xFFFFF000U)};
      break;
    case prm::kInitCmdDoorbell:
      for (unsigned slot = 0; slot < busy_.size(); ++slot)
        if ((value >> slot & 1) != 0 && !busy_[slot]) run(slot);
      break;
    default:
      break;
  }
}

std::uint32_t CommandUnit::init_segment_read(std::uint64_t offset) const {
  unsigned major = 0, minor = 0, sub = 0;
  std::sscanf(device_.config.caps.fw_version.c_str(), "%u.%u.%u", &major, &minor, &sub);
  switch (offset) {
    case prm::kInitFwRev:
      return minor << 16 | major;
    case prm::kInitCmdIfRev:
      return 5U << 16 | sub;
    case prm::kInitCmdqAddrHigh:
      return queue_high_;
    case prm::kInitCmdqAddrLow:
      return static_cast<std::uint32_t>(queue_.v) | prm::kLogCmdqSize << 4 | prm::kLogCmdqStride;
    default:
      return 0;
  }
}

sim::Flow CommandUnit::run(unsigned slot) {
  busy_[slot] = true;
  const sim::Picos start = device_.context.now();
  const bool announce = events_.wanted(prm::kEventCmd);  // the command that creates the command EQ is polled for
  Command c;
  c.slot = slot;
  sim::BufferRef entry = device_.context.buffers.make(sizeof(prm::CmdEntry));
  const DmaStatus read =
      co_await dma_.fetch(queue_ + slot * sizeof(prm::CmdEntry), sizeof(prm::CmdEntry), entry, 0, {});
  if (read == DmaStatus::ok) {
    std::memcpy(&c.entry, entry.data(), sizeof c.entry);
    Status status = prm::kCmdBadInLen;
    bool complete = c.entry.type == prm::kCmdTypePci;
    if (complete) complete = co_await read_input(c);
    if (complete) complete = co_await find_output(c);
    const std::uint16_t opcode =
        complete ? static_cast<std::uint16_t>(prm::get(c.in.data(), prm::kInOpcode)) : std::uint16_t{0};
    if (complete) {
      co_await device_.context.delay(duration(opcode));
      status = co_await execute(c);
    }
    commands_.add();
    if (status != prm::kCmdOk) failures_.add();
    write_output(c, status);
    trace_.span(points::command, {}, start, start, device_.context.now(), opcode, status, slot);
    if (announce) events_.async(prm::kEventCmd, 1U << slot);
  }
  busy_[slot] = false;
}

// Gathers the 16 inline bytes and the mailbox chain into c.in.
sim::Task<bool> CommandUnit::read_input(Command& c) {
  const std::uint32_t length = prm::be32(c.entry.inlen);
  if (length < 16 || length > kMaxLength) co_return false;
  c.in.resize(std::max<std::size_t>(length, 1024));  // contexts may be shorter than their full layout: the rest is zero
  std::memcpy(c.in.data(), c.entry.in, sizeof c.entry.in);
  memory::Iova box{prm::be64(c.entry.in_ptr)};
  for (std::uint32_t done = 16; done < length;) {
    if (box.v == 0) co_return false;
    sim::BufferRef image = device_.context.buffers.make(sizeof(prm::Mailbox));
    if (co_await dma_.fetch(box, sizeof(prm::Mailbox), image, 0, {}) != DmaStatus::ok) co_return false;
    const auto* m = reinterpret_cast<const prm::Mailbox*>(image.data());
    if (m->token != c.entry.token) co_return false;
    const auto n = std::min<std::uint32_t>(length - done, prm::kMailboxData);
    std::memcpy(c.in.data() + done, m->data, n);
    done += n;
    box = {prm::be64(m->next)};
  }
  co_return true;
}

// Walks the output mailbox chain, which the driver has linked, to learn its addresses.
sim::Task<bool> CommandUnit::find_output(Command& c) {
  const std::uint32_t length = prm::be32(c.entry.outlen);
  if (length < 16 || length > kMaxLength) co_return false;
  c.out.resize(length);
  memory::Iova box{prm::be64(c.entry.out_ptr)};
  for (std::uint32_t covered = 16; covered < length; covered += prm::kMailboxData) {
    if (box.v == 0) co_return false;
    c.out_mailboxes.push_back(box);
    sim::BufferRef tail = device_.context.buffers.make(64);
    if (co_await dma_.fetch(box + prm::kMailboxData, 64, tail, 0, {}) != DmaStatus::ok) co_return false;
    box = {prm::get64(tail.data(), offsetof(prm::Mailbox, next) - prm::kMailboxData)};
  }
  co_return true;
}

void CommandUnit::write_output(Command& c, Status status) {
  if (c.out.size() < 16) c.out.resize(16);
  prm::set(c.out.data(), prm::kOutStatus, status);
  prm::set(c.out.data(), prm::kOutSyndrome, status == prm::kCmdOk ? 0 : 0x10000U | status);
  for (std::size_t i = 0; i < c.out_mailboxes.size() && status == prm::kCmdOk; ++i) {
    const std::size_t at = 16 + i * prm::kMailboxData;
    const auto n = static_cast<std::uint32_t>(std::min(c.out.size() - at, prm::kMailboxData));
    sim::BufferRef data = device_.context.buffers.make(n);
    std::memcpy(data.data(), c.out.data() + at, n);
    dma_.write(c.out_mailboxes[i], n, data, 0, {});
  }
  std::memcpy(c.entry.out, c.out.data(), sizeof c.entry.out);
  c.entry.status_own = 0;
  std::array<std::byte, sizeof(prm::CmdEntry)> bytes;
  std::memcpy(bytes.data(), &c.entry, sizeof c.entry);
  dma_.write_inline(queue_ + c.slot * sizeof(prm::CmdEntry), bytes, {});
}

sim::Picos CommandUnit::duration(std::uint16_t opcode) const {
  const CommandConfig& cfg = device_.config.command;
  switch (opcode) {
    case prm::kCreateMkey:
    case prm::kCreateEq:
    case prm::kCreateCq:
    case prm::kCreateQp:
    case prm::kCreateSrq:
    case prm::kCreateXrcSrq:
    case prm::kDestroySrq:
    case prm::kDestroyXrcSrq:
    case prm::kDestroyMkey:
    case prm::kDestroyEq:
    case prm::kDestroyCq:
    case prm::kDestroyQp:
      return cfg.create_execute;
    case prm::kRst2Init:
    case prm::kInit2Rtr:
    case prm::kRtr2Rts:
    case prm::kRts2Rts:
    case prm::kRts2Sqd:
    case prm::kSqd2Sqd:
    case prm::kSqerr2Rts:
    case prm::kQp2Err:
    case prm::kQp2Rst:
    case prm::kInit2Init:
    case prm::kSqd2Rts:
      return cfg.modify_qp_execute;
    default:
      return cfg.execute;
  }
}

sim::Task<CommandUnit::Status> CommandUnit::execute(Command& c) {
  const auto opcode = static_cast<std::uint16_t>(prm::get(c.in.data(), prm::kInOpcode));
  switch (opcode) {
    case prm::kEnableHca:
      device_.enabled = true;
      co_return prm::kCmdOk;
    case prm::kDisableHca:
      device_.enabled = false;
      co_return prm::kCmdOk;
    case prm::kQueryIssi:
      prm::set(c.out.data(), prm::Field{8, 0, 16}, 1);
      co_return prm::kCmdOk;
    case prm::kSetIssi:
      co_return prm::kCmdOk;
    case prm::kQueryHcaCap:
      co_return query_hca_cap(c);
    case prm::kQueryPages:
      co_return query_pages(c);
    case prm::kManagePages:
      co_return manage_pages(c);
    case prm::kInitHca:
      if (!device_.enabled || device_.icm.pages() == 0) co_return prm::kCmdBadSysState;
      device_.initialised = true;
      co_return prm::kCmdOk;
    case prm::kTeardownHca:
      device_.initialised = false;
      co_return prm::kCmdOk;
    default:
      break;
  }
  if (!device_.initialised) co_return prm::kCmdBadSysState;
  switch (opcode) {
    case prm::kAllocUar:
      co_return alloc_uar(c);
    case prm::kDeallocUar:
      co_return uar_.release(object(c)) ? prm::kCmdOk : prm::kCmdBadRes;
    case prm::kQuerySpecialContexts:
      co_return query_special_contexts(c);
    case prm::kSetRoceAddress:
      co_return set_roce_address(c);
    case prm::kAllocPd:
      co_return alloc_pd(c);
    case prm::kDeallocPd:
      co_return dealloc_pd(c);
    case prm::kCreateMkey:
      co_return create_mkey(c);
    case prm::kDestroyMkey:
      co_return co_await destroy_mkey(c);
    case prm::kQueryMkey:
      co_return query_mkey(c);
    case prm::kCreateEq:
      co_return create_eq(c);
    case prm::kDestroyEq:
      co_return destroy_eq(c);
    case prm::kQueryEq:
      co_return query_eq(c);
    case prm::kCreateCq:
      co_return create_cq(c);
    case prm::kDestroyCq:
      co_return co_await destroy_cq(c);
    case prm::kQueryCq:
      co_return query_cq(c);
    case prm::kModifyCq:
      co_return co_await modify_cq(c);
    case prm::kCreateSrq:
    case prm::kCreateXrcSrq:
      co_return create_srq(c, opcode == prm::kCreateXrcSrq);
    case prm::kDestroySrq:
    case prm::kDestroyXrcSrq:
      co_return co_await destroy_srq(c, opcode == prm::kDestroyXrcSrq);
    case prm::kQuerySrq:
    case prm::kQueryXrcSrq:
      co_return query_srq(c, opcode == prm::kQueryXrcSrq);
    case prm::kArmRq:
    case prm::kArmXrcSrq:
      co_return arm_srq(c, opcode == prm::kArmXrcSrq);
    case prm::kAllocXrcd:
      co_return alloc_xrcd(c);
    case prm::kDeallocXrcd:
      co_return dealloc_xrcd(c);
    case prm::kCreateQp:
      co_return create_qp(c);
    case prm::kDestroyQp:
      co_return co_await destroy_qp(c);
    case prm::kQueryQp:
      co_return query_qp(c);
    case prm::kAttachToMcg:
      co_return attach_to_mcg(c);
    case prm::kDetachFromMcg:
      co_return detach_from_mcg(c);
    case prm::kRst2Init:
    case prm::kInit2Init:
    case prm::kInit2Rtr:
    case prm::kRtr2Rts:
    case prm::kRts2Rts:
    case prm::kRts2Sqd:
    case prm::kSqd2Sqd:
    case prm::kSqd2Rts:
    case prm::kSqerr2Rts:
    case prm::kQp2Err:
    case prm::kQp2Rst:
      co_return co_await modify_qp(c, opcode);
    default:
      co_return prm::kCmdBadOp;
  }
}

}  // namespace hca
