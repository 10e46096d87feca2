// SPDX-License-Identifier: Apache-2.0
// One step program: a thread that does what its list says through the verbs API, and notes what came of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "system/cpu_meter.h"
#include "system/steps_objects.h"

namespace sys {

/// A work completion as the program polled it. Of a failed one, opcode and what follows it mean nothing.
struct PolledWc {
  sim::Picos time{0};
  std::string cq, qp;
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::uint32_t vendor_err = 0;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  std::uint32_t byte_len = 0, imm_data = 0, src_qp = 0;
  unsigned wc_flags = 0;
};

struct CompletionEvent {
  sim::Picos time{0};
  std::string cq;
};

/// A step that did not go as its program says.
struct FailedStep {
  std::string at;    ///< file:line:column
  std::string path;  ///< programs.client.steps.3
  std::string message;
};

struct ProgramRecord {
  static constexpr std::size_t kMostListed = 100'000;  ///< completions kept one by one
  std::string name, host;
  bool finished = false, killed = false;
  std::uint64_t steps = 0;  ///< done
  sim::Picos started{0}, ended{0};
  std::string at;  ///< path of the step under way
  std::uint64_t polled = 0;
  std::vector<PolledWc> completions;
  std::map<std::string, std::uint64_t> wc_status;
  std::vector<CompletionEvent> events;
  std::map<std::string, sim::Picos> marks;
  CpuMeter cpu;  ///< its steps
  std::vector<FailedStep> failures;
  std::string plugin;            ///< its file, when it is not a list of steps
  std::optional<int> exit_code;  ///< of its main(), when that has ended
};

/// Q_Key of UD queue pairs that declare none.
inline constexpr std::uint32_t kDefaultQkey = 0x11111111;

/// What programs share.
struct ProgramsBoard : StepObjects::Directory {
  /// Waits until every program that has this tag is here.
  virtual void meet(const std::string& tag) = 0;
  virtual void set_label(const std::string& program, const std::string& label) = 0;
  /// Waits until the label has been set that often; false when `timeout` (0 = none) came first.
  virtual bool wait_label(const std::string& label, std::uint64_t times, sim::Picos timeout) = 0;
  /// Kills the process of a program.
  virtual void kill(const std::string& program) = 0;
  /// Takes the adapter of a host away, without a wait for the end of that.
  virtual void remove_device(Host& host, bool surprise) = 0;
  virtual Host& host_named(const std::string& name, Host& fallback) = 0;
  /// Puts an event into the result; the name of its object.
  virtual std::string note_async_event(StepObjects& objects, const ibv_async_event& e) = 0;
};

class StepsProgram {
 public:
  StepsProgram(const std::string& name, const ProgramConfig& config, StepObjects& objects, ProgramsBoard& board,
               ProgramRecord& record);
  /// From the first step to the last, on cpu::current(). False when a step failed.
  bool run();
  /// It ended by a step `exit`.
  bool exited() const { return exited_; }
  /// Brings a QP from its state to `to`, one step of the state machine after the other: 0 or an errno.
  static int connect(StepObjects& objects, const Name& qp, ibv_qp_state from, ibv_qp_state to);

 private:
  bool run(const std::vector<StepConfig>& steps, const std::string& path);
  bool repeat(const LoopStep& loop, const std::string& path);
  void run_one(const StepConfig& step);
  /// The action of a step: what the call returned.
  int perform(const StepConfig& step);

  // Data path (steps_data.cpp)
  int post_send(const PostSendStep& s);
  int post_chain(const PostSendStep& s);
  int post_recv(const PostRecvStep& s);
  int poll(const PollStep& s);
  int arm(const ArmStep& s);
  int get_event(const GetEventStep& s);
  int wait_events(const WaitEventsStep& s);
  void watch(const std::vector<int>& fds, std::uint32_t events);
  int change_address(const AddressStep& s);
  int ack(const AckStep& s);
  int get_async_event(const GetAsyncStep& s);
  int ack_async_events(const Name& object);
  ibv_sge sge(const SgeConfig& c);
  void fill(ibv_send_wr& wr, const SendWrConfig& c);
  void note(const ibv_wc& wc, const std::string& cq);
  void compare(const ibv_wc& wc, const WcConfig& expected, std::size_t i);

  // Queue pairs and other control (steps_control.cpp)
  int modify_qp(const ModifyQpStep& s);
  int query_qp(const QueryQpStep& s);
  int resize_cq(const ResizeCqStep& s);
  int modify_srq(const SrqStep& s);
  int query_srq(const SrqStep& s);
  int mcast(const McastStep& s, bool attach);
  int bind_mw(const BindMwStep& s);
  void check(const AssertStep& s);
  ibv_mw_bind_info bind_info(const BindConfig& c);

  // Memory and time (steps_memory.cpp)
  std::span<std::byte> bytes_of(const MemoryStep& m);
  std::string difference(const MemoryStep& m);
  void store(const MemoryStep& m);
  int wait(const WaitStep& s);

  const std::string name_;
  const ProgramConfig& config_;
  StepObjects& objects_;
  ProgramsBoard& board_;
  ProgramRecord& record_;
  bool exited_ = false;
  int epoll_ = -1;                        // descriptor of its epoll instance
  std::map<int, std::uint32_t> watched_;  // its interest list: events by descriptor
};

}  // namespace sys
