// SPDX-License-Identifier: Apache-2.0
// Configuration of the RC transport: what the specification leaves open and where devices differ.
#pragma once

#include <string_view>

#include "sim/config.h"
#include "sim/units.h"

namespace hca {

/// How long a requester waits for an answer, and how often it tries (timeout.h).
enum class TimeoutModel : std::uint8_t { ibta, mlx5_default, mlx5_nolimit };

struct TransportConfig {
  TimeoutModel timeout_model = TimeoutModel::ibta;
  double ibta_factor = 1;
  double nolimit_slack = 0.8;
  bool adaptive_retrans = false;
  sim::Picos adaptive_first{2'000'000'000};
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
    v("atomic_execute", c.atomic_execute, "from an atomic's operand being read to its result being written",
      sim::assumed("no published figure"));
  }
};

}  // namespace hca

template <>
struct sim::EnumNames<hca::TimeoutModel> {
  static constexpr std::array<std::pair<hca::TimeoutModel, std::string_view>, 3> values{
      {{hca::TimeoutModel::ibta, "ibta"},
       {hca::TimeoutModel::mlx5_default, "mlx5_default"},
       {hca::TimeoutModel::mlx5_nolimit, "mlx5_nolimit"}}};
};
