// SPDX-License-Identifier: Apache-2.0
// All step programs of a scenario: their processes and threads, their common start, and what they share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "system/plugin.h"
#include "system/scenario.h"
#include "system/steps_program.h"
#include "system/workload.h"

namespace sys {

class Programs : private ProgramsBoard {
 public:
  /// What a program waits for when it has done its steps; no news in a report about who holds up whom.
  static constexpr const char* kWaitsForOthers = "the end of the other programs";

  /// `flow` numbers the first of them in journeys; each has its own.
  Programs(const ScenarioConfig& scenario, std::vector<std::unique_ptr<Host>>& hosts, std::uint32_t flow,
           std::vector<AsyncEventRecord>& async_events, std::function<void()> on_first_step);
  ~Programs() override;

  /// Starts all threads at time t.
  void start(sim::Picos t);
  /// Every program has come to the end of its steps, or failed.
  bool finished() const;
  sim::Picos finished_at() const;
  bool failed() const;
  const std::vector<std::unique_ptr<ProgramRecord>>& records() const { return records_; }
  /// "program.name" of an object of this process, empty if no program has declared it.
  std::string name_of(const Process& process, const void* handle) const;
  /// Where the program of this name is: the path of its step.
  std::string place_of(const std::string& program) const;
  /// Addresses of the MRs that a program's process has had, by name.
  const std::map<std::string, MrAddresses>& addresses(const std::string& program) { return of(program).addresses(); }

 private:
  struct Meeting {
    std::size_t expected = 0, here = 0;
    std::vector<cpu::Thread*> waiting;
  };
  struct Label {
    std::uint64_t times = 0;
    std::vector<cpu::Thread*> waiting;
  };

  StepObjects& of(const std::string& program) override;
  void meet(const std::string& tag) override;
  void set_label(const std::string& program, const std::string& label) override;
  bool wait_label(const std::string& label, std::uint64_t times, sim::Picos timeout) override;
  void kill(const std::string& program) override;
  void remove_device(Host& host, bool surprise) override;
  Host& host_named(const std::string& name, Host& fallback) override;
  std::string note_async_event(StepObjects& objects, const ibv_async_event& e) override;

  void create_process(const std::string& name, const ProgramConfig& config, std::uint32_t flow);
  void create_thread(std::size_t index);
  void body(std::size_t index);
  void set_up(const std::string& name);
  void watch_async_events(const std::string& name);
  /// A program that ends early: its end is not waited for.
  void leave();
  /// A program that was killed: nobody waits for it any more, and it waits for nobody.
  void forget(std::size_t index);
  void life(std::size_t index);
  void prepare(std::size_t index);
  void run_plugin(std::size_t index);
  static void release_if_complete(Meeting& meeting);

  const ScenarioConfig& scenario_;
  std::vector<std::unique_ptr<Host>>& hosts_;
  std::vector<AsyncEventRecord>& async_events_;
  std::function<void()> on_first_step_;
  std::vector<std::uint32_t> gid_indices_;
  std::vector<std::string> names_;
  std::map<std::string, std::unique_ptr<StepObjects>> objects_;  ///< by the program that owns the process
  std::map<std::string, Plugin> plugins_;
  std::vector<std::unique_ptr<ProgramRecord>> records_;
  std::vector<cpu::Thread*> threads_;
  std::map<std::string, Meeting> meetings_;
  std::map<std::string, Label> labels_;
};

}  // namespace sys
