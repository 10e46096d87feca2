// SPDX-License-Identifier: Apache-2.0
// What the device's queues hold and wait for, for the report of a run that cannot go on.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/units.h"

namespace hca {

struct QpReport {
  std::uint32_t qpn = 0;
  bool error = false;            ///< in ERR
  bool starts_wqes = false;      ///< in a state that starts send WQEs
  std::uint32_t unstarted = 0;   ///< send WQEBBs posted and not started
  std::size_t unanswered = 0;    ///< send WQEs started and not completed
  bool rnr_waiting = false;      ///< between an RNR NAK and the next attempt
  std::uint8_t rnr_retry = 0;    ///< 7 = for ever
  bool ack_timer = false;        ///< the ACK timeout runs: an answer or an error will come
  std::uint8_t ack_timeout = 0;  ///< exponent, 0 = no timeout
};

struct CqReport {
  std::uint32_t cqn = 0;
  bool armed = false, solicited_only = false;
  bool overrun = false;
};

struct Report {
  std::vector<QpReport> qps;
  std::vector<CqReport> cqs;
  const QpReport* qp(std::uint32_t qpn) const;
  const CqReport* cq(std::uint32_t cqn) const;
};

struct Device;
/// By number.
Report report_of(Device& device);

}  // namespace hca
