// SPDX-License-Identifier: Apache-2.0
// The measuring loops: ping-pong of SEND, ping-pong of WRITE by polling the last byte, READ one at a time, and streams
// with bounded outstanding work. They follow the order of calls of perftest 4.5. A work completion in error ends the loop
// once every outstanding WR of this side has completed.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "system/perftest_program.h"
#include "system/verbs_names.h"

namespace sys {

void PerftestProgram::mark_first_post() {
  WorkloadRecord& r = workload_.record_;
  if (r.started.n != 0) return;
  r.started = thread_->now();
  if (workload_.on_first_post_) workload_.on_first_post_();
}

// Posts `count` messages of this side in one call.
void PerftestProgram::post(Connection& c, std::uint32_t count) {
  const auto bytes = static_cast<std::uint32_t>(config_.size.n);
  for (std::uint32_t i = 0; i < count; ++i) {
    sge_[i] = {reinterpret_cast<std::uint64_t>(buffer_) + (config_.is_read() ? region_bytes() : 0), bytes, mr_->lkey};
    ibv_send_wr& wr = send_wr_[i];
    wr = {};
    wr.wr_id = c.posted + i;
    wr.next = i + 1 < count ? &send_wr_[i + 1] : nullptr;
    wr.sg_list = &sge_[i];
    wr.num_sge = 1;
    const std::uint64_t n = c.posted + i + 1;
    const bool signaled = n % config_.cq_mod == 0 || n == config_.iters;
    wr.send_flags =
        (signaled ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U) |
        (bytes <= config_.inline_size && config_.inline_size > 0 ? static_cast<unsigned>(IBV_SEND_INLINE) : 0U);
    wr.opcode = config_.is_send() ? IBV_WR_SEND : config_.is_write() ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    if (!config_.is_send()) {
      wr.wr.rdma.remote_addr = c.peer.va + (config_.is_write() ? region_bytes() : 0);
      wr.wr.rdma.rkey = c.peer.rkey;
    }
  }
  mark_first_post();
  ibv_send_wr* bad = nullptr;
  if (const int e = ibv_post_send(c.qp, send_wr_.data(), &bad)) failed("ibv_post_send", e);
  c.posted += count;
}

// The program's own work between two messages.
void PerftestProgram::turn() {
  thread_->compute(config_.loop +
                   process_.context->jitter.draw(sim::JitterPlace::step, thread_->program_thread().number()));
}

// Holds the client back until its rate allows `count` more messages. perftest spins; a side that sleeps for completions
// sleeps here too.
void PerftestProgram::pace(std::uint32_t count) {
  if (config_.rate_limit == 0 || !client_) return;
  if (const sim::Picos wait = next_post_ - thread_->now(); wait.n > 0) {
    if (config_.mode(client_) == CompletionMode::poll) thread_->compute(wait);
    else thread_->sleep(wait);
    paced_ += wait;
  }
  const auto interval = static_cast<std::int64_t>(1'000'000'000'000ULL * count / config_.rate_limit);
  next_post_ = sim::max(next_post_, thread_->now()) + sim::Picos{interval};
}

void PerftestProgram::post_receives(Connection& c, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(buffer_) + region_bytes(), static_cast<std::uint32_t>(config_.size.n),
                mr_->lkey};
    ibv_recv_wr wr{};
    wr.wr_id = c.receives_posted++;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    if (const int e = ibv_post_recv(c.qp, &wr, &bad)) failed("ibv_post_recv", e);
  }
}

// One ibv_poll_cq; books what it returned.
int PerftestProgram::poll(ibv_cq* cq) {
  const int n = ibv_poll_cq(cq, static_cast<int>(wc_.size()), wc_.data());
  if (n < 0) failed("ibv_poll_cq", EIO);
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = wc_[static_cast<std::size_t>(i)];
    workload_.record_.note(wc, wc.wr_id, client_, thread_->now());
    Connection* c = &connections_[0];
    for (Connection& candidate : connections_)
      if (candidate.qp->qp_num == wc.qp_num) c = &candidate;
    if (cq == recv_cq_) {
      ++c->received;
    } else {
      c->completed = std::max(c->completed, wc.wr_id + 1);
    }
    if (wc.status != IBV_WC_SUCCESS) error_ = true;
  }
  return n;
}

// Waits until the CQ yields at least one completion, by polling or by sleeping on the channel; returns how many.
std::uint64_t PerftestProgram::wait_completion(ibv_cq* cq) {
  for (;;) {
    if (const int n = poll(cq)) return static_cast<std::uint64_t>(n);
    if (config_.mode(client_) == CompletionMode::poll) continue;
    if (const int e = ibv_req_notify_cq(cq, 0)) failed("ibv_req_notify_cq", e);
    if (const int n = poll(cq)) return static_cast<std::uint64_t>(n);
    ibv_cq* ready = nullptr;
    void* cookie = nullptr;
    require(ibv_get_cq_event(channel_, &ready, &cookie) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(ready, 1);
  }
}

void PerftestProgram::check_payload(const std::byte* at) {
  if (config_.verify && std::memcmp(at, pattern_, config_.size.n) != 0) ++workload_.record_.corrupted;
}

void PerftestProgram::send_lat() {
  Connection& c = connections_[0];
  std::vector<sim::Picos> posted;
  if (client_) posted.reserve(config_.iters);
  const std::uint64_t refill = std::max<std::uint64_t>(1, config_.rx_depth / 2);
  while (c.received < config_.iters || c.posted < config_.iters) {
    if (!client_ || c.posted > 0) {
      const std::uint64_t before = c.received;
      while (c.received == before && c.received < config_.iters && !error()) wait_completion(recv_cq_);
      if (error()) return;
      check_payload(buffer_ + region_bytes());
      std::memset(buffer_ + region_bytes(), 0, config_.size.n);
      if (c.receives_posted - c.received <= refill && c.receives_posted < config_.iters)
        post_receives(c,
                      std::min(config_.iters - c.receives_posted, config_.rx_depth - (c.receives_posted - c.received)));
    }
    turn();
    if (c.posted < config_.iters) {
      pace(1);
      if (client_) posted.push_back(thread_->now() - paced_);
      post(c, 1);
      if (c.posted % config_.cq_mod == 0 || c.posted == config_.iters)
        while (c.completed < c.posted && !error()) wait_completion(send_cq_);
      if (error()) return;
    }
  }
  for (std::size_t i = 1; i < posted.size(); ++i)
    workload_.record_.half_round_trip.push_back({(posted[i] - posted[i - 1]).n / 2});
}

// Spins on the last byte of the receive area, as a latency test of RDMA WRITE does; the message is delivered when it changes.
void PerftestProgram::wait_for_byte(std::uint8_t value) {
  const std::byte* last = buffer_ + region_bytes() + config_.size.n - 1;
  sim::trace::Cause cause;
  thread_->sync();
  while (static_cast<std::uint8_t>(*last) != value) cause = thread_->wait_for_write(last, 1, config_.memory_poll);
  process_.context->journeys.finish(cause.msg, sim::Stage::poll, thread_->now());
}

void PerftestProgram::write_lat() {
  Connection& c = connections_[0];
  std::vector<sim::Picos> posted;
  if (client_) posted.reserve(config_.iters);
  std::uint64_t received = 0;
  while (c.posted < config_.iters || received < config_.iters) {
    if (!client_ || c.posted > 0) {
      if (received < config_.iters) {
        ++received;
        wait_for_byte(static_cast<std::uint8_t>(received));
        if (config_.verify && config_.size.n > 1 &&
            std::memcmp(buffer_ + region_bytes(), pattern_, config_.size.n - 1) != 0)
          ++workload_.record_.corrupted;
      }
    }
    turn();
    if (c.posted < config_.iters) {
      buffer_[config_.size.n - 1] = static_cast<std::byte>(c.posted + 1);
      pace(1);
      if (client_) posted.push_back(thread_->now() - paced_);
      post(c, 1);
      if (c.posted % config_.cq_mod == 0 || c.posted == config_.iters)
        while (c.completed < c.posted && !error()) wait_completion(send_cq_);
      if (error()) return;
    }
  }
  for (std::size_t i = 1; i < posted.size(); ++i)
    workload_.record_.half_round_trip.push_back({(posted[i] - posted[i - 1]).n / 2});
}

void PerftestProgram::read_lat() {
  Connection& c = connections_[0];
  while (c.posted < config_.iters && !error()) {
    turn();
    pace(1);
    post(c, 1);
    if (c.posted % config_.cq_mod == 0 || c.posted == config_.iters) {
      while (c.completed < c.posted && !error()) wait_completion(send_cq_);
      check_payload(buffer_ + region_bytes());
    }
  }
}

// Keeps up to tx_depth WRs outstanding on each QP until all are done.
void PerftestProgram::stream() {
  std::uint64_t done = 0;
  while (done < config_.qps && !error()) {
    done = 0;
    bool full = true;
    for (Connection& c : connections_) {
      while (c.posted < config_.iters && c.posted - c.completed + config_.post_list <= config_.depth()) {
        turn();
        const auto count =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(config_.post_list, config_.iters - c.posted));
        pace(count);
        post(c, count);
        full = false;
      }
      done += c.completed == config_.iters;
    }
    if (done < config_.qps && (full || poll(send_cq_) == 0)) wait_completion(send_cq_);
  }
  if (config_.is_read() && !error()) check_payload(buffer_ + region_bytes());
}

// Receives a stream of SENDs, keeping the receive queue filled.
void PerftestProgram::sink() {
  std::uint64_t done = 0;
  while (done < config_.qps && !error()) {
    wait_completion(recv_cq_);
    turn();
    done = 0;
    for (Connection& c : connections_) {
      const std::uint64_t posted = c.receives_posted - c.received;
      if (posted <= config_.rx_depth / 2 && c.receives_posted < config_.iters)
        post_receives(c, std::min(config_.iters - c.receives_posted, config_.rx_depth - posted));
      done += c.received == config_.iters;
    }
  }
  check_payload(buffer_ + region_bytes());
}

}  // namespace sys
