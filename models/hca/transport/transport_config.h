// SPDX-License-Identifier: Apache-2.0
// Configuration of the RC transport: what the specification leaves open and where devices differ.
#pragma once

#include <string_view>

#include "sim/config.h"
#include "sim/units.h"

namespace hca {

/// How long a requester waits for an answer, and how often it tries (timeout.h).
enum class TimeoutModel : std::uint8_t { ibta, mlx5_default, mlx5_nolimit };

/// The event that tells of an operation which the QP's access flags forbid (S-ERR-4).
enum class ForbiddenEvent : std::uint8_t { access_error, request_error };
/// How a READ or atomic ends whose result cannot be placed (S-ERR-15).
enum class ResultFault : std::uint8_t { protection_error, access_error };

struct TransportConfig {
  TimeoutModel timeout_model = TimeoutModel::ibta;
  double ibta_factor = 1;
  double nolimit_slack = 0.8;
  bool adaptive_retrans = false;
  sim::Picos adaptive_first{2'000'000'000};
  sim::Picos ack_coalescing{0};
  bool silent_after_rnr_nak = true;
  ForbiddenEvent forbidden_event = ForbiddenEvent::access_error;
  ResultFault result_fault = ResultFault::protection_error;
  sim::Picos atomic_execute{20'000};

  template <class Self, class V>
  static void fields(Self& c, V&& v) {
    v("timeout_model", c.timeout_model, "local ACK timeout: as specified, or as measured on a ConnectX-6",
      sim::spec("local ACK timeout of the IBTA"));
    v("ibta_factor", c.ibta_factor, "where in the tolerance [T, 4 T] of the specification the timer of `ibta` fires",
      sim::assumed("the lower end"), sim::Range{1, 4});
    v("nolimit_slack", c.nolimit_slack, "by how many T the first wait of `mlx5_nolimit` exceeds T",
      sim::measured("0.5 to 1.16 on a ConnectX-6 whose min_ack_timeout_limit is disabled"), sim::Range{0, 4});
    v("adaptive_retrans", c.adaptive_retrans,
      "early retransmissions ahead of the timer, at doubling intervals up to T; they spend no retry",
      sim::assumed("off, so that timeouts are those of the specification"));
    v("adaptive_first", c.adaptive_first, "first interval of adaptive_retrans",
      sim::measured("captures of a ConnectX-5: 2, 4, 8, 16 ms"), sim::Range{4e6, 1e12});
    v("ack_coalescing", c.ack_coalescing,
      "how long an acknowledgement waits for later ones, which then stand for it; 0 = each request that asks gets its "
      "own",
      sim::assumed("no published figure"));
    v("silent_after_rnr_nak", c.silent_after_rnr_nak,
      "packets that follow an RNR NAK of the same burst earn no sequence NAK", sim::assumed("devices differ"));
    v("forbidden_event", c.forbidden_event, "asynchronous event for an operation that the QP's access flags forbid",
      sim::assumed("devices differ"));
    v("result_fault", c.result_fault, "status of a READ or atomic whose result cannot be placed",
      sim::assumed("devices differ"));
    v("atomic_execute", c.atomic_execute, "from an atomic's operand being read to its result being written",
      sim::assumed("no published figure"));
  }
};

}  // namespace hca

template <>
struct sim::EnumNames<hca::ForbiddenEvent> {
  static constexpr std::array<std::pair<hca::ForbiddenEvent, std::string_view>, 2> values{
      {{hca::ForbiddenEvent::access_error, "access_error"}, {hca::ForbiddenEvent::request_error, "request_error"}}};
};
template <>
struct sim::EnumNames<hca::ResultFault> {
  static constexpr std::array<std::pair<hca::ResultFault, std::string_view>, 2> values{
      {{hca::ResultFault::protection_error, "protection_error"}, {hca::ResultFault::access_error, "access_error"}}};
};
template <>
struct sim::EnumNames<hca::TimeoutModel> {
  static constexpr std::array<std::pair<hca::TimeoutModel, std::string_view>, 3> values{
      {{hca::TimeoutModel::ibta, "ibta"},
       {hca::TimeoutModel::mlx5_default, "mlx5_default"},
       {hca::TimeoutModel::mlx5_nolimit, "mlx5_nolimit"}}};
};
