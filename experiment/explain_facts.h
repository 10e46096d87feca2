// SPDX-License-Identifier: Apache-2.0
// How the diagnoses of explain look at a result: figures with their pointers, the configuration behind them, and which
// object of a scenario talks to which. Nothing here judges.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/explain.h"

namespace experiment {

/// "program.name" taken apart.
struct ObjectName {
  std::string program, name;
  bool empty() const { return program.empty(); }
};

/// A send or receive WR as the scenario writes it, found again by its queue pair and wr_id.
struct PostedWr {
  std::string path;               ///< configuration path of the WR
  const sim::Json* wr = nullptr;  ///< nullptr when it could not be found
};

class Facts {
 public:
  explicit Facts(const sim::Json& result) : result_(result) {}

  const sim::Json& result() const { return result_; }
  const sim::Json::Array& workloads() const { return result_.find("workloads")->items(); }
  const sim::Json::Object& programs() const { return result_.find("programs")->members(); }
  const sim::Json::Array& stuck() const { return result_.find("stuck")->items(); }
  std::string verdict() const { return result_.find("verdict")->string(); }

  /// The value at a pointer, nullptr when there is none; also for a pointer that a strange name has spoilt.
  const sim::Json* at(const std::string& pointer) const;
  /// The number there, 0 when there is none.
  double number(const std::string& pointer) const;
  double counter(const std::string& path) const { return number("/counters/" + path); }
  double utilisation(const std::string& path) const { return number("/utilisation/" + path); }
  /// Sum of a counter over all hosts ("hca.requester.timeouts").
  double counter_of_hosts(const std::string& name) const;

  std::size_t hosts() const;
  /// Number of the host of that name; 0 when it is empty.
  std::size_t host_number(const std::string& name) const;
  std::string host_name(std::size_t number) const;
  std::size_t host_of_program(const std::string& program) const;

  /// The configured value at a path ("workloads.0.size"), nullptr when the scenario does not say it.
  const sim::Json* config(const std::string& path) const;
  double config_number(const std::string& path, double otherwise = 0) const;
  std::string config_text(const std::string& path) const;
  /// Of a code of five bits, such as min_rnr_timer.
  unsigned config_code(const std::string& path, unsigned otherwise) const;
  /// Cores of a host, by number.
  unsigned cores(std::size_t host) const;
  /// Of a time, in nanoseconds.
  double config_ns(const std::string& path) const;
  bool config_true(const std::string& path) const;

  /// Figures for a diagnosis.
  Evidence counted(const std::string& counter, const std::string& says) const;
  Evidence found(const std::string& pointer, const std::string& says) const;
  Evidence configured(const std::string& path, const std::string& says) const;
  static Evidence derived(double value, const std::string& says);
  /// An advice whose present values are looked up.
  Advice turn(const std::string& path, sim::Json to, const std::string& why) const;
  Advice turn_all(const std::vector<std::string>& paths, const sim::Json& to, const std::string& why) const;

  /// Paths of every queue pair that the scenario declares ("programs.client.qp.qp") on a host, or on all (-1).
  std::vector<std::string> qp_paths(int host) const;
  /// The program whose process owns the objects of `program`.
  std::string owner(const std::string& program) const;
  /// The queue pair at the other end, empty when nobody is named.
  ObjectName peer_of(const ObjectName& qp) const;
  static std::string qp_path(const ObjectName& qp);
  static ObjectName object_name(const std::string& dotted);
  /// The WR with that wr_id on a queue pair; `list` is post_send or post_recv.
  PostedWr find_wr(const ObjectName& qp, const char* list, double wr_id) const;
  /// WRs that the steps post to a queue pair with `list`, of all opcodes or of those that take a receive at the peer.
  double posted(const ObjectName& qp, const char* list, bool only_with_receive) const;
  /// Each step of a program, loops entered once, with its path.
  void for_each_step(const std::string& program,
                     const std::function<void(const std::string& path, const sim::Json& step, double times)>& f) const;

  /// Of a workload: the numbers of its hosts, its sides' pointers.
  std::size_t client_host(std::size_t workload) const;
  std::size_t server_host(std::size_t workload) const;

 private:
  const sim::Json& result_;
};

/// "655.36 ms", "1.5 us": at most five digits and the largest unit that keeps them above one.
std::string time_text(double ns);
/// A whole number for an advice.
sim::Json whole(double v);
/// At most `digits` significant digits, without an exponent.
std::string number_text(double v, int digits = 4);
std::string percent(double share);
/// Nanoseconds of an RNR timer code (S-PKT-11).
double rnr_timer_ns(unsigned code);
/// Nanoseconds of a local ACK timeout (S-RC-40); 0 for 0, which is never.
double ack_timeout_ns(unsigned exponent);

}  // namespace experiment
