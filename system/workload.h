// SPDX-License-Identifier: Apache-2.0
// One workload: two programs, client and server, that use nothing but the verbs API, in the manner of perftest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/units.h"
#include "system/cpu_meter.h"
#include "system/host.h"
#include "system/workload_config.h"
#include "system/workload_error.h"

struct ibv_context;
struct ibv_wc;

namespace sys {

/// What the two sides of a workload tell each other about a queue pair, whoever runs them.
struct PeerAddress {
  std::uint32_t qpn, psn, rkey;
  std::uint64_t va;
  std::uint8_t gid[16];
};

/// A program could not do its work: a verbs call failed during set-up. The text says which call, where and why.
struct ProgramFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct AsyncEventRecord {
  sim::Picos time{0};
  std::string host, type, object;
};

/// What the two programs found out.
struct WorkloadRecord {
  std::string name, op;
  std::map<std::string, std::uint64_t> wc_status;  ///< "SUCCESS", "WR_FLUSH_ERR", … of both sides
  static constexpr std::size_t kErrorsKept = 16;
  std::vector<WorkloadError> errors;        ///< the first ones, in the order of polling
  std::vector<sim::Picos> half_round_trip;  ///< per iteration, *_lat ping-pongs only
  sim::Picos started{0}, ended{0};          ///< first post to last completion
  std::uint64_t corrupted = 0;              ///< messages whose bytes differed from those sent
  CpuMeter client_cpu, server_cpu;          ///< the measuring loops

  /// Counts a work completion that the client or the server has polled at time t, and keeps the first errors.
  void note(const ibv_wc& wc, std::uint64_t wr_id, bool client, sim::Picos t);
};

class Workload {
 public:
  /// `flow` numbers the workload in journeys and results.
  Workload(const WorkloadConfig& config, std::uint32_t flow, Host& client, Host& server,
           std::vector<AsyncEventRecord>& async_events);
  /// Creates processes and threads; `on_first_post` is called when set-up is over.
  void create(std::size_t core, std::function<void()> on_first_post);
  /// Starts both programs at time t.
  void start(sim::Picos t);
  bool finished() const { return finished_ == 2; }
  sim::Picos finished_at() const { return finished_at_; }
  /// Messages that will be delivered if all goes well.
  std::uint64_t expected_messages() const;
  const WorkloadRecord& record() const { return record_; }
  const WorkloadConfig& config() const { return config_; }

 private:
  friend class PerftestProgram;
  friend class KernelPerftest;
  void create_user_side(bool client, std::size_t core);
  void create_kernel_side(bool client, std::size_t core);
  void side_finished();
  void watch_async_events(ibv_context* context, Process& process, Host& host);

  const WorkloadConfig config_;
  const std::uint32_t flow_;
  Host* hosts_[2];
  std::vector<AsyncEventRecord>& async_events_;
  std::vector<cpu::Thread*> threads_;
  std::function<void()> on_first_post_;
  WorkloadRecord record_;
  int finished_ = 0;
  sim::Picos finished_at_{0};
};

}  // namespace sys
