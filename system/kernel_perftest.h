// SPDX-License-Identifier: Apache-2.0
// One side of a workload as a kernel module (an upper-layer protocol): a client of the RDMA core that uses the in-kernel verbs,
// no file, no system call. A kernel thread sets it up and takes it down; in between, work completions drive it, in the CQ's
// poll context.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/core/client.h"
#include "kernel/core/cq_poll.h"
#include "kernel/core/verbs.h"
#include "kernel/wait.h"
#include "system/workload.h"

namespace sys {

class KernelPerftest final : private kernel::Client {
 public:
  KernelPerftest(Workload& workload, Host& host, bool client);
  /// From start to end, on the module's kernel thread.
  void run();

 private:
  struct Connection;
  /// A posted WR: who gets its work completion.
  struct Request : kernel::WrCqe {
    Connection* connection = nullptr;
    std::uint64_t number = 0;  ///< of the send on its queue pair
  };
  struct Connection {
    std::unique_ptr<kernel::Qp> qp;
    PeerAddress mine{}, peer{};
    std::vector<Request> sends;  ///< by number, modulo their count
    Request receive;             ///< all receives: they complete in order
    std::uint64_t wanted = 0;    ///< sends that are to be posted by now
    std::uint64_t posted = 0, completed = 0, received = 0, receives_posted = 0;
  };

  // Set-up and tear-down (kernel_perftest_setup.cpp)
  int add(kernel::Device& device) override;
  void remove(kernel::Device& device) override;
  void create_objects(kernel::Device& device);
  void connect();
  void modify_to_rts(Connection& c);
  [[noreturn]] void failed(const std::string& call, int error) const;
  void require(const char* call, int error) const;
  void expect_device() const;
  void meet(const std::string& what, const void* mine = nullptr, void* theirs = nullptr, std::size_t n = 0);

  // Data path (kernel_perftest.cpp)
  void begin();
  void turn();
  void wait_until_done();
  static void on_sent(kernel::Cq& cq, const ibv_wc& wc);
  static void on_received(kernel::Cq& cq, const ibv_wc& wc);
  bool book(const ibv_wc& wc);
  void sent(Connection& c, std::uint64_t number);
  void received(Connection& c);
  void pump(Connection& c);
  void post(Connection& c, std::uint32_t count);
  void post_receives(Connection& c, std::uint64_t count);
  void check_payload();
  void look_whether_done();
  bool connection_done(const Connection& c) const;
  void finish();

  std::size_t region_bytes() const { return (std::max<std::size_t>(config_.size.n, 1) + 63) / 64 * 64; }

  Workload& workload_;
  const WorkloadConfig& config_;
  Host& host_;
  kernel::Kernel& kernel_;
  const bool client_;
  const kernel::ResourceOwner module_{0, "perftest_ulp"};
  const kernel::Consumer consumer_{module_};

  std::unique_ptr<kernel::Pd> pd_;
  std::unique_ptr<kernel::Mr> mr_;
  std::unique_ptr<kernel::Cq> cq_;
  kernel::DmaBuffer buffer_;        // [0, n) to send, [n, 2n) to receive
  ibv_sge local_{};                 // its first byte in the module's own WRs
  std::uint64_t iova_ = 0;          ///< by which WRs name its first byte
  std::vector<std::byte> pattern_;  // what the peer sends
  std::vector<Connection> connections_;
  std::vector<ibv_send_wr> send_wr_;
  std::vector<ibv_sge> sge_;
  std::vector<sim::Picos> post_times_;  ///< ping-pong client
  cpu::Thread* thread_ = nullptr;       ///< the module's
  kernel::Waiter* waiting_ = nullptr;   ///< its thread, once it sleeps
  bool done_ = false, error_ = false;
  bool stopping_ = false;  ///< the device goes
  bool working_ = false;   ///< the module's thread is between begin() and its end
  std::string failure_;    ///< why the device could not be used
};

}  // namespace sys
