// SPDX-License-Identifier: Apache-2.0
// What the user-space verbs stack of one simulated process works with: the kernel's system calls, its own cost figures,
// its environment variables and the simulation. cpu::Thread::process points to the ProcessState of the thread's process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/thread.h"
#include "kernel/syscalls.h"
#include "sim/config.h"
#include "sim/context.h"

struct ibv_context;

namespace kernel {
class Process;
}

namespace verbs {

struct Device;

/// Time that the instructions of the library and the provider take, beyond the loads, stores, barriers and locks that
/// the core charges itself.
struct VerbsConfig {
  sim::Picos post_send_call{12'000};
  sim::Picos post_send_wr{14'000};
  sim::Picos post_recv_call{8'000};
  sim::Picos post_recv_wr{6'000};
  sim::Picos sge{1'500};
  sim::Picos inline_copy_16b{700};
  sim::Picos poll_call{3'000};
  sim::Picos poll_cqe{16'000};
  sim::Picos arm_call{6'000};
  bool arm_read_back = false;
  sim::Picos control_call{150'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("post_send_call", c.post_send_call,
      "ibv_post_send or ibv_wr_start to ibv_wr_complete: entry, checks and return, once per call",
      sim::assumed("with the core's share, about 60 to 80 ns for one inline WR on a server core"));
    v("post_send_wr", c.post_send_wr, "per send WR: opcode table, control segment, bookkeeping",
      sim::assumed("as post_send_call"));
    v("post_recv_call", c.post_recv_call, "ibv_post_recv: entry and return, once per call",
      sim::assumed("half of the send path"));
    v("post_recv_wr", c.post_recv_wr, "per receive WR: checks and bookkeeping", sim::assumed("half of the send path"));
    v("sge", c.sge, "per data segment of a send or receive WR", sim::assumed("four instructions and a branch"));
    v("inline_copy_16b", c.inline_copy_16b, "copying inline data into the WQE, per 16 bytes",
      sim::assumed("one load and one store per two cycles"));
    v("poll_call", c.poll_call,
      "ibv_poll_cq: entry, ownership test and return; all that an empty poll costs beside the core's share",
      sim::assumed("an empty poll is about 10 ns on a server core"));
    v("poll_cqe", c.poll_cqe, "per completion: resource look-up, parsing and filling the WC",
      sim::assumed("a successful poll is about 45 ns with the cache miss on the CQE"));
    v("arm_call", c.arm_call, "ibv_req_notify_cq: entry and return", sim::assumed("a dozen instructions"));
    v("arm_read_back", c.arm_read_back,
      "ibv_req_notify_cq loads from the device behind its doorbell: on return the arm is there, and every CQE that "
      "came "
      "before it can be polled. What an adapter with arm_rule next_cqe needs",
      sim::spec("mlx5 provider: no; Linux ehca, whose arm carries no consumer index: yes"));
    v("control_call", c.control_call, "user-space part of a control call (create, modify, destroy), system call apart",
      sim::assumed("allocation and argument copying"));
  }
};

/// Sees every memory operation of the provider in program order. For tests and teaching tools; nullptr in normal runs.
struct AccessTap {
  virtual ~AccessTap() = default;
  virtual void on_store(const void* at, const void* bytes, std::size_t n) = 0;
  virtual void on_load(const void* at, std::size_t n) = 0;
  virtual void on_mmio_store(memory::Va at, std::uint64_t bytes) = 0;
  virtual void on_barrier(cpu::Barrier b) = 0;
  virtual void on_lock() = 0;
  virtual void on_unlock() = 0;
};

/// One per simulated process. Filled by whoever creates the process; all pointers outlive it.
struct ProcessState {
  kernel::Syscalls* syscalls = nullptr;
  const VerbsConfig* config = nullptr;
  sim::Context* context = nullptr;
  std::int32_t host = 0;
  kernel::Process* kernel_process = nullptr;
  /// MLX5_* and other variables; getenv() is never asked.
  std::map<std::string, std::string, std::less<>> env;
  /// Flow number that QPs created from now on give to their journeys; see set_flow().
  std::uint32_t flow = 0;
  AccessTap* tap = nullptr;
  /// Devices that ibv_get_device_list has shown, by name; the library's own.
  std::map<std::string, std::shared_ptr<Device>> devices;
  /// Devices that are open, in the order of opening.
  std::vector<ibv_context*> contexts;

  /// Value of an environment variable, nullptr when unset.
  const char* getenv(std::string_view name) const {
    const auto it = env.find(name);
    return it == env.end() ? nullptr : it->second.c_str();
  }
};

/// The state of the process that runs now. Only valid inside a program.
inline ProcessState& process() { return *static_cast<ProcessState*>(cpu::current().process); }

}  // namespace verbs

struct ibv_qp;
namespace verbs {
/// Which workload the later WRs of this QP belong to, for latency accounting.
void set_flow(ibv_qp* qp, std::uint32_t flow);
std::uint32_t flow_of(const ibv_qp* qp);
}  // namespace verbs
