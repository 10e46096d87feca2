// SPDX-License-Identifier: Apache-2.0
// Device commands: a 64-byte slot holds the first 16 bytes of input and output; the rest continues in chains of 512-byte
// mailboxes. The slot is handed over by its ownership bit and a doorbell. Commands are polled for until the command event
// queue exists. Not modelled: signatures (the device does not ask for them), command timeouts, entry revival.
// Source: mlx5_core cmd.c (order of steps), hca/prm.h (layout).
#include "kernel/mlx5/command.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "kernel/trace_points.h"
#include "sim/check.h"

namespace kernel {

namespace prm = hca::prm;

namespace {
constexpr std::size_t kInline = sizeof(prm::CmdEntry::in);
constexpr std::uint32_t kMailboxesPerPage = memory::kPageSize / prm::kMailboxStride;

std::size_t beyond_slot(std::size_t size) { return size > kInline ? size - kInline : 0; }

/// Stores `n` bytes at `dst` in pieces of at most one line.
void store_bytes(cpu::Thread& thread, std::byte* dst, const std::byte* src, std::size_t n) {
  for (std::size_t at = 0; at < n; at += 64) thread.store(dst + at, src + at, std::min<std::size_t>(64, n - at));
}
}  // namespace

Command::Command(std::uint16_t opcode, std::size_t in_size, std::size_t out_size, std::uint32_t op_mod)
    : in(std::max(in_size, kInline)), out(std::max(out_size, kInline)) {
  set(prm::kInOpcode, opcode);
  set(prm::kInOpMod, op_mod);
}

int errno_of_status(std::uint8_t status) {
  switch (status) {
    case prm::kCmdOk:
      return 0;
    case prm::kCmdInternalErr:
    case prm::kCmdBadSysState:
    case prm::kCmdBadInLen:
    case prm::kCmdBadOutLen:
      return -EIO;
    case prm::kCmdResBusy:
      return -EBUSY;
    case prm::kCmdLimit:
      return -ENOMEM;
    case prm::kCmdNoRes:
      return -EAGAIN;
    case prm::kCmdBadOp:
    case prm::kCmdBadParam:
    case prm::kCmdBadRes:
    case prm::kCmdBadResState:
    case prm::kCmdIndex:
    case prm::kCmdBadQpState:
    case prm::kCmdBadPkt:
    case prm::kCmdBadSize:
      return -EINVAL;
    default:
      return -EIO;
  }
}

CommandInterface::CommandInterface(sim::Context& context, const KernelConfig& config, DmaMapper& dma, Waiters& waiters,
                                   std::int32_t host)
    : context_(context),
      config_(config),
      dma_(dma),
      waiters_(waiters),
      trace_(context, host, host_lane(host, "kernel.command")),
      commands_(context.stats.counter("host" + std::to_string(host) + ".kernel.commands")),
      failures_(context.stats.counter("host" + std::to_string(host) + ".kernel.command_failures")) {}

void CommandInterface::start(memory::Va init_segment) {
  init_segment_ = init_segment;
  queue_ = dma_.alloc(std::size_t{kSlots} << prm::kLogCmdqStride);
  const std::uint64_t bus = queue_.at(0).v;
  cpu::Thread& t = cpu::current();
  t.mmio_store32(init_segment_ + prm::kInitCmdqAddrHigh, prm::be32(static_cast<std::uint32_t>(bus >> 32)));
  t.mmio_store32(init_segment_ + prm::kInitCmdqAddrLow,
                 prm::be32(static_cast<std::uint32_t>(bus) | prm::kLogCmdqSize << 4 | prm::kLogCmdqStride));
  t.barrier(cpu::Barrier::wmb);
}

unsigned CommandInterface::in_flight() const {
  return static_cast<unsigned>(
      std::count_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.command != nullptr; }));
}

std::byte* CommandInterface::mailbox(std::uint32_t index) const {
  return pool_[index / kMailboxesPerPage].bytes + index % kMailboxesPerPage * prm::kMailboxStride;
}

memory::Iova CommandInterface::mailbox_address(std::uint32_t index) const {
  return pool_[index / kMailboxesPerPage].at(index % kMailboxesPerPage * prm::kMailboxStride);
}

CommandInterface::Mailboxes CommandInterface::take_mailboxes(std::size_t bytes) {
  Mailboxes m;
  for (std::size_t left = bytes; left > 0; left -= std::min(left, prm::kMailboxData)) {
    if (free_mailboxes_.empty()) {
      const auto first = static_cast<std::uint32_t>(pool_.size()) * kMailboxesPerPage;
      pool_.push_back(dma_.alloc(memory::kPageSize));
      for (std::uint32_t i = kMailboxesPerPage; i-- > 0;) free_mailboxes_.push_back(first + i);
    }
    m.index.push_back(free_mailboxes_.back());
    free_mailboxes_.pop_back();
  }
  return m;
}

void CommandInterface::give_mailboxes(Mailboxes& m) {
  free_mailboxes_.insert(free_mailboxes_.end(), m.index.rbegin(), m.index.rend());
  m.index.clear();
}

void CommandInterface::write_mailboxes(const Mailboxes& m, const std::byte* data, std::size_t size,
                                       std::uint8_t token) {
  cpu::Thread& t = cpu::current();
  for (std::size_t i = 0; i < m.index.size(); ++i) {
    std::byte* const box = mailbox(m.index[i]);
    const std::size_t n = std::min(size, prm::kMailboxData);
    store_bytes(t, box, data, n);
    data += n;
    size -= n;
    // The last line of a mailbox: 48 reserved bytes, link, block number, token.
    std::byte tail[64]{};
    constexpr std::size_t kTail = offsetof(prm::Mailbox, rsvd0);
    if (i + 1 < m.index.size())
      prm::set64(tail, offsetof(prm::Mailbox, next) - kTail, mailbox_address(m.index[i + 1]).v);
    prm::set(tail, {offsetof(prm::Mailbox, block_num) - kTail, 0, 32}, static_cast<std::uint32_t>(i));
    tail[offsetof(prm::Mailbox, token) - kTail] = std::byte{token};
    t.store(box + kTail, tail, sizeof tail);
  }
}

unsigned CommandInterface::take_slot() {
  for (unsigned i = 0; i < kSlots; ++i)
    if (slots_[i].command == nullptr) return i;
  return kSlots;
}

void CommandInterface::issue(Command& command) {
  cpu::Thread& t = cpu::current();
  const unsigned slot = take_slot();
  SIM_CHECK(slot < kSlots, "no command slot");
  Slot& s = slots_[slot];
  s.command = &command;
  most_in_flight_ = std::max(most_in_flight_, in_flight());
  if (++token_ == 0) ++token_;
  s.in = take_mailboxes(beyond_slot(command.in.size()));
  s.out = take_mailboxes(beyond_slot(command.out.size()));
  write_mailboxes(s.in, command.in.data() + kInline, beyond_slot(command.in.size()), token_);
  write_mailboxes(s.out, nullptr, 0, token_);

  prm::CmdEntry e{};
  e.type = prm::kCmdTypePci;
  e.inlen = prm::be32(static_cast<std::uint32_t>(command.in.size()));
  e.outlen = prm::be32(static_cast<std::uint32_t>(command.out.size()));
  if (!s.in.index.empty()) e.in_ptr = prm::be64(mailbox_address(s.in.index.front()).v);
  if (!s.out.index.empty()) e.out_ptr = prm::be64(mailbox_address(s.out.index.front()).v);
  std::memcpy(e.in, command.in.data(), kInline);
  e.token = token_;
  const sim::trace::Cause own = t.cause();
  t.set_cause(command.cause);
  e.status_own = prm::kCmdOwnerHw;
  t.store(entry(slot), &e, sizeof e);
  t.barrier(cpu::Barrier::wmb);
  t.mmio_store32(init_segment_ + prm::kInitCmdDoorbell, prm::be32(1U << slot));
  t.barrier(cpu::Barrier::wmb);
  t.set_cause(own);
  command.issued = t.now();
  commands_.add();
}

void CommandInterface::complete(unsigned slot) {
  Slot& s = slots_[slot];
  SIM_CHECK(s.command != nullptr, "completion of a command slot that is not in use");
  Command& c = *s.command;
  prm::CmdEntry e;
  std::memcpy(&e, entry(slot), sizeof e);
  std::memcpy(c.out.data(), e.out, kInline);
  std::byte* to = c.out.data() + kInline;
  std::size_t left = beyond_slot(c.out.size());
  for (const std::uint32_t index : s.out.index) {
    const std::size_t n = std::min(left, prm::kMailboxData);
    std::memcpy(to, mailbox(index), n);
    to += n;
    left -= n;
  }
  const auto delivery = static_cast<std::uint8_t>(e.status_own >> 1);
  c.status = delivery != 0 ? std::uint8_t{prm::kCmdInternalErr} : static_cast<std::uint8_t>(c.get(prm::kOutStatus));
  c.syndrome = c.get(prm::kOutSyndrome);
  if (c.status != 0) failures_.add();
  give_mailboxes(s.in);
  give_mailboxes(s.out);
  s.command = nullptr;
  c.done = true;
}

// Whether the device has given the slot back. An event may be older than the command that is in its slot now: the command
// that created the event queue was polled for, and its event comes when the queue is armed.
bool CommandInterface::finished(unsigned slot) {
  const Command* const c = slots_[slot].command;
  if (c == nullptr || c->issued > context_.now()) return false;
  dma_.memory().commit_pending();
  return (std::to_integer<unsigned>(entry(slot)[offsetof(prm::CmdEntry, status_own)]) & prm::kCmdOwnerHw) == 0;
}

void CommandInterface::on_event(std::uint32_t vector, sim::Picos wake, sim::trace::Cause cause) {
  for (unsigned slot = 0; slot < kSlots && !lost_; ++slot) {
    if ((vector >> slot & 1) == 0 || !finished(slot)) continue;
    Command& c = *slots_[slot].command;
    complete(slot);
    trace_.span(trace_points::command, c.cause.parent != 0 ? c.cause : cause, c.enqueued, c.issued, context_.now(),
                c.opcode(), slot, c.status);
    if (c.waiter != nullptr) c.waiter->wake(context_.now() + wake);
  }
  if (!queued_.empty() && worker_ != nullptr) worker_->wake(context_.now() + wake);
}

void CommandInterface::wait_done(Command& command) {
  cpu::Thread& t = cpu::current();
  if (!events_) {
    for (unsigned slot = 0; slot < kSlots; ++slot) {
      if (slots_[slot].command != &command) continue;
      t.sync();
      while ((t.load(reinterpret_cast<std::uint8_t*>(entry(slot) + offsetof(prm::CmdEntry, status_own))) &
              prm::kCmdOwnerHw) != 0) {
        t.compute(config_.driver.command_poll);
        t.sync();
      }
      complete(slot);
      trace_.span(trace_points::command, command.cause, command.enqueued, command.issued, t.now(), command.opcode(),
                  slot, command.status);
    }
    return;
  }
  Waiter& w = waiters_.current();
  command.waiter = &w;
  for (;;) {
    t.sync();
    if (command.done) break;
    w.announce();
    w.block("device command");
  }
}

namespace {

/// Commands that give something back (mlx5_core cmd.c, mlx5_internal_err_ret_value).
bool releases(std::uint16_t opcode) {
  switch (opcode) {
    case prm::kTeardownHca:
    case prm::kDisableHca:
    case prm::kManagePages:
    case prm::kDestroyEq:
    case prm::kDestroyMkey:
    case prm::kDestroyCq:
    case prm::kDestroyQp:
    case prm::kDestroySrq:
    case prm::kDestroyXrcSrq:
    case prm::kQp2Err:
    case prm::kQp2Rst:
    case prm::kDeallocPd:
    case prm::kDeallocUar:
    case prm::kDeallocXrcd:
    case prm::kDetachFromMcg:
      return true;
    default:
      return false;
  }
}

}  // namespace

void CommandInterface::device_lost() {
  lost_ = true;
  const auto end = [&](Command& c) {
    c.status = prm::kCmdInternalErr;
    c.done = true;
    failures_.add();
    if (c.waiter != nullptr) c.waiter->wake(context_.now());
  };
  for (Slot& s : slots_) {
    if (s.command == nullptr) continue;
    end(*s.command);
    give_mailboxes(s.in);
    give_mailboxes(s.out);
    s.command = nullptr;
  }
  while (!queued_.empty()) end(*queued_.pop_front());
}

void CommandInterface::release() {
  lost_ = true;
  dma_.free(queue_);
  for (DmaBuffer& page : pool_) dma_.free(page);
  pool_.clear();
  free_mailboxes_.clear();
}

int CommandInterface::execute(Command& command) {
  cpu::Thread& t = cpu::current();
  command.enqueued = t.now();
  command.cause = t.cause();
  const bool own = !events_ || (worker_ != nullptr && worker_->thread == &t);
  if (!own) t.sync();
  if (lost_) {
    command.status = releases(command.opcode()) ? prm::kCmdOk : prm::kCmdInternalErr;
    return errno_of_status(command.status);
  }
  if (own) {
    issue(command);
  } else {
    queued_.push_back(&command);
    if (worker_ != nullptr) worker_->wake(t.now() + config_.driver.command_dispatch);
  }
  wait_done(command);
  return errno_of_status(command.status);
}

void CommandInterface::serve() {
  cpu::Thread& t = cpu::current();
  for (;;) {
    t.sync();
    if (!queued_.empty() && take_slot() < kSlots) {
      issue(*queued_.pop_front());
      continue;
    }
    worker_->announce();
    worker_->block("kernel worker: idle");
  }
}

}  // namespace kernel
