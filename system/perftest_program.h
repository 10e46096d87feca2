// SPDX-License-Identifier: Apache-2.0
// One side of a workload as a verbs program: resources, connection, the loops of perftest, tear-down.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "system/workload.h"

namespace sys {

class PerftestProgram {
 public:
  PerftestProgram(Workload& workload, Process& process, bool client);
  /// The program from start to exit, on cpu::current().
  void run();

 private:
  struct Connection {
    ibv_qp* qp = nullptr;
    PeerAddress mine{}, peer{};
    std::uint64_t posted = 0, completed = 0, received = 0;
    std::uint64_t receives_posted = 0;
  };

  // Set-up and tear-down (perftest_setup.cpp)
  void open();
  void connect();
  void close();
  void modify_to_rts(Connection& c);
  [[noreturn]] void failed(const std::string& call, int error) const;
  void require(bool ok, const char* call) const;
  void meet(const char* what, const void* mine = nullptr, void* theirs = nullptr, std::size_t n = 0);

  // Loops (perftest_loops.cpp)
  void send_lat();
  void write_lat();
  void read_lat();
  void stream();
  void sink();
  void post(Connection& c, std::uint32_t count);
  void turn();
  void pace(std::uint32_t count);
  void post_receives(Connection& c, std::uint64_t count);
  std::uint64_t wait_completion(ibv_cq* cq);
  int poll(ibv_cq* cq);
  void wait_for_byte(std::uint8_t value);
  void mark_first_post();
  /// Counts a message whose bytes at `at` are not those that the peer sends.
  void check_payload(const std::byte* at);
  bool error() const { return error_; }

  /// Distance from the send to the receive area: whole cache lines, so that neither disturbs the other.
  std::size_t region_bytes() const { return (std::max<std::size_t>(config_.size.n, 1) + 63) / 64 * 64; }

  Workload& workload_;
  const WorkloadConfig& config_;
  Process& process_;
  Host& host_;
  cpu::Thread* thread_ = nullptr;
  const bool client_;
  bool error_ = false;
  sim::Picos next_post_{0}, paced_{0};  ///< rate limit: when the next message may go, and all waiting for that

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* send_cq_ = nullptr;
  ibv_cq* recv_cq_ = nullptr;
  ibv_port_attr port_{};
  std::byte* buffer_ = nullptr;   // [0, n) to send, [n, 2n) to receive
  std::byte* pattern_ = nullptr;  // what the peer sends
  std::vector<Connection> connections_;
  std::vector<ibv_wc> wc_;
  std::vector<ibv_send_wr> send_wr_;
  std::vector<ibv_sge> sge_;
};

}  // namespace sys
