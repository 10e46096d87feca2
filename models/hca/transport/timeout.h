// SPDX-License-Identifier: Apache-2.0
// The local ACK timeout in three models. A wait runs from a transmission to its expiry; progress starts over at the first.
//   ibta          every wait is ibta_factor * T, T = 4.096 us * 2^timeout; every expiry spends a retry (S-RC-40…44)
//   mlx5_nolimit  the same with T, but the first wait is longer by nolimit_slack * T
//   mlx5_default  a ConnectX-6 with its factory settings: a phase of early retransmissions that spends one retry as a whole,
//                 then waits of twice T, where T is at least that of timeout 16; the last retry is no transmission (S-RC-60)
#pragma once

#include <cstdint>

#include "hca/transport/transport_config.h"

namespace hca {

/// One wait for an answer.
struct AckWait {
  sim::Picos duration{0};
  bool spends_retry = true;  ///< its expiry
};

/// T of a timeout code 1..31 (S-RC-40).
sim::Picos nominal_timeout(std::uint8_t timeout);
/// The wait that follows `expiries` expiries without progress.
AckWait ack_wait(const TransportConfig& config, std::uint8_t timeout, std::uint8_t retry_count, std::uint32_t expiries);
/// Whether an expiry that spends a retry ends the WQE when `retries_left` are left.
bool gives_up(const TransportConfig& config, std::uint8_t retries_left);

}  // namespace hca
