// SPDX-License-Identifier: Apache-2.0
// The data path of the module. Nothing waits here: each work completion says what is to be posted next, as much as the
// send queue has room for. With poll_context direct the module's own thread polls; otherwise it sleeps until all is done.
// A work completion in error ends the side at once.
#include "system/kernel_perftest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "system/verbs_names.h"

namespace sys {

// The module's own work before a message.
void KernelPerftest::turn() {
  cpu::Thread& t = cpu::current();
  t.compute(config_.loop + kernel_.context().jitter.draw(sim::JitterPlace::step, t.program_thread().number()));
}

void KernelPerftest::begin() {
  if (!client_) return look_whether_done();
  for (Connection& c : connections_) {
    switch (config_.op) {
      case Op::send_lat:
        c.wanted = 1;
        break;
      case Op::read_lat:
        c.wanted = std::min<std::uint64_t>(config_.cq_mod, config_.iters);
        break;
      default:
        c.wanted = config_.iters;
    }
    pump(c);
  }
}

void KernelPerftest::wait_until_done() {
  kernel::Waiter& self = kernel_.waiters().current();
  if (config_.poll_context == kernel::PollContext::direct) {
    while (!done_) kernel::ib_process_cq_direct(*cq_, -1);
    return;
  }
  self.thread->sync();
  if (done_) return;
  self.announce();
  waiting_ = &self;
  self.block("completion of the module's work");
}

void KernelPerftest::finish() {
  if (done_) return;
  done_ = true;
  cpu::Thread& t = cpu::current();
  workload_.record_.ended = sim::max(workload_.record_.ended, t.now());
  for (std::size_t i = 1; i < post_times_.size(); ++i)
    workload_.record_.half_round_trip.push_back({(post_times_[i] - post_times_[i - 1]).n / 2});
  if (config_.poll_context == kernel::PollContext::direct && thread_ != &t) {
    t.sync();
    thread_->end_poll();
  }
  if (waiting_ == nullptr) return;
  t.sync();
  const kernel::InterruptConfig& i = kernel_.config().interrupt;
  waiting_->wake(t.now() + i.wake_up + i.context_switch);
}

bool KernelPerftest::connection_done(const Connection& c) const {
  const bool sends = client_ || config_.op == Op::send_lat;
  const bool receives = config_.op == Op::send_lat || (config_.op == Op::send_bw && !client_);
  return (!sends || c.completed == config_.iters) && (!receives || c.received == config_.iters);
}

void KernelPerftest::look_whether_done() {
  if (std::all_of(connections_.begin(), connections_.end(), [&](const Connection& c) { return connection_done(c); }))
    finish();
}

// Completions --------------------------------------------------------------------------------------------------------------

bool KernelPerftest::book(const ibv_wc& wc) {
  workload_.record_.note(wc, reinterpret_cast<const Request*>(wc.wr_id)->number, client_, cpu::current().now());
  if (wc.status == IBV_WC_SUCCESS) return !error_;
  error_ = true;
  finish();
  return false;
}

void KernelPerftest::on_sent(kernel::Cq& cq, const ibv_wc& wc) {
  auto& self = *static_cast<KernelPerftest*>(cq.context);
  const Request& request = *reinterpret_cast<const Request*>(wc.wr_id);
  if (self.book(wc)) self.sent(*request.connection, request.number);
}

void KernelPerftest::on_received(kernel::Cq& cq, const ibv_wc& wc) {
  auto& self = *static_cast<KernelPerftest*>(cq.context);
  if (self.book(wc)) self.received(*reinterpret_cast<const Request*>(wc.wr_id)->connection);
}

void KernelPerftest::sent(Connection& c, std::uint64_t number) {
  c.completed = number + 1;
  if (config_.op == Op::read_lat) {
    check_payload();
    if (c.completed == c.posted) c.wanted = std::min<std::uint64_t>(c.posted + config_.cq_mod, config_.iters);
  }
  pump(c);
  look_whether_done();
}

void KernelPerftest::received(Connection& c) {
  ++c.received;
  std::byte* const at = buffer_.bytes + region_bytes();
  if (config_.op == Op::send_lat) {
    check_payload();
    std::memset(at, 0, config_.size.n);
  } else {
    if (c.received == config_.iters) check_payload();
    cpu::current().compute(config_.loop);
  }
  const std::uint64_t outstanding = c.receives_posted - c.received;
  if (outstanding <= std::max<std::uint64_t>(1, config_.rx_depth / 2) && c.receives_posted < config_.iters)
    post_receives(c, std::min<std::uint64_t>(config_.iters - c.receives_posted, config_.rx_depth - outstanding));
  if (config_.op == Op::send_lat && c.wanted < config_.iters) {
    ++c.wanted;
    pump(c);
  }
  look_whether_done();
}

// Posting ------------------------------------------------------------------------------------------------------------------

/// Posts what is wanted and has room.
void KernelPerftest::pump(Connection& c) {
  while (c.posted < c.wanted) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(config_.post_list, c.wanted - c.posted));
    if (c.posted - c.completed + n > config_.depth()) return;
    turn();
    if (client_ && config_.op == Op::send_lat) post_times_.push_back(cpu::current().now());
    post(c, n);
  }
}

void KernelPerftest::post(Connection& c, std::uint32_t count) {
  const auto bytes = static_cast<std::uint32_t>(config_.size.n);
  const bool inlined = bytes <= config_.inline_size && config_.inline_size > 0;
  const std::size_t from = config_.is_read() ? region_bytes() : 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    sge_[i] = {inlined ? reinterpret_cast<std::uint64_t>(buffer_.bytes) : local_.addr + from, bytes, local_.lkey};
    const std::uint64_t number = c.posted + i;
    Request& request = c.sends[number % c.sends.size()];
    request.number = number;
    ibv_send_wr& wr = send_wr_[i];
    wr = {};
    wr.wr_id = kernel::wr_id_of(request);
    wr.next = i + 1 < count ? &send_wr_[i + 1] : nullptr;
    wr.sg_list = &sge_[i];
    wr.num_sge = 1;
    const bool signaled = (number + 1) % config_.cq_mod == 0 || number + 1 == config_.iters;
    wr.send_flags = (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
                    (inlined ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
    wr.opcode = config_.is_send() ? IBV_WR_SEND : config_.is_write() ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    if (!config_.is_send()) {
      wr.wr.rdma.remote_addr = c.peer.va + (config_.is_write() ? region_bytes() : 0);
      wr.wr.rdma.rkey = c.peer.rkey;
    }
  }
  WorkloadRecord& r = workload_.record_;
  if (r.started.n == 0) {
    r.started = cpu::current().now();
    if (workload_.on_first_post_) workload_.on_first_post_();
  }
  const ibv_send_wr* bad = nullptr;
  require("ib_post_send", kernel::ib_post_send(*c.qp, send_wr_.data(), &bad));
  c.posted += count;
}

void KernelPerftest::post_receives(Connection& c, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    ibv_sge sge{local_.addr + region_bytes(), static_cast<std::uint32_t>(config_.size.n), local_.lkey};
    ibv_recv_wr wr{};
    const ibv_recv_wr* bad = nullptr;
    wr.wr_id = kernel::wr_id_of(c.receive);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    require("ib_post_recv", kernel::ib_post_recv(*c.qp, &wr, &bad));
    ++c.receives_posted;
  }
}

void KernelPerftest::check_payload() {
  if (config_.verify && std::memcmp(buffer_.bytes + region_bytes(), pattern_.data(), config_.size.n) != 0)
    ++workload_.record_.corrupted;
}

}  // namespace sys
